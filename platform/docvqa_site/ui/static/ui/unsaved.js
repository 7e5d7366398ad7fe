// Warns before somebody leaves a page with entries that haven't been saved.
const unsaved = new Set();

// The site shows entries again that it didn't store: those with an error, and those of a preview.
const shownAgain = document.querySelector("[data-unsaved]");
if (shownAgain) unsaved.add(shownAgain);

addEventListener("input", (event) => {
  if (event.target.form) unsaved.add(event.target.form);
});
addEventListener("submit", (event) => {
  unsaved.delete(event.target);
  unsaved.delete(shownAgain);
});
addEventListener("beforeunload", (event) => {
  if (unsaved.size) event.preventDefault();
});
