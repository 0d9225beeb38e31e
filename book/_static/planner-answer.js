// The planner's answer as a card. What it says is `answers.card`, printed from the package; here it is drawn, and on a
// narrow screen folded to a bar until its place in the page is reached, or somebody opens it.
window.inferenceMathAnswer = (() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { render, digits } = math;
  const at = (id) => document.getElementById(id);
  const box = at("planner-answer");
  const starts = at("planner-starts");
  const capital = (words) => words && words[0].toUpperCase() + words.slice(1);
  const sentence = (said) => `${capital(render(said))}.`;
  const made = (tag, name, words) => Object.assign(document.createElement(tag), { className: name, textContent: words ?? "" });
  const bold = (id, first, rest) => at(id).replaceChildren(made("strong", "", first), rest);
  const span = (low, high) => (Number.isFinite(high) ? `${digits(low)}–${digits(high)}` : `${digits(low)}+`);

  // Words alone: what is waited for, or what is wrong; the rest of the card keeps its place while it waits.
  const words = (said, state, more = "") => {
    box.dataset.state = state;
    at("card-value").textContent = state === "waiting" ? "…" : "";
    at("card-noun").textContent = "";
    at("planner-headline").textContent = said;
    at("card-cost").textContent = more;
    if (state !== "waiting") at("planner-said").textContent = said;
  };

  // One axis from 0: its end is the largest number that is one, ticks are whole steps of 1, 2 or 5.
  const axis = (most) => {
    const rough = most / 3;
    const ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * ten).find((one) => one >= rough * 0.999);
    const ticks = [];
    for (let tick = 0; tick <= most * 1.0001; tick += step) ticks.push(tick);
    return { ticks, place: (value) => `${Math.min(100, 100 * value / most)}%` };
  };
  const track = (...marks) => {
    const one = made("span", "card-track");
    one.setAttribute("aria-hidden", "true");
    one.append(...marks.map(([name, left, width]) => { const mark = made("i", name); Object.assign(mark.style, { left, width }); return mark; }));
    return one;
  };
  const line = (name, drawn, value, beside) => {
    const one = document.createElement("li");
    const count = made("span", "card-count");
    count.append(made("b", "", value), ` ${beside}`);
    one.append(made("span", "card-name", name), drawn, count);
    return one;
  };

  const compare = ({ rows, axis: title }, names) => {
    const ends = rows.flatMap((row) => row.value).filter(Number.isFinite);
    const { ticks, place } = axis(1.05 * Math.max(...ends));
    const drawn = rows.map(({ name, value: [value, low, high] }) => {
      const end = Number.isFinite(high) ? high : 1e9;
      const bar = track(["card-span", place(low), `calc(${place(end)} - ${place(low)})`], ["card-middle", place(value), ""]);
      bar.style.setProperty("--own", `var(--${name})`);
      return line(name, bar, digits(value), low < high ? span(low, high) : "");
    });
    const none = names.filter((name) => !rows.some((row) => row.name === name)).map((name) => line(name, track(), "none", "within the limits"));
    const scale = made("li", "card-scale");
    scale.append(made("span", "card-name"), track(...ticks.map((tick) => ["card-tick", place(tick), ""])), made("span", "card-count"));
    scale.querySelectorAll("i").forEach((mark, i) => { mark.textContent = digits(ticks[i]); });
    at("card-rows").replaceChildren(...drawn, ...none, scale);
    at("card-axis").textContent = capital(render(title));
  };
  const measure = ({ meters, ranged }) => {
    at("card-meters").replaceChildren(...meters.map(({ name, of, value: [value, low, high], limit }) => {
      const { place } = axis(1.15 * limit);
      const [own, from, to] = [value, low, high].map((one) => digits(1000 * one));
      const one = line(name, track(["card-fill", "0%", place(value)], ["card-limit", place(limit), ""]), ranged ? span(1000 * low, 1000 * high) : own, `of ${digits(1000 * limit)} ms`);
      one.title = `${render(of)} ${name}: ${from} to ${to} ms in nine of ten draws`;
      return one;
    }));
  };

  // The card of an answer; `names` are all architectures. Returned is its sentence.
  const show = (card, names) => {
    const [value, low, high] = card.value;
    box.dataset.state = "answer";
    box.dataset.ranged = card.ranged;
    at("card-value").textContent = card.ranged ? span(low, high) : digits(value);
    at("card-noun").textContent = render(card.noun);
    bold("planner-headline", capital(card.name), `, ${render(card.what)}`);
    at("card-cost").textContent = capital(card.cost.map(render).join("; "));
    compare(card, names);
    measure(card);
    bold("card-sure", `${capital(card.sure)}:`, ` ${render(card.why)}.`);
    at("card-evidence").textContent = [...card.start, card.evidence[0]].map(sentence).join(" ");
    at("planner-said").textContent = sentence(card.headline);
    return sentence(card.headline);
  };

  // Its buttons; what starts the answer stays folded until it is asked for.
  const start = share.button("Start it", () => {
    starts.hidden = !starts.hidden;
    start.setAttribute("aria-expanded", String(!starts.hidden));
    if (!starts.hidden) starts.scrollIntoView({ block: "nearest" });
  });
  start.setAttribute("aria-expanded", "false");
  start.setAttribute("aria-controls", "planner-starts");
  const tools = (...buttons) => at("card-tools").append(start, ...buttons);

  // The bar of a narrow screen.
  const bar = at("card-open");
  const open = (so) => { box.toggleAttribute("data-open", so); bar.setAttribute("aria-expanded", String(so)); bar.textContent = so ? "Less" : "More"; };
  bar.addEventListener("click", () => open(!box.hasAttribute("data-open")));
  at("planner-form").addEventListener("focusin", ({ target }) => {
    open(false);
    const covered = target.getBoundingClientRect().bottom - box.getBoundingClientRect().top;
    if (getComputedStyle(box).position === "sticky" && covered > 0) window.scrollBy(0, covered + 16);
  });
  new IntersectionObserver(([{ isIntersecting, boundingClientRect }]) => {
    box.toggleAttribute("data-placed", isIntersecting || boundingClientRect.top < 0);
  }).observe(at("card-place"));

  return { sentence, show, tools, words };
})();
