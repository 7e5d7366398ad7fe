// A page in a hidden tab doesn't ask for the status, and asks at once when it is shown again.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.id === "status") event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  const status = document.getElementById("status");
  if (!document.hidden && status) htmx.trigger(status, "shown");
});
// What a person is using isn't replaced as the evaluation begins or ends.
const CHOICES = ["team-choices", "cancel"];
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const part = event.detail.target;
  if (CHOICES.includes(part.id) && (part.contains(document.activeElement) || part.querySelector("[open]"))) {
    event.detail.shouldSwap = false;
  }
});
// And what is open stays open.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  unfolded = [...target.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
});
document.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
  // What was reported of the submission before its evaluation is over.
  if (target.id === "evaluated") document.querySelectorAll("main > [role=status].notice").forEach((old) => old.remove());
  for (const summary of document.querySelectorAll("#evaluated summary")) {
    if (unfolded.includes(summary.textContent)) summary.parentElement.open = true;
  }
});
