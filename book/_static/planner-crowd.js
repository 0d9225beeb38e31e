// What each architecture sustains when requests arrive at random: the package's own search over its own simulator, one
// simulation after the other between two frames.
window.inferenceMathCrowd = (() => {
  "use strict";
  const math = window.inferenceMath;
  const { crowd } = math.data;
  const ROOM = 12; // ms of a frame

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
  // Asks again after each run that was wanted; null until nothing is.
  const asking = (ask) => () => {
    try { return ask(); } catch (wanted) {
      if (!(wanted instanceof Wanted)) throw wanted;
      wanted.run();
      return null;
    }
  };

  // One size of a replica, as `planner.traffic` takes it: first what it may be hoped to sustain, and with which row; then
  // the draws that decide and the rates under them. `played` is how arrivals scatter, which share must be within both
  // limits, and whose tokens requests have.
  const replica = (asked, name, careful, solved, paces, slow, { cv, share, like }) => {
    const units = math.units_of(asked, name);
    const gpus = units * asked.unit.gpus;
    const rows = math.trials(asked, name, careful);
    const systems = rows.map((row) => math.system_for(asked, name, row));
    const tops = rows.map((row) => solved.map((one) => math.full(asked, name, row, one.mixed)));
    const drawn = [crowd.gaps[cv], crowd.lengths, like];
    const reach = remembering((row, draw) => math.reached(asked, systems[row], paces[draw], ...drawn, tops[row], draw, share));
    const hoped = asking(() => math.robust(rows.length, slow, reach));
    const settled = (chosen) => {
      const order = math.by_speed(asked, name, careful, solved);
      const places = asking(() => math.decisive(order, (draw) => reach(chosen, draw)));
      let rates;
      return () => {
        if (rates) return rates();
        const at = places();
        if (!at) return null;
        const good = remembering((place, each) => math.share_of(asked, systems[chosen], paces[at[place]], ...drawn, crowd.requests, each, share) >= share);
        rates = asking(() => {
          const [each, fast, slowest] = math.sustained(at.map((i) => tops[chosen][i]), good);
          const idle = each > 0 ? NaN : math.idle_share(asked, systems[chosen], paces[at[0]], ...drawn, crowd.requests);
          return { name, asked, units, gpus, each, fast, slow: slowest, idle, row: rows[chosen] };
        });
        return null;
      };
    };
    return { gpus, hoped, settled };
  };

  // A replica of the size with which the fewest GPUs serve the traffic, or with which the GPUs that there are serve most.
  const sized = (asked, name, solved, drawn, played, { traffic, have }) => {
    const careful = math.careful(asked, name, solved);
    const slow = math.corners(asked, name, careful, solved);
    const paces = drawn.map((one) => math.pace_of(asked, ...one));
    const waiting = traffic > 0 || have > 0 ? math.sizes(asked, name, careful, solved[slow[0]].mixed, traffic, have) : [];
    const of = (units) => replica(math.of_units(asked, units), name, careful, solved, paces, slow, played);
    const all = (waiting.length ? waiting.map(([, units]) => units) : [asked.units]).map(of);
    const gpusOf = (each, one) => math.cost(each, one.gpus, traffic, have);
    const hopes = [];
    let order, running, best;
    let least = Infinity;
    return () => {
      if (!order) {
        const hoped = all[hopes.length].hoped();
        if (hoped) hopes.push({ one: all[hopes.length], row: hoped[0], cost: gpusOf(hoped[1], all[hopes.length]) });
        if (hopes.length === all.length) order = [...hopes].sort((a, b) => (a.cost === b.cost ? 0 : a.cost - b.cost));
        return null;
      }
      if (!running) {
        if (best && (!order.length || order[0].cost >= least)) return best;
        const next = order.shift();
        running = next.one.settled(next.row);
      }
      const found = running();
      if (!found) return null;
      const its = math.cost(found.each, found.gpus, traffic, have);
      if (!best || its < least) [best, least] = [found, its];
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
