// Users who come back: how big a store, which tier, what it brings; as `planner.size_store`.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data } = math;
  const page = window.inferenceMathPlanner;
  const { form, byId } = page;
  const [head, table, notes] = ["planner-first", "planner-table", "planner-notes"].map(byId);
  const PREFIX = "sessions."; // of the fields that say what sessions are
  const fields = [...form.elements].filter(({ name }) => name.startsWith(PREFIX));
  const MOST = 2_000_000; // tokens of a prompt
  const TIERS = { hbm: "HBM of the units", dram: "host memory", local_ssd: "SSDs" };

  // A unit, asked with the mean lengths of the sessions, and what they are.
  const asks = (given, plan) => {
    const turns = { turns: plan.turns, first: plan.first, message: plan.message, answer: plan.answer, think: plan.think, cv: 1, shared: plan.shared };
    const prompt = math.prompt_of(math.session_of(turns, 1));
    if (prompt > MOST) throw new Error(`Prompts must have at most ${math.digits(MOST)} tokens in the mean, not ${math.digits(prompt)}: take fewer or shorter turns`);
    const own = { ...given, goal: "unit", prompt: String(prompt), output: String(plan.answer), lengths: "fixed", stored: "0", tier: "hbm", sessions: "0" };
    const question = page.question(own);
    const { unit } = question;
    const groups = Number(given.dp);
    const longest = plan.shared + plan.first + (plan.turns - 1) * (plan.message + plan.answer) + plan.answer;
    if (math.kv_tokens(unit, longest) < groups * longest) {
      throw new Error(`A unit of ${unit.gpus} × ${given.gpu} must hold the longest request, ${math.digits(longest)} tokens${groups > 1 ? ` in each of ${groups} groups of attention` : ""}, beside its weights`);
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

  // Of layouts that are not named the first that holds the longest request, on the fewest GPUs.
  const works = (given) => { try { return first(given); } catch { return null; } };
  const first = (given) => {
    let refused;
    for (const one of page.layoutsOf({ ...given, goal: "unit" })) {
      try { asks(one, planned(one)); return one; } catch (error) { refused = error; }
    }
    throw refused;
  };
  const planned = (given) => Object.fromEntries(fields.map(({ name }) => [name.replace(PREFIX, ""), given[name] === "" ? Infinity : Number(given[name])]));

  // As `inference-math plan --turns`: means in the place of lengths, of the stored share and of the tier that finds most.
  const means = (given, { asked, rows, names }) => {
    const last = rows[rows.length - 1];
    const most = last.found.indexOf(Math.max(...last.found));
    return {
      lengths: "fixed", goal: "serve", traffic: Number(last.rate.toPrecision(3)), prompt: Math.round(math.prompt_of(math.session_of(asked.turns, 1))), output: asked.turns.answer,
      stored: Number((100 * last.together).toFixed(1)), tier: names[most], sessions: most ? Math.ceil(asked.users / asked.units) : 0, tp: given.tp, dp: given.dp, experts: given.experts, pp: given.pp,
    };
  };
  const plan = Object.assign(document.createElement("a"), { className: "share", textContent: "Plan with these means" });
  const show = () => {
    page.clearFixes();
    page.remember();
    page.complain(null);
    form.dataset.answered = "true";
    const shown = (there) => { table.hidden = plan.hidden = !there; };
    try {
      page.checkNumbers(page.state());
      const given = first(page.state());
      const found = size(given, planned(given));
      const { digits, percent, as_gb } = math;
      const { names, asked, rows } = found;
      const kept = ({ ttft, tpot }) => 1000 * ttft <= given.ttft && 1000 * tpot <= given.tpot;
      share.fill(table, ["up to", "its size", "found", "turns/s", "TTFT (s)", "TPOT (ms)", "means keep the limits", "users within them", "holds users", "prompts' share of time", "in flight"], rows.map((row, k) => [
        TIERS[names[k]], as_gb(asked.units * asked.tokens[k] * asked.bytes / 1e9), percent(row.together), digits(row.rate), digits(row.ttft), digits(1000 * row.tpot),
        kept(row) ? "yes" : "no", digits(row.kept), digits(row.users), percent(row.prompts), digits(row.in_flight) + (row.full ? " (all)" : ""),
      ]));
      byId("planner-headline").textContent = `${page.titleOf(given)}, ${asked.units} of them for ${digits(asked.users)} users`;
      head.replaceChildren(...share.cells("li", found.head));
      notes.replaceChildren(...share.cells("li", [...found.notes, math.say({ key: "ladder.columns" })]));
      plan.href = `planner.html${share.hash("plan", Object.fromEntries(Object.entries({ ...page.linked(), ...means(given, found) }).filter(([name]) => !name.startsWith(PREFIX))))}`;
      shown(true);
    } catch (error) {
      head.replaceChildren();
      notes.replaceChildren();
      shown(false);
      page.refused(error, works);
    }
  };
  const busy = page.later("Sizing it …", show);
  form.querySelector(".planner-tools").append(plan, page.linker(), page.reset(busy));
  window.inferenceMathSessions = { size };
  page.listen(busy);
})();
