// Everything works without this file. It adds keys, drafts that outlive a reload, and progress that moves by itself.
"use strict";

const OFF = "hub-keys-off";
const FIELD = "input, textarea, select, [contenteditable], dialog";
const rows = () => [...document.querySelectorAll(".row-text a")];

// The one table of keys: it binds them, and it is what the sheet shows. No key decides anything.
const KEYS = [
  { key: "j", says: "Next learning", can: () => rows().length || step("next"), does: () => move(1) },
  { key: "k", says: "Previous learning", can: () => rows().length || step("previous"), does: () => move(-1) },
  { key: "u", says: "Back to the list", can: () => document.querySelector(".trail a"), does: () => document.querySelector(".trail a").click() },
  { key: "a", says: "Open: accept", can: () => option("accept"), does: () => unfold("accept") },
  { key: "e", says: "Open: accept with changes", can: () => option("edit"), does: () => unfold("edit") },
  { key: "r", says: "Open: reject", can: () => option("reject"), does: () => unfold("reject") },
  { key: "?", says: "Show the keys", can: () => true, does: () => sheet().showModal() },
];

const step = (name) => document.querySelector(`[data-step="${name}"]`);
const option = (id) => document.querySelector(`details#${id}`);

function move(by) {
  const links = rows();
  if (!links.length) {
    step(by > 0 ? "next" : "previous").click();
    return;
  }
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  if (next) next.focus();
}

function unfold(id) {
  const details = option(id);
  details.open = true;
  // Never the button: the next Enter must not decide.
  (details.querySelector("textarea, input:not([type=hidden])") || details.querySelector("summary")).focus();
}

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function sheet() {
  const known = document.getElementById("keys");
  if (known) return known;
  const list = element("dl", { className: "keys" });
  for (const { key, says } of KEYS.filter(({ can }) => can())) {
    list.append(element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, says)));
  }
  const box = element("input", { type: "checkbox", id: "keys-on", checked: !localStorage.getItem(OFF) });
  box.addEventListener("change", () => (box.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  const choice = element("div", { className: "choice" }, box, element("label", { htmlFor: "keys-on" }, "Use these keys"));
  const close = element("form", { method: "dialog" }, element("button", { className: "button" }, "Close"));
  const title = element("h2", { id: "keys-title" }, "Keys");
  const dialog = element("dialog", { id: "keys" }, title, list, choice, close);
  dialog.setAttribute("aria-labelledby", "keys-title");
  document.body.append(dialog);
  return dialog;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) {
    event.target.form.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || localStorage.getItem(OFF)) return;
  if (event.target.closest(FIELD)) return;
  const bound = KEYS.find(({ key, can }) => key === event.key && can());
  if (!bound) return;
  event.preventDefault();
  bound.does();
});

const keysButton = element("button", { type: "button", className: "foot-button" }, "Keys");
keysButton.addEventListener("click", () => sheet().showModal());
document.querySelector(".foot-inner").append(keysButton);

// Back to the list puts the focus back on the row that was opened.
for (const link of rows()) {
  link.addEventListener("click", () => history.replaceState(null, "", `#${link.id}`));
}
window.addEventListener("pageshow", () => {
  const [entry] = performance.getEntriesByType("navigation");
  const row = location.hash && document.getElementById(location.hash.slice(1));
  if (row && entry && entry.type === "back_forward") row.focus({ preventScroll: true });
});

// What stands in a live region when a page loads is not announced; what is put there afterwards is.
const result = document.getElementById("result");
if (result) {
  const live = element("div", { className: "visually-hidden" });
  live.setAttribute("aria-live", "polite");
  document.body.append(live);
  setTimeout(() => live.append(result.querySelector("h2").textContent), 200);
}

// A draft is kept in this tab until its decision is recorded.
const draftKey = (field) => `draft:${location.pathname}:${field.id}`;
const decided = new URLSearchParams(location.search).get("decided");
if (decided) {
  for (const key of Object.keys(sessionStorage)) if (key.includes(`/${decided}/`)) sessionStorage.removeItem(key);
}
for (const field of document.querySelectorAll(".option textarea")) {
  const draft = sessionStorage.getItem(draftKey(field));
  if (draft && field.value === field.defaultValue && !document.getElementById("problem")) {
    field.value = draft;
    field.closest("details").open = true;
  }
  field.addEventListener("input", () => sessionStorage.setItem(draftKey(field), field.value));
}

// Progress: the page is fetched again and only its bar is replaced, so that nothing moves under the reader.
async function follow(wait) {
  await new Promise((resolve) => setTimeout(resolve, wait));
  const shown = document.querySelector("[data-progress]");
  if (document.hidden) return follow(wait);
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = answer.ok && page.querySelector("[data-progress]");
    if (fresh) {
      shown.querySelector("progress").replaceWith(fresh.querySelector("progress"));
      shown.querySelector("strong").textContent = fresh.querySelector("strong").textContent;
      return follow(wait);
    }
    shown.replaceChildren(element("p", {}, "The run has ended. ", element("a", { href: location.pathname + location.search }, "Show the result")));
  } catch {
    return follow(Math.min(wait * 2, 60000));
  }
}
if (document.querySelector("[data-progress]")) follow(3000);
