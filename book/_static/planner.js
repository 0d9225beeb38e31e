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
  const { form, at, state, linked, remember, question, layoutsOf, mixOf, pricesOf, calibration, coefficients, inputs, draws, few, bestPairs, joined, pooledOf, solve, stand, errors, usualKv, toldKv, whyKv } = page;
  const sheet = form.closest(".planner-table");
  const TABLES = ["architectures", "sizes", "drafting", "gpus", "tiers"].map((name) => document.getElementById(`planner-${name}`));
  const ROOM_FOR_DRAWS = 8; // ms of a frame

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
    const rows = Object.fromEntries(solved.order.map((name) => [name, math.middle_row(solved, name)]));
    const undrafted = asked.unit.drafts > 0 ? math.undrafted(asked, drawn) : null;
    return { given, asked, drawn, solved, undrafted, rows, first, second, best: solved.best, numbers: math.numbers_of(asked, solved) };
  };

  const outsideOf = (given, solved, first) => math.outside(calibration(given).scope, inputs(given, Math.max(solved.settings[first].batch, 1)));
  const tooLong = (given, asked) => math.too_long(given.model, data.models[given.model].context, math.longest_request(asked.work));
  // Whether a price is the page's own, which is nobody's.
  const exemplary = ({ price }) => price === page.known.price;
  // Of what an answer is a card; see `answers.card`.
  const about = ({ given, asked, solved, first }, goal) => ({
    goal, traffic: goal === "gpus" ? Number(given.traffic) : 0, have: goal === "rate" ? Number(given.have) : 0,
    gpus: asked.unit.gpus, price: asked.price, example: exemplary(given), tail: goal === "unit" ? asked.quantile : 0,
    never: outsideOf(given, solved, first).length + tooLong(given, asked).length > 0,
    verdicts: data.verdicts, crowds: data.crowds, unseen: data.unseen, own: false, scaled: calibration(given).mode === "operators", rows: errors, kind: data.models[given.model].kind,
    model: data.models[given.model].like, gpu: given.gpu, weights: given.weights, engine: given.engine,
  });
  const unitCard = (found) => math.unit_card(found.asked, found.solved, about(found, "unit"));
  const noneSaid = ({ solved }) => ({ key: solved.none_in >= 1 ? "card.none" : "card.mostly_none", none: math.hundredths(solved.none_in) });

  const notes = ({ given, asked, solved, undrafted, rows, best, numbers, first }) => {
    const centre = math.under(asked, coefficients(given), [1, 1, 0]);
    const whole = math.whole_alone(asked, coefficients(given), [1, 1, 0]);
    const missed = best ? [] : math.missed(asked, centre);
    const never = outsideOf(given, solved, first).map((one) => `not calibrated: ${say(one)}`);
    const long = tooLong(given, asked);
    const { title, measured } = data.links[given.link];
    const linked = rows.disaggregated.rate[0] > 0 ? [math.linked(asked, rows.disaggregated.rate[0], solved.settings.disaggregated, title, measured)] : [];
    const pays = asked.unit.drafts > 0 && best ? [math.drafting_pays(numbers.rate[0], math.best_rate(undrafted))] : [];
    const hindered = best ? solved.order.filter((name) => !(rows[name].rate[0] > 0)).map((name) => `no ${name} at full load: ${say(math.hindered(asked, centre, name))}`) : [];
    const wide = { ...given, kv: "bf16", sessions: 0 };
    const cache = given.kv === "fp8" ? math.slow_cache(asked, centre, math.under(question(wide), coefficients(wide), [1, 1, 0])) : [];
    return [...missed, ...hindered, ...long, ...never, ...math.widened(stand(given), errors), ...math.to_choose(asked, solved), ...math.slow_store(asked, centre, whole), ...math.store_moves(asked, centre, whole, best ? numbers.rate[0] : 0), ...math.unlike_usual(asked, given.kv, usualKv(given)), ...cache, ...math.trusted(asked.unit, errors), ...math.front_weighs(asked, numbers.front), ...math.kept_in(asked), ...linked, ...pays, ...math.evidence(about({ given, asked, solved, first }, "unit"))].map(sentence);
  };

  const told = (asked, given, name, row) => {
    const { option, value, plain } = data.engines[given.engine].cli.kv_fp8;
    const cache = { fp8: value, bf16: plain }[toldKv(given)];
    const settings = { ...math.settings(math.of_architecture(asked, name), name, row), ...(cache ? { [option]: cache } : {}) };
    return Object.entries(settings).map(([option, value]) => `${option} ${value}`.trim()).join(", ");
  };

  const list = (words) => words.map((one) => Object.assign(document.createElement("li"), { textContent: one }));

  const show = (found) => {
    const { given, asked, solved, rows, numbers: told_, best, first, second } = found;
    const words = { binding: math.binding_limits(told_).join(" and "), units: math.of_architecture(asked, "disaggregated").units, best: first, second };
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
    text("planner-verdict", best ? `At full load, ${say(unit.headline)}. ${sentence([unit.sure, ": ", ...unit.why])}` : "");
    if (!best) card.words(sentence(noneSaid(found)), "none", document.querySelector("#planner-notes li").textContent);
    else if (given.goal === "unit") card.show(unit, solved.order);
    else card.words(`${given.goal === "have" ? `What ${given.have} GPUs serve` : `GPUs for ${given.traffic} requests/s`}: simulating queues …`, "waiting", sentence(unit.headline));
  };

  // What the reader asked for, queues counted: GPUs for the traffic, or traffic for the GPUs.
  const goalOf = (given) => ({ traffic: given.goal === "serve" ? Number(given.traffic) : 0, have: given.goal === "have" ? Number(given.have) : 0, cv: Number(given.arrivals) });
  const answerGoal = (found, crowded) => {
    const { given, asked, solved } = found;
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
    text("planner-settings", `Start ${first.replicas === 1 ? "it" : `each of ${digits(first.replicas)}`} with: ${told(first.replica.asked, given, first.name, first.replica.row)}`);
    const sizes = held.map((name) => math.fleet_sized(fleets[name].replica, fleets[name]));
    card.show(math.card_of(asked, sizes, crowded, about(found, owned ? "rate" : "gpus")), solved.order);
    const pools = math.smallest_gpus(asked, "disaggregated");
    const apart = found.best ? say(math.apart(first.name, found.best, pools, have)) : "";
    if (apart) text("planner-verdict", `${sentence(apart)} ${document.getElementById("planner-verdict").textContent}`);
    text("planner-how", `${sentence(math.sized_how(crowd.shareOf(given), [cv, math.cv_at_each(cv, first.replicas)], mixOf(given) ? "mix" : "", asked.units, first.sold, first.full, first.replicas > 1))} ${sentence({ key: "card.redrawn" })}`);
  };

  // How to start architectures, a fleet's replica or a unit at full load: the first one open, the others folded.
  const starts = ({ given, asked, solved }, order, replicas) => {
    const shown = order.map((name) => {
      const of = replicas[name] ?? { asked: math.of_architecture(asked, name), row: solved.settings[name] };
      const told_ = math.settings(of.asked, name, of.row);
      const made = document.createElement("details");
      made.append(Object.assign(document.createElement("summary"), { textContent: `To start ${name}${replicas[name] ? ", a replica" : " at full load"}` }));
      const behind = name === "disaggregated" ? 1 : of.units ?? 1; // units without pools behind each router
      for (const both of math.commands(of.asked, name, told_, toldKv(given), Number(given.stored) > 0 && given.tier !== "hbm" ? given.tier : "", behind)) {
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

  const ofSolved = (asked, solved) => (solved.best ? { best: solved.best, solved, gpus: asked.unit.gpus, each: math.told_rate(solved, solved.best).map((rate) => rate / asked.unit.gpus) } : { said: "none meets the SLA" });
  const ofGpu = (given) => {
    try {
      const asked = question({ ...given, goal: "unit" });
      return ofSolved(asked, solve(given, asked));
    } catch (error) { return { refused: true, said: error.short || "does not fit, or not in this precision" }; }
  };
  const ended = ([value, low, high], scale = 1) => (Number.isFinite(value) ? withSpan(value, low, high, scale) : "");

  // The same question on other GPUs: what one of each is worth, and what a token costs where a price is known.
  const gpus = function* (given, first) {
    const found = [];
    for (const gpu of Object.keys(data.gpus)) {
      yield;
      const one = gpu === given.gpu ? ofSolved(first.asked, first.solved) : ofGpu({ ...given, gpu });
      found.push({ gpu, ...one, middle: one.each ? one.each[0] : 0, never: one.refused ? "" : standing({ ...given, gpu }) });
    }
    const prices = pricesOf(given);
    const price = prices[given.gpu] ?? 0;
    const spent = ({ each }, of) => math.spent_on((each ?? [NaN, NaN, NaN]).map((rate) => rate * Number(given.output)), of);
    const cost = (one) => spent(one, math.usd_per_million(1, prices[one.gpu] ?? 0, 1));
    const order = math.gpus_ranked(found.map((one) => one.middle), found.map((one) => cost(one)[0]), found.map((one) => one.never === data.guessed));
    const joules = (one) => (data.gpus[one.gpu].watts > 0 ? three(spent(one, data.gpus[one.gpu].watts)) : "power not stated");
    const told = order.filter((i) => found[i].never !== data.guessed);
    const said = say(math.gpus_said(...[({ gpu }) => gpu, (one) => one.middle, (one) => cost(one)[0]].map((of) => told.map((i) => of(found[i])))));
    document.querySelector("#planner-gpus p").textContent = said ? sentence(said) : "";
    table("planner-gpus", ["GPU", "numbers are", "best architecture", "requests/s of a GPU, at full load", `as many ${given.gpu}`, "break-even price (USD/hour)", "price (USD/hour)", "USD per million output tokens at that", "J a token, rated power"],
      order.map((i) => {
        const one = found[i];
        if (!one.each) return [one.gpu, one.never, one.said, "", "", "", "", "", ""];
        const ratio = first.best ? math.gpus_worth(one.solved, one.gpus, first.solved, first.asked.unit.gpus) : [];
        return [one.gpu, one.never, one.best, ended(one.each), ended(ratio), price > 0 ? ended(ratio, price) : "", prices[one.gpu] ? digits(prices[one.gpu]) : "", prices[one.gpu] ? three(cost(one)) : "", joules(one)];
      }));
  };

  const architectures = ({ given, asked, solved, rows }, crowded) => {
    const { have } = goalOf(given);
    const often = (share) => `${math.hundredths(share)}%`; // as the card has it
    const loss = say({ key: "card.loss" });
    const optional = (value) => (Number.isFinite(value) ? digits(value) : "");
    const loaded = (name) => {
      if (!crowded) return ["…", "…", "…", "…", "…", "…", "…"];
      const one = crowded.fleets[name];
      if (!one?.replicas) return ["none", "", "", "", "", "", ""];
      const cost = math.usd_per_million(one.gpus_all[0], asked.price, one.sold * asked.work.n_out);
      return [have ? three(one.rate) + (one.gpus_all[0] < have ? `, on ${digits(one.gpus_all[0])}` : "") : three(one.gpus_all), often(crowded.best_in[name]), percent(crowded.loss[name]), percent(one.kept), three(one.ttft, 1000), three(one.tpot, 1000), optional(cost)];
    };
    // The first of them stands beside the labels, where a phone shows it.
    const names = (crowded ?? solved).order;
    const asksFleet = given.goal !== "unit";
    const columns = names.map((name) => {
      const [row, own] = [rows[name], solved.settings[name]];
      const sized = asksFleet && solved.best ? loaded(name) : [];
      if (!(row.rate[0] > 0)) return [...sized, "", "none"];
      return [
        ...sized, say(math.laid_out(asked, name)), three(row.rate), often(solved.best_in[name]), percent(solved.loss[name]), percent(solved.kept[name]),
        digits(row.decodes[0]), own.chunk > 0 ? digits(math.computed_tokens(math.of_architecture(asked, name), own)) : "", optional(own.prefill_units), told(asked, given, name, own), three(row.ttft, 1000), three(row.tpot, 1000),
      ];
    });
    const of = asked.quantile ? `P${100 * asked.quantile} of ` : "mean ";
    const labels = [...(asksFleet ? [have ? `requests/s on ${given.have} GPUs at most` : `GPUs for ${given.traffic} requests/s`, "the best in this share of draws", loss, "keeps the promise in this share of draws",
      "mean TTFT (ms)", "mean TPOT (ms)", "USD per million output tokens at that"] : []),
    "layout of a unit", "requests/s of a unit, at full load", "the best in this share of draws, at full load", `${loss} (at full load)`, "keeps the limits in this share of draws",
    "decodes at once in a unit, in the mean at full load", "computed prompt tokens of a step, at full load", "prefill units, at full load", "settings to start with, at full load", `${of}TTFT at full load (ms)`,
    asked.quantile ? `${of}the gaps between tokens (ms)` : "mean TPOT at full load (ms)"];
    table("planner-architectures", ["quantity", ...names], labels.map((label, i) => [label, ...columns.map((one) => one[i] ?? "")]));
    const heads = document.querySelectorAll("#planner-architectures th");
    names.forEach((name, i) => { heads[i + 1].style.borderBottom = `.25em solid var(--${name})`; });  // as in the picture
  };

  const sizes = function* (given) {
    const rows = [];
    for (const tp of ["1", "2", "4", "8"]) {
      yield;
      const one = ofGpu({ ...given, tp, pooled: null });
      if (one.best || one.said === "none meets the SLA") rows.push([tp, one.best ?? one.said, one.each ? ended(one.each) : ""]);
    }
    table("planner-sizes", ["TP of a unit", "best architecture", "requests/s of a GPU, at full load"], rows);
  };

  const drafting = ({ given, asked, solved, undrafted }) => {
    const each = asked.unit.drafts > 0 ? [[Number(given.drafts), solved], [0, undrafted]] : [];
    table("planner-drafting", ["drafts", "best architecture", "requests/s of a unit, at full load", "TTFT at full load (ms)", "TPOT at full load (ms)"],
      each.map(([many, one]) => {
        const row = math.middle_row(one, one.order[0]);
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
      row.rate > 0 ? withSpan(row.rate, row.rate_low, row.rate_high) : "none", Number.isFinite(row.gain) ? digits(row.gain) : "–", say(math.cell(row)),
    ]);
    table("planner-tiers", ["where", "a prompt alone waits for", "prefill speedup", "requests/s of a unit", "gain", "how sure"], rows);
    document.querySelector("#planner-tiers p").textContent = rows.length ? sentence({ ...math.stands_on(data.comparisons.store), key: "sure.stored" }) : "";
  };

  // The layouts that serve most of a GPU at full load, as `layouts.search` finds them: all under a few draws, those that
  // come near under all of them; pools with layouts of their own.
  const searched = function* (tried) {
    if (tried.length === 1) return decided(tried[0]);
    const looked = [];
    for (const one of tried) {
      const asked = question(one);
      const solved = math.solve(asked, few(one));
      looked.push(math.goodput_by(asked, solved, math.first_of(solved, data.together)));
      yield;
    }
    const looks = [];
    const look = (given, names) => {
      const { asked, solved } = decided(given);
      const name = math.first_of(solved, names);
      looks.push({ given, names, gpus: asked.unit.gpus, tokens: math.tokens_by(asked, solved, name), goodput: math.goodput_by(asked, solved, name) });
    };
    for (const i of looked.some((one) => one > 0) ? math.layouts_near(looked) : []) { look(tried[i], data.together); yield; }
    for (const one of bestPairs(tried)) { look(one, data.apart); yield; }
    if (!looks.some(({ goodput }) => goodput > 0)) {
      const missed = tried.map((one) => math.excess(question(one), math.under(question(one), coefficients(one), [1, 1, 0])));
      return decided(tried[missed.indexOf(Math.min(...missed))]);
    }
    const order = math.layouts_ranked(...["goodput", "tokens", "gpus"].map((key) => looks.map((one) => one[key]))).order.map((i) => looks[i]);
    const [together, pools] = [data.together, data.apart].map((names) => order.find((one) => one.names === names && one.goodput > 0)?.given);
    return decided(joined(together, pools));
  };

  const requestsLike = (given) => (mixOf(given)?.rows ?? []).map(([n_in, n_out]) => [n_in, n_out, math.stored_of(n_in, Number(given.stored) / 100)]);
  const playedOf = (given) => crowd.playedOf(given, requestsLike(given));
  const fits = (found) => crowd.holds(found, playedOf(found.given), goalOf(found.given));
  // Whether some layout of a set-up answers, under a few draws, then under all.
  const works = (given) => {
    try {
      return layoutsOf(given).some((one) => {
        const asked = question(one);
        if (!math.solve(asked, few(one)).best) return false;
        const found = decided(one);
        return Boolean(found.best) && fits(found);
      });
    } catch { return false; }
  };
  // The smallest limits that would do, TTFT's alone if that is enough: rounded up to two digits.
  const looser = function* (given) {
    for (const name of [["ttft"], ["tpot"], ["ttft", "tpot"]]) {
      const widened = (factor) => Object.fromEntries(name.map((one) => [one, String(Math.min(Number(at(one).max), roundUp(given[one] * factor)))]));
      if (!works({ ...given, ...widened(100) })) continue;
      let [low, high] = [1, 100];
      while (high / low > 1.05) {
        yield null;
        const middle = Math.sqrt(low * high);
        if (works({ ...given, ...widened(middle) })) high = middle; else low = middle;
      }
      yield widened(high);
      return;
    }
  };
  const roundUp = (x) => { const unit = 10 ** (Math.floor(Math.log10(x)) - 1); return Number((Math.ceil(x / unit - 1e-9) * unit).toPrecision(2)); };
  // What would do in place of a set-up that has no answer, as buttons; limits first, where these are what is missed.
  const remedy = function* (given, fixes, limited) {
    for (const change of limited ? looser(given) : []) {
      if (change) yield* offerLimits({ ...given, ...change });
      yield;
    }
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
      const [ttft, tpot] = ["ttft", "tpot"].map((name, i) => String(roundUp(Math.max(given[name], 1000 * factor * seen[i]))));
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
    const swung = best ? yield* pictures.pictured(found, coefficients(found.given)) : pictures.none();
    text("planner-runner", best ? sentence(math.runner_up(best, second, rows[second].rate[0], swung, math.as_good(solved.lead))) : "");
    yield* sizes(found.given);
    tiers(found);
    drafting(found);
    yield* gpus(found.given, found);
    form.dataset.complete = "true";
  };

  const layout = (given) => {
    const sizes = { ep: given.experts === "whole" ? Number(given.tp) * Number(given.dp) : 1, dp: given.dp, pp: given.pp };
    const divided = Object.entries(sizes).filter(([, size]) => Number(size) > 1).map(([name, size]) => `, ${name}=${size}`).join("");
    const counted = given.imbalance ? `, expert_imbalance=${given.imbalance}` : "";
    return divided + counted + (Number(given.drafts) > 0 ? `, drafts=${given.drafts}, accepted=${Number(given.accepted) / 100}` : "");
  };
  const wrong = (given) => { try { layoutsOf(given); return ""; } catch ({ message }) { return `# ${message}\n`; } };
  const fleetLine = (given) => {
    if (given.goal === "unit") return "";
    const come = [...(given.arrivals === "1" ? [] : [`cv_arrivals=${given.arrivals}`]), ...(mixOf(given) ? ["mix=requests"] : [])].join(", ");
    const rest = `${given.promise === "usual" ? "" : `, quantile=${given.promise === "means" ? "None" : given.promise}`}${come && `, arrivals=planner.Arrivals(${come})`}`;
    return `print(planner.${given.goal === "have" ? `capacity(found, ${given.have}` : `fleet(found, ${given.traffic}`}${rest}))  # with queues, simulated\n`;
  };
  const asPython = () => {
    if (wrong(state())) return wrong(state());
    const given = last ?? layoutsOf(state())[0];
    const alpha = Number(given.stored) / 100;
    const mix = Boolean(mixOf(given));
    const sent = [given.prompt, given.output, ...(alpha ? [`alpha=${alpha}`] : []), ...(given.lengths === "geometric" ? ['lengths="geometric"'] : [])];
    const requests = `mix("${given.lengths}"${alpha ? `, alpha=${alpha}` : ""})`;
    const limits = [given.ttft / 1000, given.tpot / 1000, ...(given.goal === "unit" && Number(given.promise) > 0 ? [`quantile=${given.promise}`] : [])];
    const rest = [`units=${question(given).units}`, ...(given.tier === "hbm" ? [] : [given.tier === "own" ? `tier=Tier.of_bandwidth(${given.store}e9)` : `tier=tier("${given.tier}")`]), ...(given.front === "" ? [] : [`front=${given.front / 1000}`]), ...(given.link === data.link ? [] : [`link=link("${given.link}")`]), ...(Number(given.sessions) > 0 ? [`sessions=${given.sessions}`] : []), ...(Number(given.price) > 0 ? [`price=${given.price}`] : [])];
    const laid = ({ tp, dp, pp, experts }) => `unit.resized(tp=${tp}, dp=${dp}, ep=${experts === "whole" ? tp * dp : 1}, pp=${pp})`;
    const pooled = pooledOf(given);
    if (pooled) rest.push(...Object.entries(pooled).map(([name, one]) => `${name}=${laid(one)}`), `pool_units=${question(given).pools[0].units}`);
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
    if (wrong(state())) return wrong(state());
    const given = last ?? layoutsOf(state())[0];
    const asked_ = question(given).unit;
    const [of, sent] = [`${given.model} (${given.weights}, KV ${[given.kv, whyKv(given)].filter(Boolean).join(", ")}) on ${given.tp} x ${given.gpu}, ${given.engine}${asked_.drafts > 0 ? `, ${given.drafts} drafts, ${digits(asked_.gives)} tokens a step` : ""}`, `${digits(given.prompt)} tokens in, ${digits(given.output)} out, ${given.stored} % stored; TTFT within ${given.ttft} ms, TPOT within ${given.tpot} ms (${given.goal !== "unit" ? say(math.promised(crowd.shareOf(given))) : Number(given.promise) > 0 ? `P${100 * given.promise}` : "means"})`];
    const sections = TABLES.filter((one) => !one.hidden);
    const started = [...document.querySelectorAll("#planner-starts > details")].map((one) => `### ${one.querySelector("summary").textContent}\n\n${[...one.querySelectorAll("pre")].map((pre) => `${pre.dataset.title}:\n\n\`\`\`bash\n${pre.textContent}\n\`\`\``).join("\n\n")}`);
    const answers = [["answer", "value (5 to 95 %)", "meaning"], ...data.answers.map(([name, title]) => [title, ...["value", "why"].map((kind) => sheet.querySelector(`[data-${kind}="${name}"]`).textContent)])];
    return [`# Plan: ${of}`, sent, `${Number(given.price) > 0 ? `${given.price} USD for a GPU and hour${exemplary(given) ? ", an example" : ""}; ` : ""}${asked_.gpus} GPUs a unit`, `**${lines("planner-said")}** ${[lines("planner-headline"), lines("card-cost"), lines("card-sure"), lines("card-evidence")].filter(Boolean).join(" ")}`, lines("planner-how"), `${lines("planner-verdict")} ${lines("planner-runner")}`, lines("planner-settings"),
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
