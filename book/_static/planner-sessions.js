// Users who come back, on the planner's unit: how big a store, which tier, what it brings; as `planner.size_store`.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data } = math;
  const page = window.inferenceMathPlanner;
  const place = document.getElementById("planner-users");
  const form = place.querySelector("form");
  const table = place.querySelector("table");
  const [head, notes] = place.querySelectorAll("ul");
  const fields = [...form.elements].filter((field) => field.type === "number");
  const PREFIX = "sessions."; // of what a link says of these fields
  const TIERS = { hbm: "HBM of the units", dram: "host memory", local_ssd: "SSDs" };

  // The unit of the form above, asked with the mean lengths of the sessions, and what they are.
  const asks = (given, plan) => {
    const turns = { turns: plan.turns, first: plan.first, message: plan.message, answer: plan.answer, think: plan.think, cv: 1, shared: plan.shared };
    const prompt = math.prompt_of(math.session_of(turns, 1));
    const { max } = document.querySelector("#planner-form [name=prompt]");
    if (prompt > Number(max)) throw new Error(`Prompts must have at most ${math.digits(Number(max))} tokens in the mean, not ${math.digits(prompt)}: take fewer or shorter turns`);
    const own = { ...given, goal: "unit", prompt: String(prompt), output: String(plan.answer), lengths: "fixed", stored: "0", tier: "hbm", sessions: "0" };
    const question = page.question(own);
    const { unit } = question;
    const groups = Number(given.dp);
    const longest = plan.shared + plan.first + (plan.turns - 1) * (plan.message + plan.answer) + plan.answer;
    if (math.kv_tokens(unit, longest) < groups * longest) {
      throw new Error(`A unit must hold the longest request, ${math.digits(longest)} tokens${groups > 1 ? ` in each of ${groups} groups of attention` : ""}, beside its weights: take more GPUs a unit (TP), or shorter sessions`);
    }
    const bytes = math.kv_sent(unit, prompt) / prompt;
    const below = Object.keys(TIERS).filter((name) => plan[name] > 0);
    return { own, question, below, asked: {
      turns, users: plan.users, units: plan.units, gpus: unit.gpus, front: question.front, bytes,
      tokens: [math.kv_tokens(unit, prompt), ...below.map((name) => 1e9 * plan[name] / bytes / plan.units)],
      loads: [0, ...below.map((name) => math.kv_loaded(unit, prompt, unit.gpus * data.tiers[name].read_bw) / prompt)],
      habits: { budget: data.budget, groups, blocking: true, lifetime: plan.lifetime, gives: unit.gives, brings: 1 + unit.drafts },
    } };
  };
  // What `planner.size_store` returns.
  const size = (given, plan) => {
    const { own, question, below, asked } = asks(given, plan);
    const cost = math.pace_of(question, page.coefficients(own), [1, 1, 0]);
    const rows = math.ladder(asked, cost);
    const kept = math.users_kept(asked, cost, own.ttft / 1000, own.tpot / 1000);
    rows.forEach((row, k) => { row.kept = kept[k]; });
    const last = rows[rows.length - 1];
    const sizes = math.sizes_for(asked, cost);
    const units = below.length ? math.units_alone(asked, cost, last.rate) : asked.units;
    const drawn = page.draws(own);
    const fronts = drawn.map(([, factors]) => question.front * Math.exp(question.front_sd * factors[2]));
    const ends = math.latency_ends(asked, drawn.map(([found, factors]) => math.pace_of(question, found, factors)), fronts, last);
    return { rows, names: ["hbm", ...below], sizes, units, ends, asked, head: math.ladder_head(asked, sizes).map(math.say), notes: math.ladder_notes(asked, rows, sizes, units, ends).map(math.say) };
  };

  let found; // what is shown
  let planning = false;
  const clear = (words) => {
    found = null;
    table.hidden = planned.hidden = true;
    head.replaceChildren(...share.cells("li", [words]));
    notes.replaceChildren();
  };
  const show = () => {
    const given = page.state();
    try {
      found = size(given, share.numbersOf(fields));
    } catch ({ message }) {
      clear(message);
      return;
    }
    const { digits, percent, as_gb } = math;
    const { names, asked, rows } = found;
    const kept = ({ ttft, tpot }) => 1000 * ttft <= given.ttft && 1000 * tpot <= given.tpot;
    share.fill(table, ["up to", "its size", "found", "holds users", "turns/s", "TTFT (s)", "TPOT (ms)", "means keep the limits", "users within them (whole ones of a unit)", "prompts", "in flight"], rows.map((row, k) => [
      TIERS[names[k]], as_gb(asked.units * asked.tokens[k] * asked.bytes / 1e9), percent(row.together), digits(row.users), digits(row.rate),
      digits(row.ttft), digits(1000 * row.tpot), kept(row) ? "yes" : "no", digits(row.kept), percent(row.prompts), digits(row.in_flight) + (row.full ? " (all)" : ""),
    ]));
    head.replaceChildren(...share.cells("li", found.head));
    notes.replaceChildren(...share.cells("li", [...found.notes, math.say({ key: "ladder.columns" })]));
    table.hidden = planned.hidden = false;
    page.remember(); // in the link, too
  };
  // As `inference-math plan --turns`: means in the place of lengths, of the stored share and of the tier that finds most.
  const plan = () => {
    show(); // of the form as it stands now
    if (!found) return;
    const { asked, rows, names } = found;
    const last = rows[rows.length - 1];
    const most = last.found.indexOf(Math.max(...last.found));
    page.write({
      ...page.state(), lengths: "fixed", traffic: Number(last.rate.toPrecision(3)), prompt: Math.round(math.prompt_of(math.session_of(asked.turns, 1))), output: asked.turns.answer,
      stored: Number((100 * last.together).toFixed(1)), tier: names[most], sessions: most ? Math.ceil(asked.users / asked.units) : 0,
    });
    planning = true;
    document.getElementById("planner-form").dispatchEvent(new Event("input", { bubbles: true }));
    planning = false;
    document.getElementById("planner-headline").scrollIntoView({ block: "center" });
  };
  const busy = () => { clear("Sizing it …"); setTimeout(show, 0); };
  const planned = share.button("Plan with these means", plan);
  planned.hidden = true;
  form.querySelector(".planner-tools").append(share.button("Size it", busy), planned);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => { if (found) busy(); });
  form.addEventListener("keydown", ({ key }) => { if (key === "Enter") busy(); });
  // What a link carries, once it was asked; and what a link asks.
  const linked = () => (found ? Object.fromEntries(fields.map(({ name, value }) => [PREFIX + name, value])) : {});
  const follow = () => {
    const { id, state = {} } = share.parse() ?? {};
    const named = fields.filter(({ name }) => id === "plan" && PREFIX + name in state);
    for (const field of named) field.value = state[PREFIX + field.name];
    if (!named.length) return;
    busy();
    place.scrollIntoView();
  };
  window.addEventListener("hashchange", follow);
  document.getElementById("planner-form").addEventListener("input", () => { if (found && !planning) clear("The set-up has changed: size it again."); });
  window.inferenceMathSessions = { size, linked };
  follow();
})();
