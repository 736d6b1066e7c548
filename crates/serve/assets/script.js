// The progress of a run, as it comes. The report is loaded again when a block begins or the state changes.
"use strict";

const progress = document.getElementById("progress");
const failures = document.getElementById("failures");
const updated = document.getElementById("updated");
const report = document.getElementById("report");
const field = (name) => progress.querySelector(`[data-field="${name}"]`);

new EventSource(progress.dataset.events).addEventListener("progress", (event) => {
  const now = JSON.parse(event.data);
  const isOtherState = now.state !== field("state").textContent;
  const isNews = isOtherState || String(now.blocks) !== progress.dataset.blocks;
  progress.dataset.blocks = now.blocks;
  for (const name of ["state", "blocks", "trials", "failed"]) field(name).textContent = now[name];
  failures.replaceChildren(...now.failures.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  // Only a page that may change something has forms, and which ones depends on the state.
  if (isOtherState && document.querySelector("form")) {
    location.reload();
    return;
  }
  if (isNews) {
    report.contentWindow.location.reload();
    updated.textContent = `The report is that of ${now.trials} trials.`;
  }
});
