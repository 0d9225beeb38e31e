// The planner's page. The arithmetic is window.inferenceMath, printed from the package; this file reads the form,
// writes the tables, and keeps the settings in the link.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const pictures = window.inferenceMathPictures;
  const { data } = math;
  const form = document.getElementById("planner-form");
  const at = (name) => form.elements[name];
  const NAMES = [...new Set([...form.elements].map((e) => e.name).filter((n) => n && n !== "preset"))];
  const defaults = Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const presets = JSON.parse(form.dataset.presets);
  const catalogued = new Set(Object.keys(data.models));
  const TABLES = ["architectures", "sizes", "gpus", "tiers"].map((name) => document.getElementById(`planner-${name}`));
  const ROOM_FOR_DRAWS = 8; // ms of a frame

  const state = () => Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const write = (values) => {
    for (const name of NAMES) {
      const known = name in values && (at(name).tagName !== "SELECT" || [...at(name).options].some((o) => o.value === String(values[name])));
      at(name).value = known ? values[name] : defaults[name];
    }
    form.querySelectorAll("input[type=range]").forEach(place);
  };

  // The page begins with the first set-up, the talks' own.
  const begin = () => {
    const [first] = Object.keys(presets);
    write(presets[first]);
    at("preset").value = first;
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

  // The question as `perf.answers` takes it; an Error says what is wrong with it.
  const question = (given) => {
    for (const name of NAMES.filter((n) => at(n).type === "number")) {
      const [value, low, high] = [given[name], at(name).min, at(name).max].map(Number);
      const whole = name === "units";
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        throw new Error(`${label(name)} must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] || "nothing"}`);
      }
    }
    const tp = Number(given.tp);
    const model = data.models[given.model];
    const own = model.tp[given.tp];
    const rates = data.gpus[given.gpu];
    if (!own) throw new Error(`${label("tp")} must divide the heads of ${given.model}, which ${tp} does not`);
    if (given.weights === "fp8" && !rates.fp8_flops) throw new Error(`${label("weights")} must be bf16 on ${given.gpu}: no FP8 unit is modelled`);
    const [dp, pp] = [Number(given.dp), Number(given.pp)];
    const whole = given.experts === "whole";
    const layout = { tp, ep: whole ? tp * dp : 1, dp, pp };
    if (layout.ep > 1 && !(model.shape.routed_params > 0)) throw new Error(`${label("experts")}: ${given.model} has none`);
    const unit = math.unit_numbers({ ...model.shape, ...own }, rates, layout, given.weights, given.kv, data.memory);
    if (!(unit.kv_room > 0)) throw new Error(`${given.model} in ${given.weights} does not fit ${unit.gpus} × ${given.gpu}: take more GPUs, or fewer bytes`);
    const n_out = Number(given.output);
    const work = {
      n_in: Number(given.prompt), n_out, alpha: Number(given.stored) / 100,
      cv: given.lengths === "geometric" ? Math.sqrt(1 - 1 / n_out) : 0,
    };
    return {
      unit, work, engine: given.engine, units: Number(given.units), ttft: given.ttft / 1000, tpot: given.tpot / 1000,
      quantile: given.promise === "mean" ? 0 : Number(given.promise), price: Number(given.price),
      read_bw: given.tier === "hbm" ? 0 : unit.gpus * (given.tier === "own" ? 1e9 * given.store : data.tiers[given.tier].read_bw),
    };
  };
  const label = (name) => at(name).labels[0].firstChild.textContent;
  // The calibration that stands nearest to a unit, as `unit.nearest` chooses it.
  const calibration = (given) => {
    const { kind } = data.models[given.model];
    const asked = { generation: data.gpus[given.gpu].generation, kind, weights: given.weights };
    if (math.by_operators(given.engine, asked)) return { ...data.operators[given.engine], scope: data.scopes.operators };
    const { values, widths } = math.composed(data.levels, given.engine, asked);
    const seen = math.precisions_seen(data.levels, asked.generation, kind);
    const precisions = seen.length ? { weights: seen } : {};
    return { found: values, root: math.own_root(data.coefficients, widths), spread: data.levels.spread[kind], scope: { ...data.scopes.served, ...precisions } };
  };
  const coefficients = (given) => ({ ...calibration(given).found, anchor: 0 });
  // What a calibration's scope names; numbers as both ends of a range.
  const inputs = (given, concurrency) => ({
    engine: given.engine, model: given.model, kind: data.models[given.model].kind, gpu: given.gpu,
    tp: [Number(given.tp), Number(given.tp)], weights: given.weights, kv: given.kv,
    n_in: [Number(given.prompt), Number(given.prompt)], n_out: [Number(given.output), Number(given.output)],
    concurrency: [concurrency, concurrency],
  });
  const spreadOf = (given) => math.wider(calibration(given).spread, data.widths, calibration(given).scope, inputs(given, 1));
  const draws = (given) => {
    const { found, root } = calibration(given);
    return math.drawn(data.coefficients, found, root, data.normals, spreadOf(given));
  };

  // Words and numbers as Python prints them.
  const { digits, percent } = math;
  const withSpan = (value, low, high, scale = 1, word = "") => {
    const [middle, from, to] = [value, low, high].map((x) => digits(scale * x));
    return middle + (from === middle && to === middle ? "" : ` (${from} to ${to})`) + word;
  };
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

  const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

  const notes = (given, asked, centre, best, batch) => {
    const missed = best ? [] : math.missed(asked, centre.costs);
    const never = math.outside(calibration(given).scope, inputs(given, Math.max(batch, 1))).map((one) => `not calibrated: ${one}`);
    const long = math.too_long(given.model, data.models[given.model].context, asked.work.n_in + asked.work.n_out);
    return [...missed, ...long, ...never].map(sentence);
  };

  // Where nothing meets the SLA: which units would.
  const remedies = (given) => {
    const found = [];
    for (const weights of new Set([given.weights, "fp8"])) {
      for (const tp of ["1", "2", "4", "8"]) {
        if (Number(tp) < Number(given.tp) || (tp === given.tp && weights === given.weights)) continue;
        try {
          const kv = weights === given.weights ? given.kv : weights;
          const { rate } = math.solve(question({ ...given, tp, weights, kv }), coefficients({ ...given, weights }), [1, 1]).numbers;
          if (rate > 0) found.push(math.remedy(Number(tp), weights, rate));
        } catch { /* not a unit */ }
      }
    }
    return (found.length ? found : ["neither more GPUs in a unit nor a lower precision would meet the SLA"]).map(sentence);
  };

  const list = (words) => words.map((one) => Object.assign(document.createElement("li"), { textContent: one }));

  // What stands on the page for a question, under the calibration and, once they are there, its draws: then every
  // number is the median of them, and verdict and settings follow it.
  const show = (given, asked, centre, solved) => {
    const drawn = solved.length ? solved : [centre];
    const order = solved.length ? math.ranked(solved) : centre.order;
    const leads = drawn.map((one) => ({ ...one.numbers, ...math.lead(asked, one.rows, order) }));
    const own = { ...centre.numbers, ...math.lead(asked, centre.rows, order) };
    const [rate] = math.interval(own.rate, leads.map((one) => one.rate));
    const [margin] = math.interval(NaN, leads.map((one) => one.margin));
    const best = rate > 0 ? order[0] : "";
    const ahead = drawn.filter((one) => one.best === order[0]).length / drawn.length;
    const words = { binding: centre.binding.join(" and "), units: asked.units, best: order[0], second: order[1] };
    const formulas = math.by_formula(asked, centre);
    for (const [name, , unit, by, , why] of data.answers) {
      const fixed = name === "ttft" || name === "tpot";
      const [value, low, high] = math.interval(own[name], fixed ? [] : leads.map((one) => one[name]));
      const known = Number.isFinite(value);
      const printed = data.printed[unit] || [1, ` ${unit}`];
      cell("why", name, fill(best ? why : why.split(",")[0], words));
      cell("value", name, known ? withSpan(value, low, high, ...printed) : "–");
      cell("by", name, by);
      const said = formulas[name];
      cell("said", name, known && Number.isFinite(said) ? withSpan(said, said, said, ...printed) : "");
    }
    text("planner-verdict", sentence(math.verdict(best, order[1], rate, margin, ahead, spreadOf(given))));
    let start = "";
    const row = math.careful(asked, order[0], drawn);
    if (best) {
      const told = { ...math.settings(asked, best, row), ...(given.kv === "bf16" ? {} : data.kv_flags[given.engine]) };
      const kept = solved.length ? ` (keeps the SLA in ${percent(math.kept(asked, best, solved, row))} of the draws)` : "";
      start = `Start with${kept}: ${Object.entries(told).map(([name, value]) => `${name} ${value}`.trim()).join(", ")}`;
    }
    text("planner-settings", start);
    document.getElementById("planner-notes").replaceChildren(...list(notes(given, asked, centre, best, row.batch)));
    architectures(given, asked, centre, solved);
    const [usd] = math.interval(own.usd_per_million, leads.map((one) => one.usd_per_million));
    numbers(given, asked, best, rate, usd, own);
    return { best, order, drawn };
  };

  // The few numbers that decide, large.
  const numbers = (given, asked, best, rate, usd, own) => {
    const traffic = Number(given.traffic);
    const [, gpus] = best ? math.units_for(asked, rate, traffic) : [NaN, NaN];
    const many = Number.isFinite(gpus) && traffic > 0;
    const shown = best ? [
      [digits(rate), "requests/s of a unit"], [`${digits(1000 * own.ttft)} ms`, asked.quantile ? `P${100 * asked.quantile} of TTFT` : "mean TTFT"],
      [`${digits(1000 * own.tpot)} ms`, asked.quantile ? `P${100 * asked.quantile} of the gaps` : "mean TPOT"],
      ...(many ? [[digits(gpus), `GPUs for ${given.traffic} requests/s, without queues`]] : []),
      ...(asked.price > 0 ? [[`$${digits(usd)}`, "a million output tokens, all busy"]] : []),
    ] : [];
    document.getElementById("planner-big").replaceChildren(...shown.map(([value, name]) => {
      const made = document.createElement("div");
      made.append(Object.assign(document.createElement("dd"), { textContent: value }), Object.assign(document.createElement("dt"), { textContent: name }));
      return made;
    }));
  };

  // How to start each architecture that meets the SLA: the best one open, the others folded.
  const starts = (asked, given, { order, drawn }) => {
    const shown = order.filter((name) => math.median(drawn.map((one) => one.rows[name].rate)) > 0).map((name) => {
      const told = math.settings(asked, name, math.careful(asked, name, drawn));
      const made = document.createElement("details");
      made.append(Object.assign(document.createElement("summary"), { textContent: `To start ${name}` }));
      for (const [title, line] of math.commands(asked, name, told, given.kv, data.memory, given.tier === "dram" && Number(given.stored) > 0)) {
        const code = Object.assign(document.createElement("pre"), { textContent: line });
        const head = Object.assign(document.createElement("p"), { textContent: `${title} ` });
        head.append(share.copier("Copy", () => line));
        made.append(head, code);
      }
      return made;
    });
    if (shown.length) shown[0].open = true;
    document.getElementById("planner-starts").replaceChildren(...shown);
  };

  // The same question on other GPUs: what one of each is worth.
  const gpus = (given) => {
    const at_ = (gpu) => {
      try {
        const other = { ...given, gpu };
        const asked = question(other);
        const { best, rows } = math.solve(asked, coefficients(other), [1, 1]);
        return best ? [best, rows[best].rate / asked.unit.gpus] : ["none meets the SLA", NaN];
      } catch { return ["does not fit, or not in this precision", NaN]; }
    };
    const [, here] = at_(given.gpu);
    const rows = Object.keys(data.gpus).map((gpu) => [gpu, ...at_(gpu)]).sort((a, b) => (b[2] || 0) - (a[2] || 0));
    const known = (value) => (Number.isFinite(value) ? digits(value) : "");
    const price = Number(given.price);
    table("planner-gpus", ["GPU", "best architecture", "requests/s of a GPU", `worth in ${given.gpu}`, "as good at (USD/hour)"],
      rows.map(([gpu, best, rate]) => [gpu, best, known(rate), known(rate / here), price > 0 ? known((price * rate) / here) : ""]));
  };

  const architectures = (given, asked, centre, solved) => {
    const traffic = Number(given.traffic) > 0 ? Number(given.traffic) : NaN;
    const optional = (value) => (Number.isFinite(value) ? digits(value) : "");
    const columns = Object.entries(centre.rows).map(([name, row]) => {
      const [rate, low, high] = math.interval(row.rate, solved.map((one) => one.rows[name].rate));
      if (!(rate > 0)) return ["none"];
      const [many, gpus] = math.units_for(asked, rate, traffic);
      const cost = math.usd_per_million(1, asked.price, (rate * asked.work.n_out) / asked.unit.gpus);
      const best = solved.filter((one) => one.order[0] === name && one.best).length / solved.length;
      return [
        withSpan(rate, low, high), solved.length ? percent(best) : "",
        digits(row.batch), optional(row.computed), optional(row.prefill_units), digits(1000 * row.ttft), digits(1000 * row.tpot),
        optional(many), optional(gpus), optional(cost),
      ];
    });
    const of = asked.quantile ? `P${100 * asked.quantile} of ` : "mean ";
    const labels = ["requests/s of a unit", "the best in this share of draws", "decodes of a unit", "computed prompt tokens of a step",
      "prefill units", `${of}TTFT (ms)`, asked.quantile ? `${of}the gaps between tokens (ms)` : "mean TPOT (ms)",
      `units for ${given.traffic} requests/s, without queues`, "GPUs of these, at least", "USD per million output tokens, all busy"];
    table("planner-architectures", ["", ...Object.keys(centre.rows)], labels.map((label, i) => [label, ...columns.map((one) => one[i] ?? "")]));
  };

  // The same question for units of other sizes: what serves the traffic, without queues, with the fewest GPUs.
  const sizes = (given) => {
    const rows = ["1", "2", "4", "8"].flatMap((tp) => {
      try {
        const asked = question({ ...given, tp });
        const { best, rows: found } = math.solve(asked, coefficients(given), [1, 1]);
        if (!best) return [[tp, "none meets the SLA", "", ""]];
        const [, gpus] = math.units_for(asked, found[best].rate, Number(given.traffic));
        return [[tp, best, digits(found[best].rate / asked.unit.gpus), Number.isFinite(gpus) ? digits(gpus) : ""]];
      } catch { return []; }
    });
    table("planner-sizes", ["GPUs of a unit (TP)", "best architecture", "requests/s of a GPU", `GPUs for ${given.traffic} requests/s, without queues`], rows);
  };

  const tiers = (given, asked) => {
    const speeds = Object.fromEntries(Object.entries(data.tiers).map(([name, tier]) => [name, asked.unit.gpus * tier.read_bw]));
    const found = asked.work.alpha > 0 ? math.gains(asked, coefficients(given), speeds) : [];
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
    delete form.dataset.complete;
    // What takes the draws belongs to the last question until they are there: nobody may copy it.
    text("planner-runner", "");
    document.getElementById("planner-starts").replaceChildren();
    form.parentElement.classList.add("planner-waiting");
    let asked;
    try {
      asked = question(given);
    } catch (error) {
      text("planner-verdict", `${error.message}.`);
      text("planner-settings", "");
      document.getElementById("planner-notes").replaceChildren();
      data.answers.forEach(([name]) => { cell("value", name, "–"); ["why", "by", "said"].forEach((kind) => cell(kind, name, "")); });
      [...TABLES, document.getElementById("planner-pictures")].forEach((section) => { section.hidden = true; });
      document.getElementById("planner-big").replaceChildren();
      return;
    }
    const centre = math.solve(asked, coefficients(given), [1, 1]);
    show(given, asked, centre, []);
    form.dataset.answered = String(performance.now() - began);
    const solved = [];
    const waiting = draws(given);
    const go = () => {
      if (mine !== round) return;
      const until = performance.now() + ROOM_FOR_DRAWS;
      while (waiting.length && performance.now() < until) {
        solved.push(math.solve(asked, ...waiting.shift()));
      }
      if (waiting.length) { setTimeout(go); return; }
      const found = show(given, asked, centre, solved);
      if (!found.best) document.getElementById("planner-notes").append(...list(remedies(given)));
      starts(asked, given, found);
      const swung = pictures.pictured(asked, given, coefficients(given), centre, found.best);
      const [, second] = found.order;
      const [behind] = math.interval(centre.rows[second].rate, solved.map((one) => one.rows[second].rate));
      text("planner-runner", found.best ? sentence(math.runner_up(found.best, second, behind, swung)) : "");
      sizes(given);
      gpus(given);
      tiers(given, asked);
      form.parentElement.classList.remove("planner-waiting");
      history.replaceState(null, "", share.hash("plan", changed()));
      form.dataset.complete = "true";
    };
    setTimeout(go, 60);
  };

  // Links and lines of code say only what is not the default.
  const changed = () => Object.fromEntries(Object.entries(state()).filter(([name, value]) => value !== defaults[name]));
  const layout = (given) => {
    const sizes = { ep: given.experts === "whole" ? Number(given.tp) * Number(given.dp) : 1, dp: given.dp, pp: given.pp };
    return Object.entries(sizes).filter(([, size]) => Number(size) > 1).map(([name, size]) => `, ${name}=${size}`).join("");
  };
  const wrong = (given) => { try { question(given); return ""; } catch ({ message }) { return `# ${message}\n`; } };
  const asPython = () => {
    const given = state();
    if (wrong(given)) return wrong(given);
    const alpha = Number(given.stored) / 100;
    const sent = [given.prompt, given.output, ...(alpha ? [`alpha=${alpha}`] : []), ...(given.lengths === "geometric" ? ['lengths="geometric"'] : [])];
    const limits = [given.ttft / 1000, given.tpot / 1000, ...(given.promise === "mean" ? [] : [`quantile=${given.promise}`])];
    const rest = [`units=${given.units}`, ...(given.tier === "hbm" ? [] : [given.tier === "own" ? `tier=Tier.of_bandwidth(${given.store}e9)` : `tier=tier("${given.tier}")`]), ...(Number(given.price) > 0 ? [`price=${given.price}`] : [])];
    const listed = catalogued.has(given.model);
    const model = listed ? `"${given.model}"` : 'Model.from_config("config.json")';
    const imported = listed ? "" : "from inference_math.catalogue import Model\n";
    return `from inference_math import SLA, Unit, Workload, plan, planner\n${imported}from inference_math.catalogue.tiers import Tier, tier\n\n` +
      `unit = Unit.of(${model}, "${given.gpu}", ${given.tp}, "${given.weights}", "${given.kv}", "${given.engine}"${layout(given)})\n` +
      `found = plan(unit, Workload(${sent.join(", ")}), SLA(${limits.join(", ")}), ${rest.join(", ")})\nprint(found)\n` +
      `print(planner.fleet(found, ${given.traffic}${given.promise === "mean" ? "" : `, quantile=${given.promise}`}))  # with queues, simulated\n`;
  };

  // The reader's own model. The package reads it, in an interpreter that is loaded when it is first asked for.
  const own = document.getElementById("planner-own");
  const tell = (words) => { own.querySelector("[role=status]").textContent = words; };
  const source = new URL("pasted.js", document.currentScript.src).href;
  let reader;
  const reading = () => reader ??= new Promise((resolve, reject) => {
    window.inferenceMathPasted = resolve;
    const refused = () => { reader = undefined; reject(new Error("the reader of configurations could not be loaded")); };
    document.head.append(Object.assign(document.createElement("script"), { src: source, onerror: refused }));
  });
  const read = async () => {
    tell("Reading; the first time takes some seconds.");
    try {
      await new Promise((shown) => { setTimeout(shown, 50); });
      const found = JSON.parse((await reading())(own.querySelector("textarea").value));
      if (found.wrong) { tell(found.wrong); return; }
      if (!data.models[found.name]) at("model").add(new Option(found.name));
      data.models[found.name] = found.record;
      at("model").value = found.name;
      at("weights").value = found.record.stored;
      at("preset").value = "";
      tell(`Read: ${found.said}.`);
      answer();
    } catch (error) {
      tell(`${error.message}.`);
    }
  };
  own.querySelector(".planner-tools").append(share.button("Read", read));

  // The plan as Markdown, for a design document: what stands on the page.
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim().replaceAll("|", "/"));
  const tableOf = (section) => [...section.querySelectorAll("tr")].map(cells);
  const asMarkdown = () => {
    const lines = (id) => document.getElementById(id).textContent;
    const rows = (found) => found.map((row, i) => `| ${row.join(" | ")} |${i ? "" : `\n|${row.map(() => "---").join("|")}|`}`).join("\n");
    const given = state();
    if (wrong(given)) return wrong(given);
    const [of, sent] = [`${given.model} (${given.weights}, KV ${given.kv}) on ${given.tp} x ${given.gpu}, ${given.engine}`, `${given.prompt} tokens in, ${given.output} out, ${given.stored} % stored; TTFT within ${given.ttft} ms, TPOT within ${given.tpot} ms (${given.promise === "mean" ? "means" : `P${100 * given.promise}`})`];
    const sections = TABLES.filter((one) => !one.hidden);
    const started = [...document.querySelectorAll("#planner-starts details")].map((one) => `### ${one.querySelector("summary").textContent}\n\n${[...one.querySelectorAll("pre")].map((pre) => `\`\`\`bash\n${pre.textContent}\n\`\`\``).join("\n\n")}`);
    const answers = [["answer", "value (5 to 95 %)", "meaning"], ...data.answers.map(([name, title]) => [title, ...["value", "why"].map((kind) => form.parentElement.querySelector(`[data-${kind}="${name}"]`).textContent)])];
    return [`# Plan: ${of}`, sent, `**${lines("planner-verdict")}** ${lines("planner-runner")}`, lines("planner-settings"),
      [...document.querySelectorAll("#planner-notes li")].map((one) => `* ${one.textContent}`).join("\n"),
      ...sections.map((one) => `## ${one.querySelector("h3").textContent}\n\n${rows(tableOf(one))}`), "## All numbers", rows(answers), ...started,
      `Made with the planner of Inference Math: ${share.link("plan", changed())}`].filter(Boolean).join("\n\n") + "\n";
  };

  const tools = form.querySelector(".planner-tools");
  tools.append(
    share.copier("Copy link", () => share.link("plan", changed())),
    share.copier("Copy as Python", asPython),
    share.copier("Copy as report", asMarkdown),
    share.button("Download tables (CSV)", () => {
      share.download("plan.csv", "text/csv", share.csv(TABLES.filter((one) => !one.hidden).flatMap((one) => [[one.querySelector("h3").textContent], ...tableOf(one), []])));
    }),
    share.button("Reset", () => { begin(); answer(); }),
  );
  // A checkpoint in four or eight bits is served as it is stored; four bits that it has not are not kept.
  const FOUR = ["nvfp4", "mxfp4", "int4"];
  const asStored = (model) => {
    const { stored } = data.models[model];
    if (stored !== "bf16" || FOUR.includes(at("weights").value)) at("weights").value = stored;
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name === "preset") { if (target.value) write(presets[target.value]); }
    else if (target.type === "range") { moved(target); at("preset").value = ""; }
    else {
      at("preset").value = "";
      if (target.name === "model") asStored(target.value);
      form.querySelectorAll(`[data-for="${target.name}"]`).forEach(place);
    }
    answer();
  });
  const opened = share.parse();
  if (opened?.id === "plan") write(opened.state); else begin();
  if (opened?.state.model && !data.models[opened.state.model]) {
    own.open = true;
    tell(`The link is about ${opened.state.model}, which it does not carry: paste its config.json here.`);
  }
  window.addEventListener("hashchange", () => { const link = share.parse(); if (link?.id === "plan") { write(link.state); at("preset").value = ""; answer(); } });
  window.inferenceMathPlanner = { question, coefficients, calibration, state, write, asPython, asMarkdown, views: pictures.views };
  answer();
})();
