// What each architecture sustains when requests arrive at random: the package's own search over its own simulator, one
// simulation after the other between two frames.
window.inferenceMathCrowd = (() => {
  "use strict";
  const math = window.inferenceMath;
  const { data } = math;

  // A simulation that the search asks for and that nobody has run yet.
  class Wanted { constructor(run) { this.run = run; } }
  // Remembers what has been run of `compute`; what has not is wanted first.
  const remembering = (compute) => {
    const known = new Map();
    return (...what) => {
      const key = what.join();
      if (!known.has(key)) throw new Wanted(() => known.set(key, compute(...what)));
      return known.get(key);
    };
  };
  const remembered = (compute) => {
    const known = new Map();
    return (...what) => {
      const key = what.join();
      if (!known.has(key)) known.set(key, compute(...what));
      return known.get(key);
    };
  };

  // Asks until nothing is wanted any more, one simulation between two frames.
  const asking = function* (compute) {
    for (;;) {
      try {
        return compute();
      } catch (wanted) {
        if (!(wanted instanceof Wanted)) throw wanted;
        wanted.run();
        yield;
      }
    }
  };

  // What plays replicas of a plan, and remembers what it played.
  const hosted = ({ asked: planned, solved, drawn }, played, { traffic, have, cv }) => {
    // Answers scatter as geometric ones do, be it that those of a plan are equal: fewer fit at once.
    const asked = { ...planned, work: { ...planned.work, cv: math.geometric_cv(planned.work.n_out) } };
    const places = math.representative(asked, solved.costs);
    const draws = places.map((i, place) => ({ pace: math.pace_of(asked, ...drawn[i]), prefill: math.prefill_pace(asked, ...drawn[i]), front: solved.costs[i].front, place }));
    const of = remembered((units) => math.of_units(asked, units));
    // Settings are chosen under the draws that stand for all.
    const candidates = math.candidates(asked, places.length === drawn.length ? solved : math.solve(planned, places.map((i) => drawn[i])));
    const rowsOf = remembered((name, units) => math.trials(of(units), name, candidates[name]));
    const host = {
      rows: (name, units) => rowsOf(name, units).length,
      top: remembered((name, units, row, place) => math.full(of(units), name, rowsOf(name, units)[row], solved.costs[places[place]])),
      play: remembering((name, units, row, place, rate, enough) =>
        math.played(of(units), math.system_for(of(units), name, rowsOf(name, units)[row]), draws[place], played, rate, math.replicas_sharing(cv, traffic, have, units * asked.unit.gpus, rate), enough)),
    };
    const names = Object.keys(candidates);
    const holds = names.every((name) => math.longest_fits(played.like, math.system_for(asked, name, candidates[name])));
    return { asked, host, names, holds, count: places.length, of, rowsOf, rates: solved.rates };
  };

  // The fleets of all architectures, as `fleets.traffic` finds them, and which of them takes the fewest GPUs.
  const sized = function* (found, played, goal) {
    const { asked, host, names, count, of, rowsOf } = hosted(found, played, goal);
    const fleets = {};
    for (const name of names) {
      const one = yield* asking(() => math.standing(asked, host, name, goal.traffic, goal.have, count));
      fleets[name] = { ...one, asked: of(one.units), settings: rowsOf(name, one.units)[one.row] };
    }
    return { ...math.crowd(fleets, goal.traffic, goal.have, count, asked.doubts), fleets };
  };

  // Whether replicas keep the promise with next to nothing to do: if none does, no number of them keeps it under load.
  const able = function* ({ asked, host, names, count }) {
    for (const name of names) {
      const units = math.sizes_of(asked, name)[0];
      for (let row = 0; row < host.rows(name, units); row++) {
        let spare = count - 1 - math.slow_places(count);
        for (let at = 0; at < count && spare >= 0; at++) {
          const [score] = yield* asking(() => host.play(name, units, row, at, data.idle, 1));
          if (score < 1) spare -= 1;
        }
        if (spare >= 0) return true;
      }
    }
    return false;
  };

  // As `traffic.least_of`: what the best architecture of a plan costs, if that is less than a bar; else infinity.
  const least = function* (found, played, goal, bar) {
    const hosted_ = hosted(found, played, goal);
    const { asked, host, names, count, rates } = hosted_;
    if (!hosted_.holds || !(yield* able(hosted_))) return Infinity;
    const order = names.sort((a, b) => math.median(rates[b]) - math.median(rates[a]));
    let lowest = bar;
    for (const name of order) {
      const before = lowest;
      lowest = yield* asking(() => math.least_of(asked, host, name, goal.traffic, goal.have, count, before));
    }
    return lowest < bar ? lowest : Infinity;
  };

  // Mean TTFT and TPOT that nine in ten draws keep with next to nothing to do, of the architecture that strains its
  // limits least.
  const idle = function* (found, played, goal) {
    const { asked, host, names, count } = hosted(found, played, goal);
    const seen = [];
    for (const name of names) {
      const units = math.sizes_of(asked, name)[0];
      const told = yield* asking(() => [...Array(count).keys()].map((at) => host.play(name, units, 0, at, data.idle, 0)));
      seen.push([1, 2].map((i) => told.map((one) => one[i]).sort((a, b) => a - b)[math.slow_places(count)]));
    }
    const strained = ([ttft, tpot]) => Math.max(ttft / asked.ttft, tpot / asked.tpot);
    return seen.sort((a, b) => strained(a) - strained(b))[0];
  };

  // The layout that answers best with queues counted, as `layouts.size` tries them; undefined where none does.
  const laid = function* (tried, { question, draws }, played, goal) {
    const looks = [];
    for (const given of tried) {
      const [asked, drawn] = [question(given), draws(given)];
      const few = math.representative(asked, math.drawn_costs(asked, drawn)).map((i) => drawn[i]);
      looks.push({ given, asked, drawn: few, solved: math.solve(asked, few) });
      yield;
    }
    const served = looks.map(({ asked, solved }) => Math.max(0, ...math.rates_that_fit(solved, asked.unit.gpus, goal.have).map(([, rate]) => rate)) / asked.unit.gpus);
    const first = math.firsts(looks.map(({ given }) => Number(given.tp)), served).map((i) => looks[i]);
    const hoped = new Map(first.map((one) => [one, math.expected_cost(one.solved, one.asked.unit.gpus, goal.traffic, goal.have)]));
    first.sort((a, b) => hoped.get(a) - hoped.get(b) || 0);
    const costs = [];
    for (const one of first) costs.push(yield* least(one, played, goal, Math.min(Infinity, ...costs)));
    const best = costs.indexOf(Math.min(...costs));
    return first[best]?.given;
  };

  // Whether the KV cache of a unit has room for the longest of recorded requests.
  const holds = (found, played, goal) => !played.like.length || hosted(found, played, goal).holds;

  // What a form promises, of how many requests, and what is played for it: requests `like` recorded ones, or none.
  const shareOf = (given) => (given.promise === "usual" ? data.crowd.share : Number(given.promise) || 0);
  const playedOf = (given, like) => ({ gaps: data.crowd.gaps, cv: Number(given.arrivals), lengths: data.crowd.lengths, like, share: shareOf(given) });

  return { sized, least, idle, laid, holds, shareOf, playedOf };
})();
