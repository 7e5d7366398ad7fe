// Adds the reader's own time to times, which the pages show in UTC, and says in words what a field for dates holds.
"use strict";

const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

// Such as "Nov 22, 2026", as all of the site's dates.
function day(moment, timeZone) {
  const form = new Intl.DateTimeFormat("en-US", { day: "numeric", month: "short", year: "numeric", timeZone });
  const part = Object.fromEntries(form.formatToParts(moment).map(({ type, value }) => [type, value]));
  return `${part.month} ${part.day}, ${part.year}`;
}

function clock(moment, timeZone) {
  const form = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone };
  return new Intl.DateTimeFormat("en-US", form).format(moment);
}

// The reader's time of day, with the date where it is another one than in UTC; empty where they live by UTC.
function ownTime(moment) {
  if (moment.getTimezoneOffset() === 0) return "";
  const date = day(moment, ZONE);
  return `${date === day(moment, "UTC") ? "" : `${date}, `}${clock(moment, ZONE)} your time`;
}

function addLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime][title]:not([data-local])")) {
    time.dataset.local = "";
    const own = ownTime(new Date(time.dateTime));
    if (!own) continue;
    time.title += ` · ${own}`;
    if (!time.textContent.includes("UTC")) continue;
    const shown = document.createElement("span");
    shown.className = "local-time";
    shown.textContent = ` · ${own}`;
    time.append(shown);
  }
}

// Browsers show 03/04/2026 for the third of April or the fourth of March.
function inWords(field) {
  const moment = new Date(`${field.value}${field.type === "date" ? "" : "Z"}`);
  if (!field.value || Number.isNaN(moment.getTime())) return "";
  if (field.type === "date") return day(moment, "UTC");
  const own = ownTime(moment);
  return `${day(moment, "UTC")}, ${clock(moment, "UTC")} UTC${own && ` · ${own}`}`;
}

function explainDates(root) {
  for (const field of root.querySelectorAll("input:is([type=date], [type=datetime-local]):not([data-in-words])")) {
    field.dataset.inWords = "";
    const words = document.createElement("output");
    words.className = "local-time small";
    words.htmlFor = field.id;
    const update = () => (words.textContent = inWords(field));
    update();
    field.addEventListener("input", update);
    field.after(" ", words);
  }
}

function addTo(root) {
  addLocalTimes(root);
  explainDates(root);
}

addTo(document);
// What is requested later, too.
document.addEventListener("htmx:load", (event) => addTo(event.target));
