// The editor of a study: suggestions, checks as the user types, saving, and starting.
"use strict";

const element = (id) => document.getElementById(id);
const [study, list, about, answer, preset] = ["study", "suggestions", "about", "answer", "preset"].map(element);
const make = (name, text, facts = {}) => Object.assign(document.createElement(name), { textContent: text, ...facts });

// ---- requests

const ask = async (path, body) => {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) }).catch(() => null);
  if (!response) return { error: "The server does not answer. Was it ended?" };
  return response.json().catch(() => ({ error: `The server refused the request (status ${response.status}).` }));
};
// The file and its text as this page last read or wrote it. Saving sends both, and the server keeps a file that another
// program has changed since.
let known = "isFile" in element("editor").dataset ? { file: element("file").value, text: study.value } : null;
const draft = () => {
  const file = element("file").value;
  return { file, text: study.value, preset: preset.value, known: known?.file === file ? known.text : null };
};

// ---- check

const WAIT = 300;
let checks = 0;
let timer = 0;

const goTo = (line, column) => {
  const before = study.value.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  study.focus();
  study.setSelectionRange(before + column - 1, before + column - 1);
};

const shownMistake = ({ line, column, message, meant }) => {
  const item = make("li", "");
  if (line) item.append(make("button", `Line ${line}`, { type: "button", onclick: () => goTo(line, column) }), " ");
  item.append(meant ? `${message}; did you mean ${meant}?` : message);
  return item;
};

const check = async () => {
  const number = ++checks;
  const found = await ask("/check", draft());
  // A newer check makes this one void.
  if (number !== checks) return;
  const mistakes = found.error ? [{ message: found.error }] : found.mistakes;
  const count = mistakes.length === 1 ? "1 mistake." : `${mistakes.length} mistakes.`;
  element("plan").textContent = mistakes.length > 0 ? count : found.plan;
  study.setAttribute("aria-invalid", String(mistakes.length > 0));
  element("mistakes").replaceChildren(...mistakes.map(shownMistake));
  // A text that cannot be read keeps the presets of the one before.
  if (found.presets?.length > 0 || mistakes.length === 0) {
    const chosen = preset.value;
    preset.replaceChildren(make("option", "none", { value: "" }), ...(found.presets ?? []).map((name) => make("option", name, { value: name })));
    preset.value = (found.presets ?? []).includes(chosen) ? chosen : "";
  }
};

// ---- suggestions

const MOST = 12;
let offer = { from: 0, options: [] };
let active = -1;

const close = () => {
  list.hidden = true;
  list.replaceChildren();
  about.textContent = "";
  active = -1;
  study.removeAttribute("aria-activedescendant");
};

const choose = (index) => {
  active = (index + offer.options.length) % offer.options.length;
  [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === active)));
  study.setAttribute("aria-activedescendant", list.children[active].id);
  list.children[active].scrollIntoView({ block: "nearest" });
  about.textContent = offer.options[active].about;
};

const insert = (index) => {
  study.setRangeText(offer.options[index].insert, offer.from, study.selectionEnd, "end");
  close();
  study.focus();
  study.dispatchEvent(new Event("input"));
};

const suggest = () => {
  close();
  if (study.selectionStart !== study.selectionEnd) return;
  const found = complete.at(study.value, study.selectionStart);
  offer = { from: found.from, options: found.options.slice(0, MOST) };
  if (offer.options.length === 0) return;
  list.replaceChildren(...offer.options.map(({ insert: text }, index) => {
    const item = make("li", text.trim(), { id: `suggestion-${index}`, role: "option" });
    item.setAttribute("aria-selected", "false");
    // Before the field loses the focus.
    item.addEventListener("mousedown", (event) => { event.preventDefault(); insert(index); });
    return item;
  }));
  list.hidden = false;
  const more = found.options.length - offer.options.length;
  about.textContent = `${offer.options.length} suggestions${more > 0 ? `, ${more} more` : ""}.`;
};

study.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.code === "Space") {
    event.preventDefault();
    suggest();
    return;
  }
  if (list.hidden || event.isComposing) return;
  const actions = { ArrowDown: () => choose(active + 1), ArrowUp: () => choose(active < 0 ? -1 : active - 1), Escape: close };
  if (active >= 0) actions.Enter = () => insert(active);
  const action = actions[event.key];
  if (action) {
    event.preventDefault();
    action();
  } else if (["ArrowLeft", "ArrowRight", "Home", "End", "Enter"].includes(event.key)) {
    close();
  }
});
study.addEventListener("blur", close);
study.addEventListener("input", (event) => {
  clearTimeout(timer);
  timer = setTimeout(check, WAIT);
  // Typing a word opens the list; what a suggestion inserted does so only if a value may follow.
  const before = study.value.slice(0, study.selectionStart);
  const isWord = event.inputType === "insertText" && /[\w"[]$/.test(before);
  if (isWord || event.inputType === "deleteContentBackward" && !list.hidden || !event.inputType && /= $/.test(before)) suggest();
  else close();
});
preset.addEventListener("change", check);
element("file").addEventListener("input", () => { element("replace").hidden = true; });

// ---- saving and starting

let isAfterStart = false;

const act = async (replace) => {
  element("replace").hidden = true;
  answer.textContent = isAfterStart ? "Starting…" : "Saving…";
  const wanted = draft();
  const { file, text } = wanted;
  const saved = await ask("/save", { ...wanted, replace });
  if (saved.error || saved.exists) {
    answer.textContent = saved.error ?? `${file} exists with another text. Choose another name, or replace it.`;
    element("replace").hidden = !saved.exists;
    return;
  }
  known = { file, text };
  answer.textContent = `Saved as ${file}.`;
  if (!isAfterStart) return;
  const started = await ask("/start", { file, preset: preset.value });
  if (started.error) answer.textContent = `Not started: ${started.error}`;
  else location.assign(`/runs/${encodeURIComponent(started.run)}`);
};

element("editor").addEventListener("submit", (event) => { event.preventDefault(); isAfterStart = false; act(false); });
element("start").addEventListener("click", () => { isAfterStart = true; act(false); });
element("replace").addEventListener("click", () => act(true));

fetch("/completions.json").then((response) => response.json()).then(complete.learn).catch(() => {});
check();
