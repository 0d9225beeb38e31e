// How the search ranks, and what it shows (Sphinx puts this behind its own script): what a title says comes before what a text says, more of
// the words before fewer, and the book before lists of names and changes.
var Scorer = {
  score: ([file, title, , , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().trim();
    const said = title.toLowerCase();
    const words = asked.split(/\s+/).filter((word) => word.length > 2);
    const found = words.filter((word) => said.includes(word.replace(/s$/, ""))).length;
    const counts = /book\/planner$/.test(file) && /how many|gpus for|calculate|calculator/.test(asked);  // a number is asked for: the planner computes it
    const lists = /reference\/(api|changelog|what-moved|contributing|bibliography|formulas)/.test(file);
    return score + (asked && said.includes(asked) ? 40 : 0) + 12 * found + (counts ? 200 : 0) - (lists ? 15 : 0);
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

// A result shows what a page says, not its folded code; one of which nothing is to be shown has an empty line, where
// Sphinx would append null and throw.
{
  const { htmlToText, makeSearchSummary } = Search;
  Search.makeSearchSummary = (...asked) => makeSearchSummary(...asked) ?? document.createElement("p");
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll("details.hide").forEach((folded) => folded.remove());
    return htmlToText(page.documentElement.outerHTML, anchor);
  };
}
