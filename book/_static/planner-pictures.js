// The planner's pictures. Their specifications come with the package's script; here are their rows, computed by its
// functions, and when they are drawn.
window.inferenceMathPictures = (() => {
  "use strict";
  const math = window.inferenceMath;
  const share = window.inferenceMathShare;
  const { data, digits } = math;

  // Pictures: their rows are set whenever the answer is; they are drawn once they come near the screen.
  const views = {};
  const rowsOf = {};
  const redraw = (name) => { if (views[name] && rowsOf[name]) views[name].data(name, rowsOf[name]).resize().runAsync(); };
  const picture = async (holder) => {
    const { name } = holder.dataset;
    await Promise.all([share.vega(), answered]);
    const picture = { ...data.pictures[name], datasets: { [name]: rowsOf[name] || [] } };
    const { view } = await window.vegaEmbed(holder, picture, { renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } });
    views[name] = view;
    holder.querySelector("summary")?.setAttribute("aria-label", "Save the picture");
    holder.dataset.drawn = "true";
    redraw(name);
  };
  let first;
  const answered = new Promise((resolve) => { first = resolve; }); // there is nothing to draw before
  const holders = [...document.querySelectorAll(".planner-picture")];
  const stepRows = (problem, coefficients, row, best) => {
    const { work, pools } = problem;
    const own = math.of_architecture(problem, best);
    const bare = math.unit_terms(own.unit, math.moved_by(coefficients, own.moves));
    const apart = best === "disaggregated" && pools.length > 0; // prompts are on units of another layout
    const filled = apart ? math.unit_terms(math.prefill_unit(own), math.moved_by(coefficients, pools[0].prefill_moves)) : bare;
    const context = work.n_in + work.n_out * (1 + work.cv ** 2) / 2;
    const cached = math.stored_tokens(work.n_in, work.alpha);
    const one = (what, terms, decodes, prompts) => {
      const [weights, matrices, ...rest] = math.parts(terms, math.spans_of(terms, context, work.n_in - cached, cached, Math.min), decodes, prompts, Math.max, Math.min, math.expected_max_load);
      return [Math.hypot(weights, matrices), ...rest].map((seconds, order) => (
        { what, order, part: order ? data.parts[order + 1] : "weights and matrices", ms: 1000 * seconds }));
    };
    const share_ = best === "chunked" ? row.chunk / work.n_in : 1;
    const decodes = best === "disaggregated" ? 0 : row.batch;
    const names = [`${digits(Math.round(row.batch))} decodes`, best === "chunked" ? "with its chunk" : (decodes ? "with a prompt" : "a prompt alone")];
    return [...one(names[0], bare, row.batch, 0), ...one(names[1], filled, decodes, share_)];
  };
  const speedRows = function* ({ problem, drawn, best }) {
    const scale = problem.work.n_out / problem.unit.gpus;
    const rows = [];
    for (let i = -6; i <= 8; i += 1) {
      yield;
      const tpot = problem.tpot * 1.25 ** i;
      const solved = math.solve({ ...problem, tpot }, drawn);
      for (const architecture of solved.order) {
        const [middle, low, high] = math.told_rate(solved, architecture).map((rate) => rate * scale);
        if (middle > 0) rows.push({ architecture, user: 1 / tpot, gpu: middle, low, high, chosen: i === 0 && architecture === best });
      }
    }
    // A line is named where its users are slowest, names of lines that begin together one above the other.
    const slowest = [...new Set(rows.map((row) => row.architecture))].map((name) => rows.filter((row) => row.architecture === name).at(-1));
    slowest.sort((a, b) => a.gpu - b.gpu).forEach((row, i) => {
      row.at = Math.max(row.gpu, i ? slowest[i - 1].at + 0.08 * slowest.at(-1).gpu : 0);
    });
    return rows;
  };
  // Rows for what was decided; what a fifth less or more of each input brings is returned for words, too.
  const pictured = function* (found, coefficients) {
    const { problem, solved, rows, best, drawn } = found;
    const row = { ...solved.settings[best], batch: rows[best].decodes[0] };
    const swung = [];
    for (const name of math.sensitivity_inputs(problem)) {
      yield;
      swung.push(math.sensitivity_of(problem, drawn, name));
    }
    swung.sort((a, b) => b.change - a.change);
    Object.assign(rowsOf, { step: stepRows(problem, coefficients, row, best), speeds: yield* speedRows(found) });
    document.getElementById("planner-pictures").hidden = false;
    first();
    holders.forEach(({ dataset }) => redraw(dataset.name));
    return swung;
  };
  const none = () => { document.getElementById("planner-pictures").hidden = true; return []; };

  share.whenNear(holders, picture);
  return { none, pictured, views };
})();
