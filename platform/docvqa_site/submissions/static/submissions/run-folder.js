// Sorts the files of a run folder, or several files, into the places of a draft's page by their names, and sends them one
// after another. The names are in the page, from evaluator/messages/run_files.py.
import { shardFiles } from "./joined.js";
import { problem } from "./problem.js";
import { problemCard } from "./problem-card.js";

const START_BYTES = 4096;
const MAX_SETTINGS_BYTES = 2 ** 20;
const METHOD = /^method:\s*["']?(.*?)["']?\s*$/m;

// `places` are those of the run: their sections, what is stored in them, and how they take files.
export function bindRunFolder(area, places) {
  const find = (selector) => area.querySelector(selector);
  const status = find(".run-folder-status");
  const problems = find(".run-folder-problems");
  let isBusy = false;

  area.hidden = false;
  const folder = find("input[webkitdirectory]");
  // Some phones have no folders to choose.
  if (!("webkitdirectory" in folder)) find(`[for=${folder.id}]`).hidden = folder.hidden = true;
  for (const input of area.querySelectorAll("input")) {
    input.addEventListener("change", () => {
      const files = [...input.files].filter(isAtTop);
      // Otherwise choosing the same folder again would change nothing.
      input.value = "";
      sendAll(files);
    });
  }
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("is-dropping");
  });
  area.addEventListener("dragleave", () => area.classList.remove("is-dropping"));
  area.addEventListener("drop", async (event) => {
    event.preventDefault();
    area.classList.remove("is-dropping");
    sendAll(await droppedFiles(event.dataTransfer));
  });

  async function sendAll(files) {
    if (isBusy) return say("The files chosen before are still being sent.");
    isBusy = true;
    problems.replaceChildren();
    try {
      const method = await methodName(files, places);
      const named = places.filter((place) => filesFor(place, files, method).length);
      if (named.length) say(...(await sendNamed(files, method)));
      else reject(files);
    } finally {
      isBusy = false;
    }
  }

  // In the order of the page, in which a file comes after the one whose challenge it answers.
  async function sendNamed(files, method) {
    const sent = [];
    const notAccepted = [];
    const missing = [];
    const notes = [];
    const before = challengeIn(places);
    let challenge = before;
    for (const place of places) {
      const { answerName, answered, folderName } = place.section.dataset;
      const chosen = filesFor(place, files, method, challenge);
      const isExpected = "needed" in place.section.dataset || filesFor(place, files, method).length > 0;
      const isDrawnNow = Boolean(answerName) && challenge !== before;
      const isOpen = isDrawnNow || !place.stored();
      if (chosen.length && isDrawnNow && !(await contains(chosen[0], challenge))) {
        notes.push(answerNote(answerName, challenge, answered));
        continue;
      }
      if (!chosen.length) {
        const name = challenge ? answerName || folderName : folderName;
        if (!isExpected || !isOpen) continue;
        if (!name || name === answerName) notes.push(answerNote(answerName, challenge, answered));
        else missing.push(name);
        continue;
      }
      say(`Sending ${namesOf(chosen)}.`);
      const artifact = await place.take(chosen);
      (artifact ? sent : notAccepted).push(namesOf(chosen));
      challenge = artifact?.challenge ?? challenge;
    }
    return [
      sent.length ? `Uploaded: ${sent.join(", ")}.` : "Nothing was uploaded.",
      ...(notAccepted.length ? [`Not uploaded: ${notAccepted.join(", ")}. The place of each says why.`] : []),
      ...(missing.length ? [`Not among the files: ${missing.join(", ")}.`] : []),
      ...notes,
    ];
  }

  function reject(files) {
    say("Nothing was uploaded.");
    const missing = problem("E_ARTIFACT_MISSING", {
      message: "None of these files has the name of a run's file.",
      where: "the chosen files",
      expected: [...new Set(places.flatMap(({ section }) => [section.dataset.folderName, section.dataset.answerName]))].filter(Boolean).join(", "),
      found: files.length ? files.slice(0, 10).map((file) => file.name).join(", ") : "no file",
      next_step: "Choose the folder that `pfl train --out` wrote, or choose each file at its place below.",
    });
    problems.replaceChildren(problemCard(missing));
  }

  function say(...lines) {
    status.replaceChildren(...lines.map(paragraph));
  }
}

// The files of a place, among those that were chosen. One that answers a challenge has another name than before.
function filesFor({ section }, files, method, challenge = "") {
  const { kind, folderName, answerName } = section.dataset;
  const name = kind === "method_file" ? method : (challenge && answerName) || folderName;
  const named = files.filter((file) => file.name === name).slice(0, 1);
  return kind === "checkpoint" && !named.length ? shardFiles(files) : named;
}

// The name of the method's own file, which the settings name as `pfl train` wrote them.
async function methodName(files, places) {
  const place = places.find(({ section }) => section.dataset.kind === "settings");
  const settings = files.find((file) => file.name === place?.section.dataset.folderName);
  if (!settings || settings.size > MAX_SETTINGS_BYTES) return "";
  const text = await settings.text().catch(() => "");
  const name = METHOD.exec(text)?.[1].split("/").at(-1) ?? "";
  return name.endsWith(".py") ? name : "";
}

function challengeIn(places) {
  const commands = places.map(({ section }) => section.querySelector("[data-challenge]"));
  return commands.find(Boolean)?.dataset.challenge ?? "";
}

// Whether a file that answers a challenge begins with it, as an annex does that was made for it before.
async function contains(file, challenge) {
  const start = await file.slice(0, START_BYTES).text().catch(() => "");
  return start.includes(challenge);
}

function answerNote(name, challenge, answered) {
  const first = answered.replace("_", " ");
  return challenge
    ? `${name} must answer the challenge that the site has drawn. Run the command shown below, then choose the folder again.`
    : `${name} comes after the ${first}: upload that first.`;
}

// A folder's own files; what is in folders within it, such as the vectors, is never sent.
function isAtTop(file) {
  return file.webkitRelativePath.split("/").length <= 2;
}

// What is dropped must be asked for before the event ends.
async function droppedFiles(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...data.files];
  const found = await Promise.all(entries.map((entry) => (entry.isDirectory ? entriesOf(entry) : [entry])));
  return Promise.all(found.flat().filter((entry) => entry.isFile).map((entry) => new Promise((resolve, reject) => entry.file(resolve, reject))));
}

// A browser gives the entries of a folder a hundred at a time.
async function entriesOf(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
}

function namesOf(files) {
  return files.length === 1 ? files[0].name : `${files.length} files of the checkpoint`;
}

function paragraph(text) {
  const node = document.createElement("p");
  node.textContent = text;
  return node;
}
