// Filters the ledger of claims by verdict, source, evidence and words; the choice is kept in the link.
(() => {
  "use strict";
  const share = window.inferenceMathShare;
  const table = [...document.querySelectorAll("table")].find((t) => t.tHead?.rows[0].cells[0].textContent.trim() === "claim");
  const at = Object.fromEntries([...table.tHead.rows[0].cells].map((cell, i) => [cell.textContent.trim(), i]));
  // The words of a claim, without its tests, its citation and the place for an answer.
  const plain = (section) => {
    const copy = section.cloneNode(true);
    copy.querySelectorAll("details, p:has(a[href*='/issues/new'])").forEach((part) => part.remove());
    return copy.textContent.toLowerCase().replaceAll("δ", "delta ");
  };
  const rows = [...table.tBodies[0].rows].map((row) => {
    const words = (column) => row.cells[at[column]].textContent.trim();
    const section = document.getElementById(words("claim").toLowerCase());
    const evidence = [...row.cells[at.evidence].querySelectorAll(".badge")].map((badge) => badge.textContent);
    return { row, section, verdict: [words("verdict")], source: words("source").split(", "), evidence, text: plain(section) };
  });

  const form = Object.assign(document.createElement("form"), { className: "ledger-filters" });
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the claims");
  const field = (label, control) => {
    const made = Object.assign(document.createElement("label"), { textContent: `${label} ` });
    made.append(control);
    form.append(made);
    return control;
  };
  const lists = Object.fromEntries(["verdict", "source", "evidence"].map((name) => {
    const list = document.createElement("select");
    const values = [...new Set(rows.flatMap((r) => r[name]))].filter(Boolean).sort();
    list.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    return [name, field(name[0].toUpperCase() + name.slice(1), list)];
  }));
  const words = field("Words", Object.assign(document.createElement("input"), { type: "search" }));
  const said = document.createElement("output");
  said.setAttribute("aria-live", "polite");

  const state = () => Object.fromEntries([...Object.entries(lists), ["words", words]].map(([n, c]) => [n, c.value]).filter(([, v]) => v));
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    for (const one of rows) {
      const fits = Object.entries(lists).every(([name, list]) => !list.value || one[name].includes(list.value));
      one.row.hidden = one.section.hidden = !(fits && wanted.every((word) => one.text.includes(word)));
    }
    said.textContent = `${rows.filter((one) => !one.row.hidden).length} of ${rows.length} claims`;
  };
  const read = () => {
    const link = share.parse();
    // A link to a claim that a filter hides shows it.
    if (rows.some((one) => one.section.hidden && `#${one.section.id}` === location.hash)) { form.reset(); apply(); location.replace(location.hash); }
    if (link?.id !== "ledger") return;
    for (const [name, list] of Object.entries(lists)) list.value = link.state[name] || "";
    words.value = link.state.words || "";
    apply();
  };
  form.append(
    share.button("Reset", () => { form.reset(); apply(); }),
    share.copier("Copy link", () => share.link("ledger", state())),
    said,
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  table.before(form);
  window.addEventListener("hashchange", read);
  apply();
  read();
})();
