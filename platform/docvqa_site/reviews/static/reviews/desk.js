// Keys inside a question of the checklist, and a word when a draft can't be saved. Everything works without it.

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

// The folded line shows the answer; "no" asks for a note, and everything else for the next question.
review?.addEventListener("change", (event) => {
  const item = event.target.closest(".item");
  if (!item || event.target.type !== "radio") return;
  const shown = item.querySelector(".answer");
  shown.textContent = event.target.value;
  shown.className = `answer answer-${event.target.value.replace("/", "")}`;
  if (event.target.value === "no") item.querySelector(".note").open = true;
  else if (items[items.indexOf(item) + 1]) items[items.indexOf(item) + 1].open = true;
});

review?.addEventListener("keydown", (event) => {
  const item = event.target.closest(".item");
  // Letters are text in a note, and belong to the browser with a modifier.
  if (!item || event.target.matches("textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = items.indexOf(item);
  const acts = {
    j: () => enter(items[at + 1]),
    k: () => enter(items[at - 1]),
    y: () => answer(item, "yes"),
    n: () => answer(item, "no"),
  };
  if (!(event.key in acts)) return;
  event.preventDefault();
  acts[event.key]();
});

/** A link from the list of what is missing leads into a question, unfolded. */
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}

addEventListener("hashchange", unfold);
unfold();

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  state?.addEventListener(name, () => {
    state.textContent = "Not saved: the site can't be reached, or you are logged out. Your text is still here.";
  });
}
