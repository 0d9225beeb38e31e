// How the search ranks, and what it shows (Sphinx puts this behind its own script): what a title says comes before what a text says, more of
// the words before fewer, and the book before lists of names and changes.
const HOMES = [  // of words that stand in no title: a number is asked for, which the planner computes; a law, where it is derived
  [/how many|gpus for|calculate|calculator/, /book\/planner$/], [/little.?s law/, /book\/09-/],
];
var Scorer = {
  score: ([file, title, , , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().trim();
    const said = title.toLowerCase();
    const words = asked.split(/\s+/).filter((word) => word.length > 2);
    const found = words.filter((word) => said.includes(word.replace(/s$/, ""))).length;
    const home = HOMES.some(([words, page]) => words.test(asked) && page.test(file));
    const lists = /reference\/(api|changelog|what-moved|contributing|bibliography|formulas)/.test(file);
    return score + (asked && said.includes(asked) ? 40 : 0) + (lists ? -15 : 12 * found) + (home ? 200 : 0);
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

// A setting of an engine is found as the option that pages have: max-num-seqs.
{
  const { _performSearch, _parseQuery } = Search;
  Search._performSearch = (query, ...terms) => {
    const apart = query.includes("_") ? _performSearch(..._parseQuery(query.replaceAll("_", "-"))) : [];
    const found = [...apart, ..._performSearch(query, ...terms)].map((result) => [String(result.slice(0, 3)), result]);
    return [...new Map(found).values()].sort(_orderResultsByScoreThenName);
  };
}

// A result shows what the article says, not the page around it, nor code. A place in a page
// is called by its section's heading, and shows that section. One of which nothing is to be shown has an empty line,
// where Sphinx would append null and throw.
{
  const { htmlToText, makeSearchSummary } = Search;
  const HIDDEN = "details.hide, .cell_input, .live-figure, figure svg, annotation, .prev-next-area, .headerlink, script";
  const sectionOf = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector(".bd-article") ?? page.querySelector('[role="main"]');
    const section = anchor && article.querySelector(anchor)?.closest("section, dt, figure");
    (section || article).querySelectorAll(HIDDEN).forEach((one) => one.remove());
    return section || article;
  };
  Search.htmlToText = (html, anchor) => htmlToText(`<div role="main">${sectionOf(html, anchor).outerHTML}</div>`);
  Search.makeSearchSummary = (html, keywords, anchor) => {
    const summary = makeSearchSummary(html, keywords, anchor) ?? document.createElement("p");
    const heading = anchor && sectionOf(html, anchor).querySelector("h2, h3, h4")?.textContent;
    queueMicrotask(() => {  // when it stands below its link
      const link = summary.parentElement?.querySelector("a");
      if (heading && link && !link.textContent.endsWith(heading)) link.textContent += ` > ${heading}`;
    });
    return summary;
  };
}
