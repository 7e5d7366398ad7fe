// Keys inside a question of the checklist, and a word when a draft can't be saved. Everything works without it.

const items = [...document.querySelectorAll("#review .item")];
const state = document.getElementById("desk-state");

/** Move the keyboard to the question's chosen answer, or to its first one. */
function enter(item) {
  (item?.querySelector("input[type=radio]:checked") ?? item?.querySelector("input[type=radio]"))?.focus();
  item?.scrollIntoView({ block: "center" });
}

function answer(item, value) {
  const radio = item.querySelector(`input[type=radio][value="${value}"]`);
  radio.focus();
  radio.click();
}

document.getElementById("review").addEventListener("keydown", (event) => {
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

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  state.addEventListener(name, () => {
    state.textContent = "Not saved: the site can't be reached, or you are logged out. Your text is still here.";
  });
}
