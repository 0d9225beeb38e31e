// What figures and the planner share: their state as a link (#name:a=1&b=2), and buttons that copy.
window.inferenceMathShare = (() => {
  "use strict";
  const parse = () => {
    const [id, state] = location.hash.slice(1).split(/:(.*)/s);
    if (state === undefined) return null;
    try {
      return { id: decodeURIComponent(id), state: Object.fromEntries(new URLSearchParams(state)) };
    } catch {  // not a link of ours
      return null;
    }
  };
  const hash = (id, state) => `#${id}:${new URLSearchParams(state)}`;
  const link = (id, state) => location.href.split("#")[0] + hash(id, state);

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // a page from disk, or no permission
      const field = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
  };

  const button = (label, act) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "share", textContent: label });
    made.addEventListener("click", act);
    return made;
  };

  // A button that copies what `text` returns, and says so to eyes and ears.
  const copier = (label, text) => {
    const made = button(label, async () => {
      await copy(text());
      made.textContent = "Copied";
      setTimeout(() => { made.textContent = label; }, 1500);
    });
    made.setAttribute("aria-live", "polite");
    return made;
  };
  // Scripts beside this one that come once, when they are needed: Vega, most of a page's weight, when something is to be drawn.
  const here = document.currentScript.src.replace(/share\.js.*$/, "");
  const asked = {};
  const script = (name) => asked[name] ??= new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement("script"), { src: here + name, onload: resolve, onerror: reject }));
  });
  const vega = () => script("vega.js");

  // Call `near` once, when an element is about to come into view.
  const AHEAD = "800px";
  const whenNear = (elements, near) => {
    const watch = new IntersectionObserver((seen) => {
      for (const { target } of seen.filter((one) => one.isIntersecting)) {
        watch.unobserve(target);
        near(target);
      }
    }, { rootMargin: AHEAD });
    elements.forEach((element) => watch.observe(element));
  };

  // What a form of numbers asks for; an Error says what is wrong with it. A field with a placeholder may stay empty.
  const numbersOf = (fields) => Object.fromEntries([...fields].map((field) => {
    const { name, value, min, max, step, placeholder } = field;
    const [number, low, high] = [value, min, max].map(Number);
    const whole = step === "1";
    if (value === "" && placeholder) return [name, Infinity];
    if (value === "" || !(number >= low && number <= high) || (whole && !Number.isInteger(number))) {
      throw new Error(`${field.labels[0].firstChild.textContent} must be a ${whole ? "whole " : ""}number from ${low} to ${high}, not ${value === "" ? "empty" : value}`);
    }
    return [name, number];
  }));
  const cells = (tag, words) => words.map((one) => Object.assign(document.createElement(tag), { textContent: one }));
  const row = (made) => { const tr = document.createElement("tr"); tr.append(...made); return tr; };
  const fill = (table, head, rows) => table.replaceChildren(row(cells("th", head)), ...rows.map(([first, ...others]) => row([...cells("th", [first]), ...cells("td", others)])));

  const download = (name, type, content) => {
    const made = document.createElement("a");
    made.href = URL.createObjectURL(new Blob([content], { type }));
    made.download = name;
    made.click();
    URL.revokeObjectURL(made.href);
  };
  const csv = (rows) => {
    const cell = (v) => (/[",\n]/.test(String(v ?? "")) ? `"${String(v).replaceAll('"', '""')}"` : String(v ?? ""));
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  };
  return { parse, hash, link, button, copier, script, vega, whenNear, numbersOf, cells, fill, download, csv };
})();
