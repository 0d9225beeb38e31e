// The form of the planner's pages: what it asks, in the words of the package; its link; and where it asks what cannot
// be, what would do instead. The arithmetic is window.inferenceMath, printed from the package.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data, digits, say } = math;
  const form = document.getElementById("planner-form");
  const at = (name) => form.elements[name];
  const byId = (id) => document.getElementById(id);
  const known = JSON.parse(form.dataset.known); // what every field of every page has at first
  const NAMES = [...new Set([...form.elements].map((e) => e.name).filter(Boolean))];
  const MODELS = Object.keys(data.models);
  byId("names-of-model").append(...MODELS.slice().sort().map((value) => Object.assign(document.createElement("option"), { value })));

  // What has moved to a page of its own.
  const { id: asked, state: said = {} } = share.parse() ?? {};
  const moved = { "#planner-users": "planner-sessions.html", "#planner-bench": "planner-benchmark.html" }[location.hash]
    ?? (Object.keys(said).some((name) => name.startsWith("sessions.")) ? `planner-sessions.html${location.hash}` : "");
  if (form.dataset.page === "plan" && moved) location.replace(moved);

  let carried = {}; // what a link says of fields on other pages
  const own = () => Object.fromEntries(NAMES.map((n) => [n, at(n).value]));
  const state = () => {
    const given = { ...known, ...carried, ...own() };
    return { ...given, model: math.meant(given.model, MODELS) || given.model, ...means(given.lengths) };
  };
  // Recorded requests have their own means, which nobody else sets.
  const mixOf = (given) => data.mixes[given.lengths];
  const means = (lengths) => {
    const rows = data.mixes[lengths]?.rows;
    if (!rows) return {};
    const [prompt, output] = [0, 1].map((i) => String(rows.reduce((sum, row) => sum + row[i], 0) / rows.length));
    return { prompt, output };
  };
  // Fields that follow from another are shown, say so, and cannot be set: means of a mix, a layout that is searched.
  const follow = () => {
    const found = means(at("lengths")?.value);
    const fixed = { prompt: "prompt" in found && "As recorded", output: "output" in found && "As recorded" };
    for (const name of ["dp", "experts", "pp", "prefill"]) fixed[name] = at("tp").value === "auto" && "Choose a TP first";
    for (const [name, why] of Object.entries(fixed)) {
      if (name in found) at(name).value = Math.round(found[name]);
      for (const one of form.querySelectorAll(`[name="${name}"], [data-for="${name}"]`)) one.disabled = Boolean(why);
      at(name)?.labels[0].setAttribute("data-held", why || "");
    }
    if (data.models[state().model]) {
      at("kv").value = untold(state()).kv;
      at("kv").labels[0].setAttribute("data-held", whyKv(state()));
      at("weights").labels[0].setAttribute("data-held", at("weights").value === wanted ? "" : `As ${state().model} is stored, not in ${wanted.toUpperCase()}`);
    }
    form.querySelectorAll("input[type=range]").forEach(place);
  };
  // A reader's precision stays when the model changes, unless the checkpoint has no more bits: it is served as stored.
  let wanted = "";
  let served = ""; // the model that the other fields are for
  // A KV cache has the precision that the checkpoint or the engine has untold, until somebody chooses another.
  let chosen = false;
  const choose = () => { const given = state(); chosen = !data.models[given.model] || given.kv !== usualKv(given); };
  const untold = (given) => (chosen || !data.models[given.model] ? given : { ...given, kv: usualKv(given) });
  // Whether a field can have a value; a number that is out of range is said when it is asked.
  const has = (field, value) => (field.tagName === "SELECT" ? [...field.options].some((o) => o.value === value)
    : value === "" ? Boolean(field.placeholder) : field.type !== "number" || Number.isFinite(Number(value)));
  // What `values` do not name is as the page opens; returned are those that name what this page does not have.
  const write = (values) => {
    if (values.promise === "mean") values = { ...values, promise: known.promise }; // as it was called
    const strange = NAMES.filter((name) => name in values && !has(at(name), String(values[name])));
    for (const name of NAMES) at(name).value = name in values && !strange.includes(name) ? values[name] : known[name];
    carried = Object.fromEntries(Object.entries(values).filter(([name]) => name in known && !NAMES.includes(name)));
    wanted = at("weights").value;
    served = state().model;
    chosen = false;
    if ("kv" in values && !strange.includes("kv")) choose();
    follow();
    for (const one of form.querySelectorAll("fieldset details:not(.planner-note)")) {
      one.open ||= [...one.querySelectorAll("[name]")].some(({ name, value }) => value !== known[name]);
    }
    return strange;
  };

  // The link has what the form shows, be it answered or refused; tabs take it along.
  const linked = () => ({ ...carried, ...own() });
  const remember = () => {
    history.replaceState(null, "", share.hash("plan", linked()));
    for (const tab of document.querySelectorAll(".planner-tabs a:not([aria-current])")) {
      const planned = tab.pathname.endsWith("planner.html");
      const rest = Object.entries(linked()).filter(([name]) => !(planned && name.startsWith("sessions.")));
      tab.hash = share.hash("plan", Object.fromEntries(rest));
    }
  };

  // Sliders: a thousand places from the smallest to the largest value, in equal ratios where that is asked for.
  const place = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, value] = [field.min, field.max, field.value].map(Number);
    const part = slider.dataset.scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    slider.value = 1000 * Math.min(1, Math.max(0, part));
    slider.setAttribute("aria-valuetext", field.value); // its own places mean nothing
  };
  const slid = (slider) => {
    const field = at(slider.dataset.for);
    const [low, high, step] = [field.min, field.max, field.step].map(Number);
    const part = slider.value / 1000;
    const value = slider.dataset.scale === "log" ? Number((low * (high / low) ** part).toPrecision(3)) : low + part * (high - low);
    field.value = Number((Math.round(value / step) * step).toPrecision(12));
    slider.setAttribute("aria-valuetext", field.value);
  };

  const label = (name) => at(name)?.labels[0].firstChild.textContent ?? name;
  const stopped = ({ message }) => (message.endsWith("?") ? message : `${message}.`);
  // An Error that names its field, and changes that may mend it: which of them do is tried.
  const refuse = (name, why, fixes = [], short = "") => throwing(name, `${label(name)} ${why}`, fixes, short);
  const throwing = (field, message, fixes = [], short = "") => { throw Object.assign(new Error(message), { field, fixes, short }); };
  const idle = { serve: ["have", "need"], have: ["traffic"], unit: ["traffic", "have", "need"] }; // what a goal does not ask for
  const checkNumbers = (given) => {
    for (const field of [...form.elements].filter(({ type, disabled }) => type === "number" && !disabled)) {
      const { name, placeholder, min, max, step } = field;
      if ((idle[given.goal] ?? []).includes(name) || (given[name] === "" && placeholder)) continue;
      const [value, low, high] = [given[name], min, max].map(Number);
      const whole = step === "1" && !["prompt", "output", "ttft"].includes(name);
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        const near = given[name] === "" || Number.isNaN(value) ? known[name] : String(Math.min(high, Math.max(low, whole ? Math.round(value) : value)));
        refuse(name, `must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] === "" ? "empty" : given[name]}`, [{ [name]: near }]);
      }
    }
  };

  // A unit as a set-up lays it out; an Error says what is wrong with it.
  const unitOf = (given) => {
    const tp = Number(given.tp);
    const model = data.models[given.model];
    const layer = model.tp[given.tp];
    const rates = data.gpus[given.gpu];
    if (!layer) refuse("tp", `must divide the heads of ${given.model}, which ${tp} does not`);
    if (given.weights === "fp8" && !rates.flops.fp8) refuse("weights", `must be bf16 or four bits on ${given.gpu}, which has no FP8`);
    const [dp, pp] = [Number(given.dp), Number(given.pp)];
    if (!data.engines[given.engine].makers.includes(rates.maker)) {
      const short = `${data.engines[given.engine].title} does not run on GPUs of ${rates.maker}`;
      refuse("engine", `must be another: ${short}`, Object.keys(data.engines).filter((name) => data.engines[name].makers.includes(rates.maker)).map((name) => ({ engine: name })), short);
    }
    const layout = { tp, ep: given.experts === "whole" ? tp * dp : 1, dp, pp };
    const mixture = model.shape.routed_params > 0;
    const scattered = math.say(math.scattered_over(layout, rates.joined));
    if (scattered) refuse("tp", scattered, [], "needs links between nodes, which are not modelled");
    if (layout.ep > 1 && !mixture) refuse("experts", `must be a part of each: ${given.model} has none`, [{ experts: "split" }]);
    if (mixture && model.shape.experts % layout.ep) refuse("experts", `${layout.ep} GPUs do not divide the ${model.shape.experts} experts of ${given.model}`);
    if (given.imbalance && !mixture) refuse("imbalance", `must be left empty: ${given.model} has no routed experts`, [{ imbalance: "" }]);
    const most = math.most_uneven(model.shape.idle);
    if (given.imbalance > most) refuse("imbalance", `must be at most ${digits(most)}, the same experts for every token, not ${given.imbalance}`, [{ imbalance: "" }]);
    const [engine, there] = [data.engines[given.engine], rates.driver_bytes];
    const kept = math.kept_by(engine, rates, tp * dp * pp);
    const sized = (share) => math.unit_numbers({ ...model.shape, ...layer }, kept, layout, given.weights, given.kv, share, indexOf(given));
    const share = math.usual_share(engine, there, sized(1), data.usual[given.engine][given.gpu][0], 0, Number(given.drafts));
    const unit = math.drafting(sized(share), Number(given.drafts), Number(given.accepted) / 100);
    if (!(unit.kv_room > 0)) {
      const fits = `${given.model} in ${given.weights} does not fit ${unit.gpus} × ${given.gpu}`;
      // Groups hold copies of attention, and an engine keeps memory for each: as many GPUs in fewer of them may do.
      const fewer = [2, 4, 8].map((times) => ({ tp: String(tp * times), dp: String(dp / times) }))
        .find((one) => { try { return Number(one.dp) >= 1 && unitOf({ ...given, ...one }); } catch { return false; } });
      if (!fewer) throwing("gpu", fits);
      throwing("dp", `${fits} in ${dp} groups, where ${engine.title} leaves ${math.percent(share)} of the memory to weights and KV caches: take fewer groups or another GPU`, [fewer]);
    }
    return unit;
  };

  // A layout by its words, "TP 1, DP 8, EP 8"; and the set-ups of both pools, where a set-up lays them out apart.
  const laidAs = (words) => {
    const [, tp, dp = "1", whole] = /^TP (\d+)(?:, DP (\d+))?(, EP)?/.exec(words);
    return { tp, dp, pp: "1", experts: whole ? "whole" : "split" };
  };
  const laidLike = (given, { tp, dp, pp, experts }) => ({ ...given, tp, dp, pp, experts, prefill: "", pooled: null });
  const pooledOf = (given) => {
    const { prefill, decode } = given.pooled ?? (given.prefill ? { prefill: laidAs(given.prefill), decode: given } : {});
    return decode ? { prefill: laidLike(given, prefill), decode: laidLike(given, decode) } : null;
  };
  // The coefficients of another layout over those of a set-up, where they differ, as `case.moves`.
  const movesOf = (given, other) => {
    const [own, theirs] = [coefficients(given), coefficients(other)];
    return Object.fromEntries(Object.keys(own).filter((name) => own[name] !== theirs[name]).map((name) => [name, theirs[name] / own[name]]));
  };
  const poolsOf = (given) => {
    const pooled = pooledOf(given);
    if (!pooled) return [];
    const [prefill, decode] = [unitOf(pooled.prefill), unitOf(pooled.decode)];
    return [{ prefill, decode, units: unitsOf(given, decode), prefill_moves: movesOf(given, pooled.prefill), decode_moves: movesOf(given, pooled.decode) }];
  };

  // The question as `optimiser.answers` takes it, of one layout; an Error says what is wrong with it.
  const question = (given) => {
    checkNumbers(given);
    pricesOf(given);
    const model = data.models[given.model];
    if (!model) {
      const near = math.near(given.model, MODELS, 3);
      refuse("model", `${given.model || "without a name"} is none of the ${MODELS.length} that are known${near.length ? `; did you mean ${near.join(" or ")}?` : ""}`, near.map((name) => ({ model: name })));
    }
    const long = mixOf(given) || form.dataset.page !== "plan" ? [] : math.too_long(given.model, model.context, Number(given.prompt) + Number(given.output));
    if (long.length) refuse("prompt", `must be smaller: ${say(long)}`, [{ prompt: String(model.context - given.output) }]);
    const rates = data.gpus[given.gpu];
    const unit = unitOf(given);
    if (given.goal === "have" && given.have < unit.gpus) refuse("have", `must be at least ${unit.gpus}, those of a unit`, [{ have: String(unit.gpus) }]);
    const n_out = Number(given.output);
    const rows = mixOf(given)?.rows;
    const work = {
      n_in: Number(given.prompt), n_out, alpha: storedOf(given), cv: given.lengths === "fixed" ? 0 : math.geometric_cv(n_out),
      longest: (rows ?? []).reduce((longest, [n_in, out]) => Math.max(longest, n_in + out), 0), pairing: pairingOf(rows),
    };
    const fronted = given.front === ""
      ? { front: math.fronted(data.fronts, math.front_levels(given.engine, model.kind, model.like, given.gpu)), front_sd: data.fronts.sd.all }
      : { front: given.front / 1000, front_sd: 0 };
    const question_ = {
      unit, work, engine: data.engines[given.engine], units: unitsOf(given, unit), watts: rates.watts, ttft: given.ttft / 1000, tpot: given.tpot / 1000,
      quantile: given.goal === "unit" ? Number(given.promise) || 0 : 0, ...fronted, price: Number(given.price), pool_bw: unit.gpus * (data.links[given.link].bw || rates.link_bw),
      handover: data.handover, pools: poolsOf(given), moves: {}, doubts: math.doubts(data.comparisons, model.kind, rates.generation, work.n_in, work.n_out),
      read_bw: given.tier === "hbm" ? 0 : unit.gpus * (given.tier === "own" ? 1e9 * given.store : data.tiers[given.tier].read_bw),
      ahead: data.habits[given.engine].ahead, planning: "", page: math.page_of(data.engines[given.engine], model.kind, rates.generation), sessions: Number(given.sessions), context: model.context,
    };
    const crowded = math.say(math.crowded(question_));
    if (crowded) refuse("sessions", crowded, [{ sessions: "0" }]);
    return question_;
  };
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
  // The reader's prices of GPUs by name, "b200=5 h200-sxm=3.2"; an Error says what is wrong with them.
  const pricesOf = (given) => {
    const prices = Number(given.price) > 0 ? { [given.gpu]: Number(given.price) } : {};
    for (const one of given.prices.split(/[\s,;]+/).filter(Boolean)) {
      const [said, price] = one.split("=");
      const [name, another] = math.cards(said, Object.keys(data.gpus));
      if (!name || another || !(Number(price) > 0)) refuse("prices", `must be like b200=5, with a GPU of the list, not ${one}`, [{ prices: "" }]);
      prices[name] = Number(price);
    }
    return prices;
  };

  // Layouts to try: that which is named, or as `fleets.layouts` all in a node that hold the model, or else as few nodes
  // as do; an Error if none does, of too few GPUs before others.
  const layoutsOf = (given) => {
    if (given.tp !== "auto") { question(given); return [given]; }
    const mixture = data.models[given.model]?.shape.routed_params > 0;
    const node = Math.min(8, data.gpus[given.gpu].joined);
    const refused = [];
    for (const tried of [math.tried_in_a_node(node, mixture), ...[2, 4, 8].map((pp) => [{ tp: node, dp: 1, ep: 1, pp }])]) {
      const found = tried.map(({ tp, dp, ep, pp }) => ({ ...given, prefill: "", tp: String(tp), dp: String(dp), pp: String(pp), experts: ep > 1 ? "whole" : "split" }))
        .filter((one) => { try { return question(one); } catch (error) { refused.push(error); return false; } });
      if (found.length) return found;
    }
    throw refused.find(({ field }) => field === "have") ?? refused.at(-1);
  };

  // Set-ups of pools, as `layouts.best_pairs`: for each TP of a decode unit that whose pools serve most of a GPU under a
  // few draws; and a set-up of units that do both beside such pools.
  const few = (given) => draws(given).filter((_, i) => i % data.looked === 0);
  const bestPairs = (tried) => {
    const best = new Map();
    const asked = tried.map(question);
    const halves = tried.map((one, i) => math.halves(asked[i], few(one)));
    for (const [bound, p, d] of math.pairs_by_bound(halves, asked.map(({ unit }) => unit.gpus))) {
      const decode = tried[d];
      const most = best.get(decode.tp)?.served ?? 0;
      if (bound <= most) continue;
      const pair = p === d ? decode : { ...decode, pooled: { prefill: tried[p], decode } };
      const served = math.pools_served(question(pair), few(pair));
      if (served > most * (1 + 1e-9)) best.set(decode.tp, { served, pair });
    }
    return [...best.values()].map(({ pair }) => pair);
  };
  const joined = (together, apart) => {
    if (!together || !apart) return together ?? apart;
    const { prefill, decode } = apart.pooled ?? { prefill: apart, decode: apart };
    const same = [prefill, decode].every((one) => ["tp", "dp", "experts", "pp"].every((name) => one[name] === together[name]));
    return same ? together : { ...together, pooled: { prefill, decode } };
  };

  // Measured kernels, which the page keeps as lists; a decode's share that is left out is that of prompts.
  const named = (part) => (Array.isArray(part)
    ? Object.fromEntries(data.kernels.names.map((name, i) => [name, part[i] ?? data.kernels.no_index[name] ?? part[1]]))
    : Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, named(inner)])));
  const errors = data.errors.rows.map((row) => {
    const told = Object.fromEntries(data.errors.names.map((name, i) => [name, row[i]]));
    return { ...told, kind: data.models[told.model].kind, maker: data.gpus[told.gpu].maker, generation: data.gpus[told.gpu].generation };
  });
  const kernels = { like: data.kernels.like, ...named(data.kernels.parts) };
  const indexOf = ({ model, gpu, engine, kv }) => math.index_of(kernels, data.engines[engine].like || engine, gpu, `${data.models[model].operators.heads}, ${kv}`);
  const usualKv = ({ model, gpu, engine }) => math.usual_kv(data.models[model].stored_kv, data.models[model].operators.heads, data.gpus[gpu].generation, data.engines[engine]);
  const toldKv = (given) => math.told_kv(given.kv, usualKv(given));
  const whyKv = (given) => math.why_kv(given.kv, usualKv(given), data.models[given.model].stored_kv, given.engine);
  const normals = data.normals.rows.map((row) => row.map((number) => data.normals.values[number]));
  // The calibration that stands nearest to a unit, as `unit.nearest` chooses it.
  const calibration = (given) => {
    const { kind, operators, shape } = data.models[given.model];
    const engine = data.engines[given.engine].like || given.engine;
    const { generation } = data.gpus[given.gpu];
    const stands = math.standpoint_of(engine, engine, { ...given, generation }, given.tp * given.dp, { ...operators, fine: shape.fine });
    if (math.by_operators(data.engines[given.engine].kernels, stands.levels)) return { ...data.operators[given.engine], scope: data.scopes.operators, mode: "operators" };
    const { values, widths } = math.composed(data.levels, kernels, stands);
    const seen = math.precisions_known(data.levels, stands.levels);
    const together = seen.length ? { ...data.scopes.together, weights: seen } : {};
    if (given.imbalance) [values.expert_imbalance, widths.expert_imbalance] = [Number(given.imbalance), 0];
    return { mode: "served", found: values, root: math.own_root(data.coefficients, widths), spread: data.levels.spread[kind], scope: { ...data.scopes.served, ...together } };
  };
  const coefficients = (given) => ({ ...calibration(given).found, anchor: 0 });
  // What a calibration's scope names; numbers as both ends of a range.
  const inputs = (given, concurrency) => ({
    engine: given.engine, model: data.models[given.model].like, kind: data.models[given.model].kind, gpu: given.gpu,
    tp: [Number(given.tp), Number(given.tp)], dp: [Number(given.dp), Number(given.dp)], nodes: "one", weights: given.weights, kv: given.kv,
    n_in: [Number(given.prompt), Number(given.prompt)], n_out: [Number(given.output), Number(given.output)],
    concurrency: [concurrency, concurrency],
  });
  // Which scored points are a unit's own.
  const stand = (given) => ({
    model: data.models[given.model].like, gpu: given.gpu, generation: data.gpus[given.gpu].generation, maker: data.gpus[given.gpu].maker,
    engine: data.engines[given.engine].like || given.engine, weights: given.weights,
  });
  const spreadOf = (given, users = 1) => { const own_ = calibration(given); return Math.hypot(math.wider(own_.spread, data.widths, own_.scope, inputs(given, users)), math.lacking(stand(given), errors)); };
  const draws = (given) => math.drawn(data.coefficients, coefficients(given), calibration(given).root, normals, spreadOf(given));
  const solve = (given, question_) => math.solve(question_, draws(given));

  // What would do in place of a set-up that is refused: changes of one kind each, the nearest first, as far as `works`
  // says so. A generator, since trying takes a while.
  const BITS = { bf16: 16, fp8: 8, int4: 4, nvfp4: 4, mxfp4: 4 };
  const AUTO = { tp: "auto", dp: "1", pp: "1", experts: "split", prefill: "" };
  const nearest = function* (given, fixes, works) {
    const { flops, maker, driver_bytes } = data.gpus[given.gpu];
    const fewer = (flops.fp8 ? ["fp8"] : ["bf16"]).concat(flops.fp4 ? ["nvfp4"] : [], ["int4"])
      .filter((one) => BITS[one] < BITS[given.weights] || (given.weights === "fp8" && !flops.fp8));
    const others = Object.keys(data.gpus).filter((name) => name !== given.gpu && data.gpus[name].maker === maker)
      .sort((a, b) => data.gpus[a].driver_bytes - data.gpus[b].driver_bytes || data.gpus[a].flops.bf16 - data.gpus[b].flops.bf16);
    const larger = others.filter((name) => data.gpus[name].driver_bytes >= driver_bytes);
    const sizes = ["2", "4", "8"].filter((tp) => given.tp !== "auto" && Number(tp) > Number(given.tp)).map((tp) => ({ tp }));
    const kinds = [
      ...fixes.map((one) => [one]), sizes, given.tp === "auto" ? [] : [AUTO], fewer.filter((one) => BITS[one] > 4).map((weights) => ({ weights })),
      larger.map((gpu) => ({ gpu, ...AUTO })), fewer.filter((one) => BITS[one] === 4).map((weights) => ({ weights })), fewer.flatMap((weights) => larger.map((gpu) => ({ gpu, weights, ...AUTO }))),
    ];
    let found = 0;
    for (const [i, kind] of kinds.entries()) {
      if (found > 2 && i > kinds.length - 2) return; // two things at once where nothing else does
      for (const change of kind) {
        yield null;
        if (works(untold({ ...given, ...change }))) { found += 1; yield change; break; }
      }
    }
  };
  const words = { model: "model ", gpu: "GPU ", tp: "TP ", pp: "PP ", weights: "weights in ", engine: "engine ", have: "GPUs: ", ttft: "TTFT limit: ", tpot: "TPOT limit: ", traffic: "GPUs for " };
  const shown = (name, value) => {
    const field = at(name);
    const option = field.tagName === "SELECT" ? [...field.options].find((one) => one.value === value)?.textContent ?? value : value;
    const number = field.type === "number" && value !== "" ? `${digits(Number(value))}${/\((ms|requests\/s)\)/.exec(field.labels[0].textContent)?.[0].replace("(", " ").replace(")", "") ?? ""}` : option || "left out";
    return (words[name] ?? `${label(name)}: `) + number;
  };
  const offer = (change) => {
    const named_ = Object.entries(change).filter(([name, value]) => at(name).value !== value && !(name in AUTO && change.gpu && name !== "gpu"));
    const told = named_.filter(([name]) => name !== "goal").map(([name, value]) => shown(name, value)).join(", ");
    const button = share.button(`${told[0].toUpperCase()}${told.slice(1)}`, () => {
      for (const [name, value] of Object.entries(change)) at(name).value = value;
      if ("weights" in change) wanted = change.weights;
      if ("model" in change) serve(change.model);
      follow();
      const field = at(named_[0][0]);
      (field.closest("details") ?? {}).open = true;
      field.focus();
      form.dispatchEvent(new Event("input"));
    });
    const holder = byId("planner-fixes");
    holder.hidden = false;
    if (!holder.childElementCount) holder.append("What would do: ");
    if (![...holder.children].some((one) => one.textContent === button.textContent)) holder.append(button);
  };
  const clearFixes = () => { byId("planner-fixes").replaceChildren(); byId("planner-fixes").hidden = true; byId("planner-enough").textContent = ""; };
  const complain = (error) => {
    form.querySelectorAll("[aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
    if (error?.field) at(error.field)?.setAttribute("aria-invalid", "true");
  };

  // What was another model's alone goes with it.
  const OF_A_MODEL = ["tp", "dp", "experts", "pp", "prefill", "drafts", "accepted", "imbalance", "front"];
  const serve = (model) => {
    if (!data.models[model] || model === served) return;
    served = model;
    const { stored } = data.models[model];
    at("weights").value = BITS[stored] <= BITS[wanted] ? stored : wanted;
    for (const one of OF_A_MODEL) at(one).value = known[one];
  };
  const listen = (answer) => {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target }) => {
      if (target.type === "range") slid(target);
      if (target.name === "model") serve(state().model);
      if (target.name === "weights") wanted = target.value;
      if (target.name === "kv") choose();
      follow();
      answer();
    });
    at("model").addEventListener("focus", ({ target }) => target.select());
    at("model").addEventListener("change", ({ target }) => { target.value = math.meant(target.value, MODELS) || target.value; });
    window.addEventListener("hashchange", () => { if (share.parse()?.id === "plan") { open(); answer(); } });
    open();
    window.inferenceMathPlanner.started = true;
    answer();
  };
  // What a link asks for and this page lacks is said above the answer.
  const open = () => {
    const { id, state: linked_ = {} } = share.parse() ?? {};
    const values = id === "plan" ? linked_ : {};
    const strange = write(values);
    const told = strange.length ? [`The link names what this page does not have: ${strange.map((name) => `${name} ${values[name]} (now ${at(name).value})`).join(", ")}.`] : [];
    const unknown = Object.keys(values).filter((name) => !(name in known) && name !== "preset");
    if (unknown.length) told.push(`No field here is called ${unknown.join(" or ")}: the link says it for nothing.`);
    byId("planner-link").textContent = told.join(" ");
  };
  const reset = (answer) => share.button("Reset", () => { write({}); byId("planner-link").textContent = ""; answer(); });

  // What the two smaller pages share: an answer a moment after the last change, a title, a refusal with what would do.
  const later = (wait, show) => {
    let timer;
    return () => {
      delete form.dataset.answered;
      byId("planner-headline").textContent = wait;
      clearTimeout(timer);
      timer = setTimeout(show, 250);
    };
  };
  const titleOf = (given) => `${given.model} in ${given.weights.toUpperCase()} on ${given.tp * given.dp * given.pp} × ${given.gpu}, ${data.engines[given.engine].title}`;
  const refused = (error, works) => {
    byId("planner-headline").textContent = stopped(error);
    complain(error);
    const valid = (given) => { try { return layoutsOf(given); } catch { return null; } };
    for (const change of nearest({ ...state(), goal: "unit" }, error.fixes ?? [], works ?? valid)) if (change) offer(change);
  };
  const linker = () => share.copier("Copy link", () => share.link("plan", linked()));

  window.inferenceMathPlanner = {
    later, titleOf, refused, linker,
    form, at, byId, known, state, write, linked, remember, question, layoutsOf, mixOf, pricesOf, calibration, coefficients, inputs, draws,
    spreadOf, stand, solve, errors, usualKv, toldKv, whyKv, kernels, checkNumbers, nearest, offer, clearFixes, complain, listen, reset, stopped, few, bestPairs, joined, pooledOf, started: false,
  };
})();
