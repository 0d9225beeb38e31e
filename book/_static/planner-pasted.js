// What a reader pastes on the planner's page: a model, requests, a calibration. The package reads it, in an interpreter
// that is loaded when it is first asked for.
window.inferenceMathPasted = (() => {
  "use strict";
  const source = new URL("pasted.js", document.currentScript.src).href;
  let reader;
  const reading = () => reader ??= new Promise((resolve, reject) => {
    window.inferenceMathReader = resolve;
    const refused = () => { reader = undefined; reject(new Error("what reads it could not be loaded")); };
    document.head.append(Object.assign(document.createElement("script"), { src: source, onerror: refused }));
  });

  // Gives a place its button; `take` gets what was read. Returned is what tells the reader something there.
  const place = (what, take) => {
    const details = document.getElementById(`planner-${what}`);
    let before = false;
    const tell = (words, open) => { details.querySelector("[role=status]").textContent = words; if (open) details.open = true; };
    const read = async () => {
      tell("Reading; the first time takes some seconds.");
      try {
        await new Promise((shown) => { setTimeout(shown, 50); });
        const found = JSON.parse((await reading())(what, details.querySelector("textarea").value));
        tell(found.wrong ? `${found.wrong}${before ? ". What was read before still counts." : ""}` : `Read: ${found.said}.`);
        if (found.wrong) return;
        before = true;
        take(found);
      } catch (error) {
        tell(`${error.message}.`);
      }
    };
    details.querySelector(".planner-tools").append(window.inferenceMathShare.button("Read", read));
    return tell;
  };

  return { place };
})();
