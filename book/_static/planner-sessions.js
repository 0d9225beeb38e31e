// Users who come back: how big a store, which tier, what it brings; as `planner.size_store`.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const crowd = window.inferenceMathCrowd;
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
    const one = page.ask(own);
    const question = one.problem;
    const { unit } = question;
    const groups = Number(given.dp);
    const longest = plan.shared + plan.first + (plan.turns - 1) * (plan.message + plan.answer) + plan.answer;
    if (math.kv_tokens(unit, longest) < groups * longest) {
      throw new Error(`A unit of ${unit.gpus} × ${given.gpu} must hold the longest request, ${math.digits(longest)} tokens${groups > 1 ? ` in each of ${groups} groups of attention` : ""}, beside its weights`);
    }
    const below = Object.keys(TIERS).filter((name) => plan[name] > 0);
    const tiers = below.map((name) => [1e9 * plan[name], data.tiers[name].read_bw]);
    const habits = { budget: data.budget, groups, blocking: true, lifetime: plan.lifetime, accepted_per_step: unit.accepted_per_step, verified_per_step: 1 + unit.drafts };
    return { own, one, names: ["hbm", ...below], asked: math.ladder_numbers(turns, plan.users, question, plan.units, tiers, habits) };
  };
  // What `planner.size_store` returns.
  const size = (given, plan) => {
    const { own, one, names, asked } = asks(given, plan);
    const cost = math.pace_of(one.problem, one.centred.found, [1, 1, 0]);
    const limits = [own.ttft / 1000, own.tpot / 1000];
    const found = math.ladder_found(asked, cost, one.problem, math.draws_of(one, data), limits, data.comparisons.store);
    return { ...found, names, asked, head: found.head.map(math.render), notes: found.notes.map(math.render) };
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
  // Users in overload ask less often than they would: the fleet gets the turns of those who are answered at the limits.
  const means = (given, { asked, rows, names }) => {
    const last = rows[rows.length - 1];
    const most = last.found.indexOf(Math.max(...last.found));
    const answered = asked.users / (asked.turns.think + (Number(given.ttft) + (asked.turns.answer - 1) * given.tpot) / 1000);
    return {
      lengths: "fixed", goal: "serve", traffic: Number(Math.max(last.rate, answered).toPrecision(3)), prompt: Math.round(math.prompt_of(math.session_of(asked.turns, 1))), output: asked.turns.answer,
      stored: Number((100 * last.together).toFixed(1)), tier: names[most], sessions: most ? Math.ceil(asked.users / asked.units) : 0, tp: given.tp, dp: given.dp, experts: given.experts, pp: given.pp,
    };
  };
  // The smallest limits, from the reader's on, within which the planner finds a fleet for the means; null where none
  // does. It simulates, a slice at a time.
  const LOOSER = [1, 1.5, 2, 3, 5, 8, 12, 20, 30, 50]; // times the limit on TTFT, then both
  const TRAFFIC = [0.1, 1000]; // requests/s that the planner's field takes
  const feasible = function* (given, planned_) {
    if (!(planned_.traffic >= TRAFFIC[0] && planned_.traffic <= TRAFFIC[1])) return null;
    const loosened = (name, factor) => Math.min(Number(page.at(name).max), factor > 1 ? Number((factor * given[name]).toPrecision(2)) : Number(given[name]));
    for (const names of [["ttft"], ["ttft", "tpot"]]) {
      for (const factor of LOOSER) {
        const limits = Object.fromEntries(names.map((name) => [name, loosened(name, factor)]));
        const one = { ...given, ...planned_, ...limits };
        yield;
        const asked = page.ask(one);
        const [question, drawn] = [asked.problem, math.draws_of(asked, data)];
        const solved = math.solve(question, drawn);
        if (!solved.best) continue;
        const goal = { traffic: one.traffic, have: 0, cv: Number(one.arrivals) };
        const least = yield* crowd.least({ problem: question, solved, drawn }, crowd.playedOf(one, []), goal, Infinity);
        if (least < Infinity) return { ...planned_, ...limits };
      }
    }
    return null;
  };
  const plan = Object.assign(document.createElement("a"), { className: "share", hidden: true });
  let round = 0;
  // Offers to plan once it is known that there is an answer, and with which limits.
  const offer = (given, found) => {
    const mine = ++round;
    plan.hidden = true;
    const looked = feasible(given, means(given, found));
    const go = () => {
      if (mine !== round) return;
      let next;
      try { next = looked.next(); } catch { return; } // what cannot be asked is not offered
      if (!next.done) { setTimeout(go); return; }
      if (next.value) {
        const { ttft, tpot = given.tpot } = next.value;
        const looser = [["TTFT", ttft, given.ttft], ["TPOT", tpot, given.tpot]].filter(([, now, own]) => Number(now) !== Number(own));
        const told = looser.map(([name, now]) => `${name} within ${math.in_seconds(now / 1000)}`).join(" and ");
        plan.textContent = `Plan with these means${told && `, ${told}`}`;
        plan.href = `planner.html${share.hash("plan", Object.fromEntries(Object.entries({ ...page.linked(), ...next.value }).filter(([name]) => !name.startsWith(PREFIX))))}`;
        plan.hidden = false;
      }
      form.dataset.offered = "true";
    };
    setTimeout(go, 30);
  };
  const show = () => {
    page.clearFixes();
    page.remember();
    page.complain(null);
    form.dataset.answered = "true";
    round += 1;
    plan.hidden = true;
    try {
      page.checkNumbers(page.state());
      const given = first(page.state());
      const found = size(given, planned(given));
      const { digits, percent, as_gb } = math;
      const { names, asked, rows, kept } = found;
      share.fill(table, ["up to", "its size", "found", "users whose caches fit", "users within the limits", "turns/s", "gain", "how sure", "TTFT (s)", "TPOT (ms)", "prompts' share of time", "in flight"], rows.map((row, k) => [
        TIERS[names[k]], as_gb(asked.units * asked.tokens[k] * asked.bytes / 1e9), percent(row.together), digits(row.users), digits(kept[k]), digits(row.rate), digits(row.rate / rows[0].rate), math.render(math.cell(found.sure[k])), digits(row.ttft), digits(1000 * row.tpot),
        percent(row.prompts), digits(row.in_flight) + (row.full ? " (all)" : ""),
      ]));
      const [load, ...others] = found.head;
      byId("planner-headline").textContent = load;
      head.replaceChildren(...share.cells("li", [others[0], `Each unit: ${page.titleOf(given)}.`, ...others.slice(1)]));
      notes.replaceChildren(...share.cells("li", [...found.notes, ...["limits", "columns"].map((key) => math.render({ key: `ladder.${key}` }))]));
      table.hidden = false;
      offer(given, found);
    } catch (error) {
      head.replaceChildren();
      notes.replaceChildren();
      table.hidden = true;
      page.refused(error, works);
    }
  };
  const busy = page.later("Sizing it …", show);
  form.querySelector(".planner-tools").append(page.linker(), page.reset(busy), plan);
  window.inferenceMathSessions = { size };
  page.listen(busy);
})();
