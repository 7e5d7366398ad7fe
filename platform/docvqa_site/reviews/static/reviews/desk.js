// Keys on the answers to a question of the checklist, and drafts that aren't lost. Everything works without it.

const items = [...document.querySelectorAll("#review .item")];
const state = document.getElementById("desk-state");

/** Unfold the question, and move the keyboard to its chosen answer, or to its first one. */
function enter(item) {
  if (!item) return;
  item.open = true;
  (item.querySelector("input[type=radio]:checked") ?? item.querySelector("input[type=radio]"))?.focus();
  item.scrollIntoView({ block: "center" });
}

function answer(item, value) {
  const radio = item.querySelector(`input[type=radio][value="${value}"]`);
  radio.focus();
  radio.click();
}

const review = document.getElementById("review");

/** Show the answer on the folded line, and offer to clear it. */
function show(item) {
  const value = item.querySelector("input[type=radio]:checked")?.value ?? "";
  const shown = item.querySelector(".answer");
  shown.textContent = value || "unanswered";
  shown.className = `answer answer-${value.replace("/", "") || "none"}`;
  item.querySelector(".clear").hidden = !value;
}

items.forEach(show);

// "No" asks for a note, and every other answer for the next question.
review?.addEventListener("change", (event) => {
  const item = event.target.closest(".item");
  if (!item || event.target.type !== "radio") return;
  show(item);
  if (event.target.value === "no") item.querySelector(".note").open = true;
  else if (items[items.indexOf(item) + 1]) items[items.indexOf(item) + 1].open = true;
});

review?.addEventListener("click", (event) => {
  const item = event.target.closest(".clear")?.closest(".item");
  if (!item) return;
  const radios = [...item.querySelectorAll("input[type=radio]")];
  for (const radio of radios) radio.checked = false;
  radios[0].focus();
  show(item);
  radios[0].dispatchEvent(new Event("input", { bubbles: true }));
});

// What was answered about an earlier version of the proof is taken over by a button, unless it has been, or something
// else was answered.
function offerAgain(item) {
  const button = item.querySelector(".again");
  if (!button) return;
  const given = item.querySelector("input[type=radio]:checked")?.value ?? "";
  const { answer: earlier, note } = button.dataset;
  const isTaken = given === earlier && item.querySelector("textarea").value.includes(note);
  button.hidden = isTaken || (given !== "" && earlier !== "" && given !== earlier);
}

items.forEach(offerAgain);
review?.addEventListener("input", (event) => {
  const item = event.target.closest(".item");
  if (item) offerAgain(item);
});

review?.addEventListener("click", (event) => {
  const button = event.target.closest(".again");
  if (!button) return;
  const item = button.closest(".item");
  const note = item.querySelector("textarea");
  if (!note.value.includes(button.dataset.note)) {
    note.value = [note.value, button.dataset.note].filter(Boolean).join("\n\n");
    note.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (button.dataset.note) note.closest("details").open = true;
  if (button.dataset.answer) answer(item, button.dataset.answer);
  else note.focus();
});

// What was missing and is there now is no error anymore.
review?.addEventListener("input", ({ target }) => {
  if (target.type === "checkbox" ? !target.checked : !target.value) return;
  const place = target.closest(".field") ?? target.closest("fieldset");
  place?.classList.remove("field-invalid");
  place?.querySelector(":scope > .errorlist")?.remove();
  target.removeAttribute("aria-invalid");
});

function count() {
  const answered = items.filter((item) => item.querySelector("input[type=radio]:checked")).length;
  const shown = document.createElement("strong");
  shown.textContent = `${answered} of ${items.length} answered`;
  return shown;
}

// The count doesn't wait for the draft to be saved.
review?.addEventListener("input", (event) => {
  if (event.target.form !== review || !state) return;
  const shown = count();
  // Read aloud when it changes, and not with every key.
  if (state.textContent !== `${shown.textContent} Saving …`) state.replaceChildren(shown, " Saving …");
});

// htmx saves a draft some time after the last edit. Leaving the page doesn't wait for that, so the rest is sent then.
let edited = 0;
let sent = 0;
let saved = 0;
let isPosted = false;

// After a failure it is tried again, each time after twice as long.
const FIRST_RETRY_MS = 4_000;
const LAST_RETRY_MS = 60_000;
let retry_ms = FIRST_RETRY_MS;
let retry = 0;

// What the preview shows is what is saved.
const preview = document.getElementById("preview")?.parentElement;
const showPreview = () => preview?.toggleAttribute("data-outdated", edited !== saved);

review?.addEventListener("input", () => {
  edited += 1;
  showPreview();
});
preview?.addEventListener("toggle", () => {
  if (preview.open && edited !== saved) htmx.trigger(state, "save");
});
state?.addEventListener("htmx:beforeRequest", (event) => {
  // A draft that arrives after the decision would lie on top of it.
  if (isPosted) event.preventDefault();
  sent = edited;
});
state?.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) {
    saved = sent;
    retry_ms = FIRST_RETRY_MS;
    clearTimeout(retry);
  }
  showPreview();
});
// The button does at once what happens by itself, and whoever presses it stays where they are.
review?.querySelector("[data-save]").addEventListener("click", (event) => {
  event.preventDefault();
  state.textContent = "Saving …";
  htmx.trigger(state, "save");
});
review?.addEventListener("submit", () => {
  isPosted = true;
  state.dispatchEvent(new Event("htmx:abort"));
});
addEventListener("pagehide", () => {
  if (isPosted || !review || edited === saved) return;
  const headers = { "HX-Request": "true" };
  fetch(state.getAttribute("hx-post"), { method: "POST", body: new FormData(review), headers, keepalive: true });
});
// The browser may show the page again as it was left.
addEventListener("pageshow", () => (isPosted = false));

// Whoever is writing may not have seen that the focus has left the text.
const WRITING_MS = 1_000;
let written = -Infinity;
document.addEventListener("focusout", (event) => {
  if (event.target.matches("textarea, input:not([type=radio], [type=checkbox])")) written = event.timeStamp;
});

review?.addEventListener("keydown", (event) => {
  // Letters act on answers in view that have the focus, and on nothing else. With a modifier, the browser has them.
  const item = event.target.closest(".answers") && event.target.closest(".item");
  if (!item?.open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.timeStamp - written < WRITING_MS) return;
  const at = items.indexOf(item);
  const acts = {
    j: () => enter(items[at + 1]),
    k: () => enter(items[at - 1]),
    y: () => answer(item, "yes"),
    n: () => answer(item, "no"),
    a: () => answer(item, "n/a"),
  };
  if (!(event.key in acts)) return;
  event.preventDefault();
  acts[event.key]();
});

// Beside the questions, the proof ends within the window, also while what is above it hasn't scrolled away.
const frame = document.querySelector('iframe[name="proof"]');
const beside = matchMedia("(min-width: 60rem)");

function fit() {
  const margin = 16;
  frame.style.height = "";
  if (!beside.matches) return;
  const top = Math.max(frame.getBoundingClientRect().top, margin);
  const bottom = Math.min(frame.parentElement.getBoundingClientRect().bottom, innerHeight - margin);
  frame.style.height = `${bottom - top}px`;
}

if (frame) {
  fit();
  for (const name of ["scroll", "resize", "load"]) addEventListener(name, fit, { passive: true });
  // What is above it moves it, such as a text that is unfolded.
  const above = new ResizeObserver(fit);
  for (const one of document.querySelectorAll(".desk-head, .desk-proof > :not(iframe)")) above.observe(one);
}

// What the checks found, at once.
const results = [...document.querySelectorAll(".recorded .found > td > details")];
const openResults = document.getElementById("open-found");
if (results.length) {
  openResults.hidden = false;
  openResults.addEventListener("click", () => {
    const open = !results.every((one) => one.open);
    for (const one of results) one.open = open;
  });
  for (const one of results) {
    one.addEventListener("toggle", () => {
      openResults.textContent = results.every((each) => each.open) ? "Close all results" : "Open all results";
    });
  }
}

/** A link from the list of what is missing leads into a question, unfolded; one to a fact shows what was found. */
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (items.includes(target)) enter(target);
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target?.id.startsWith("fact-")) {
    for (const found of target.querySelectorAll(".found > td > details")) found.open = true;
    target.focus({ preventScroll: true });
  }
  return target;
}

// A decision that wasn't accepted comes back with what was open, and the proof at the section that was chosen last.
const here = `desk ${location.pathname}`;
const folds = () => [...document.querySelectorAll(".desk details")];
let chosen = "";
document.addEventListener("click", (event) => {
  chosen = event.target.closest("a.if-beside")?.href ?? chosen;
});
review?.addEventListener("submit", () => {
  const open = folds().map((one) => one.open);
  sessionStorage.setItem(here, JSON.stringify({ open, chosen }));
});
const kept = JSON.parse(sessionStorage.getItem(here));
sessionStorage.removeItem(here);
if (kept && review?.querySelector(".notice-error")) {
  folds().forEach((one, at) => (one.open ||= kept.open[at] ?? false));
  ({ chosen } = kept);
  if (chosen && frame) frame.src = chosen;
}

// The answer to a form that wasn't accepted is no page that a browser can return to, from the proof for instance. The
// desk is, with what was written as a draft.
if (review?.querySelector(".notice-error")) history.replaceState(history.state, "", review.getAttribute("action"));

// Back leads to the question again. What was unfolded meanwhile has moved it, so that its place isn't where it was.
document.addEventListener("click", (event) => {
  const item = event.target.closest('.item a[href^="#fact-"]')?.closest(".item");
  if (item) history.replaceState(history.state, "", `#${item.id}`);
});
// So does the way back from the proof's own page.
review?.addEventListener("focusin", (event) => {
  const item = event.target.closest(".item");
  const alone = document.querySelector(".proof-alone");
  if (item && alone) alone.search = `?question=${item.id.replace("item-", "")}`;
});
addEventListener("hashchange", () => unfold()?.scrollIntoView());
// Whoever comes back to a question finds the proof at its section.
const section = unfold()?.querySelector("a.if-beside");
if (section) frame.src = section.href;
// A browser that comes to the fragment of the address takes the focus away.
addEventListener("load", unfold);

function saveRest() {
  if (edited !== saved) htmx.trigger(state, "save");
}
addEventListener("online", saveRest);
for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  state?.addEventListener(name, () => {
    for (const place of [state, document.getElementById("draft-state")]) {
      const warning = document.createElement("span");
      warning.className = "not-saved";
      warning.textContent =
        "Not saved: the site can't be reached, or you are logged out. Your text is still here.";
      place.replaceChildren(count(), " ", warning);
    }
    clearTimeout(retry);
    retry = setTimeout(saveRest, retry_ms);
    retry_ms = Math.min(2 * retry_ms, LAST_RETRY_MS);
  });
}
