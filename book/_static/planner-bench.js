// A benchmark of a unit, played by the package's own simulator, printed as window.inferenceMath.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data, digits } = math;
  const page = window.inferenceMathPlanner;
  const { form, byId } = page;
  const [said, table, command] = ["planner-first", "planner-table", "planner-command"].map(byId);
  const fields = [...form.elements].filter(({ name }) => /-/.test(name)); // named as options of the benchmark

  // A unit, and what is asked of it.
  const asks = (given, plan) => {
    const one = page.ask(given);
    const { problem: question, centred } = one;
    const work = { ...question.work, alpha: 0, cv: 0, longest: 0, pairing: 1 }; // whole prompts, lengths of their own
    const pace = math.pace_of({ ...question, work }, centred.found, [1, 1, 0]);
    const [engine, span] = [data.engines[given.engine], plan["random-range-ratio"] / 100];
    const longest = [work.n_in, work.n_out].map((mean) => Math.max(...math.bench_lengths(mean, span, [1 - 1e-9])));
    const limits = math.bench_limits(engine, data.usual[given.engine][given.gpu], Number(given.dp), plan["max-num-batched-tokens"], plan["max-num-seqs"] ?? Infinity, 0);
    const unit = math.bench_unit(question.unit, engine, limits[1]);
    const refused = math.bench_refused(unit, longest[0] + longest[1]);
    if (refused.length) throw new Error(math.render(refused));
    const system = math.bench_system(unit, work, engine, limits, data.habits[given.engine]);
    const places = math.max_kv_seqs(unit, work, engine);
    return { one, question, work, pace, system, limits, places, asked: {
      n_in: work.n_in, n_out: work.n_out, alpha: 0, rows: [], span, users: Math.min(plan["max-concurrency"], plan["num-prompts"]),
      count: plan["num-prompts"], rate: plan["request-rate"], front: question.front, prefill: [], gaps: data.crowd.gaps, chances: data.crowd.lengths,
    } };
  };
  // What `planner.cadences` returns.
  const cadences = (given, plan) => {
    const { pace, system, asked: what } = asks(given, plan);
    return data.cadences.map((every) => math.bench_cadence(system, pace, what, every));
  };
  // How far off what cadences gain may be, by the columns of a row; see `planner.cadences`.
  const gain_errors = ({ model, gpu, prompt, output }) => math.cadence_errors(data.comparisons, data.models[model].kind, data.gpus[gpu].generation, Number(prompt), Number(output));
  // What `planner.foresee` returns.
  const play = (given, plan) => {
    const { one, question, work, pace, system, limits, places, asked: what } = asks(given, plan);
    const told = math.bench(system, pace, what);
    const { spread } = data.fronts;
    const own = spread[one.of.model.kind];
    const wide = question.unit.drafts > 0 ? Math.max(own, spread.drafting) : own;
    const users = Math.max(1, told.in_flight);
    const late = math.bench_latency_ends(question.unit, work, [one.centred.found, ...math.draws_of(one, data).map(([found]) => found)], math.left_of(one, users, data), users);
    const ends = math.ttft_ends(told.ttft[0], question.front, question.front_sd, wide);
    return { ...told, said: math.bench_said(told, limits, question.front, ends, late, Number(given.dp)).map(math.render), notes: [...math.uncalibrated(one, work, what.users, places, data), ...math.widened(math.score_key_of(one.of), data.errors)].map(math.render) };
  };

  const line = (given, plan) => ["vllm bench serve --dataset-name random", `--random-input-len ${Math.round(given.prompt)}`, `--random-output-len ${Math.round(given.output)}`,
    `--random-range-ratio ${plan["random-range-ratio"] / 100}`, `--num-prompts ${plan["num-prompts"]}`, `--max-concurrency ${plan["max-concurrency"]}`,
    ...(plan["request-rate"] < Infinity ? [`--request-rate ${plan["request-rate"]}`] : [])].join(" ");

  // Of layouts that are not named that on the fewest GPUs which hold the requests of all users at once, or the last.
  const first = (given, plan) => {
    let found, refused;
    for (const one of page.layoutsOf(given)) {
      try {
        const { question: { unit, work }, asked } = asks(one, plan);
        found = one;
        if (math.kv_tokens(unit, work.n_in + work.n_out) >= asked.users * (work.n_in + work.n_out)) break;
      } catch (error) { refused = error; }
    }
    if (!found) throw refused;
    return found;
  };

  const { cells } = share;
  const fill = (head, rows) => share.fill(table, head, rows);
  let last = "play"; // what is shown, and shown again when a field changes
  const show = () => {
    page.clearFixes();
    page.remember();
    page.complain(null);
    try {
      page.checkNumbers(page.state());
      const plan = share.numbersOf(fields);
      const given = first(page.state(), plan);
      if (last === "cadences") {
        const rows = cadences(given, plan);
        fill(["N", "mean gap", "P50", "P90", "P99", "TTFT", "requests/s"], rows.map(([every, ...times]) => [String(every), ...times.slice(0, 5).map(math.in_seconds), math.digits(times[5])]));
        const notes = math.cadence_notes(Number(given.dp), data.comparisons.cadence);
        said.replaceChildren(...cells("li", [...math.cadence_said(rows, gain_errors(given), data.engines[given.engine].cli.cadence), ...notes].map(math.render)));
      } else {
        const told = play(given, plan);
        const rows = Object.entries({ TTFT: "ttft", TPOT: "tpot", "gap between tokens": "itl", latency: "latency" });
        fill(["time", "mean", "P50", "P90", "P99"], rows.map(([title, name]) => [title, ...told[name].map(math.in_seconds)]));
        said.replaceChildren(...cells("li", [...told.said, ...told.notes.map((note) => `Note: ${note}.`)]));
      }
      byId("planner-headline").textContent = `${page.titleOf(given)}: ${digits(Number(given.prompt))} tokens in, ${digits(Number(given.output))} out`;
      command.textContent = line(given, plan);
      table.hidden = command.hidden = false;
    } catch (error) {
      table.hidden = command.hidden = true;
      said.replaceChildren();
      page.refused(error);
    }
    form.dataset.answered = "true";
  };
  const busy = page.later("Playing …", show);
  const button = (title, what) => share.button(title, () => { last = what; busy(); });
  form.querySelector(".planner-tools").append(button("Play it", "play"), button("Compare cadences", "cadences"), page.linker(), page.reset(busy));
  window.inferenceMathBench = { play, cadences, gain_errors };
  page.listen(busy);
})();
