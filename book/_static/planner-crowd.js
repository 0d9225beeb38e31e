// What each architecture sustains when requests arrive at random: the package's own search over its own simulator, one
// simulation after the other between two frames.
window.inferenceMathCrowd = (() => {
  "use strict";
  const math = window.inferenceMath;
  const { data } = math;

  // A simulation waits for the next frame once one has run in this.
  class Waits {}
  let free = false;
  const pause = () => {
    if (!free) throw new Waits();
    free = false;
  };
  // Asks until nothing waits any more; what has been simulated is kept.
  const asking = function* (compute) {
    for (;;) {
      free = true;
      try {
        return compute();
      } catch (waits) {
        if (!(waits instanceof Waits)) throw waits;
        yield;
      }
    }
  };

  // What simulates replicas of a plan.
  const simulatorOf = ({ problem, solved, drawn }, played, goal) =>
    Object.assign(new math.ReplicaSimulator(problem, solved, drawn, { ...played, trace: [], goal }), { pause });

  // The fleets of all architectures, as `fleets.traffic` finds them, and which of them takes the fewest GPUs.
  const sized = function* (found, played, goal) {
    const simulator = simulatorOf(found, played, goal);
    const fleets = {};
    for (const name of Object.keys(simulator.settings)) {
      const one = yield* asking(() => math.best_fleet(simulator, name, goal));
      fleets[name] = { ...one, replica: simulator.replicas(name, one.units)[one.row] };
    }
    return { ...math.choose_fleet(fleets, goal, simulator.count, found.problem.gain_errors), fleets };
  };

  // As `queues.least_of`: what the best of some architectures of a plan costs, if that is less than a bar.
  const least = function* (found, played, goal, bar, names = found.solved.order) {
    const simulator = simulatorOf(found, played, goal);
    return yield* asking(() => math.least_of(simulator, names, goal, bar));
  };

  // Mean TTFT and TPOT that nine in ten draws keep with next to nothing to do, of the architecture that strains its
  // limits least.
  const idle = function* (found, played, goal) {
    const simulator = simulatorOf(found, played, goal);
    const seen = [];
    for (const name of Object.keys(simulator.settings)) seen.push(yield* asking(() => simulator.smallest(name).idle()));
    const strained = ([, ttft, tpot]) => Math.max(ttft / found.problem.ttft, tpot / found.problem.tpot);
    return seen.sort((a, b) => strained(a) - strained(b))[0].slice(1);
  };

  // The layouts that answer best with queues counted, as `layouts.size` tries them; undefined where none does.
  const laid = function* (tried, { question, draws, bestPairs, joined }, played, goal) {
    const looks = [];
    for (const [names, ones] of [[data.together, tried], [data.apart, bestPairs(tried)]]) {
      const own = [];
      for (const given of ones) {
        const [problem, drawn] = [question(given), draws(given)];
        const few = math.representative(problem, math.drawn_costs(problem, drawn)).map((i) => drawn[i]);
        own.push({ given, names, problem, drawn: few, solved: math.solve(problem, few) });
        yield;
      }
      const served = own.map(({ problem, solved }) => Math.max(0, ...math.rates_that_fit(problem, solved, names, goal.have).map(([, rate]) => rate)));
      looks.push(...math.firsts(own.map(({ given }) => Number(given.tp)), served).map((i) => own[i]));
    }
    const hoped = new Map(looks.map((one) => [one, math.expected_cost(one.problem, one.solved, one.names, goal)]));
    looks.sort((a, b) => hoped.get(a) - hoped.get(b) || 0);
    const costs = new Map();
    for (const one of looks) costs.set(one, yield* least(one, played, goal, Math.min(Infinity, ...costs.values()), one.names));
    looks.sort((a, b) => costs.get(a) - costs.get(b) || 0);
    return joined(...[data.together, data.apart].map((names) => looks.find((one) => one.names === names)?.given));
  };

  // Whether the KV cache of a unit has room for the longest of recorded requests.
  const holds = (found, played, goal) => !played.like.length || simulatorOf(found, played, goal).holds();

  // What a form promises, of how many requests, and what is played for it: requests `like` recorded ones, or none.
  const shareOf = (given) => (given.promise === "usual" ? data.crowd.share : Number(given.promise) || 0);
  const playedOf = (given, like) => ({ gaps: data.crowd.gaps, cv: Number(given.arrivals), lengths: data.crowd.lengths, like, share: shareOf(given) });

  return { sized, least, idle, laid, holds, shareOf, playedOf };
})();
