// The planner's page. The arithmetic is window.inferenceMath, printed from the package; this file reads the form,
// writes the tables, and keeps the settings in the link.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data } = math;
  const form = document.getElementById("planner-form");
  const at = (name) => form.elements[name];
  const NAMES = [...new Set([...form.elements].map((e) => e.name).filter((n) => n && n !== "preset"))];
  const defaults = Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const presets = JSON.parse(form.dataset.presets);
  const ROOM_FOR_DRAWS = 8; // ms of a frame

  const state = () => Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const write = (values) => {
    for (const name of NAMES) {
      const known = name in values && (at(name).tagName !== "SELECT" || [...at(name).options].some((o) => o.value === String(values[name])));
      at(name).value = known ? values[name] : defaults[name];
    }
    form.querySelectorAll("input[type=range]").forEach(place);
  };

  // Sliders: a thousand places from the smallest to the largest value, in equal ratios where that is asked for.
  const place = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, value] = [field.min, field.max, field.value].map(Number);
    const part = slider.dataset.scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    slider.value = 1000 * Math.min(1, Math.max(0, part));
  };
  const moved = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, step] = [field.min, field.max, field.step].map(Number);
    const part = slider.value / 1000;
    const value = slider.dataset.scale === "log" ? low * (high / low) ** part : low + part * (high - low);
    const digits = slider.dataset.scale === "log" ? Number(value.toPrecision(3)) : value;
    field.value = Number((Math.round(digits / step) * step).toPrecision(12));
  };

  // The question as `solver.plan` takes it; an Error says what is wrong with it.
  const question = (given) => {
    for (const name of NAMES.filter((n) => at(n).type === "number" && n !== "traffic")) {
      const [value, low, high] = [given[name], at(name).min, at(name).max].map(Number);
      const whole = name === "units";
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        throw new Error(`${label(name)} must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] || "nothing"}`);
      }
    }
    const tp = Number(given.tp);
    const shape = data.models[given.model].tp[given.tp];
    const rates = data.gpus[given.gpu];
    if (!shape) throw new Error(`${label("tp")} must divide the heads of ${given.model}, which ${tp} does not`);
    if (given.weights === "fp8" && !rates.fp8_flops) throw new Error(`${label("weights")} must be bf16 on ${given.gpu}: no FP8 unit is modelled`);
    const unit = math.unit_numbers(shape, rates, tp, given.weights, given.kv);
    if (!(unit.kv_capacity > 0)) throw new Error(`${given.model} in ${given.weights} does not fit ${tp} × ${given.gpu}: take more GPUs, or fewer bytes`);
    const n_out = Number(given.output);
    const work = {
      n_in: Number(given.prompt), n_out, alpha: Number(given.stored) / 100,
      cv: given.lengths === "geometric" ? Math.sqrt(1 - 1 / n_out) : 0,
    };
    return {
      unit, work, engine: given.engine, units: Number(given.units), ttft: given.ttft / 1000, tpot: given.tpot / 1000,
      quantile: given.promise === "mean" ? 0 : Number(given.promise), price: Number(given.price),
      read_bw: given.tier === "hbm" ? 0 : tp * data.tiers[given.tier].read_bw,
    };
  };
  const label = (name) => at(name).labels[0].firstChild.textContent;
  const coefficients = (engine) => data.engines[engine].found;
  const draws = (engine) => {
    const { names, draws } = data.engines[engine];
    return draws.map((row) => Object.fromEntries(row.map((value, i) => [names[i], value])));
  };

  // Words and numbers as Python prints them.
  const digits = (x) => (Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3))));
  const withSpan = (value, low, high, scale = 1, word = "") => {
    const [middle, from, to] = [value, low, high].map((x) => digits(scale * x));
    return middle + (from === middle && to === middle ? "" : ` (${from} to ${to})`) + word;
  };
  const percent = (x) => `${Math.round(100 * x)}%`;
  const text = (id, words) => { document.getElementById(id).textContent = words; };
  const cell = (kind, name, words) => { form.parentElement.querySelector(`[data-${kind}="${name}"]`).textContent = words; };
  const fill = (template, words) => template.replace(/\{(\w+)\}/g, (_, name) => words[name]);
  const table = (id, head, rows) => {
    const row = (cells, tag) => {
      const made = document.createElement("tr");
      made.append(...cells.map((words, i) => {
        const heads = tag === "th" || i === 0;
        const one = Object.assign(document.createElement(heads ? "th" : "td"), { textContent: words });
        if (heads) one.scope = tag === "th" ? "col" : "row";
        return one;
      }));
      return made;
    };
    const [thead, tbody] = ["thead", "tbody"].map((tag) => document.createElement(tag));
    thead.append(row(head, "th"));
    tbody.append(...rows.map((cells) => row(cells, "td")));
    const section = document.getElementById(id);
    section.hidden = !rows.length;
    section.querySelector("table").replaceChildren(thead, tbody);
  };

  const verdict = (asked, centre, solved) => {
    if (!centre.best) return "No architecture meets the SLA.";
    const [best, second] = centre.order;
    const { rate, margin } = centre.numbers;
    let words = `${best[0].toUpperCase()}${best.slice(1)} serves ${digits(rate)} requests/s per unit at full load`;
    if (Number.isFinite(margin)) words += `, ${percent(margin)} more than ${second}`;
    const ahead = solved.length ? solved.filter((one) => one.best === best).length / solved.length : 1;
    const { spread } = data.engines[asked.engine];
    if (Number.isFinite(margin)) {
      if (ahead < data.clear) words += `; too close to call: it is the best in ${percent(ahead)} of the draws of the calibration`;
      else if (margin < spread) words += `; too close to call: predictions of a step err by ${percent(spread)}`;
    }
    return `${words}.`;
  };

  const notes = (given, asked, centre) => {
    const found = [];
    const { work } = asked;
    if (!centre.best) {
      const { t_w, ttft_1, delta_h, own } = centre.costs;
      const [tpot, ttft] = [t_w + delta_h + own, t_w + ttft_1];
      for (const [name, alone, limit] of [["TPOT", tpot, asked.tpot], ["TTFT", ttft, asked.ttft]]) {
        if (alone > limit) found.push(`${name}: a request alone takes ${digits(1000 * alone)} ms, ${percent(alone / limit - 1)} over the limit of ${digits(1000 * limit)} ms.`);
      }
      if (work.n_in + work.n_out > asked.unit.kv_capacity) found.push(`Memory: a request needs ${work.n_in + work.n_out} tokens of KV cache, ${digits(asked.unit.kv_capacity)} fit.`);
      if (!found.length) found.push("A request alone meets each limit, but no architecture keeps up with new ones within them.");
    }
    const { gpu, n_in, concurrency } = data.scope;
    if (!gpu.includes(given.gpu)) found.push(`Not calibrated: ${given.gpu}; the efficiencies are those of ${gpu.join(", ")}.`);
    if (!data.models[given.model].dense) found.push(`Not calibrated: ${given.model} is no dense model with grouped queries.`);
    if (work.n_in > n_in[1]) found.push(`Not calibrated: prompts of more than ${digits(n_in[1])} tokens.`);
    if (Math.max(...Object.values(centre.rows).map((row) => row.batch)) > concurrency[1]) found.push(`Not calibrated: more than ${concurrency[1]} requests at once.`);
    return found;
  };

  // Where nothing meets the SLA: which units would.
  const remedies = (given) => {
    const found = [];
    for (const weights of new Set([given.weights, "fp8"])) {
      for (const tp of ["1", "2", "4", "8"]) {
        if (Number(tp) < Number(given.tp) || (tp === given.tp && weights === given.weights)) continue;
        try {
          const kv = weights === given.weights ? given.kv : weights;
          const { rate } = math.solve(question({ ...given, tp, weights, kv }), coefficients(given.engine), data.datasheet, [1, 1], []).numbers;
          if (rate > 0) found.push(`TP ${tp} in ${weights} would meet the SLA: ${digits(rate)} requests/s per unit.`);
        } catch { /* not a unit */ }
      }
    }
    return found.length ? found : ["Neither more GPUs in a unit nor a lower precision would meet the SLA."];
  };

  const list = (words) => words.map((one) => Object.assign(document.createElement("li"), { textContent: one }));

  // What stands on the page for a question, under the calibration and, once they are there, its draws.
  const show = (given, asked, centre, solved) => {
    const words = { binding: centre.binding.join(" and "), units: asked.units, best: centre.order[0], second: centre.order[1] };
    for (const [name, unit, , why] of data.answers) {
      const value = centre.numbers[name];
      const known = Number.isFinite(value);
      cell("why", name, fill(centre.best ? why : why.split(",")[0], words));
      const fixed = name === "ttft" || name === "tpot" || !known || !solved.length;
      const [low, high] = fixed ? [value, value] : math.interval(value, solved.map((one) => one.numbers[name]));
      cell("value", name, known ? withSpan(value, low, high, ...(data.printed[unit] || [1, ` ${unit}`])) : "–");
    }
    text("planner-verdict", verdict(asked, centre, solved));
    let start = "";
    if (centre.best) {
      const row = math.careful(asked, centre.best, solved.length ? solved : [centre]);
      const told = Object.entries(math.settings(asked, centre.best, row)).map(([name, value]) => `${name} ${value}`.trim());
      const kept = solved.length ? ` (keeps the SLA in ${percent(math.kept(asked, centre.best, solved, row))} of the draws)` : "";
      start = `Start with${kept}: ${told.join(", ")}`;
    }
    text("planner-settings", start);
    architectures(given, asked, centre, solved);
  };

  const architectures = (given, asked, centre, solved) => {
    const traffic = Number(given.traffic) > 0 ? Number(given.traffic) : NaN;
    const optional = (value) => (Number.isFinite(value) ? digits(value) : "");
    const columns = Object.entries(centre.rows).map(([name, row]) => {
      if (!(row.rate > 0)) return ["none"];
      const [low, high] = math.interval(row.rate, solved.map((one) => one.rows[name].rate));
      const [many, gpus] = math.replicas(asked, name, row.rate, traffic);
      const cost = asked.price > 0 ? (gpus * asked.price * 1e6) / (traffic * asked.work.n_out * 3600) : NaN;
      const best = solved.filter((one) => one.order[0] === name && one.best).length / solved.length;
      return [
        withSpan(row.rate, low, high), solved.length ? percent(best) : "",
        digits(row.batch), optional(row.chunk * (1 - asked.work.alpha)), optional(row.prefill_units), digits(1000 * row.ttft), digits(1000 * row.tpot),
        optional(many), optional(gpus), optional(cost),
      ];
    });
    const of = asked.quantile ? `P${100 * asked.quantile} of ` : "mean ";
    const labels = ["requests/s of a unit", "the best in this share of draws", "decodes of a unit", "computed prompt tokens of a step",
      "prefill units", `${of}TTFT (ms)`, asked.quantile ? `${of}the gaps between tokens (ms)` : "mean TPOT (ms)",
      `replicas for ${given.traffic} requests/s, without queues`, "GPUs of these", "USD per million output tokens, at least"];
    table("planner-architectures", ["", ...Object.keys(centre.rows)], labels.map((label, i) => [label, ...columns.map((one) => one[i] ?? "")]));
  };

  // The same question for units of other sizes: what serves the traffic, without queues, with the fewest GPUs.
  const sizes = (given) => {
    const rows = ["1", "2", "4", "8"].flatMap((tp) => {
      try {
        const asked = question({ ...given, tp });
        const { best, rows: found } = math.solve(asked, coefficients(given.engine), data.datasheet, [1, 1], []);
        if (!best) return [[tp, "none meets the SLA", "", ""]];
        const least = Object.entries(found).filter(([, row]) => row.rate > 0)
          .map(([name, row]) => [...math.replicas(asked, name, row.rate, Number(given.traffic)), name]).sort((a, b) => a[1] - b[1])[0];
        return [[tp, `${best}, ${digits(found[best].rate / Number(tp))}`, digits(least[1]), least[2]]];
      } catch { return []; }
    });
    table("planner-sizes", ["GPUs of a unit (TP)", "best architecture, requests/s of a GPU", `GPUs for ${given.traffic} requests/s, without queues`, "by"], rows);
  };

  const tiers = (given, asked) => {
    const speeds = Object.fromEntries(Object.entries(data.tiers).map(([name, tier]) => [name, Number(given.tp) * tier.read_bw]));
    const found = asked.work.alpha > 0 ? math.gains(asked, coefficients(given.engine), speeds) : [];
    const rows = found.map((row) => [
      row.where === "nowhere" ? "nowhere: all is computed" : (row.where === "hbm" ? "HBM of the unit" : data.tiers[row.where].title), digits(row.speedup),
      row.rate > 0 ? digits(row.rate) : "none", Number.isFinite(row.gain) ? digits(row.gain) : "–",
    ]);
    table("planner-tiers", ["where", "prefill speedup", "requests/s of a unit", "gain"], rows);
  };

  // The centre at once; draws and tiers while nothing else moves, a slice of a frame at a time.
  let round = 0;
  const answer = () => {
    const mine = ++round;
    const given = state();
    const began = performance.now();
    let asked;
    try {
      asked = question(given);
    } catch (error) {
      text("planner-verdict", `${error.message}.`);
      text("planner-settings", "");
      document.getElementById("planner-notes").replaceChildren();
      data.answers.forEach(([name]) => { cell("value", name, "–"); cell("why", name, ""); });
      for (const id of ["planner-architectures", "planner-sizes", "planner-tiers"]) document.getElementById(id).hidden = true;
      return;
    }
    const centre = math.solve(asked, coefficients(given.engine), data.datasheet, [1, 1], []);
    show(given, asked, centre, []);
    document.getElementById("planner-notes").replaceChildren(...list(notes(given, asked, centre)));
    form.dataset.answered = String(performance.now() - began);
    delete form.dataset.complete;
    const solved = [];
    const waiting = draws(given.engine);
    const go = () => {
      if (mine !== round) return;
      const until = performance.now() + ROOM_FOR_DRAWS;
      while (waiting.length && performance.now() < until) {
        const one = waiting.shift();
        solved.push(math.solve(asked, one, data.datasheet, [one.step, one.prompt], centre.order));
      }
      if (waiting.length) { setTimeout(go); return; }
      show(given, asked, centre, solved);
      if (!centre.best) document.getElementById("planner-notes").append(...list(remedies(given)));
      sizes(given);
      tiers(given, asked);
      history.replaceState(null, "", share.hash("plan", changed()));
      form.dataset.complete = "true";
    };
    setTimeout(go, 60);
  };

  // Links and lines of code say only what is not the default.
  const changed = () => Object.fromEntries(Object.entries(state()).filter(([name, value]) => value !== defaults[name]));
  const asPython = () => {
    const given = state();
    const alpha = Number(given.stored) / 100;
    const sent = [given.prompt, given.output, ...(alpha ? [`alpha=${alpha}`] : []), ...(given.lengths === "geometric" ? ['lengths="geometric"'] : [])];
    const limits = [given.ttft / 1000, given.tpot / 1000, ...(given.promise === "mean" ? [] : [`quantile=${given.promise}`])];
    const rest = [`units=${given.units}`, ...(given.tier === "hbm" ? [] : [`tier=tier("${given.tier}")`]), ...(Number(given.price) > 0 ? [`price=${given.price}`] : [])];
    return `from inference_math import SLA, Unit, Workload, plan, planner\nfrom inference_math.catalogue.tiers import tier\n\n` +
      `unit = Unit.of("${given.model}", "${given.gpu}", ${given.tp}, "${given.weights}", "${given.kv}", "${given.engine}")\n` +
      `found = plan(unit, Workload(${sent.join(", ")}), SLA(${limits.join(", ")}), ${rest.join(", ")})\nprint(found)\n` +
      `print(planner.fleet(found, ${given.traffic}${given.promise === "mean" ? "" : `, quantile=${given.promise}`}))  # with queues, simulated\n`;
  };

  const tools = form.querySelector(".planner-tools");
  tools.append(
    share.copier("Copy link", () => share.link("plan", changed())),
    share.copier("Copy as Python", asPython),
    share.button("Reset", () => { write({}); at("preset").value = ""; answer(); }),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name === "preset") { if (target.value) write(presets[target.value]); }
    else if (target.type === "range") { moved(target); at("preset").value = ""; }
    else { at("preset").value = ""; form.querySelectorAll(`[data-for="${target.name}"]`).forEach(place); }
    answer();
  });
  const opened = share.parse();
  write(opened?.id === "plan" ? opened.state : {});
  window.addEventListener("hashchange", () => { const link = share.parse(); if (link?.id === "plan") { write(link.state); answer(); } });
  window.inferenceMathPlanner = { question, coefficients, state, write, asPython };
  answer();
})();
