// How the search ranks (Sphinx puts this into its own script): what a title says comes before what a text says, more of
// the words before fewer, and the book before lists of names and changes.
var Scorer = {
  score: ([file, title, , , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().trim();
    const said = title.toLowerCase();
    const words = asked.split(/\s+/).filter((word) => word.length > 2);
    const found = words.filter((word) => said.includes(word.replace(/s$/, ""))).length;
    const lists = /reference\/(api|changelog|contributing|bibliography|formulas)/.test(file);
    return score + (asked && said.includes(asked) ? 40 : 0) + 12 * found - (lists ? 15 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
