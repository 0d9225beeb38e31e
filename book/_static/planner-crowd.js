// What each architecture sustains when requests arrive at random: the package's own search over its own simulator, one
// simulation after the other between two frames.
window.inferenceMathCrowd = (() => {
  "use strict";
  const math = window.inferenceMath;

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

  // The fleets of all architectures, as `fleets.traffic` finds them, and which of them takes the fewest GPUs.
  const sized = function* ({ asked: planned, solved, drawn }, played, { traffic, have, cv }) {
    // Answers scatter as geometric ones do, be it that those of a plan are equal: fewer fit at once.
    const asked = { ...planned, work: { ...planned.work, cv: math.geometric_cv(planned.work.n_out) } };
    const places = math.representative(asked, solved.costs);
    const draws = places.map((i, place) => ({ pace: math.pace_of(asked, ...drawn[i]), front: solved.costs[i].front, place }));
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
    const fleets = {};
    for (const name of Object.keys(candidates)) {
      while (!fleets[name]) {
        try {
          const one = math.standing(asked, host, name, traffic, have, places.length);
          fleets[name] = { ...one, asked: of(one.units), settings: rowsOf(name, one.units)[one.row] };
        } catch (wanted) {
          if (!(wanted instanceof Wanted)) throw wanted;
          wanted.run();
          yield;
        }
      }
    }
    return { ...math.crowd(fleets, traffic, have, places.length), fleets };
  };

  return { sized };
})();
