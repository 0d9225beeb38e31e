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
  return { parse, hash, link, button, copier };
})();
