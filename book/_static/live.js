// Draws the live figures: reads each specification from the page, embeds it with Vega, follows the
// theme (light or dark), and offers the figure's numbers as CSV. Needs vega.js, loaded before.
(() => {
  "use strict";
  const palette = {
    light: { text: "#222222", grid: "#d5d5d5", axis: "#666666" },
    dark: { text: "#e6e6e6", grid: "#444444", axis: "#aaaaaa" },
  };

  const themeConfig = () => {
    const p = palette[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
    const text = { labelColor: p.text, titleColor: p.text, labelFontSize: 13, titleFontSize: 13, titleFontWeight: 500 };
    return {
      background: "transparent",
      axis: { ...text, gridColor: p.grid, domainColor: p.axis, tickColor: p.axis },
      legend: text, title: { color: p.text }, text: { color: p.text }, rule: { color: p.text },
      view: { stroke: null }, style: { "guide-label": { fill: p.text } },
    };
  };

  // A redrawn figure keeps what the reader has set.
  const keepControls = (spec, view) => {
    if (!view) return spec;
    const params = spec.params.map((p) => (p.bind ? { ...p, value: view.signal(p.name) } : p));
    return { ...spec, params };
  };

  // Every drawn row once: the rows of all data sets that hold a curve's values.
  const toCsv = (view) => {
    const names = Object.keys(view.getState({ data: () => true, signals: () => false }).data);
    const drawn = names.flatMap((name) => view.data(name)).filter((row) => "value" in row && "curve" in row);
    const rows = [...new Map(drawn.map((row) => [JSON.stringify(row), row])).values()];
    const columns = [...new Set(rows.flatMap(Object.keys))];
    const cell = (v) => (/[",\n]/.test(String(v ?? "")) ? `"${String(v).replaceAll('"', '""')}"` : String(v ?? ""));
    return [columns, ...rows.map((r) => columns.map((c) => r[c]))].map((r) => r.map(cell).join(",")).join("\n") + "\n";
  };

  const offerCsv = (figure) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "live-csv";
    button.textContent = "Download these numbers (CSV)";
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([toCsv(figure.view)], { type: "text/csv" }));
      link.download = `${figure.closest("figure")?.id || "figure"}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    figure.append(button);
  };

  const draw = async (figure) => {
    const spec = keepControls(JSON.parse(figure.querySelector("script").textContent), figure.view);
    figure.view?.finalize();
    const result = await window.vegaEmbed(figure.querySelector(".live-view"), spec, {
      renderer: "svg",
      config: themeConfig(),
      actions: { export: true, source: true, compiled: false, editor: false },
    });
    figure.view = result.view;
    figure.dataset.drawn = "true";
  };

  const start = async () => {
    const figures = [...document.querySelectorAll(".live-figure")];
    for (const figure of figures) {
      await draw(figure);
      offerCsv(figure);
    }
    // Vega measures its container when the window changes; the theme moves sidebars without that.
    const resized = new ResizeObserver(() => window.dispatchEvent(new Event("resize")));
    figures.forEach((figure) => resized.observe(figure));
    let theme = document.documentElement.dataset.theme;
    new MutationObserver(() => {
      const now = document.documentElement.dataset.theme;
      if (now !== theme) { theme = now; figures.forEach(draw); }
    }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
