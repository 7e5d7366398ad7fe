// A page in a hidden tab doesn't ask for the status, and asks at once when it is shown again.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.id === "status") event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  const status = document.getElementById("status");
  if (!document.hidden && status) htmx.trigger(status, "shown");
});
