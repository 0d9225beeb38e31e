// The planner's page. The arithmetic is window.inferenceMath, printed from the package; this file reads the form,
// writes the tables, and keeps the settings in the link.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const pictures = window.inferenceMathPictures;
  const crowd = window.inferenceMathCrowd;
  const pasted = window.inferenceMathPasted;
  const { data } = math;
  const form = document.getElementById("planner-form");
  const at = (name) => form.elements[name];
  const NAMES = [...new Set([...form.elements].map((e) => e.name).filter((n) => n && n !== "preset"))];
  const defaults = Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const presets = JSON.parse(form.dataset.presets);
  const catalogued = new Set(Object.keys(data.models));
  const TABLES = ["architectures", "sizes", "gpus", "tiers"].map((name) => document.getElementById(`planner-${name}`));
  const ROOM_FOR_DRAWS = 8; // ms of a frame
  const OWN = "own"; // requests, and a calibration, that were pasted
  let calibrated;

  const state = () => ({ ...Object.fromEntries(NAMES.map((n) => [n, at(n).value])), ...means(at("lengths").value) });
  // Recorded requests have their own means, which nobody else sets.
  const mixOf = (given) => data.mixes[given.lengths];
  const means = (lengths) => {
    const rows = data.mixes[lengths]?.rows;
    if (!rows) return {};
    const [prompt, output] = [0, 1].map((i) => String(rows.reduce((sum, row) => sum + row[i], 0) / rows.length));
    return { prompt, output };
  };
  const mixed = () => {
    const known = means(at("lengths").value);
    for (const name of ["prompt", "output"]) {
      if (known[name]) at(name).value = Math.round(known[name]);
      for (const one of form.querySelectorAll(`[name="${name}"], [data-for="${name}"]`)) one.disabled = name in known;
    }
    form.querySelectorAll("input[type=range]").forEach(place);
  };
  // What `values` do not name gets its default; returned are those that name what this page does not have.
  const write = (values) => {
    const strange = [];
    for (const name of NAMES) {
      const known = name in values && (at(name).tagName !== "SELECT" || [...at(name).options].some((o) => o.value === String(values[name])));
      if (name in values && !known) strange.push(name);
      at(name).value = known ? values[name] : defaults[name];
    }
    mixed();
    return strange;
  };

  // What a link carries: of recorded requests their name, and their means as the form shows them.
  const linked = () => Object.fromEntries(Object.entries(state()).map(([name, value]) => [name, ["prompt", "output"].includes(name) ? at(name).value : value]));

  // The page begins with the first set-up, the talks' own.
  const begin = () => {
    const [first] = Object.keys(presets);
    write(presets[first]);
    text("planner-link", "");
    at("preset").value = first;
  };

  // Sliders: a thousand places from the smallest to the largest value, in equal ratios where that is asked for.
  const place = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, value] = [field.min, field.max, field.value].map(Number);
    const part = slider.dataset.scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    slider.value = 1000 * Math.min(1, Math.max(0, part));
    slider.setAttribute("aria-valuetext", field.value); // its own places mean nothing
  };
  const moved = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, step] = [field.min, field.max, field.step].map(Number);
    const part = slider.value / 1000;
    const value = slider.dataset.scale === "log" ? low * (high / low) ** part : low + part * (high - low);
    const digits = slider.dataset.scale === "log" ? Number(value.toPrecision(3)) : value;
    field.value = Number((Math.round(digits / step) * step).toPrecision(12));
    slider.setAttribute("aria-valuetext", field.value);
  };

  // What a goal does not ask for is hidden, and may be anything.
  const idle = { serve: ["have"], have: ["traffic", "units"], unit: ["traffic", "have"] };

  // The question as `perf.answers` takes it; an Error says what is wrong with it.
  const question = (given) => {
    for (const name of NAMES.filter((n) => at(n).type === "number" && !(idle[given.goal] ?? []).includes(n))) {
      if (at(name).disabled) continue;
      const [value, low, high] = [given[name], at(name).min, at(name).max].map(Number);
      const whole = ["units", "have", "drafts"].includes(name);
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        const message = `${label(name)} must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] === "" ? "empty" : given[name]}`;
        throw Object.assign(new Error(message), { field: name });
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
    const layout = (size) => ({ tp: size, ep: whole ? size * dp : 1, dp, pp });
    if (layout(tp).ep > 1 && !(model.shape.routed_params > 0)) throw new Error(`${label("experts")}: ${given.model} has none`);
    const sized = (size) => math.drafting(math.unit_numbers({ ...model.shape, ...model.tp[size] }, rates, layout(size), given.weights, given.kv, data.memory), Number(given.drafts), Number(given.accepted) / 100);
    const unit = sized(tp);
    if (!(unit.kv_room > 0)) {
      const least = Object.keys(model.tp).map(Number).find((size) => size > tp && sized(size).kv_room > 0);
      throw new Error(`${given.model} in ${given.weights} does not fit ${unit.gpus} × ${given.gpu}: take ${least ? `TP ${least}` : "more GPUs"}, or fewer bytes`);
    }
    if (given.goal === "have" && given.have < unit.gpus) throw new Error(`${label("have")} must be at least ${unit.gpus}, those of a unit`);
    const n_out = Number(given.output);
    const work = {
      n_in: Number(given.prompt), n_out, alpha: storedOf(given),
      cv: given.lengths === "fixed" ? 0 : Math.sqrt(1 - 1 / n_out),
      longest: (mixOf(given)?.rows ?? []).reduce((most, [n_in, out]) => Math.max(most, n_in + out), 0),
    };
    return {
      unit, work, engine: given.engine, units: unitsOf(given, unit), watts: rates.watts, ttft: given.ttft / 1000, tpot: given.tpot / 1000,
      quantile: given.promise === "mean" ? 0 : Number(given.promise), price: Number(given.price),
      read_bw: given.tier === "hbm" ? 0 : unit.gpus * (given.tier === "own" ? 1e9 * given.store : data.tiers[given.tier].read_bw),
    };
  };
  // Of recorded requests whole tokens are stored.
  const storedOf = (given) => {
    const alpha = Number(given.stored) / 100;
    const rows = mixOf(given)?.rows;
    return rows ? rows.reduce((sum, [n_in]) => sum + math.stored_of(n_in, alpha), 0) / rows.reduce((sum, [n_in]) => sum + n_in, 0) : alpha;
  };
  // Pools take all units that there are, where their GPUs are given.
  const unitsOf = (given, unit) => (given.goal === "have" ? Math.max(2, Math.floor(given.have / unit.gpus)) : Number(given.units));
  const label = (name) => at(name).labels[0].firstChild.textContent;
  // The reader's calibration, or that which stands nearest to a unit, as `unit.nearest` chooses it.
  const calibration = (given) => {
    if (given.calibration === OWN && calibrated) return calibrated;
    const { kind } = data.models[given.model];
    const asked = { generation: data.gpus[given.gpu].generation, kind, weights: given.weights };
    if (math.by_operators(given.engine, asked)) return { ...data.operators[given.engine], scope: data.scopes.operators, mode: "operators" };
    const { values, widths } = math.composed(data.levels, given.engine, asked);
    const seen = math.precisions_seen(data.levels, asked.generation, kind);
    const precisions = seen.length ? { weights: seen } : {};
    return { mode: "served", found: values, root: math.own_root(data.coefficients, widths), spread: data.levels.spread[kind], scope: { ...data.scopes.served, ...precisions } };
  };
  const coefficients = (given) => {
    const { found, anchors } = calibration(given);
    return { ...found, anchor: math.anchored(anchors ?? [], Number(given.prompt), Number(given.output)) };
  };
  // What a calibration's scope names; numbers as both ends of a range.
  const inputs = (given, concurrency) => ({
    engine: given.engine, model: given.model, kind: data.models[given.model].kind, gpu: given.gpu,
    tp: [Number(given.tp), Number(given.tp)], weights: given.weights, kv: given.kv,
    n_in: [Number(given.prompt), Number(given.prompt)], n_out: [Number(given.output), Number(given.output)],
    concurrency: [concurrency, concurrency],
  });
  const spreadOf = (given) => math.wider(calibration(given).spread, data.widths, calibration(given).scope, inputs(given, 1));
  const draws = (given) => {
    return math.drawn(data.coefficients, coefficients(given), calibration(given).root, data.normals, spreadOf(given));
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
    const long = math.too_long(given.model, data.models[given.model].context, math.longest_request(asked.work));
    const { mode, kind } = { mode: calibration(given).mode, kind: data.models[given.model].kind };
    const checked = mode === "served" ? [math.checked(given.model, given.gpu, kind, given.engine, data.gpus[given.gpu].maker, data.errors)] : [];
    const pays = asked.unit.drafts > 0 ? [math.drafting_pays(centre.numbers.rate, math.undrafted(asked, coefficients(given)))] : [];
    const hindered = best ? Object.entries(centre.rows).filter(([, row]) => !(row.rate > 0)).map(([name]) => `no ${name}: ${math.hindered(asked, centre.costs, name)}`) : [];
    return [...missed, ...hindered, ...long, ...never, ...math.trusted(asked.unit, data.errors), ...pays, ...checked].map(sentence);
  };

  // Where nothing meets the SLA: which units would.
  const remedies = (given) => {
    const found = [];
    for (const weights of new Set([given.weights, "fp8"])) {
      for (const tp of ["1", "2", "4", "8"]) {
        if (Number(tp) < Number(given.tp) || (tp === given.tp && weights === given.weights)) continue;
        try {
          const kv = weights === given.weights ? given.kv : weights;
          const asked = question({ ...given, goal: "unit", tp, weights, kv });
          const { rate } = math.solve(asked, coefficients({ ...given, weights }), [1, 1]).numbers;
          if (rate > 0) found.push(math.remedy(Number(tp), asked.unit.gpus, weights, rate));
        } catch { /* not a unit */ }
      }
    }
    return (found.length ? found : ["neither more GPUs in a unit nor a lower precision would meet the SLA"]).map(sentence);
  };

  const told = (asked, given, name, row) => {
    const settings = { ...math.settings(asked, name, row), ...(given.kv === "bf16" ? {} : data.kv_flags[given.engine]) };
    return Object.entries(settings).map(([option, value]) => `${option} ${value}`.trim()).join(", ");
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
      const serves = `${digits(math.serves(asked, best, drawn, row))} requests/s of a unit`;
      const kept = solved.length ? ` (keeps the SLA in ${percent(math.kept(asked, best, solved, row))} of the draws, ${serves})` : "";
      start = `Start with${kept}: ${told(asked, given, best, row)}`;
    }
    text("planner-settings", start);
    document.getElementById("planner-notes").replaceChildren(...list(notes(given, asked, centre, best, row.batch)));
    architectures(given, asked, centre, solved, null);
    const [usd] = math.interval(own.usd_per_million, leads.map((one) => one.usd_per_million));
    const sized = given.goal === "unit" ? [] : [["…", "simulating queues"]];
    if (given.goal === "unit" || !best) text("planner-headline", document.getElementById("planner-verdict").textContent);
    else text("planner-headline", given.goal === "have" ? `What ${given.have} GPUs serve: simulating its queues …` : `GPUs for ${given.traffic} requests/s: simulating their queues …`);
    numbers(best ? [...sized, ...ofUnit(asked, rate, own), ...(asked.price > 0 ? [[`$${digits(usd)}`, "a million output tokens, all busy"]] : [])] : []);
    return { best, order, drawn, rate, own };
  };

  // The few numbers that decide, large.
  const ofUnit = (asked, rate, own) => [
    [digits(rate), "requests/s of a unit, at full load"], [`${digits(1000 * own.ttft)} ms`, asked.quantile ? `P${100 * asked.quantile} of TTFT` : "mean TTFT"],
    [`${digits(1000 * own.tpot)} ms`, asked.quantile ? `P${100 * asked.quantile} of the gaps` : "mean TPOT"],
  ];
  const numbers = (shown) => {
    document.getElementById("planner-big").replaceChildren(...shown.map(([value, name]) => {
      const made = document.createElement("div");
      made.append(Object.assign(document.createElement("dd"), { textContent: value }), Object.assign(document.createElement("dt"), { textContent: name }));
      return made;
    }));
  };

  // What the reader asked for, queues counted: GPUs for the traffic, or traffic for the GPUs.
  const shareOf = (given) => (given.promise === "mean" ? 0.9 : Number(given.promise));
  const goalOf = (given) => ({ traffic: given.goal === "serve" ? Number(given.traffic) : 0, have: given.goal === "have" ? Number(given.have) : 0 });
  const answerGoal = (given, asked, centre, solved, found, sustained) => {
    const fleets = crowd.fleets(sustained, goalOf(given));
    const [first, second] = fleets;
    architectures(given, asked, centre, solved, { sustained, fleets });
    const owned = given.goal === "have";
    if (given.goal === "unit") return;
    const order = [...fleets.map((one) => one.name), ...found.order.filter((name) => !fleets.some((one) => one.name === name))];
    starts(asked, given, order, found.drawn, Object.fromEntries(fleets.map((one) => [one.name, one])));
    if (first) text("planner-settings", `Start ${first.many === 1 ? "it" : `each of ${digits(first.many)}`} with: ${told(first.asked, given, first.name, first.row)}`);
    if (!first) {
      const able = sustained.filter((one) => one.each > 0);
      text("planner-headline", sentence(able.length
        ? `${label("have")} must be at least ${Math.min(...able.map((one) => one.gpus))}, those of a replica that keeps both limits`
        : math.short(shareOf(given), sustained.map((one) => math.idle(one.name, one.idle)))));
      numbers(ofUnit(asked, found.rate, found.own));
      return;
    }
    text("planner-headline", sentence(math.sized(first.name, first.many, first.units, first.all, first.rate, second?.name ?? "", owned ? second?.rate ?? 0 : second?.all ?? 0, owned, found.best)));
    const usd = math.usd_per_million(first.all, asked.price, first.rate * asked.work.n_out);
    text("planner-how", sentence(math.sized_how(shareOf(given), Number(given.arrivals), mixOf(given) ? "mix" : "", asked.units)));
    numbers([
      owned ? [digits(first.rate), `requests/s on ${digits(first.all)} GPUs`] : [digits(first.all), `GPUs for ${given.traffic} requests/s`],
      ...(asked.price > 0 ? [[`$${digits(usd)}`, `a million output tokens at ${digits(first.rate)} requests/s`]] : []),
      [digits(first.each / first.units), `requests/s of a unit, ${first.name}, with queues`],
      ...(asked.watts > 0 ? [[`${digits(first.all * asked.watts / 1000)} kW`, "at rated power"]] : []),
    ]);
  };

  // A manifest is long: it opens at a click.
  const folded = (title, code) => {
    if (code.dataset.language !== "yaml") return [code];
    const made = document.createElement("details");
    made.append(Object.assign(document.createElement("summary"), { textContent: "Show it" }), code);
    return [made];
  };

  // How to start each architecture that meets the SLA, by the replicas of a fleet where there is one: the first one open,
  // the others folded.
  const starts = (asked, given, order, drawn, replicas) => {
    const shown = order.filter((name) => math.median(drawn.map((one) => one.rows[name].rate)) > 0).map((name) => {
      const of = replicas[name] ?? { asked, row: math.careful(asked, name, drawn) };
      const told = math.settings(of.asked, name, of.row);
      const made = document.createElement("details");
      made.append(Object.assign(document.createElement("summary"), { textContent: `To start ${name}${replicas[name] ? ", a replica" : " at full load"}` }));
      for (const [title, line] of math.commands(of.asked, name, told, given.kv, data.memory, Number(given.stored) > 0 && given.tier !== "hbm" ? given.tier : "")) {
        const code = Object.assign(document.createElement("pre"), { textContent: line });
        code.dataset.language = title.includes("Kubernetes") ? "yaml" : "bash";
        const head = Object.assign(document.createElement("p"), { textContent: `${title} ` });
        code.dataset.title = title;
        head.append(share.copier("Copy", () => line));
        made.append(head, ...folded(title, code));
      }
      return made;
    });
    if (shown.length) shown[0].open = true;
    document.getElementById("planner-starts").replaceChildren(...shown);
  };

  // What a GPU's row stands on: points of that GPU, the datasheet of a maker that has some, or of one that has none.
  const GUESSED = "a guess: none of this maker is calibrated";
  const standing = (given) => {
    if (data.gpus[given.gpu].maker !== data.maker) return GUESSED;
    const unseen = math.missing(calibration(given).scope, inputs(given, 1));
    if (unseen.includes("gpu")) return "scaled by datasheet";
    const named = ["model", "kind", "engine", "weights"].filter((name) => unseen.includes(name));
    return named.length ? `not with this ${named.join(" and ")}` : "calibrated";
  };

  // The same question on other GPUs: what one of each is worth. Guesses come last, whatever they promise.
  const gpus = (given) => {
    const at_ = (gpu) => {
      try {
        const other = { ...given, gpu };
        const asked = question({ ...other, goal: "unit" });
        const { best, rows } = math.solve(asked, coefficients(other), [1, 1]);
        const never = standing(other);
        return best ? [best, rows[best].rate / asked.unit.gpus, never] : ["none meets the SLA", NaN, never];
      } catch { return ["does not fit, or not in this precision", NaN, ""]; }
    };
    const [, here] = at_(given.gpu);
    const rows = Object.keys(data.gpus).map((gpu) => [gpu, ...at_(gpu)]).sort((a, b) => (a[3] === GUESSED) - (b[3] === GUESSED) || (b[2] || 0) - (a[2] || 0));
    const known = (value) => (Number.isFinite(value) ? digits(value) : "");
    const price = Number(given.price);
    const joules = (gpu, rate) => (data.gpus[gpu].watts > 0 ? known(data.gpus[gpu].watts / (rate * Number(given.output))) : "power not stated");
    table("planner-gpus", ["GPU", "calibration", "best architecture", "requests/s of a GPU", `as many ${given.gpu}`, "break-even price (USD/hour)", "J a token, rated power"],
      rows.map(([gpu, best, rate, never]) => [gpu, never, best, known(rate), known(rate / here), price > 0 ? known((price * rate) / here) : "", joules(gpu, rate)]));
  };

  const architectures = (given, asked, centre, solved, sized) => {
    const { traffic, have } = goalOf(given);
    const optional = (value) => (Number.isFinite(value) ? digits(value) : "");
    const span = (value, low, high) => (Number.isFinite(high) ? withSpan(value, low, high) : `${digits(value)} (${digits(low)} or more)`);
    const loaded = (name) => {
      if (!sized) return ["…", "…", "…"];
      const [own, fleet] = [sized.sustained, sized.fleets].map((all) => all.find((one) => one.name === name));
      const each = own.each > 0 ? withSpan(...[own.each, own.slow, own.fast].map((rate) => rate / own.units)) : "none";
      if (!fleet) return [each, "none", ""];
      const cost = math.usd_per_million(fleet.all, asked.price, fleet.rate * asked.work.n_out);
      return [each, have ? digits(fleet.rate) : span(fleet.all, fleet.low, fleet.high), optional(cost)];
    };
    // The first of them stands beside the labels, where a phone shows it.
    const names = solved.length ? math.ranked(solved) : centre.order;
    const asksFleet = given.goal !== "unit";
    const columns = names.map((name) => {
      const row = centre.rows[name];
      const [rate, low, high] = math.interval(row.rate, solved.map((one) => one.rows[name].rate));
      if (!(rate > 0)) return ["none"];
      const best = solved.filter((one) => one.order[0] === name && one.best).length / solved.length;
      return [
        withSpan(rate, low, high), solved.length ? percent(best) : "", ...loaded(name).slice(0, asksFleet ? 3 : 1),
        digits(row.batch), optional(row.computed), optional(row.prefill_units), digits(1000 * row.ttft), digits(1000 * row.tpot),
      ];
    });
    const of = asked.quantile ? `P${100 * asked.quantile} of ` : "mean ";
    const labels = ["requests/s of a unit, at full load", "the best in this share of draws",
      "requests/s of a unit, with queues", ...(asksFleet ? [have ? `requests/s on ${given.have} GPUs` : `GPUs for ${given.traffic} requests/s`, "USD per million output tokens at that"] : []),
      "decodes of a unit, at full load", "computed prompt tokens of a step, at full load", "prefill units, at full load", `${of}TTFT at full load (ms)`,
      asked.quantile ? `${of}the gaps between tokens (ms)` : "mean TPOT at full load (ms)"];
    table("planner-architectures", ["", ...names], labels.map((label, i) => [label, ...columns.map((one) => one[i] ?? "")]));
  };

  // The same question for units of other sizes.
  const sizes = (given) => {
    const rows = ["1", "2", "4", "8"].flatMap((tp) => {
      try {
        const asked = question({ ...given, tp, goal: "unit" });
        const { best, rows: found } = math.solve(asked, coefficients(given), [1, 1]);
        return [best ? [tp, best, digits(found[best].rate / asked.unit.gpus)] : [tp, "none meets the SLA", ""]];
      } catch { return []; }
    });
    table("planner-sizes", ["GPUs of a unit (TP)", "best architecture", "requests/s of a GPU, at full load"], rows);
  };

  const tiers = (given, asked) => {
    const own = given.tier === "own" ? { own: { title: `a store of ${given.store} GB/s for each GPU`, read_bw: 1e9 * given.store } } : {};
    const all = { ...data.tiers, ...own };
    const speeds = Object.fromEntries(Object.entries(all).map(([name, tier]) => [name, asked.unit.gpus * tier.read_bw]));
    const found = asked.work.alpha > 0 ? math.gains(asked, coefficients(given), speeds) : [];
    const rows = found.map((row) => [
      row.where === "nowhere" ? "nowhere: all is computed" : (row.where === "hbm" ? "HBM of the unit" : all[row.where].title), row.binds, digits(row.speedup),
      row.rate > 0 ? digits(row.rate) : "none", Number.isFinite(row.gain) ? digits(row.gain) : "–",
    ]);
    table("planner-tiers", ["where", "a prompt alone waits for", "prefill speedup", "requests/s of a unit", "gain"], rows);
  };

  // The centre at once; draws and tiers while nothing else moves, a slice of a frame at a time.
  let round = 0;
  const answer = () => {
    const mine = ++round;
    const given = state();
    form.parentElement.dataset.goal = given.goal;
    const began = performance.now();
    delete form.dataset.complete;
    delete form.dataset.sized;
    text("planner-how", "");
    // What takes the draws belongs to the last question until they are there: nobody may copy it.
    text("planner-runner", "");
    document.getElementById("planner-starts").replaceChildren();
    form.parentElement.classList.add("planner-waiting");
    NAMES.forEach((name) => at(name).removeAttribute("aria-invalid"));
    let asked;
    try {
      asked = question(given);
    } catch (error) {
      if (error.field) at(error.field).setAttribute("aria-invalid", "true");
      text("planner-verdict", `${error.message}.`);
      text("planner-headline", `${error.message}.`);
      text("planner-said", `${error.message}.`);
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
    const drawn = draws(given);
    const waiting = [...drawn];
    const go = () => {
      if (mine !== round) return;
      const until = performance.now() + ROOM_FOR_DRAWS;
      while (waiting.length && performance.now() < until) {
        solved.push(math.solve(asked, ...waiting.shift()));
      }
      if (waiting.length) { setTimeout(go); return; }
      const found = show(given, asked, centre, solved);
      if (!found.best) document.getElementById("planner-notes").append(...list(remedies(given)));
      starts(asked, given, found.order, found.drawn, {});
      const swung = pictures.pictured(asked, given, coefficients(given), centre, found.best);
      const [, second] = found.order;
      const [behind] = math.interval(centre.rows[second].rate, solved.map((one) => one.rows[second].rate));
      text("planner-runner", found.best ? sentence(math.runner_up(found.best, second, behind, swung)) : "");
      sizes(given);
      gpus(given);
      tiers(given, asked);
      form.parentElement.classList.remove("planner-waiting");
      history.replaceState(null, "", share.hash("plan", linked()));
      form.dataset.complete = "true";
      const names = found.order.filter((name) => math.interval(NaN, solved.map((one) => one.rows[name].rate))[0] > 0);
      const like = (mixOf(given)?.rows ?? []).map(([n_in, n_out]) => [n_in, n_out, math.stored_of(n_in, Number(given.stored) / 100)]);
      if (found.best && !math.longest_fits(like, math.system_for(asked, found.best, math.careful(asked, found.best, solved)))) {
        text("planner-headline", "The longest of the requests does not fit the KV cache of a unit.");
        text("planner-said", document.getElementById("planner-headline").textContent);
        numbers(ofUnit(asked, found.rate, found.own));
        form.dataset.sized = "true";
        return;
      }
      crowd.sustain(asked, found.best ? names : [], solved, drawn, { cv: given.arrivals, share: shareOf(given), like }, goalOf(given), () => mine !== round, (sustained) => {
        if (found.best) answerGoal(given, asked, centre, solved, found, sustained);
        text("planner-said", document.getElementById("planner-headline").textContent);
        form.dataset.sized = "true";
      });
    };
    setTimeout(go, 60);
  };

  const layout = (given) => {
    const sizes = { ep: given.experts === "whole" ? Number(given.tp) * Number(given.dp) : 1, dp: given.dp, pp: given.pp };
    const divided = Object.entries(sizes).filter(([, size]) => Number(size) > 1).map(([name, size]) => `, ${name}=${size}`).join("");
    return divided + (Number(given.drafts) > 0 ? `, drafts=${given.drafts}, accepted=${Number(given.accepted) / 100}` : "");
  };
  const wrong = (given) => { try { question(given); return ""; } catch ({ message }) { return `# ${message}\n`; } };
  const fleetLine = (given) => {
    if (given.goal === "unit") return "";
    const rest = `${given.promise === "mean" ? "" : `, quantile=${given.promise}`}${given.arrivals === "1" ? "" : `, cv_arrivals=${given.arrivals}`}${mixOf(given) ? ", mix=requests" : ""}`;
    return `print(planner.${given.goal === "have" ? `capacity(found, ${given.have}` : `fleet(found, ${given.traffic}`}${rest}))  # with queues, simulated\n`;
  };
  const asPython = () => {
    const given = state();
    if (wrong(given)) return wrong(given);
    const alpha = Number(given.stored) / 100;
    const mix = Boolean(mixOf(given));
    const sent = [given.prompt, given.output, ...(alpha ? [`alpha=${alpha}`] : []), ...(given.lengths === "geometric" ? ['lengths="geometric"'] : [])];
    const requests = given.lengths === OWN ? `read("requests.csv").trace()` : `mix("${given.lengths}"${alpha ? `, alpha=${alpha}` : ""})`;
    const recorded = given.lengths === OWN && alpha ? `replace(${requests}, alpha=${alpha})` : requests;
    const limits = [given.ttft / 1000, given.tpot / 1000, ...(given.promise === "mean" ? [] : [`quantile=${given.promise}`])];
    const rest = [`units=${question(given).units}`, ...(given.tier === "hbm" ? [] : [given.tier === "own" ? `tier=Tier.of_bandwidth(${given.store}e9)` : `tier=tier("${given.tier}")`]), ...(Number(given.price) > 0 ? [`price=${given.price}`] : [])];
    const listed = catalogued.has(given.model);
    const model = listed ? `"${given.model}"` : 'Model.from_config("config.json")';
    const own = given.calibration === OWN && calibrated;
    const imported = [
      ...(mix && given.lengths === OWN && alpha ? ["from dataclasses import replace"] : []), ...(listed ? [] : ["from inference_math.catalogue import Model"]),
      ...(own ? ["from inference_math.unit import Calibration"] : []), ...(mix ? [`from inference_math.workload.${given.lengths === OWN ? "traces import read" : "mixes import mix"}`] : []),
    ].map((line) => `${line}\n`).join("");
    return `from inference_math import SLA, Unit, Workload, plan, planner\n${imported}from inference_math.catalogue.tiers import Tier, tier\n\n` +
      `unit = Unit.of(${model}, "${given.gpu}", ${given.tp}, "${given.weights}", "${given.kv}", "${given.engine}"${own ? ', Calibration.load("calibration.toml")' : ""}${layout(given)})\n${mix ? `requests = ${recorded}\n` : ""}` +
      `found = plan(unit, ${mix ? "Workload.from_trace(requests)" : `Workload(${sent.join(", ")})`}, SLA(${limits.join(", ")}), ${rest.join(", ")})\nprint(found)\n` +
      fleetLine(given);
  };

  // What the reader pastes is taken at once, and stays until the page is left.
  const offer = (name, value, title) => {
    text("planner-link", "");
    if (![...at(name).options].some((one) => one.value === value)) at(name).add(new Option(title, value));
    at(name).value = value;
    at("preset").value = "";
  };
  const tell = {
    model: pasted.place("model", ({ name, record }) => {
      data.models[name] = record;
      offer("model", name, name);
      at("weights").value = record.stored;
      answer();
    }),
    requests: pasted.place("requests", ({ rows }) => {
      data.mixes[OWN] = { rows };
      offer("lengths", OWN, "as in your requests");
      mixed();
      answer();
    }),
    calibration: pasted.place("calibration", ({ record }) => {
      calibrated = record;
      offer("calibration", OWN, "yours");
      answer();
    }),
  };

  // The plan as Markdown, for a design document: what stands on the page.
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim().replaceAll("|", "/"));
  const tableOf = (section) => [...section.querySelectorAll("tr")].map(cells);
  const asMarkdown = () => {
    const lines = (id) => document.getElementById(id).textContent;
    const rows = (found) => found.map((row, i) => `| ${row.join(" | ")} |${i ? "" : `\n|${row.map(() => "---").join("|")}|`}`).join("\n");
    const given = state();
    if (wrong(given)) return wrong(given);
    const asked_ = question(given).unit;
    const [of, sent] = [`${given.model} (${given.weights}, KV ${given.kv}) on ${given.tp} x ${given.gpu}, ${given.engine}${asked_.drafts > 0 ? `, ${given.drafts} drafts, ${digits(asked_.gives)} tokens a step` : ""}`, `${digits(given.prompt)} tokens in, ${digits(given.output)} out, ${given.stored} % stored; TTFT within ${given.ttft} ms, TPOT within ${given.tpot} ms (${given.promise === "mean" ? "means" : `P${100 * given.promise}`})`];
    const sections = TABLES.filter((one) => !one.hidden);
    const started = [...document.querySelectorAll("#planner-starts > details")].map((one) => `### ${one.querySelector("summary").textContent}\n\n${[...one.querySelectorAll("pre")].map((pre) => `${pre.dataset.title}:\n\n\`\`\`${pre.dataset.language}\n${pre.textContent}\n\`\`\``).join("\n\n")}`);
    const answers = [["answer", "value (5 to 95 %)", "meaning"], ...data.answers.map(([name, title]) => [title, ...["value", "why"].map((kind) => form.parentElement.querySelector(`[data-${kind}="${name}"]`).textContent)])];
    return [`# Plan: ${of}`, sent, `${Number(given.price) > 0 ? `${given.price} USD for a GPU and hour; ` : ""}${asked_.gpus} GPUs a unit`, ...(given.goal === "unit" ? [] : [`**${lines("planner-headline")}** ${lines("planner-how")}`]), `**${lines("planner-verdict")}** ${lines("planner-runner")}`, lines("planner-settings"),
      [...document.querySelectorAll("#planner-notes li")].map((one) => `* ${one.textContent}`).join("\n"),
      ...sections.map((one) => `## ${one.querySelector("h3").textContent}\n\n${rows(tableOf(one))}`), "## All numbers", rows(answers), ...started,
      `Made with the planner of Inference Math: ${share.link("plan", linked())}`].filter(Boolean).join("\n\n") + "\n";
  };

  const tools = form.querySelector(".planner-tools");
  tools.append(
    share.copier("Copy link", () => share.link("plan", linked())),
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
    if (target.name === "preset") { if (target.value) { write({ ...aims(), ...presets[target.value] }); text("planner-link", ""); } }
    else if (target.type === "range") { moved(target); at("preset").value = ""; }
    else {
      at("preset").value = "";
      if (target.name === "model") asStored(target.value);
      if (target.name === "lengths") mixed();
      form.querySelectorAll(`[data-for="${target.name}"]`).forEach(place);
    }
    answer();
  });
  // What the reader is after stays, whatever the set-up.
  const aims = () => Object.fromEntries(["goal", "traffic", "have", "arrivals", "price"].map((name) => [name, at(name).value]));
  // What a link asks for and this page lacks is said above the answer, and where it can be pasted.
  const follow = (link) => {
    const strange = write(link.state).filter((name) => !(name in PASTED && absent(name, link.state[name])));
    const said = strange.length ? [`The link names what this page does not have: ${strange.map((name) => `${name} ${link.state[name]} (now ${at(name).value})`).join(", ")}.`] : [];
    for (const [name, what] of Object.entries(PASTED)) {
      if (!absent(name, link.state[name])) continue;
      const lacks = `The link is about ${name === "model" ? link.state.model : `${what} of somebody's own`}, which it does not carry`;
      tell[what](`${lacks}: paste ${what === "requests" ? "them" : "it"} here.`, true);
      said.push(`${lacks}. What stands here is about something else, until you paste ${what === "requests" ? "them" : "it"} above.`);
    }
    text("planner-link", said.join(" "));
  };
  // Which fields may have a value that was pasted, and where; and whether a link names one that is not here.
  const PASTED = { model: "model", lengths: "requests", calibration: "calibration" };
  const absent = (name, value) => value !== undefined && (name === "model" ? !data.models[value] : value === OWN) && at(name).value !== value;
  const opened = share.parse();
  if (opened?.id === "plan") follow(opened); else begin();
  window.addEventListener("hashchange", () => { const link = share.parse(); if (link?.id === "plan") { follow(link); at("preset").value = ""; answer(); } });
  window.inferenceMathPlanner = { question, coefficients, calibration, state, write, asPython, asMarkdown, views: pictures.views };
  answer();
})();
