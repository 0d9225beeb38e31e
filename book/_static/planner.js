// The planner's answer: what planner-form.js asks, decided by window.inferenceMath, printed from the package.
(() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const pictures = window.inferenceMathPictures;
  const crowd = window.inferenceMathCrowd;
  const card = window.inferenceMathAnswer;
  const { data } = math;
  const page = window.inferenceMathPlanner;
  const { form, at, state, linked, remember, ask, layoutsOf, mixOf, pricesOf, bestPairs, joined, toldKv, whyKv } = page;
  const sheet = form.closest(".planner-table");
  const TABLES = ["architectures", "sizes", "drafting", "gpus", "tiers"].map((name) => document.getElementById(`planner-${name}`));
  const ROOM_FOR_DRAWS = 8; // ms of a frame

  const { digits, percent, render } = math;
  const three = (ends, scale = 1) => math.spanned(ends, scale);
  const text = (id, words) => { document.getElementById(id).textContent = words; };
  const cell = (kind, name, words) => { sheet.querySelector(`[data-${kind}="${name}"]`).textContent = words; };
  const table = (id, [head, ...rows]) => {
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
    const one = ask(given);
    const { problem } = one;
    const drawn = math.draws_of(one, data);
    const solved = math.solve(problem, drawn);
    const told = math.decided_of(one, drawn, solved, data);
    const [first, second] = solved.order;
    const rows = Object.fromEntries(solved.order.map((name) => [name, math.middle_row(solved, name)]));
    const outside = math.uncalibrated(one, problem.work, Math.max(solved.settings[first].batch, 1), Infinity, data);
    const about = { ...math.about_unit(one.of, problem, one.centred.mode, outside.length > 0, data), example: exemplary(given) };
    return { ...one, drawn, solved, told, outside, about, rows, first, second, best: solved.best, numbers: told.numbers };
  };

  // Whether a price is the page's own, which is nobody's.
  const exemplary = ({ price }) => price === page.known.price;
  const unitCard = (found) => math.unit_card(found.problem, found.solved, found.about);
  const noneSaid = ({ solved }) => ({ key: solved.none_in >= 1 ? "card.none" : "card.mostly_none", none: math.hundredths(solved.none_in) });

  const settingsOf = (problem, given, name, row) => math.options_said(problem, name, row, toldKv(given));

  const list = (words) => words.map((one) => Object.assign(document.createElement("li"), { textContent: one }));

  const show = (found) => {
    const { given, problem, solved, best } = found;
    for (const row of math.answered(found.told)) {
      for (const [kind, words] of Object.entries(math.answer_texts(row))) cell(kind, row.name, words);
    }
    if (!given.imbalance) at("imbalance").placeholder = digits(found.centred.found.expert_imbalance);
    text("planner-settings", best ? `Start with (keeps the SLA in ${percent(solved.feasible_share[best])} of the draws): ${settingsOf(problem, given, best, solved.settings[best])}` : "");
    document.getElementById("planner-notes").replaceChildren(...list(math.noted(found.told, found.outside, found.about).map(sentence)));
    document.getElementById("planner-why").open ||= !best; // which says what would do
    architectures(found, null);
    const unit = best ? unitCard(found) : null;
    text("planner-verdict", best ? `At full load, ${render(unit.headline)}. ${sentence([unit.sure, ": ", ...unit.why])}` : "");
    if (!best) card.words(sentence(noneSaid(found)), "none", document.querySelector("#planner-notes li").textContent);
    else if (given.goal === "unit") card.show(unit, solved.order);
    else card.words(`${given.goal === "have" ? `What ${given.have} GPUs serve` : `GPUs for ${given.traffic} requests/s`}: simulating queues …`, "waiting", sentence(unit.headline));
  };

  // What the reader asked for, queues counted: GPUs for the traffic, or traffic for the GPUs.
  const goalOf = (given) => ({ traffic: given.goal === "serve" ? Number(given.traffic) : 0, have: given.goal === "have" ? Number(given.have) : 0, cv: Number(given.arrivals) });
  const answerGoal = (found, crowded) => {
    const { given, problem, solved } = found;
    const { fleets } = crowded;
    const held = crowded.order.filter((name) => fleets[name]?.replicas > 0);
    architectures(found, crowded);
    if (!held.length) {
      const all = Object.values(fleets);
      const draws_ = all[0].each.length;
      card.words(sentence(math.short(crowd.shareOf(given), draws_, math.slow_places(draws_) + 1, all.map((one) => math.idle(one.name, one.idle)))), "none");
      text("planner-settings", "");
      return;
    }
    const { have, cv } = goalOf(given);
    const owned = have > 0;
    const first = fleets[held[0]];
    starts(found, [first.name], { [first.name]: first.replica });
    text("planner-settings", `Start ${first.replicas === 1 ? "it" : `each of ${digits(first.replicas)}`} with: ${settingsOf(first.replica.problem, given, first.name, first.replica.row)}`);
    const sizes = held.map((name) => math.fleet_sized(fleets[name].replica, fleets[name]));
    card.show(math.card_of(problem, sizes, crowded, math.about_fleet(found.about, goalOf(given).traffic, have)), solved.order);
    const pools = math.smallest_gpus(problem, "disaggregated");
    const apart = found.best ? render(math.apart(first.name, found.best, pools, have)) : "";
    if (apart) text("planner-verdict", `${sentence(apart)} ${document.getElementById("planner-verdict").textContent}`);
    text("planner-how", `${sentence(math.sized_how(crowd.shareOf(given), [cv, math.cv_at_each(cv, first.replicas)], mixOf(given) ? "mix" : "", problem.units, first.sold, first.full, first.replicas > 1))} ${sentence({ key: "card.redrawn" })}`);
  };

  // How to start architectures, a fleet's replica or a unit at full load: the first one open, the others folded.
  const starts = ({ given, problem, solved }, order, replicas) => {
    const shown = order.map((name) => {
      const of = replicas[name] ?? { problem: math.of_architecture(problem, name), row: solved.settings[name] };
      const told_ = math.settings(of.problem, name, of.row);
      const made = document.createElement("details");
      made.append(Object.assign(document.createElement("summary"), { textContent: `To start ${name}${replicas[name] ? ", a replica" : " at full load"}` }));
      const behind = name === "disaggregated" ? 1 : of.units ?? 1; // units without pools behind each router
      for (const both of math.commands(of.problem, name, told_, toldKv(given), Number(given.stored) > 0 && given.tier !== "hbm" ? given.tier : "", behind)) {
        const [title, line] = both.map(render);
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

  // What one GPU of a set-up does in the place of the plan's own, as `gpus.across` has it.
  const rowOf = (one, solved, own, price) => math.other_gpu(one.given.gpu, math.provenance_by(one, data), one.problem, solved, own, price);
  const onGpu = (given, own, price) => {
    try {
      const one = ask({ ...given, goal: "unit" });
      return rowOf(one, math.solve(one.problem, math.draws_of(one, data)), own, price);
    } catch (error) { return math.absent_gpu(given.gpu, "", error.short || "does not fit, or not in this precision", price); }
  };
  // The same question on other GPUs: what one of each is worth, and what a token costs where a price is known.
  const gpus = function* (first) {
    const { given, best, problem, solved } = first;
    const prices = pricesOf(given);
    const price = (gpu) => prices[gpu] ?? NaN;
    const own = { solved: best ? [solved] : [], gpus: problem.unit.gpus, price: price(given.gpu) };
    const found = [];
    for (const gpu of Object.keys(data.gpus)) {
      yield;
      found.push(gpu === given.gpu ? rowOf(first, solved, own, price(gpu)) : onGpu({ ...given, gpu }, own, price(gpu)));
    }
    const rows = math.in_their_order(found);
    const said = render(math.first_gpu(rows));
    document.querySelector("#planner-gpus p").textContent = said ? sentence(said) : "";
    table("planner-gpus", math.gpus_table(rows, given.gpu));
  };

  // The first of them stands beside the labels, where a phone shows it.
  const architectures = ({ given, told }, crowded) => {
    const rows = math.architectures_table(given, told, toldKv(given), crowded ? [crowded] : []);
    table("planner-architectures", rows);
    const heads = document.querySelectorAll("#planner-architectures th");
    rows[0].slice(1).forEach((name, i) => { heads[i + 1].style.borderBottom = `.25em solid var(--${name})`; });  // as in the picture
  };

  const sizes = function* (given) {
    const rows = [["TP of a unit", "best architecture", "requests/s of a GPU, at full load"]];
    for (const tp of ["1", "2", "4", "8"]) {
      yield;
      const row = onGpu({ ...given, tp, pooled: [] }, { solved: [], gpus: 1, price: NaN }, NaN);
      if (row.standing) rows.push([tp, row.architecture, math.ended(row.rate)]);
    }
    table("planner-sizes", rows);
  };

  const tiers = (found) => {
    const rows = math.tiers_table(found, found.drawn, data);
    table("planner-tiers", rows);
    const stands = rows.length > 1 ? sentence({ ...math.stands_on(data.comparisons.store), key: "sure.stored" }) : "";
    document.querySelector("#planner-tiers p").textContent = stands;
  };

  // The layouts that serve most of a GPU at full load, as `layouts.search` finds them: all under a few draws, those that
  // come near under all of them; pools with layouts of their own.
  const searched = function* (tried) {
    if (tried.length === 1) return decided(tried[0]);
    const each = tried.map(ask);
    const seen = [];
    for (const one of each) {
      seen.push(math.looked_at(one.problem, math.solve(one.problem, math.few_draws(one, data)), data.together).goodput);
      yield;
    }
    const near = math.near_best(seen).map((i) => [tried[i], data.together]);
    const looks = [];
    for (const [given, names] of [...near, ...bestPairs(tried).map((one) => [one, data.apart])]) {
      const { problem, solved } = decided(given);
      looks.push({ given, names, ...math.looked_at(problem, solved, names) });
      yield;
    }
    const order = math.look_order(looks).map((i) => looks[i]);
    if (!order.length) return decided(math.closest(each));
    return decided(joined(...[data.together, data.apart].map((names) => order.find((one) => one.names === names)?.given)));
  };

  const playedOf = (given) => crowd.playedOf(given, math.recorded(given, data));
  const fits = (found) => crowd.holds(found, playedOf(found.given), goalOf(found.given));
  // Whether some layout of a set-up answers, under a few draws, then under all.
  const works = (given) => {
    try {
      return layoutsOf(given).some((one) => {
        const each = ask(one);
        if (!math.solve(each.problem, math.few_draws(each, data)).best) return false;
        const found = decided(one);
        return Boolean(found.best) && fits(found);
      });
    } catch { return false; }
  };
  // What would do in place of a set-up that has no answer, as buttons; limits first, where these are what is missed.
  const remedy = function* (given, fixes, limited) {
    const [limits, most] = [(name) => given[name], (name) => at(name).max].map((of) => ({ ttft: Number(of("ttft")), tpot: Number(of("tpot")) }));
    const wide = limited ? yield* page.asking((able) => math.looser(limits, most, able), (change) => works({ ...given, ...page.texts(change) })) : {};
    if (Object.keys(wide).length) yield* offerLimits({ ...given, ...page.texts(wide) });
    for (const change of page.nearest(given, fixes, works)) { if (change) page.offer(change); yield; }
  };
  // In place of what is refused: at the least its field as it may be, whatever is said then.
  const mended = function* (given, fixes) {
    yield* remedy(given, fixes, false);
    if (fixes.length && document.getElementById("planner-fixes").hidden) page.offer(fixes[0]);
  };
  const offerLimits = function* (given) {
    const found = decided(layoutsOf(given).find((one) => works(one)));
    const kept = given.goal === "unit" ? null : yield* looserFleets(found);
    page.offer(kept ?? { ttft: given.ttft, tpot: given.tpot });
  };
  // Where replicas keep no promise: limits that one keeps which has little to do, loosened until fleets keep them.
  const looserFleets = function* ({ given, ...found }) {
    const kept = function* (limits) {
      const one = decided({ ...given, ...limits });
      return one.best && (yield* crowd.least(one, playedOf(one.given), goalOf(given), Infinity)) < Infinity ? limits : null;
    };
    const now = { ttft: given.ttft, tpot: given.tpot };
    if (yield* kept(now)) return now;
    const seen = yield* crowd.idle(found, playedOf(given), goalOf(given));
    for (let factor = 1.1; factor < 6; factor *= 1.3) {
      const [ttft, tpot] = ["ttft", "tpot"].map((name, i) => String(math.round_up(Math.max(given[name], 1000 * factor * seen[i]))));
      if (yield* kept({ ttft, tpot })) return { ttft, tpot };
    }
    return null;
  };
  // Whether the GPUs that there are do what is needed.
  const enough = ({ need, have }, served) => {
    if (!(need > 0)) return;
    const told = `${have} GPU${have === "1" ? "" : "s"} serve ${digits(served)} of the ${digits(Number(need))} requests/s that you need`;
    text("planner-enough", served >= need ? `Enough: ${told.replace(" of the ", ", and ").replace(" that you need", " are needed")}.` : `Not enough: ${told}.`);
    if (served < need) page.offer({ goal: "serve", traffic: need });
  };

  // The decision at once; queues and tables while nothing else moves, a slice of a frame at a time.
  let round = 0;
  let last; // the set-up that was answered, with its layout
  const answer = () => {
    const mine = ++round;
    const given = state();
    sheet.dataset.goal = given.goal;
    const began = performance.now();
    ["answered", "complete", "sized", "offered"].forEach((name) => { delete form.dataset[name]; });
    remember();
    page.clearFixes();
    text("planner-how", "");
    text("planner-runner", "");
    document.getElementById("planner-starts").replaceChildren();
    sheet.classList.add("planner-waiting");
    page.complain(null);
    let tried, refused;
    try { tried = layoutsOf(given); } catch (error) { refused = error; }
    const work = refused ? mended(given, refused.fixes ?? []) : answered(given, tried, began);
    last = null;
    if (refused) refusal(refused);
    const go = () => {
      if (mine !== round) return;
      const until = performance.now() + ROOM_FOR_DRAWS;
      do { if (work.next().done) { form.dataset.offered = "true"; return; } } while (performance.now() < until);
      setTimeout(go);
    };
    setTimeout(go, 30);
  };
  const refusal = (error) => {
    page.complain(error);
    text("planner-verdict", "");
    card.words(page.stopped(error), "refused");
    text("planner-settings", "");
    document.getElementById("planner-notes").replaceChildren();
    data.answers.forEach(([name]) => { cell("value", name, "–"); ["why", "by", "said"].forEach((kind) => cell(kind, name, "")); });
    [...TABLES, document.getElementById("planner-pictures")].forEach((section) => { section.hidden = true; });
  };
  const answered = function* (given, tried, began) {
    let found = yield* searched(tried);
    show(found);
    form.dataset.answered = String(performance.now() - began);
    last = found.given;
    yield;
    sheet.classList.remove("planner-waiting");
    const whole = found.best && fits(found);
    if (found.best && !whole) {
      card.words("The longest of the requests does not fit the KV cache of a unit.", "none");
    } else if (found.best && given.goal !== "unit") {
      const chosen = tried.length > 1 ? yield* crowd.laid(tried, page, playedOf(given), goalOf(given)) : found.given;
      const other = chosen && chosen !== found.given ? decided(chosen) : found;
      if (other !== found && other.best) {
        found = other;
        last = chosen;
        show(found);
      }
      const crowded = yield* crowd.sized(found, playedOf(given), goalOf(given));
      answerGoal(found, crowded);
      const held = crowded.order.map((name) => crowded.fleets[name]).filter((one) => one?.replicas > 0);
      if (!held.length) {
        const limits = yield* looserFleets(found);
        if (limits) page.offer(limits);
        yield* remedy(given, given.promise === "means" ? [] : [{ promise: "means" }], false);
      }
      else if (given.goal === "have") enough(given, Math.max(...held.map((one) => one.sold)));
    } else if (found.best) {
      starts(found, found.solved.order.filter((name) => found.rows[name].rate[0] > 0), {});
    }
    if (!whole) yield* remedy(given, [], !found.best);
    form.dataset.sized = "true";
    yield;
    const { best, second, rows, solved } = found;
    const swung = best ? yield* pictures.pictured(found, found.centred.found) : pictures.none();
    text("planner-runner", best ? sentence(math.runner_up(best, second, rows[second].rate[0], swung, math.as_good(solved.lead))) : "");
    yield* sizes(found.given);
    tiers(found);
    table("planner-drafting", math.drafts_table(found.told));
    yield* gpus(found);
    form.dataset.complete = "true";
  };

  const wrong = (given) => { try { layoutsOf(given); return ""; } catch ({ message }) { return `# ${message}\n`; } };
  const asPython = () => wrong(state()) || math.as_python(ask(last ?? layoutsOf(state())[0]), data.link);

  // The plan as Markdown, for a design document: what stands on the page.
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim().replaceAll("|", "/"));
  const tableOf = (section) => [...section.querySelectorAll("tr")].map(cells);
  const asMarkdown = () => {
    const lines = (id) => document.getElementById(id).textContent;
    const rows = (found) => found.map((row, i) => `| ${row.join(" | ")} |${i ? "" : `\n|${row.map(() => "---").join("|")}|`}`).join("\n");
    if (wrong(state())) return wrong(state());
    const given = last ?? layoutsOf(state())[0];
    const unit_ = ask(given).problem.unit;
    const [of, sent] = [`${given.model} (${given.weights}, KV ${[given.kv, whyKv(given)].filter(Boolean).join(", ")}) on ${given.tp} x ${given.gpu}, ${given.engine}${unit_.drafts > 0 ? `, ${given.drafts} drafts, ${digits(unit_.accepted_per_step)} tokens a step` : ""}`, `${digits(Number(given.prompt))} tokens in, ${digits(Number(given.output))} out, ${given.stored} % stored; TTFT within ${given.ttft} ms, TPOT within ${given.tpot} ms (${given.goal !== "unit" ? render(math.promised(crowd.shareOf(given))) : Number(given.promise) > 0 ? `P${100 * given.promise}` : "means"})`];
    const sections = TABLES.filter((one) => !one.hidden);
    const started = [...document.querySelectorAll("#planner-starts > details")].map((one) => `### ${one.querySelector("summary").textContent}\n\n${[...one.querySelectorAll("pre")].map((pre) => `${pre.dataset.title}:\n\n\`\`\`bash\n${pre.textContent}\n\`\`\``).join("\n\n")}`);
    const answers = [["answer", "value (5 to 95 %)", "meaning"], ...data.answers.map(([name, title]) => [title, ...["value", "why"].map((kind) => sheet.querySelector(`[data-${kind}="${name}"]`).textContent)])];
    return [`# Plan: ${of}`, sent, `${Number(given.price) > 0 ? `${given.price} USD for a GPU and hour${exemplary(given) ? ", an example" : ""}; ` : ""}${unit_.gpus} GPUs a unit`, `**${lines("planner-said")}** ${[lines("planner-headline"), lines("card-cost"), lines("card-sure"), lines("card-evidence")].filter(Boolean).join(" ")}`, lines("planner-how"), `${lines("planner-verdict")} ${lines("planner-runner")}`, lines("planner-settings"),
      [...document.querySelectorAll("#planner-notes li")].map((one) => `* ${one.textContent}`).join("\n"),
      ...sections.map((one) => [`## ${one.querySelector("h2").textContent}`, one.querySelector("p").textContent, rows(tableOf(one))].filter(Boolean).join("\n\n")), "## All numbers", rows(answers), ...started,
      `Made with the planner of Inference Math: ${share.link("plan", linked())}`].filter(Boolean).join("\n\n") + "\n";
  };

  const tools = form.querySelector(".planner-tools");
  card.tools(share.copier("Copy link", () => share.link("plan", linked())), share.copier("Copy as report", asMarkdown));
  tools.append(
    share.copier("Copy as Python", asPython),
    share.button("Download tables (CSV)", () => {
      share.download("plan.csv", "text/csv", share.csv(TABLES.filter((one) => !one.hidden).flatMap((one) => [[one.querySelector("h2").textContent], ...tableOf(one), []])));
    }),
    page.reset(answer),
  );
  Object.assign(page, { asPython, asMarkdown, views: pictures.views });
  page.listen(answer);
})();
