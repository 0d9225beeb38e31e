// The engine, seen: when a setting of such a figure moves, its requests are played again by the package's own simulator,
// printed as window.inferenceMath, which comes with the first move. Play, pause and step move the moment that is shown,
// here and where the moment is one of several scenes.
// Needs share.js, loaded before; live.js draws the figure and says so.
(() => {
  "use strict";
  const share = window.inferenceMathShare;
  const TINY = 1e-9;  // seconds: nothing shorter is drawn
  const simulator = () => share.script("inference_math.js").then(() => window.inferenceMath);

  // The cost of a step, as `simulate.StepCost` has it.
  const costOf = (math, k) => {
    const seconds = (decodes, context, prefills, tokens, pairs) => math.overlapped_time(k.overlap, k.t_w, k.T * tokens + k.T_decode * decodes,
      k.prompt * prefills + k.pair * pairs, k.delta_h * decodes + k.kv_read * context);
    const bare = (decodes, context) => seconds(decodes, context, 0, 0, 0);
    return { seconds, bare, line: (decodes) => [bare(decodes, 0), k.kv_read, 0, Infinity] };
  };

  const half = (x) => Math.floor(x + 0.5);
  const requestsOf = (k, at) => {
    let now = 0;
    return k.gaps.map((gap, i) => {
      now += gap;
      const n_in = Math.max(half(at.prompt * k.prompts[i]), 2);
      const n_out = Math.max(half(at.answer * k.answers[i]), 2);
      const cached = Math.min(half(Math.round(at.stored * n_in * 1e6) / 1e6), n_in - 1);
      return { number: i, arrival: now / at.rate, n_in, n_out, cached, accepted_per_step: 0, load: 0, rank: 0, kept: 0, admitted: 0, first: 0, left: 0, length() { return this.n_in + this.kept; } };
    });
  };
  const senders = (requests) => {
    let next = 0;
    const after_arrival = () => { const one = requests[next++]; return one ? [[one.arrival, one]] : []; };
    return { first: after_arrival, after_arrival, after_finish: () => [] };
  };
  const ledger = () => {
    const steps = [], served = [];
    return {
      logs: true, notes: false, measured: 0, preempted: 0, steps, served, run() {}, gap() {},
      request(request, admitted, first, finished) { this.measured += 1; served.push({ request, admitted, first, finished }); },
      step(engine, start, seconds, decodes, context, prefills, tokens) { steps.push({ engine, start, seconds, decodes, context, tokens, end: start + seconds }); },
    };
  };

  // What `figures.interference.segments` returns of one request: [kind, start, end, step].
  const segments = (steps, { request, admitted, first, finished }, pools) => {
    const found = [["waits", request.arrival, admitted]];
    let prompt = steps.filter((s) => s.tokens > 0 && s.start >= admitted - TINY && s.end <= first + TINY);
    if (pools) prompt = prompt.filter((s) => Math.abs(s.start - admitted) < TINY).sort((a, b) => b.end - a.end).slice(0, 1);
    prompt.forEach((s) => found.push(["prefill", s.start, s.end]));
    const before = steps.filter((s) => s.decodes > 0 && s.end <= finished + TINY);
    const last = before.reduce((best, s) => (Math.abs(s.end - finished) < Math.abs(best.end - finished) ? s : best), before[0]);
    const decodes = request.n_out > 1 ? before.filter((s) => s.engine === last.engine).slice(1 - request.n_out) : [];
    if (decodes.length) found.push(["waits", first, decodes[0].start]);
    decodes.forEach((s) => found.push(["decode", s.start, s.decoded], ["bubble", s.decoded, s.end]));
    return { found, ends: decodes.map((s) => s.end) };
  };

  // What `figures.engine.played` returns.
  const play = (math, k, at) => {
    const bars = [], tokens = [], cost = costOf(math, k), requests = requestsOf(k, at);
    const ms = (seconds) => Math.round(1e6 * seconds) / 1e3;
    k.architectures.forEach((architecture, place) => {
      const pools = place === 2, many = pools ? 1 : at.units, split = Math.min(at.split, at.units - 1), y = place * k.apart;
      const system = { ...k.systems[place], max_batch: at.batch, load: k.T / at.e };
      if (place === 1) system.budget = at.chunk;
      if (pools) Object.assign(system, { prefill_units: split, decode_units: at.units - split, transfer: k.move });
      for (let replica = 0; replica < many; replica++) {
        const noted = ledger(), own = senders(requests.filter((one) => one.number % many === replica).map((one) => ({ ...one })));
        if (pools) math.run_pools(system, cost, cost, own, noted, Infinity);
        else math.run_engine(math.engine_of(system, cost, noted), own, noted, Infinity);
        const steps = noted.steps.sort((a, b) => a.start - b.start || a.engine - b.engine);
        steps.forEach((s) => { s.decoded = s.decodes > 0 ? s.start + Math.min(cost.bare(s.decodes, s.context), s.seconds) : s.start; });
        for (const served of noted.served) {
          const { found, ends } = segments(steps, served, pools);
          for (const [curve, start, end] of found.filter((one) => one[2] - one[1] > TINY)) {
            const lane = y + served.request.number + 1;
            const [from, to] = [ms(start), ms(end)];
            bars.push({ architecture, request: served.request.number + 1, y: lane, y2: lane + k.lane, start: from, end: to, curve, value: Math.round(1e3 * (to - from)) / 1e3 });
          }
          tokens.push({ architecture, y, at: ms(served.first), ttft: ms(served.first - served.request.arrival), gap: null });
          ends.forEach((end, i) => tokens.push({ architecture, y, at: ms(end), ttft: null, gap: ms(end - (ends[i - 1] ?? served.first)) }));
        }
      }
    });
    return { bars, tokens };
  };

  const SETTINGS = ["rate", "prompt", "answer", "batch", "chunk", "units", "split", "stored", "e"];
  const state = (view) => Object.fromEntries(SETTINGS.map((name) => [name, view.signal(name)]));
  const sources = (figure) => Object.keys(JSON.parse(figure.querySelector("script").textContent).datasets).sort();

  const again = async (figure) => {
    const { view } = figure;
    const math = await simulator();
    const { bars, tokens } = play(math, view.signal("engine"), state(view));
    const [first, second] = sources(figure);
    view.data(first, bars).data(second, tokens).signal("end", Math.max(...bars.map((bar) => bar.end)));
    await view.runAsync();
    figure.dataset.played = JSON.stringify(state(view));
  };

  const pause = (figure) => {
    cancelAnimationFrame(figure.playing);
    figure.playing = 0;
    figure.querySelector(".engine-play").textContent = "Play";
  };
  // The moment is a signal: its name, its ends, the seconds between them; of `scenes`, each whole number is one.
  const clock = (figure) => figure.view.signal("clock");
  const move = (figure, to) => figure.view.signal(clock(figure).name, Math.min(clock(figure).to, to)).runAsync();
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  // On to a moment, which is shown at its end as `last` where that is another one.
  const run = (figure, to, last = to) => {
    const { name, from, seconds, to: end } = clock(figure);
    const before = figure.view.signal(name), begun = performance.now(), pace = (end - from) / (1000 * seconds);
    const frame = (now) => {
      const at = before + pace * Math.max(0, now - begun);  // a frame may be older than the start
      move(figure, at >= to ? last : at);
      if (at >= to) pause(figure);
      else figure.playing = requestAnimationFrame(frame);
    };
    figure.playing = requestAnimationFrame(frame);
  };
  const start = (figure) => {
    const { name, from, to, scenes } = clock(figure);
    if (figure.view.signal(name) >= to || (scenes && !figure.begun)) move(figure, from);
    figure.begun = true;
    figure.querySelector(".engine-play").textContent = "Pause";
    run(figure, to);
  };
  // On to the next scene, from the last one to the first; who opens the figure begins with the first.
  const next = (figure) => {
    const { name, from, to } = clock(figure), now = figure.begun ? Math.ceil(figure.view.signal(name)) : to;
    figure.begun = true;
    if (now >= to || still()) return move(figure, now >= to ? from : now + 1);
    move(figure, now);
    return run(figure, now + 0.5, now + 1);
  };
  // On to where the next step ends, of any engine; steps of several that end nearly together are one.
  const step = (figure) => {
    pause(figure);
    if (clock(figure).scenes) return next(figure);
    const { view } = figure;
    const now = view.signal("now"), end = view.signal("end");
    const then = Math.min(end, ...view.data(sources(figure)[0]).map((bar) => bar.end).filter((at) => at > (now >= end ? 0 : now) + 0.004 * end));
    return move(figure, (100 * then) / end + 1e-9);
  };

  // One that plays by itself does so once, when it is in view. To whom motion is unwelcome it stands at its end.
  const begin = (figure) => {
    if (figure.begun || !clock(figure).plays || still()) return;
    figure.begun = true;
    new IntersectionObserver((seen, watch) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      watch.disconnect();
      if (!figure.playing) start(figure);
    }, { threshold: 0.5 }).observe(figure.querySelector(".live-view"));
  };

  const drawn = (figure) => {
    const { view } = figure;
    for (const name of clock(figure).scenes ? [] : SETTINGS) {
      view.addSignalListener(name, () => {
        clearTimeout(figure.soon);
        figure.soon = setTimeout(() => again(figure), 60);
      });
    }
    if (!figure.querySelector(".engine-play")) {
      const bar = Object.assign(document.createElement("div"), { className: "live-tools" });
      const toggle = share.button("Play", () => (figure.playing ? pause(figure) : start(figure)));
      toggle.classList.add("engine-play");
      bar.append(toggle, share.button("Step", () => step(figure)));
      figure.querySelector(".live-view").before(bar);
      figure.addEventListener("input", ({ target }) => { if (target.name === clock(figure).name) { figure.begun = true; pause(figure); } });
    }
    if (clock(figure).scenes && !figure.querySelector("[role=status]")) {  // for ears
      const said = Object.assign(document.createElement("p"), { className: "visually-hidden", role: "status" });
      view.addSignalListener("told", (_, told) => { if (said.textContent !== told.join(". ")) said.textContent = told.join(". "); });
      figure.append(said);
    }
    begin(figure);
  };

  for (const figure of document.querySelectorAll(".live-figure")) {
    const { params = [] } = JSON.parse(figure.querySelector("script").textContent);
    if (params.some(({ name }) => name === "clock")) figure.addEventListener("drawn", () => drawn(figure));
  }
})();
