// Filters tables that ask for it by words: a row stays that has all of them.
(() => {
  "use strict";
  for (const place of document.querySelectorAll(".table-search")) {
    const rows = [...place.querySelectorAll("tbody tr")];
    const words = Object.assign(document.createElement("input"), { type: "search", placeholder: place.dataset.example || "b200 vllm blind" });
    words.setAttribute("aria-label", place.dataset.label);
    const said = document.createElement("output");
    const form = Object.assign(document.createElement("form"), { className: "ledger-filters" });
    const label = Object.assign(document.createElement("label"), { textContent: `${place.dataset.label} ` });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/);
      for (const row of rows) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
      said.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    label.append(words);
    form.append(label, said);
    form.setAttribute("role", "search");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", apply);
    place.before(form);
    apply();
  }
})();
