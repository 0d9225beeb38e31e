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
    // Units that do both, or those of pools: the draws that stand for all of them, and the settings under these.
    const side = (asked_, costs, handover) => {
      const places = math.representative(asked_, costs);
      const draws = places.map((i, place) => ({ pace: math.pace_of(asked_, ...drawn[i]), prefill: math.prefill_pace(asked_, ...drawn[i]), front: costs[i].front + handover, place }));
      const { settings } = places.length === drawn.length ? solved : math.solve(planned, places.map((i) => drawn[i]));
      return { asked: asked_, places, draws, settings, costs };
    };
    const together = side(asked, solved.costs, 0);
    const apart = side(math.of_architecture(asked, "disaggregated"), solved.pool_costs, asked.handover);
    const sideOf = (name) => (name === "disaggregated" ? apart : together);
    const of = remembered((name, units) => math.of_units(sideOf(name).asked, units));
    const candidates = math.candidates(asked, Object.fromEntries(solved.order.map((name) => [name, sideOf(name).settings[name]])));
    const rowsOf = remembered((name, units) => math.trials(of(name, units), name, candidates[name]));
    const host = {
      rows: (name, units) => rowsOf(name, units).length,
      top: remembered((name, units, row, place) => math.full(of(name, units), name, rowsOf(name, units)[row], sideOf(name).costs[sideOf(name).places[place]])),
      play: remembering((name, units, row, place, rate, enough) => {
        const own = of(name, units);
        const sharing = math.replicas_sharing(cv, traffic, have, math.replica_gpus(own, name, units, row), rate);
        return math.played(own, math.system_for(own, name, rowsOf(name, units)[row]), sideOf(name).draws[place], played, rate, sharing, enough);
      }),
    };
    const names = Object.keys(candidates);
    const holds = names.every((name) => math.longest_fits(played.like, math.system_for(sideOf(name).asked, name, candidates[name])));
    return { asked, host, names, holds, count: together.places.length, of, rowsOf, solved };
  };

  // The fleets of all architectures, as `fleets.traffic` finds them, and which of them takes the fewest GPUs.
  const sized = function* (found, played, goal) {
    const { asked, host, names, count, of, rowsOf } = hosted(found, played, goal);
    const fleets = {};
    for (const name of names) {
      const one = yield* asking(() => math.standing(asked, host, name, goal.traffic, goal.have, count));
      fleets[name] = { ...one, asked: of(name, one.units), settings: rowsOf(name, one.units)[one.row] };
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
  const least = function* (found, played, goal, bar, asks = () => true) {
    const hosted_ = hosted(found, played, goal);
    hosted_.names = hosted_.names.filter(asks);
    const { asked, host, names, count, solved } = hosted_;
    if (!hosted_.holds || !(yield* able(hosted_))) return Infinity;
    const order = names.sort((a, b) => math.told_rate(solved, b)[0] - math.told_rate(solved, a)[0]);
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

  // The layouts that answer best with queues counted, as `layouts.size` tries them; undefined where none does.
  const laid = function* (tried, { question, draws, bestPairs, joined }, played, goal) {
    const looks = [];
    for (const [names, ones] of [[data.together, tried], [data.apart, bestPairs(tried)]]) {
      const own = [];
      for (const given of ones) {
        const [asked, drawn] = [question(given), draws(given)];
        const few = math.representative(asked, math.drawn_costs(asked, drawn)).map((i) => drawn[i]);
        own.push({ given, names, asked, drawn: few, solved: math.solve(asked, few) });
        yield;
      }
      const served = own.map(({ asked, solved }) => Math.max(0, ...math.rates_that_fit(asked, solved, names, goal.have).map(([, rate]) => rate)));
      looks.push(...math.firsts(own.map(({ given }) => Number(given.tp)), served).map((i) => own[i]));
    }
    const hoped = new Map(looks.map((one) => [one, math.expected_cost(one.asked, one.solved, one.names, goal.traffic, goal.have)]));
    looks.sort((a, b) => hoped.get(a) - hoped.get(b) || 0);
    const costs = new Map();
    for (const one of looks) costs.set(one, yield* least(one, played, goal, Math.min(Infinity, ...costs.values()), (name) => one.names.includes(name)));
    looks.sort((a, b) => costs.get(a) - costs.get(b) || 0);
    return joined(...[data.together, data.apart].map((names) => looks.find((one) => one.names === names)?.given));
  };

  // Whether the KV cache of a unit has room for the longest of recorded requests.
  const holds = (found, played, goal) => !played.like.length || hosted(found, played, goal).holds;

  // What a form promises, of how many requests, and what is played for it: requests `like` recorded ones, or none.
  const shareOf = (given) => (given.promise === "usual" ? data.crowd.share : Number(given.promise) || 0);
  const playedOf = (given, like) => ({ gaps: data.crowd.gaps, cv: Number(given.arrivals), lengths: data.crowd.lengths, like, share: shareOf(given) });

  return { sized, least, idle, laid, holds, shareOf, playedOf };
})();
