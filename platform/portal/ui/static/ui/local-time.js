// Adds the reader's own time to the titles of times, which the pages show in UTC.
"use strict";

const LOCAL = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

function addLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime][title]:not([data-local])")) {
    time.dataset.local = "";
    time.title += ` (${LOCAL.format(new Date(time.dateTime))} your time)`;
  }
}

addLocalTimes(document);
// What is requested later, too.
document.addEventListener("htmx:load", (event) => addLocalTimes(event.target));
