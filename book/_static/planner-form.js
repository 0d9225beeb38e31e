// The form of the planner's pages: what it asks, in the words of the package; its link; and where it asks what cannot
// be, what would do instead. The arithmetic is window.inferenceMath, printed from the package.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data, digits, render } = math;
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
    return { ...given, model: math.meant(given.model, MODELS) || given.model, ...means(given.lengths), pooled: [] };
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
  // An Error from what is wrong, behind the name of its field; changes that may mend it are tried, tables say it shorter.
  const refuse = ({ field, fixes = [], short = "", whole = false, ...part }) => {
    throw Object.assign(new Error(whole ? render(part) : `${label(field)} ${render(part)}`), { field, fixes, short: render(short) });
  };
  const idle = { serve: ["have", "need"], have: ["traffic"], unit: ["traffic", "have", "need"] }; // what a goal does not ask for
  const checkNumbers = (given) => {
    for (const field of [...form.elements].filter(({ type, disabled }) => type === "number" && !disabled)) {
      const { name, placeholder, min, max, step } = field;
      if ((idle[given.goal] ?? []).includes(name) || (given[name] === "" && placeholder)) continue;
      const [value, low, high] = [given[name], min, max].map(Number);
      const whole = step === "1" && !["prompt", "output", "ttft"].includes(name);
      if (given[name] === "" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
        const near = given[name] === "" || Number.isNaN(value) ? known[name] : String(Math.min(high, Math.max(low, whole ? Math.round(value) : value)));
        const text = `must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${given[name] === "" ? "empty" : given[name]}`;
        refuse({ field: name, text, fixes: [{ [name]: near }] });
      }
    }
  };

  // What is asked, of one layout, as `form.candidate` has it; an Error says what is wrong with it.
  const planning = form.dataset.page === "plan";
  const ask = (given) => {
    checkNumbers(given);
    pricesOf(given);
    math.refused(given, planning, data).forEach(refuse);
    return math.candidate(given, data);
  };
  const question = (given) => ask(given).problem;
  const draws = (given) => math.draws_of(ask(given), data);
  // The reader's prices of GPUs by name, "b200=5 h200-sxm=3.2"; an Error says what is wrong with them.
  const pricesOf = (given) => {
    const prices = Number(given.price) > 0 ? { [given.gpu]: Number(given.price) } : {};
    for (const one of given.prices.split(/[\s,;]+/).filter(Boolean)) {
      const [said, price] = one.split("=");
      const [name, another] = math.cards(said, Object.keys(data.gpus));
      if (!name || another || !(Number(price) > 0)) refuse({ field: "prices", text: `must be like b200=5, with a GPU of the list, not ${one}`, fixes: [{ prices: "" }] });
      prices[name] = Number(price);
    }
    return prices;
  };

  // Layouts to try: that which is named, or those of a search; an Error if there is none.
  const layoutsOf = (given) => {
    checkNumbers(given);
    pricesOf(given);
    const { tried, wrong } = math.sought(given, planning, data);
    if (!tried.length) refuse(wrong[0]);
    return tried;
  };

  const bestPairs = (tried) => math.paired(tried.map(ask), data);
  const joined = (...each) => math.joined_fields(...each.map((one) => (one ? [one] : [])));
  const usualKv = (given) => math.untold_kv(math.deployed(given, data));
  const toldKv = (given) => math.told_kv(given.kv, usualKv(given));
  const whyKv = (given) => math.why_kv(given.kv, usualKv(given), data.models[given.model].stored_kv, given.engine);

  // What would do in place of a set-up that is refused: changes of one kind each, the nearest first, as far as `works`
  // says so. A generator, since trying takes a while.
  const AUTO = { tp: "auto", dp: "1", pp: "1", experts: "split", prefill: "" };
  const texts = (change) => Object.fromEntries(Object.entries(change).map(([name, value]) => [name, String(value)]));
  const nearest = function* (given, fixes, works) {
    const kinds = math.changes(given.weights, data.gpus[given.gpu], Object.values(data.gpus), Number(given.tp) || 0, AUTO, fixes);
    let found = 0;
    for (const [i, kind] of kinds.entries()) {
      if (found > 2 && i > kinds.length - 2) return; // two things at once where nothing else does
      for (const change of kind.map(texts)) {
        yield null;
        if (works(untold({ ...given, ...change }))) { found += 1; yield change; break; }
      }
    }
  };
  // What a function of the package computes that asks `able` of changes, which takes a while: one between two frames.
  const asking = function* (compute, able) {
    const known = new Map();
    const wanted = new Set();
    for (;;) {
      try {
        return compute((change) => {
          const key = JSON.stringify(change);
          if (!known.has(key)) { wanted.add(key); throw wanted; }
          return known.get(key);
        });
      } catch (error) {
        if (error !== wanted) throw error;
        for (const key of wanted) known.set(key, able(JSON.parse(key)));
        wanted.clear();
        yield;
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
    at("weights").value = math.of_bits(stored) <= math.of_bits(wanted) ? stored : wanted;
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
    form, at, byId, known, state, linked, remember, ask, question, draws, layoutsOf, mixOf, pricesOf, toldKv, whyKv,
    asking, texts, checkNumbers, nearest, offer, clearFixes, complain, listen, reset, stopped, bestPairs, joined, started: false,
  };
})();
