// What each architecture sustains when requests arrive at random: the package's own search over its own simulator, one
// simulation after the other between two frames.
window.inferenceMathCrowd = (() => {
  "use strict";
  const math = window.inferenceMath;
  const { crowd } = math.data;
  const ROOM = 12; // ms of a frame

  // A simulation that the search asks for and that nobody has run yet.
  class Wanted { constructor(key, ...what) { this.key = key; this.what = what; } }

  // The search of `planner.traffic` for one size of a replica: it is begun again with each simulation that it was
  // waiting for. `played` is how arrivals scatter, which share must be within both limits, and whose tokens requests have.
  const search = (asked, name, { careful, paces, steps }, { cv, share, like }) => {
    const rows = math.trials(asked, name, careful);
    const systems = rows.map((row) => math.system_for(asked, name, row));
    const tops = steps.map((step) => rows.map((row) => math.full(asked, name, row, step)));
    const units = math.units_of(asked, name);
    const known = new Map();
    const good = (pace, row, each) => {
      const key = [pace, row, each].join();
      if (!known.has(key)) throw new Wanted(key, pace, row, each);
      return known.get(key);
    };
    return () => {
      try {
        const [chosen, each, fast, slow] = math.sustained(tops, good);
        const idle = each > 0 ? NaN : math.idle_share(asked, systems[chosen], paces[0], crowd.gaps[cv], crowd.lengths, like, crowd.requests);
        return { name, asked, units, gpus: units * asked.unit.gpus, each, fast, slow, idle, row: rows[chosen] };
      } catch (wanted) {
        if (!(wanted instanceof Wanted)) throw wanted;
        const [pace, row, each] = wanted.what;
        const kept = math.share_of(asked, systems[row], paces[pace], crowd.gaps[cv], crowd.lengths, like, crowd.requests, each, share);
        known.set(wanted.key, kept >= share);
        return null;
      }
    };
  };

  // A replica of the size with which the fewest GPUs serve the traffic, or with which the GPUs that there are serve most.
  const sized = (asked, name, solved, drawn, played, { traffic, have }) => {
    const careful = math.careful(asked, name, solved);
    const places = math.paces(asked, name, careful, solved);
    const of = { careful, paces: places.map((i) => math.pace_of(asked, ...drawn[i])), steps: places.map((i) => solved[i].mixed) };
    const waiting = traffic > 0 || have > 0 ? math.sizes(asked, name, careful, of.steps[0], traffic, have) : [];
    const last = search(asked, name, of, played); // where no size is worth a try, or none serves any
    let best, running;
    let least = Infinity;
    return () => {
      if (!running) {
        if (!waiting.length || waiting[0][0] >= least) return best ?? last();
        running = search(math.of_units(asked, waiting.shift()[1]), name, of, played);
      }
      const one = running();
      if (!one) return null;
      const its = math.cost(one.each, one.gpus, traffic, have);
      if (its < least) [best, least] = [one, its];
      running = null;
      return null;
    };
  };

  // `tell` gets what each architecture sustains, as far as it meets the SLA; nothing, once `stale` says so.
  const sustain = (asked, names, solved, drawn, played, goal, stale, tell) => {
    const waiting = names.map((name) => sized(asked, name, solved, drawn, played, goal));
    const found = [];
    const go = () => {
      if (stale()) return;
      const until = performance.now() + ROOM;
      while (waiting.length && performance.now() < until) {
        const one = waiting[0]();
        if (one) { found.push(one); waiting.shift(); }
      }
      if (waiting.length) setTimeout(go); else tell(found);
    };
    setTimeout(go);
  };

  // Fleets for some traffic, the fewest GPUs first; or what so many GPUs serve, the most first.
  const fleets = (sustained, { traffic, have }) => {
    const made = sustained.filter((one) => one.each > 0).map((one) => {
      const many = have ? Math.floor(have / one.gpus) : Math.ceil(traffic / one.each);
      const ends = [one.fast, one.slow].map((each) => (each > 0 ? Math.ceil(traffic / each) : Infinity) * one.gpus);
      return { ...one, many, rate: have ? many * one.each : traffic, all: many * one.gpus, low: Math.min(ends[0], many * one.gpus), high: Math.max(ends[1], many * one.gpus) };
    });
    return have ? made.filter((one) => one.many > 0).sort((a, b) => b.rate - a.rate) : made.sort((a, b) => a.all - b.all);
  };

  return { sustain, fleets };
})();
