// Draws the live figures: reads each specification from the page, and embeds it with Vega. Below each stand its first
// controls, the others under *more*; then presets, reset, a link with the controls' settings, the curves as Python, the
// numbers as CSV. A figure is drawn when it nears the screen, and stays a picture until it is; Vega, most of a page's
// weight, comes with the first.
// Needs share.js, loaded before.
(() => {
  "use strict";
  const share = window.inferenceMathShare;
  const source = (figure) => JSON.parse(figure.querySelector("script").textContent);
  const name = (figure) => figure.closest("figure")?.id || "figure";
  // A place that readers click or drag has a control for each of its fields.
  const fields = ({ name, value, bind, select }) => select.fields.map((field) => ({ name: `${name}_${field}`, value: value[0][field], bind: bind[field] }));
  const controls = (figure) => source(figure).params.filter((p) => p.bind).flatMap((p) => (p.select ? fields(p) : p));
  const state = (figure) => Object.fromEntries(controls(figure).map((p) => [p.name, figure.view.signal(p.name)]));

  // Controls go to the values of `wanted`, and to their first values where it names none.
  const set = (figure, wanted) => {
    for (const { name, value, bind } of controls(figure)) {
      let next = wanted[name] ?? value;
      if (bind.input === "range") next = Number.isFinite(Number(next)) ? Math.min(bind.max, Math.max(bind.min, Number(next))) : value;
      if (bind.options && !bind.options.includes(next)) next = value;
      figure.view.signal(name, next);
    }
    return figure.view.runAsync();
  };

  // Every drawn row once: the rows of all data sets that hold a curve's values.
  const toCsv = (view) => {
    const names = Object.keys(view.getState({ data: () => true, signals: () => false }).data);
    const drawn = names.flatMap((name) => view.data(name)).filter((row) => "value" in row && "curve" in row);
    const rows = [...new Map(drawn.map((row) => [JSON.stringify(row), row])).values()];
    const columns = [...new Set(rows.flatMap(Object.keys))];
    return share.csv([columns, ...rows.map((r) => columns.map((c) => r[c]))]);
  };

  const saveCsv = (figure) => share.download(`${name(figure)}.csv`, "text/csv", toCsv(figure.view));

  const toPython = (figure) => {
    const { axis, places, names, curves } = figure.view.signal("in_python");
    const given = names.map((n) => `${n} = ${figure.view.signal(n)}`);
    const lines = Object.entries(curves).map(([label, code]) => `    ${JSON.stringify(label)}: ${code},`);
    const rooms = [["theory", "inference_math"], ["laws", "inference_math_planner"]].filter(([room]) => lines.some((line) => line.includes(`${room}.`)));
    return ["import numpy", ...rooms.map(([room, from]) => `from ${from} import ${room}`), "", ...given, `${axis} = ${places}`, "curves = {", ...lines, "}", ""].join("\n");
  };

  // Beside each slider its value in the unit that people use, to read and to type; formulas keep seconds.
  const UNITS = { s: [1000, "ms"], "byte/s": [1e-9, "GB/s"], token: [1, "tokens"] };
  const rounded = (value) => (Number.isInteger(value) ? value : Number(value.toPrecision(3)));
  const inWords = (label) => {
    const power = label.match(/^(.*), as a power of two\s*$/);
    if (power) return { label: power[1], to: (v) => Math.round(2 ** v), from: (v) => Math.log2(v), unit: "" };
    const [, words, named] = label.match(/^(.*?)(?: \(([^()]*)\))?\s*$/);
    const [factor, unit] = UNITS[named] || [1, named || ""];
    return { label: words, to: (v) => rounded(v * factor), from: (v) => v / factor, unit };
  };
  const dress = (figure) => {
    for (const { name: of, bind } of controls(figure).filter(({ bind: b }) => b.input === "range")) {
      const slider = figure.querySelector(`.vega-bind input[type=range][name="${of}"]`);
      const { label, to, from, unit } = inWords(bind.name);
      const row = slider.closest(".vega-bind");
      row.querySelector(".vega-bind-name").textContent = label;
      slider.nextElementSibling?.remove();
      const field = Object.assign(document.createElement("input"), { type: "number", className: "live-value", step: "any" });
      field.setAttribute("aria-label", `${label}${unit ? `, ${unit}` : ""}`);
      slider.setAttribute("aria-label", label);
      const show = () => {
        const value = to(figure.view.signal(of));
        if (document.activeElement !== field) field.value = value;
        slider.setAttribute("aria-valuetext", `${value} ${unit}`.trim());
      };
      const take = () => {
        field.blur();
        const asked = from(Number(field.value));
        if (field.value === "" || !Number.isFinite(asked)) { show(); return; }
        set(figure, { ...state(figure), [of]: asked }).then(show);
      };
      field.addEventListener("change", take);
      slider.after(field, Object.assign(document.createElement("span"), { className: "live-unit", textContent: unit }));
      figure.view.addSignalListener(of, show);
      show();
    }
  };

  // Controls stand below the plot; beyond those that are in view they open, and so do the tools where none is.
  const inView = (figure) => source(figure).usermeta?.shown ?? Infinity;
  const addForm = (figure) => {
    figure.form = Object.assign(document.createElement("form"), { className: "vega-bindings" });
    figure.form.addEventListener("submit", (event) => event.preventDefault());  // Enter in its only field
    figure.querySelector(".live-view").after(figure.form);
  };
  const fold = (figure) => {
    const rest = [...figure.form.children].slice(inView(figure));
    if (!rest.length) return;
    figure.more = Object.assign(document.createElement("details"), { className: "live-more" });
    figure.more.append(Object.assign(document.createElement("summary"), { textContent: "more" }), ...rest);
    figure.form.after(figure.more);
  };

  const chooser = (figure, presets) => {
    const label = Object.assign(document.createElement("label"), { className: "live-presets", textContent: "Set-up " });
    const list = document.createElement("select");
    const known = new Map(presets);
    list.append(...["yours", ...known.keys()].map((text) => new Option(text, text)));
    list.addEventListener("change", () => { if (known.has(list.value)) set(figure, known.get(list.value)); });
    // The list names the set-up on which the figure stands.
    const tell = () => {
      const stands = presets.find(([, wanted]) => controls(figure).every(({ name, value }) => figure.view.signal(name) === (wanted[name] ?? value)));
      list.value = stands ? stands[0] : "yours";
    };
    controls(figure).forEach(({ name }) => figure.view.addSignalListener(name, tell));
    tell();
    label.append(list);
    return label;
  };

  const addTools = (figure) => {
    const tools = Object.assign(document.createElement("div"), { className: "live-tools" });
    const { presets } = source(figure).usermeta || {};
    if (presets) tools.append(chooser(figure, presets));
    if (controls(figure).length) {
      tools.append(
        share.button("Reset", () => set(figure, {})),
        share.copier("Copy link", () => share.link(name(figure), state(figure))),
      );
    }
    if (source(figure).params.some((p) => p.name === "in_python")) tools.append(share.copier("Copy as Python", () => toPython(figure)));
    const csv = share.button("Download these numbers (CSV)", () => saveCsv(figure));
    csv.classList.add("live-csv");
    tools.append(csv);
    (inView(figure) ? figure : figure.more).append(tools);
  };

  const draw = async (figure) => {
    addForm(figure);
    const result = await window.vegaEmbed(figure.querySelector(".live-view"), source(figure), {
      renderer: "svg",
      bind: figure.form,
      actions: { export: true, source: true, compiled: false, editor: false },
    });
    figure.view = result.view;
    dress(figure);
    fold(figure);
    figure.querySelector(".vega-embed summary")?.setAttribute("aria-label", "Save the picture, or see its source");
    figure.toPython = () => toPython(figure);
    figure.querySelector(".live-still")?.remove();
    figure.dataset.drawn = "true";
    figure.dispatchEvent(new Event("drawn"));
  };

  const show = (figure) => {
    figure.shown ??= share.vega().then(() => draw(figure)).then(() => addTools(figure));
    return figure.shown;
  };

  // A link like #fig-name:e=9 sets the controls of its figure and goes there.
  const follow = async () => {
    const link = share.parse();
    const figure = link && document.getElementById(link.id)?.querySelector(".live-figure");
    if (!figure) return;
    await show(figure);
    await set(figure, link.state);
    document.getElementById(link.id).scrollIntoView();
  };

  const start = () => {
    const figures = [...document.querySelectorAll(".live-figure")];
    share.whenNear(figures, show);
    follow();
    window.addEventListener("hashchange", follow);
    // Vega measures its container when the window changes; the theme moves sidebars without that.
    const resized = new ResizeObserver(() => window.dispatchEvent(new Event("resize")));
    figures.forEach((figure) => resized.observe(figure));
  };

  start();
})();
