// A message to the other side that isn't sent yet stays in this tab: over a form that comes back with errors, and over
// pages that one looks up. It is begun from what it answers.

const letter = document.getElementById("letter");

if (letter) {
  // `elements.item` is a method.
  const item = letter.elements.namedItem("item");
  const text = letter.elements.namedItem("text");
  const place = `letter ${location.pathname}`;
  const [about, ...lines] = (sessionStorage.getItem(place) ?? "").split("\n");
  const kept = lines.join("\n");
  // A browser may bring back the text by itself, without what it is about.
  if (about && (!text.value || text.value === kept)) {
    item.value = about;
    text.value = kept;
  }
  letter.addEventListener("input", () => {
    if (text.value) sessionStorage.setItem(place, `${item.value}\n${text.value}`);
    else sessionStorage.removeItem(place);
  });
  letter.addEventListener("submit", () => sessionStorage.removeItem(place));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-ask]");
    if (!link) return;
    event.preventDefault();
    item.value = link.dataset.ask;
    text.focus();
  });
}
