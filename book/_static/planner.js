// The planner's page. The arithmetic is window.inferenceMath, printed from the package; this file reads the form,
// writes the tables, and keeps the settings in the link.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const pictures = window.inferenceMathPictures;
  const crowd = window.inferenceMathCrowd;
  const card = window.inferenceMathAnswer;
  const { data } = math;
  const form = document.getElementById("planner-form");
  const sheet = form.closest(".planner-table");
  const at = (name) => form.elements[name];
  const NAMES = [...new Set([...form.elements].map((e) => e.name).filter((n) => n && n !== "preset"))];
  const defaults = Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const presets = JSON.parse(form.dataset.presets);
  const TABLES = ["architectures", "sizes", "drafting", "gpus", "tiers"].map((name) => document.getElementById(`planner-${name}`));
  const ROOM_FOR_DRAWS = 8; // ms of a frame

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
  // Whether a field can have a value; a number that is out of range is said when it is asked.
  const has = (field, value) => (field.tagName === "SELECT" ? [...field.options].some((o) => o.value === value)
    : value === "" ? Boolean(field.placeholder) : field.type !== "number" || Number.isFinite(Number(value)));
  // What `values` do not name is as in the case, with which the page opens; returned are those that name what this
  // page does not have.
  const write = (values) => {
    const strange = [];
    for (const name of NAMES) {
      const known = name in values && has(at(name), String(values[name]));
      if (name in values && !known) strange.push(name);
      at(name).value = known ? values[name] : defaults[name];
    }
    mixed();
    unfold();
    return strange;
  };
  const unfold = () => {
    for (const one of form.querySelectorAll("details")) {
      one.open ||= [...one.querySelectorAll("[name]")].some(({ name, value }) => value !== defaults[name]);
    }
  };

  const linked = () => Object.fromEntries(Object.entries(state()).map(([name, value]) => [name, ["prompt", "output"].includes(name) ? at(name).value : value]).concat(Object.entries(window.inferenceMathSessions?.linked() ?? {})));

  const remember = () => history.replaceState(null, "", share.hash("plan", linked()));

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
  const idle = { serve: ["have"], have: ["traffic"], unit: ["traffic", "have"] };

  const refuse = (name, why) => { throw Object.assign(new Error(`${label(name)} ${why}`), { field: name }); };

  // The question as `optimiser.answers` takes it; an Error says what is wrong with it.
  const question = (given) => {
    for (const name of NAMES.filter((n) => at(n).type === "number" && !(idle[given.goal] ?? []).includes(n))) {
      if (at(name).disabled || (given[name] === "" && at(name).placeholder)) continue;
      const [value, low, high] = [given[name], at(name).min, at(name).max].map(Number);
      const whole = ["units", "have", "drafts", "sessions"].includes(name);
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        refuse(name, `must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] === "" ? "empty" : given[name]}`);
      }
    }
    pricesOf(given);
    const tp = Number(given.tp);
    const model = data.models[given.model];
    const own = model.tp[given.tp];
    const rates = data.gpus[given.gpu];
    if (!own) throw new Error(`${label("tp")} must divide the heads of ${given.model}, which ${tp} does not`);
    if (given.weights === "fp8" && !rates.flops.fp8) throw new Error(`${label("weights")} must be bf16 or four bits on ${given.gpu}, which has no FP8`);
    const [dp, pp] = [Number(given.dp), Number(given.pp)];
    if (!data.engines[given.engine].makers.includes(rates.maker)) {
      const short = `${data.engines[given.engine].title} does not run on GPUs of ${rates.maker}`;
      throw Object.assign(new Error(`${label("engine")}: ${short}`), { short });
    }
    const whole = given.experts === "whole";
    const layout = (size) => ({ tp: size, ep: whole ? size * dp : 1, dp, pp });
    const mixture = model.shape.routed_params > 0;
    const scattered = math.say(math.scattered_over(layout(tp), rates.joined));
    if (scattered) throw Object.assign(new Error(`${label("tp")} ${scattered}`), { short: "needs links between nodes, which are not modelled" });
    if (layout(tp).ep > 1 && !mixture) throw new Error(`${label("experts")}: ${given.model} has none`);
    if (mixture && model.shape.experts % layout(tp).ep) throw new Error(`${label("experts")}: ${layout(tp).ep} GPUs do not divide the ${model.shape.experts} experts of ${given.model}`);
    if (given.imbalance && !mixture) refuse("imbalance", `must be left empty: ${given.model} has no routed experts`);
    const most = math.most_uneven(model.shape.idle);
    if (given.imbalance > most) refuse("imbalance", `must be at most ${math.digits(most)}, the same experts for every token, not ${given.imbalance}`);
    const sized = (size) => math.drafting(math.unit_numbers({ ...model.shape, ...model.tp[size] }, rates, layout(size), given.weights, given.kv, data.memory), Number(given.drafts), Number(given.accepted) / 100);
    const unit = sized(tp);
    if (!(unit.kv_room > 0)) {
      const least = Object.keys(model.tp).map(Number).find((size) => size > tp && sized(size).kv_room > 0);
      throw new Error(`${given.model} in ${given.weights} does not fit ${unit.gpus} × ${given.gpu}: take ${least ? `TP ${least}` : "pipeline stages (PP), larger GPUs"}, or fewer bytes`);
    }
    if (given.goal === "have" && given.have < unit.gpus) throw new Error(`${label("have")} must be at least ${unit.gpus}, those of a unit`);
    const n_out = Number(given.output);
    const work = {
      n_in: Number(given.prompt), n_out, alpha: storedOf(given),
      cv: given.lengths === "fixed" ? 0 : math.geometric_cv(n_out),
      longest: (mixOf(given)?.rows ?? []).reduce((most, [n_in, out]) => Math.max(most, n_in + out), 0),
      pairing: pairingOf(mixOf(given)?.rows),
    };
    const asked = {
      unit, work, engine: data.engines[given.engine], units: unitsOf(given, unit), watts: rates.watts, ttft: given.ttft / 1000, tpot: given.tpot / 1000,
      quantile: Number(given.promise) || 0, ...frontOf(given, model), price: Number(given.price), pool_bw: unit.gpus * (data.links[given.link].bw || rates.link_bw),
      read_bw: given.tier === "hbm" ? 0 : unit.gpus * (given.tier === "own" ? 1e9 * given.store : data.tiers[given.tier].read_bw),
      page: math.page_of(data.engines[given.engine], model.kind, rates.generation), sessions: Number(given.sessions), context: data.models[given.model].context,
    };
    const crowded = math.say(math.crowded(asked));
    if (crowded) refuse("sessions", crowded);
    return asked;
  };
  const frontOf = ({ engine, model, gpu, front }, { kind }) => (front === ""
    ? { front: math.fronted(data.fronts, math.front_levels(engine, kind, model, gpu)), front_sd: data.fronts.sd.all }
    : { front: front / 1000, front_sd: 0 });
  const storedOf = (given) => {
    const alpha = Number(given.stored) / 100;
    const rows = mixOf(given)?.rows;
    return rows ? rows.reduce((sum, [n_in]) => sum + math.stored_of(n_in, alpha), 0) / rows.reduce((sum, [n_in]) => sum + n_in, 0) : alpha;
  };
  const pairingOf = (rows) => {
    if (!rows) return 1;
    const [n_in, n_out, both] = rows.reduce((sums, [prompt, answer]) => [sums[0] + prompt, sums[1] + answer, sums[2] + prompt * answer], [0, 0, 0]);
    return both * rows.length / n_in / n_out;
  };
  // A replica has no more units than there are, where their GPUs are given.
  const unitsOf = (given, unit) => (given.goal === "have" ? Math.max(2, Math.min(given.units, Math.floor(given.have / unit.gpus))) : Number(given.units));
  const label = (name) => at(name).labels[0].firstChild.textContent;
  // Measured kernels, which the page keeps as lists; a decode's share that is left out is that of prompts.
  const named = (part) => (Array.isArray(part)
    ? Object.fromEntries(data.kernels.names.map((name, i) => [name, part[i] ?? part[1]]))
    : Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, named(inner)])));
  const errors = data.errors.rows.map((row) => {
    const told = Object.fromEntries(data.errors.names.map((name, i) => [name, row[i]]));
    return { ...told, kind: data.models[told.model].kind, maker: data.gpus[told.gpu].maker, generation: data.gpus[told.gpu].generation };
  });
  const kernels = { like: data.kernels.like, ...named(data.kernels.parts) };
  const normals = data.normals.rows.map((row) => row.map((place) => data.normals.values[place]));
  // The calibration that stands nearest to a unit, as `unit.nearest` chooses it.
  const calibration = (given) => {
    const { kind, operators, shape } = data.models[given.model];
    const engine = data.engines[given.engine].like || given.engine;
    const { generation } = data.gpus[given.gpu];
    const at = math.standpoint_of(engine, engine, { ...given, generation }, given.tp * given.dp, { ...operators, fine: shape.fine });
    if (math.by_operators(data.engines[given.engine].kernels, at.levels)) return { ...data.operators[given.engine], scope: data.scopes.operators, mode: "operators" };
    const { values, widths } = math.composed(data.levels, kernels, at);
    const seen = math.precisions_known(data.levels, at.levels);
    const precisions = seen.length ? { weights: seen } : {};
    if (given.imbalance) [values.expert_imbalance, widths.expert_imbalance] = [Number(given.imbalance), 0];
    return { mode: "served", found: values, root: math.own_root(data.coefficients, widths), spread: data.levels.spread[kind], scope: { ...data.scopes.served, ...precisions } };
  };
  const coefficients = (given) => ({ ...calibration(given).found, anchor: 0 });
  // What a calibration's scope names; numbers as both ends of a range.
  const inputs = (given, concurrency) => ({
    engine: given.engine, model: given.model, kind: data.models[given.model].kind, gpu: given.gpu,
    tp: [Number(given.tp), Number(given.tp)], dp: [Number(given.dp), Number(given.dp)], nodes: "one", weights: given.weights, kv: given.kv,
    n_in: [Number(given.prompt), Number(given.prompt)], n_out: [Number(given.output), Number(given.output)],
    concurrency: [concurrency, concurrency],
  });
  // Which scored points are a unit's own.
  const stand = (given) => ({
    model: given.model, gpu: given.gpu, generation: data.gpus[given.gpu].generation, maker: data.gpus[given.gpu].maker,
    engine: data.engines[given.engine].like || given.engine, weights: given.weights,
  });
  const spreadOf = (given) => Math.hypot(math.wider(calibration(given).spread, data.widths, calibration(given).scope, inputs(given, 1)), math.lacking(stand(given), errors));
  const draws = (given) => math.drawn(data.coefficients, coefficients(given), calibration(given).root, normals, spreadOf(given));
  const solve = (given, asked) => math.solve(asked, draws(given));

  const { digits, percent, say } = math;
  const withSpan = (value, low, high, scale = 1, word = "") => {
    const [middle, from, to] = [value, low, high].map((x) => math.most_of(scale * x));
    return middle + (from === middle && to === middle ? "" : ` (${from} to ${to})`) + word;
  };
  const three = ([value, low, high], scale = 1) => withSpan(value, low, high, scale);
  const text = (id, words) => { document.getElementById(id).textContent = words; };
  const cell = (kind, name, words) => { sheet.querySelector(`[data-${kind}="${name}"]`).textContent = words; };
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

  const { sentence } = card;

  // What was decided for a question, as `planner.plan` has it: every number a statistic over the same draws.
  const decided = (given) => {
    const asked = question(given);
    const drawn = draws(given);
    const solved = math.solve(asked, drawn);
    const [first, second] = solved.order;
    const rows = Object.fromEntries(solved.order.map((name) => [name, math.median_row(solved.each[name])]));
    const undrafted = asked.unit.drafts > 0 ? math.undrafted(asked, drawn) : null;
    return { given, asked, drawn, solved, undrafted, rows, first, second, best: solved.best, numbers: math.numbers_of(asked, solved) };
  };

  const outsideOf = (given, solved, first) => math.outside(calibration(given).scope, inputs(given, Math.max(solved.settings[first].batch, 1)));
  const tooLong = (given, asked) => math.too_long(given.model, data.models[given.model].context, math.longest_request(asked.work));
  // Of what an answer is a card; see `answers.card`.
  const about = ({ given, asked, solved, first }, goal) => ({
    goal, traffic: goal === "gpus" ? Number(given.traffic) : 0, have: goal === "rate" ? Number(given.have) : 0,
    gpus: asked.unit.gpus, price: asked.price, tail: goal === "unit" ? asked.quantile : 0,
    never: outsideOf(given, solved, first).length + tooLong(given, asked).length > 0,
    own: false, scaled: calibration(given).mode === "operators", rows: errors, kind: data.models[given.model].kind,
    model: given.model, gpu: given.gpu, weights: given.weights, engine: given.engine,
  });
  const unitCard = (found) => math.unit_card(found.asked, found.solved, about(found, "unit"));
  const noneSaid = ({ solved }) => ({ key: solved.none_in >= 1 ? "card.none" : "card.mostly_none", none: math.hundredths(solved.none_in) });

  const notes = ({ given, asked, solved, undrafted, rows, best, numbers, first }) => {
    const centre = math.under(asked, coefficients(given), [1, 1, 0]);
    const whole = math.whole_alone(asked, coefficients(given), [1, 1, 0]);
    const missed = best ? [] : math.missed(asked, centre);
    const never = outsideOf(given, solved, first).map((one) => `not calibrated: ${say(one)}`);
    const long = tooLong(given, asked);
    const prefill = solved.settings.disaggregated.prefill_units;
    const { title, measured } = data.links[given.link];
    const linked = rows.disaggregated.rate[0] > 0 ? [math.linked(asked, rows.disaggregated.rate[0] * asked.units / (asked.units - prefill), title, measured)] : [];
    const pays = asked.unit.drafts > 0 && best ? [math.drafting_pays(numbers.rate[0], math.best_rate(undrafted))] : [];
    const hindered = best ? solved.order.filter((name) => !(rows[name].rate[0] > 0)).map((name) => `no ${name} at full load: ${say(math.hindered(asked, centre, name))}`) : [];
    const wide = { ...given, kv: "bf16", sessions: 0 };
    const cache = given.kv === "fp8" ? math.slow_cache(asked, centre, math.under(question(wide), coefficients(wide), [1, 1, 0])) : [];
    return [...missed, ...hindered, ...long, ...never, ...math.widened(stand(given), errors), ...math.to_choose(asked, solved), ...math.slow_store(asked, centre, whole), ...math.store_moves(asked, centre, whole, best ? numbers.rate[0] : 0), ...cache, ...math.trusted(asked.unit, errors), ...math.front_weighs(asked, numbers.front), ...math.kept_in(asked), ...linked, ...pays, ...math.evidence(about({ given, asked, solved, first }, "unit"))].map(sentence);
  };

  const remedies = (given) => {
    const found = [];
    for (const weights of new Set([given.weights, "fp8", data.gpus[given.gpu].flops.fp4 ? "nvfp4" : "int4"])) {
      for (const tp of ["1", "2", "4", "8"]) {
        if (Number(tp) < Number(given.tp) || (tp === given.tp && weights === given.weights)) continue;
        try {
          const kv = weights === given.weights ? given.kv : "fp8";
          const other = { ...given, goal: "unit", tp, weights, kv };
          const asked = question(other);
          const solved = solve(other, asked);
          if (solved.best) found.push(math.remedy(Number(tp), asked.unit.gpus, weights, math.median(solved.rates[solved.best])));
        } catch { /* not a unit */ }
      }
    }
    return (found.length ? found : [{ key: "missed.nothing" }]).map(sentence);
  };

  const told = (asked, given, name, row) => {
    const eight = data.engines[given.engine].kv_fp8;
    const settings = { ...math.settings(asked, name, row), ...(given.kv === "bf16" ? {} : { [eight.option]: eight.value }) };
    return Object.entries(settings).map(([option, value]) => `${option} ${value}`.trim()).join(", ");
  };

  const list = (words) => words.map((one) => Object.assign(document.createElement("li"), { textContent: one }));

  const show = (found) => {
    const { given, asked, solved, rows, numbers: told_, best, first, second } = found;
    const words = { binding: math.binding_limits(told_).join(" and "), units: asked.units, best: first, second };
    const formulas = math.by_formula(asked, solved, told_);
    for (const [name, , unit, by, , why] of data.answers) {
      const [value, low, high] = told_[name] ?? [NaN, NaN, NaN];
      const known = Number.isFinite(value);
      const printed = data.printed[unit] || [1, ` ${unit}`];
      cell("why", name, known ? say({ text: best ? why : why.split(",")[0], ...words }) : "");
      cell("value", name, known ? withSpan(value, low, high, ...printed) : "–");
      cell("by", name, by);
      const said = formulas[name];
      cell("said", name, known && Number.isFinite(said) ? withSpan(said, said, said, ...printed) : "");
    }
    if (!given.imbalance) at("imbalance").placeholder = digits(coefficients(given).expert_imbalance);
    text("planner-settings", best ? `Start with (keeps the SLA in ${percent(solved.kept[best])} of the draws): ${told(asked, given, best, solved.settings[best])}` : "");
    document.getElementById("planner-notes").replaceChildren(...list(notes(found)));
    document.getElementById("planner-why").open ||= !best; // which says what would do
    architectures(found, null);
    const unit = best ? unitCard(found) : null;
    text("planner-verdict", best ? `${sentence(unit.headline)} ${sentence([unit.sure, " ", ...unit.why])}` : "");
    if (!best) card.words(sentence(noneSaid(found)), "none", document.querySelector("#planner-notes li").textContent);
    else if (given.goal === "unit") card.show(unit, solved.order);
    else card.words(`${given.goal === "have" ? `What ${given.have} GPUs serve` : `GPUs for ${given.traffic} requests/s`}: simulating queues …`, "waiting", sentence(unit.headline));
  };

  // What the reader asked for, queues counted: GPUs for the traffic, or traffic for the GPUs.
  const shareOf = (given) => (given.promise === "mean" ? data.crowd.share : Number(given.promise) || 0);
  const goalOf = (given) => ({ traffic: given.goal === "serve" ? Number(given.traffic) : 0, have: given.goal === "have" ? Number(given.have) : 0, cv: Number(given.arrivals) });
  const answerGoal = (found, crowded) => {
    const { given, asked, solved } = found;
    const { fleets } = crowded;
    const held = crowded.order.filter((name) => fleets[name]?.replicas > 0);
    architectures(found, crowded);
    if (!held.length) {
      const all = Object.values(fleets);
      const draws_ = all[0].each.length;
      card.words(sentence(math.short(shareOf(given), draws_, math.slow_places(draws_) + 1, all.map((one) => math.idle(one.name, one.idle)))), "none");
      text("planner-settings", "");
      return;
    }
    const { have, cv } = goalOf(given);
    const owned = have > 0;
    const first = fleets[held[0]];
    starts(found, [first.name], { [first.name]: first });
    text("planner-settings", `Start ${first.replicas === 1 ? "it" : `each of ${digits(first.replicas)}`} with: ${told(first.asked, given, first.name, first.settings)}`);
    const sizes = held.map((name) => math.fleet_sized(fleets[name].asked, fleets[name], fleets[name].settings));
    card.show(math.card_of(asked, sizes, crowded, about(found, owned ? "rate" : "gpus")), solved.order);
    const apart = found.best ? say(math.apart(first.name, found.best, 2 * asked.unit.gpus, have)) : "";
    if (apart) text("planner-verdict", `${sentence(apart)} ${document.getElementById("planner-verdict").textContent}`);
    text("planner-how", `${sentence(math.sized_how(shareOf(given), [cv, math.cv_at_each(cv, first.replicas)], mixOf(given) ? "mix" : "", asked.units, first.sold, first.full, first.replicas > 1))} ${sentence({ key: "card.unscored" })}`);
  };

  // How to start architectures, a fleet's replica or a unit at full load: the first one open, the others folded.
  const starts = ({ given, asked, solved }, order, replicas) => {
    const shown = order.map((name) => {
      const of = replicas[name] ?? { asked, settings: solved.settings[name] };
      const told_ = math.settings(of.asked, name, of.settings);
      const made = document.createElement("details");
      made.append(Object.assign(document.createElement("summary"), { textContent: `To start ${name}${replicas[name] ? ", a replica" : " at full load"}` }));
      const behind = name === "disaggregated" ? 1 : of.units ?? 1; // units without pools behind each router
      for (const both of math.commands(of.asked, name, told_, given.kv, data.memory, Number(given.stored) > 0 && given.tier !== "hbm" ? given.tier : "", behind)) {
        const [title, line] = both.map(say);
        const code = Object.assign(document.createElement("pre"), { textContent: line });
        const head = Object.assign(document.createElement("p"), { textContent: `${title} ` });
        code.dataset.title = title;
        head.append(share.copier("Copy", () => line));
        made.append(head, code);
      }
      return made;
    });
    if (shown.length) shown[0].open = true;
    document.getElementById("planner-starts").replaceChildren(...shown);
  };

  const standing = (given) => {
    const { mode, scope } = calibration(given);
    const whose = [given.gpu, data.kernels.like[given.gpu], data.models[given.model].kind, data.engines[given.engine].like || given.engine, given.weights, data.gpus[given.gpu].maker];
    return math.standing_of(mode, math.missing(scope, inputs(given, 1)), ...whose, errors);
  };

  const ofGpu = (given) => {
    try {
      const asked = question({ ...given, goal: "unit" });
      const solved = solve(given, asked);
      return solved.best ? { best: solved.best, each: solved.rates[solved.best].map((rate) => rate / asked.unit.gpus) } : { said: "none meets the SLA" };
    } catch (error) { return { refused: true, said: error.short ?? "does not fit, or not in this precision" }; }
  };
  const ended = (each, scale = 1) => { const [value, low, high] = math.interval(NaN, each); return Number.isFinite(value) ? withSpan(value, low, high, scale) : ""; };

  // The reader's prices of GPUs by name, "b200=5 h200-sxm=3.2"; an Error says what is wrong with them.
  const pricesOf = (given) => {
    const prices = Number(given.price) > 0 ? { [given.gpu]: Number(given.price) } : {};
    for (const one of given.prices.split(/[\s,;]+/).filter(Boolean)) {
      const [name, price] = one.toLowerCase().split("=");
      if (!data.gpus[name] || !(Number(price) > 0)) refuse("prices", `must be like b200=5, with a GPU of the list, not ${one}`);
      prices[name] = Number(price);
    }
    return prices;
  };

  // The same question on other GPUs: what one of each is worth, and what a token costs where a price is known.
  const gpus = function* (given, first) {
    const here = first.best ? first.solved.rates[first.best].map((rate) => rate / first.asked.unit.gpus) : [];
    const found = [];
    for (const gpu of Object.keys(data.gpus)) {
      yield;
      const one = gpu === given.gpu ? { ...(first.best ? { best: first.best, each: here } : { said: "none meets the SLA" }) } : ofGpu({ ...given, gpu });
      found.push({ gpu, ...one, middle: one.each ? math.median(one.each) : 0, never: one.refused ? "" : standing({ ...given, gpu }) });
    }
    const prices = pricesOf(given);
    const price = prices[given.gpu] ?? 0;
    const spent = ({ each }, of) => math.spent_on((each ?? []).map((rate) => rate * Number(given.output)), of);
    const cost = (one) => spent(one, math.usd_per_million(1, prices[one.gpu] ?? 0, 1));
    const order = math.gpus_ranked(found.map((one) => one.middle), found.map((one) => cost(one)[0]), found.map((one) => one.never === data.guessed));
    const joules = (one) => (data.gpus[one.gpu].watts > 0 ? three(spent(one, data.gpus[one.gpu].watts)) : "power not stated");
    const told = order.filter((i) => found[i].never !== data.guessed);
    const said = say(math.gpus_said(...[({ gpu }) => gpu, (one) => one.middle, (one) => cost(one)[0]].map((of) => told.map((i) => of(found[i])))));
    document.querySelector("#planner-gpus p").textContent = said ? sentence(said) : "";
    table("planner-gpus", ["GPU", "stands on", "best architecture", "requests/s of a GPU, at full load", `as many ${given.gpu}`, "break-even price (USD/hour)", "price (USD/hour)", "USD per million output tokens at that", "J a token, rated power"],
      order.map((i) => {
        const one = found[i];
        if (!one.each) return [one.gpu, one.never, one.said, "", "", "", "", "", ""];
        const ratios = here.length ? math.ratios(one.each, here) : [];
        return [one.gpu, one.never, one.best, ended(one.each), ended(ratios), price > 0 ? ended(ratios, price) : "", prices[one.gpu] ? digits(prices[one.gpu]) : "", prices[one.gpu] ? three(cost(one)) : "", joules(one)];
      }));
  };

  const architectures = ({ given, asked, solved, rows }, crowded) => {
    const { have } = goalOf(given);
    const optional = (value) => (Number.isFinite(value) ? digits(value) : "");
    const loaded = (name) => {
      if (!crowded) return ["…", "…", "…", "…", "…", "…", "…"];
      const one = crowded.fleets[name];
      if (!one?.replicas) return ["none", "", "", "", "", "", ""];
      const cost = math.usd_per_million(one.gpus_all[0], asked.price, one.sold * asked.work.n_out);
      return [have ? three(one.rate) + (one.gpus_all[0] < have ? `, on ${digits(one.gpus_all[0])}` : "") : three(one.gpus_all), percent(crowded.best_in[name]), percent(crowded.loss[name]), percent(one.kept), three(one.ttft, 1000), three(one.tpot, 1000), optional(cost)];
    };
    // The first of them stands beside the labels, where a phone shows it.
    const names = (crowded ?? solved).order;
    const asksFleet = given.goal !== "unit";
    const columns = names.map((name) => {
      const [row, own] = [rows[name], solved.settings[name]];
      const sized = asksFleet && solved.best ? loaded(name) : [];
      if (!(row.rate[0] > 0)) return [...sized, "none"];
      return [
        ...sized, three(row.rate), percent(solved.best_in[name]), percent(solved.loss[name]), percent(solved.kept[name]),
        digits(row.decodes[0]), own.chunk > 0 ? digits(math.computed_tokens(asked, own)) : "", optional(own.prefill_units), three(row.ttft, 1000), three(row.tpot, 1000),
      ];
    });
    const of = asked.quantile ? `P${100 * asked.quantile} of ` : "mean ";
    const labels = [...(asksFleet ? [have ? `requests/s on ${given.have} GPUs at most` : `GPUs for ${given.traffic} requests/s`, "the best in this share of draws", "serves less than the most, in the mean, by", "keeps the promise in this share of draws",
      "mean TTFT (ms)", "mean TPOT (ms)", "USD per million output tokens at that"] : []),
    "requests/s of a unit, at full load", "the best in this share of draws, at full load", "serves less than the most, at full load, by", "keeps the limits in this share of draws",
    "decodes of a unit, at full load", "computed prompt tokens of a step, at full load", "prefill units, at full load", `${of}TTFT at full load (ms)`,
    asked.quantile ? `${of}the gaps between tokens (ms)` : "mean TPOT at full load (ms)"];
    table("planner-architectures", ["", ...names], labels.map((label, i) => [label, ...columns.map((one) => one[i] ?? "")]));
    const heads = document.querySelectorAll("#planner-architectures th");
    names.forEach((name, i) => { heads[i + 1].style.borderBottom = `.25em solid var(--${name})`; });  // as in the picture
  };

  const sizes = function* (given) {
    const rows = [];
    for (const tp of ["1", "2", "4", "8"]) {
      yield;
      const one = ofGpu({ ...given, tp });
      if (one.best || one.said === "none meets the SLA") rows.push([tp, one.best ?? one.said, one.each ? ended(one.each) : ""]);
    }
    table("planner-sizes", ["TP of a unit", "best architecture", "requests/s of a GPU, at full load"], rows);
  };

  const drafting = ({ given, asked, solved, undrafted }) => {
    const each = asked.unit.drafts > 0 ? [[Number(given.drafts), solved], [0, undrafted]] : [];
    table("planner-drafting", ["drafts", "best architecture", "requests/s of a unit, at full load", "TTFT at full load (ms)", "TPOT at full load (ms)"],
      each.map(([many, one]) => {
        const row = math.median_row(one.each[one.order[0]]);
        return [say(math.drafts_said(many)), ...(one.best ? [one.best, three(row.rate), three(row.ttft, 1000), three(row.tpot, 1000)] : ["none meets the SLA", "", "", ""])];
      }));
  };

  const tiers = ({ given, asked, drawn }) => {
    const own = given.tier === "own" ? { own: { title: `a store of ${given.store} GB/s for each GPU`, read_bw: 1e9 * given.store } } : {};
    const all = { ...data.tiers, ...own };
    const speeds = Object.fromEntries(Object.entries(all).map(([name, tier]) => [name, name === "hbm" ? 0 : asked.unit.gpus * tier.read_bw]));
    const found = asked.work.alpha > 0 ? math.gains(asked, drawn, speeds) : [];
    const rows = found.map((row) => [
      row.where === "nowhere" ? "nowhere: all is computed" : (row.where === "hbm" ? (asked.sessions > 0 ? "HBM of the unit" : "HBM of the unit, if it holds what is stored") : all[row.where].title), row.binds, Number.isFinite(row.speedup) ? digits(row.speedup) : "–",
      row.rate > 0 ? withSpan(row.rate, row.rate_low, row.rate_high) : "none", Number.isFinite(row.gain) ? digits(row.gain) : "–",
    ]);
    table("planner-tiers", ["where", "a prompt alone waits for", "prefill speedup", "requests/s of a unit", "gain"], rows);
  };

  // The decision at once; queues and tables while nothing else moves, a slice of a frame at a time.
  let round = 0;
  const answer = () => {
    const mine = ++round;
    const given = state();
    sheet.dataset.goal = given.goal;
    const began = performance.now();
    delete form.dataset.complete;
    delete form.dataset.sized;
    text("planner-how", "");
    text("planner-runner", "");
    document.getElementById("planner-starts").replaceChildren();
    sheet.classList.add("planner-waiting");
    NAMES.forEach((name) => at(name).removeAttribute("aria-invalid"));
    try {
      question(given);
    } catch (error) {
      if (error.field) at(error.field).setAttribute("aria-invalid", "true");
      text("planner-verdict", "");
      card.words(`${error.message}.`, "refused");
      text("planner-settings", "");
      document.getElementById("planner-notes").replaceChildren();
      data.answers.forEach(([name]) => { cell("value", name, "–"); ["why", "by", "said"].forEach((kind) => cell(kind, name, "")); });
      [...TABLES, document.getElementById("planner-pictures")].forEach((section) => { section.hidden = true; });
      return;
    }
    const work = function* () {
      const found = decided(given);
      show(found);
      form.dataset.answered = String(performance.now() - began);
      yield;
      const { asked, solved, drawn, rows, best, second } = found;
      if (!best) document.getElementById("planner-notes").append(...list(remedies(given)));
      if (given.goal === "unit") starts(found, solved.order.filter((name) => best && rows[name].rate[0] > 0), {});
      sheet.classList.remove("planner-waiting");
      remember();
      const like = (mixOf(given)?.rows ?? []).map(([n_in, n_out]) => [n_in, n_out, math.stored_of(n_in, Number(given.stored) / 100)]);
      if (best && !math.longest_fits(like, math.system_for(asked, best, solved.settings[best]))) {
        card.words("The longest of the requests does not fit the KV cache of a unit.", "none");
      } else if (best && given.goal !== "unit") {
        const played = { gaps: data.crowd.gaps, cv: Number(given.arrivals), lengths: data.crowd.lengths, like, share: shareOf(given) };
        answerGoal(found, yield* crowd.sized(found, played, goalOf(given)));
      }
      form.dataset.sized = "true";
      yield;
      const swung = best ? yield* pictures.pictured(found, coefficients(given)) : pictures.none();
      text("planner-runner", best ? sentence(math.runner_up(best, second, rows[second].rate[0], swung, math.as_good(solved.lead))) : "");
      yield* sizes(given);
      tiers(found);
      drafting(found);
      yield* gpus(given, found);
      form.dataset.complete = "true";
    };
    const steps = work();
    const go = () => {
      if (mine !== round) return;
      const until = performance.now() + ROOM_FOR_DRAWS;
      do { if (steps.next().done) return; } while (performance.now() < until);
      setTimeout(go);
    };
    setTimeout(go, 30);
  };

  const layout = (given) => {
    const sizes = { ep: given.experts === "whole" ? Number(given.tp) * Number(given.dp) : 1, dp: given.dp, pp: given.pp };
    const divided = Object.entries(sizes).filter(([, size]) => Number(size) > 1).map(([name, size]) => `, ${name}=${size}`).join("");
    const counted = given.imbalance ? `, expert_imbalance=${given.imbalance}` : "";
    return divided + counted + (Number(given.drafts) > 0 ? `, drafts=${given.drafts}, accepted=${Number(given.accepted) / 100}` : "");
  };
  const wrong = (given) => { try { question(given); return ""; } catch ({ message }) { return `# ${message}\n`; } };
  const fleetLine = (given) => {
    if (given.goal === "unit") return "";
    const come = [...(given.arrivals === "1" ? [] : [`cv_arrivals=${given.arrivals}`]), ...(mixOf(given) ? ["mix=requests"] : [])].join(", ");
    const rest = `${given.promise === "mean" ? "" : `, quantile=${given.promise === "means" ? "None" : given.promise}`}${come && `, arrivals=planner.Arrivals(${come})`}`;
    return `print(planner.${given.goal === "have" ? `capacity(found, ${given.have}` : `fleet(found, ${given.traffic}`}${rest}))  # with queues, simulated\n`;
  };
  const asPython = () => {
    const given = state();
    if (wrong(given)) return wrong(given);
    const alpha = Number(given.stored) / 100;
    const mix = Boolean(mixOf(given));
    const sent = [given.prompt, given.output, ...(alpha ? [`alpha=${alpha}`] : []), ...(given.lengths === "geometric" ? ['lengths="geometric"'] : [])];
    const requests = `mix("${given.lengths}"${alpha ? `, alpha=${alpha}` : ""})`;
    const limits = [given.ttft / 1000, given.tpot / 1000, ...(Number(given.promise) > 0 ? [`quantile=${given.promise}`] : [])];
    const rest = [`units=${question(given).units}`, ...(given.tier === "hbm" ? [] : [given.tier === "own" ? `tier=Tier.of_bandwidth(${given.store}e9)` : `tier=tier("${given.tier}")`]), ...(given.front === "" ? [] : [`front=${given.front / 1000}`]), ...(given.link === data.link ? [] : [`link=link("${given.link}")`]), ...(Number(given.sessions) > 0 ? [`sessions=${given.sessions}`] : []), ...(Number(given.price) > 0 ? [`price=${given.price}`] : [])];
    const imported = mix ? "from inference_math_planner.fleets.mixes import mix\n" : "";
    return `import inference_math_planner as planner\nfrom inference_math import SLA, Unit, Workload\n${imported}from inference_math.catalogue.links import link\nfrom inference_math.catalogue.tiers import Tier, tier\n\n` +
      `unit = Unit.of("${given.model}", "${given.gpu}", ${given.tp}, "${given.weights}", "${given.kv}", "${given.engine}"${layout(given)})\n${mix ? `requests = ${requests}\n` : ""}` +
      `found = planner.plan(unit, ${mix ? "Workload.from_trace(requests)" : `Workload(${sent.join(", ")})`}, SLA(${limits.join(", ")}), ${rest.join(", ")})\nprint(found)\n` +
      fleetLine(given);
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
    const [of, sent] = [`${given.model} (${given.weights}, KV ${given.kv}) on ${given.tp} x ${given.gpu}, ${given.engine}${asked_.drafts > 0 ? `, ${given.drafts} drafts, ${digits(asked_.gives)} tokens a step` : ""}`, `${digits(given.prompt)} tokens in, ${digits(given.output)} out, ${given.stored} % stored; TTFT within ${given.ttft} ms, TPOT within ${given.tpot} ms (${Number(given.promise) > 0 ? `P${100 * given.promise}` : "means"})`];
    const sections = TABLES.filter((one) => !one.hidden);
    const started = [...document.querySelectorAll("#planner-starts > details")].map((one) => `### ${one.querySelector("summary").textContent}\n\n${[...one.querySelectorAll("pre")].map((pre) => `${pre.dataset.title}:\n\n\`\`\`bash\n${pre.textContent}\n\`\`\``).join("\n\n")}`);
    const answers = [["answer", "value (5 to 95 %)", "meaning"], ...data.answers.map(([name, title]) => [title, ...["value", "why"].map((kind) => sheet.querySelector(`[data-${kind}="${name}"]`).textContent)])];
    return [`# Plan: ${of}`, sent, `${Number(given.price) > 0 ? `${given.price} USD for a GPU and hour; ` : ""}${asked_.gpus} GPUs a unit`, `**${lines("planner-said")}** ${[lines("planner-headline"), lines("card-cost"), lines("card-sure"), lines("card-evidence")].filter(Boolean).join(" ")}`, lines("planner-how"), `${lines("planner-verdict")} ${lines("planner-runner")}`, lines("planner-settings"),
      [...document.querySelectorAll("#planner-notes li")].map((one) => `* ${one.textContent}`).join("\n"),
      ...sections.map((one) => [`## ${one.querySelector("h3").textContent}`, one.querySelector("p").textContent, rows(tableOf(one))].filter(Boolean).join("\n\n")), "## All numbers", rows(answers), ...started,
      `Made with the planner of Inference Math: ${share.link("plan", linked())}`].filter(Boolean).join("\n\n") + "\n";
  };

  const tools = form.querySelector(".planner-tools");
  card.tools(share.copier("Copy link", () => share.link("plan", linked())), share.copier("Copy as report", asMarkdown));
  tools.append(
    share.copier("Copy as Python", asPython),
    share.button("Download tables (CSV)", () => {
      share.download("plan.csv", "text/csv", share.csv(TABLES.filter((one) => !one.hidden).flatMap((one) => [[one.querySelector("h3").textContent], ...tableOf(one), []])));
    }),
    share.button("Reset", () => {
      begin();
      answer();
    }),
  );
  // A checkpoint in four or eight bits is served as it is stored; four bits that it has not are not kept.
  const FOUR = ["nvfp4", "mxfp4", "int4"];
  // What was another model's alone goes with it; a unit that does not hold the new one grows.
  const OF_A_MODEL = ["experts", "dp", "pp", "drafts", "accepted", "imbalance", "front"];
  const asStored = (model) => {
    const { stored } = data.models[model];
    if (stored !== "bf16" || FOUR.includes(at("weights").value)) at("weights").value = stored;
    for (const name of OF_A_MODEL) at(name).value = defaults[name];
    const holds = (tp) => { try { question({ ...state(), goal: "unit", tp }); return true; } catch { return false; } };
    const { value } = at("tp");
    at("tp").value = [value, ...[...at("tp").options].map((one) => one.value)].find((tp) => Number(tp) >= Number(value) && holds(tp)) ?? value;
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
  const aims = () => Object.fromEntries(["goal", "traffic", "have", "arrivals", "price", "prices"].map((name) => [name, at(name).value]));
  // What a link asks for and this page lacks is said above the answer.
  const follow = (link) => {
    const strange = write(link.state);
    const said = strange.length ? [`The link names what this page does not have: ${strange.map((name) => `${name} ${link.state[name]} (now ${at(name).value})`).join(", ")}.`] : [];
    const unknown = Object.keys(link.state).filter((name) => !NAMES.includes(name) && name !== "preset" && !name.startsWith("sessions."));
    if (unknown.length) said.push(`No field here is called ${unknown.join(" or ")}: the link says it for nothing.`);
    text("planner-link", said.join(" "));
  };
  const opened = share.parse();
  if (opened?.id === "plan") follow(opened); else begin();
  window.addEventListener("hashchange", () => { const link = share.parse(); if (link?.id === "plan") { follow(link); at("preset").value = ""; answer(); } });
  window.inferenceMathPlanner = { question, coefficients, calibration, draws, spreadOf, state, write, remember, asPython, asMarkdown, views: pictures.views };
  answer();
})();
