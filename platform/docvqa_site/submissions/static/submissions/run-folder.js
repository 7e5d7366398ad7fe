// Sorts the files of a run folder, or several files, into the places of a draft's page by their names, and sends them one
// after another. The names are in the page, from evaluator/messages/run_files.py.
import { shardFiles } from "./joined.js";
import { problem, unreadable } from "./problem.js";
import { problemCard } from "./problem-card.js";
import { UploadError } from "./upload.js";

const START_BYTES = 4096;
const MAX_SETTINGS_BYTES = 2 ** 20;
// A longer record would be one of hundreds of thousands of rounds.
const MAX_RECORD_BYTES = 2 ** 28;
const METHOD = /^method:\s*["']?(.*?)["']?\s*$/m;

// `places` are those of the run: their sections, what is stored in them, and how they take files. `keys` is the address
// of the team's signing keys. `setUnfinished` is called with the area and whether its files are being sent. Returns the function that sends files as if they were
// chosen there.
export function bindRunFolder(area, places, keys, setUnfinished) {
  const find = (selector) => area.querySelector(selector);
  const status = find(".run-folder-status");
  const problems = find(".run-folder-problems");
  let isBusy = false;

  onFiles(area, (files) => sendAll(files));
  return sendAll;

  // `isAgreed`: whether somebody has agreed that the upload spends the record's run token.
  async function sendAll(files, isAgreed = false) {
    if (isBusy) return say(busyText(area));
    isBusy = true;
    say();
    problems.replaceChildren();
    try {
      const record = places.find(({ section }) => section.dataset.kind === "training_record");
      const spends = record && !record.stored() && filesFor(record, files, "").length;
      if (spends && !isAgreed && !(await agrees(area, keys))) return say("Nothing was uploaded.");
      setUnfinished(area, true);
      const method = await methodName(files, places);
      const named = places.filter((place) => filesFor(place, files, method).length);
      if (!named.length) throw noneNamed(files);
      say(...(await sendNamed(files, method)));
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
      say("Nothing was uploaded.");
      problems.replaceChildren(...error.problems.map(problemCard));
    } finally {
      isBusy = false;
      setUnfinished(area, false);
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

  function noneNamed(files) {
    return rejection("E_ARTIFACT_MISSING", {
      message: "None of these files has the name of a run's file.",
      where: "the chosen files",
      expected: [...new Set(places.flatMap(({ section }) => [section.dataset.folderName, section.dataset.answerName]))].filter(Boolean).join(", "),
      found: files.length ? files.slice(0, 10).map((file) => file.name).join(", ") : "no file",
      next_step: "Choose the folder that `pfl train --out` wrote, or choose each file at its place below.",
    });
  }

  function say(...lines) {
    status.replaceChildren(...lines.map(paragraph));
  }
}

// The place of a draft that takes the folder of any run. `budgets` are those of the track; `runAt` resolves, for one of
// them, with the id of the run's heading and the function that sends files there, once the run is added.
// `keys` and `setUnfinished` are as above.
export function bindAnyRunFolder(area, budgets, runAt, keys, setUnfinished) {
  const status = area.querySelector(".any-run-status");
  const problems = area.querySelector(".any-run-problems");
  const { recordName } = area.dataset;
  let isBusy = false;
  onFiles(area, send);

  async function send(files) {
    if (isBusy) return say(busyText(area));
    isBusy = true;
    status.replaceChildren();
    problems.replaceChildren();
    try {
      const budget = coveringBudget(await claimIn(files, recordName), budgets, recordName);
      const hasRecord = document.querySelector(`[data-budget="${budget}"] [data-kind="training_record"] .tick`);
      if (!hasRecord && !(await agrees(area, keys))) return say("Nothing was uploaded.");
      setUnfinished(area, true);
      const { heading, sendAll } = await runAt(budget);
      say("The files go to the ", linkTo(heading), ".");
      await sendAll(files, true);
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
      say("Nothing was uploaded.");
      problems.replaceChildren(...error.problems.map(problemCard));
    } finally {
      isBusy = false;
      setUnfinished(area, false);
    }
  }

  function say(...parts) {
    const line = document.createElement("p");
    line.append(...parts);
    status.replaceChildren(line);
  }
}

// What can't be undone is confirmed: resolves with whether the files are sent although that spends a run token. Nobody is
// asked about a record that would be rejected: a team without a key gets an `UploadError`.
async function agrees(area, keys) {
  await requireKey(keys);
  const question = area.querySelector(".spending");
  const button = (action) => question.querySelector(`[data-action=${action}]`);
  const before = document.activeElement;
  question.hidden = false;
  button("cancel").focus();
  return new Promise((resolve) => {
    const answer = (isYes) => {
      question.hidden = true;
      before?.focus();
      resolve(isYes);
    };
    button("cancel").onclick = () => answer(false);
    button("send").onclick = () => answer(true);
  });
}

// A key may have been registered since the page was loaded. If the answer doesn't come, the upload finds out.
async function requireKey(keys) {
  const response = await fetch(keys).catch(() => null);
  if (!response?.ok || (await response.json()).length) return;
  throw rejection("E_RECORD_KEY", { message: "Your team has no registered signing key." });
}

function busyText(area) {
  const isAsking = !area.querySelector(".spending").hidden;
  return isAsking ? "First answer the question about the files chosen before." : "The files chosen before are still being sent.";
}

// Has `send` called with the files that are chosen or dropped in an area, which is shown.
function onFiles(area, send) {
  area.hidden = false;
  const folder = area.querySelector("input[webkitdirectory]");
  // Some phones have no folders to choose.
  if (!("webkitdirectory" in folder)) area.querySelector(`[for=${folder.id}]`).hidden = folder.hidden = true;
  for (const input of area.querySelectorAll("input")) {
    input.addEventListener("change", () => {
      const files = [...input.files].filter(isAtTop);
      // Otherwise choosing the same folder again would change nothing.
      input.value = "";
      send(files);
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
    send(await droppedFiles(event.dataTransfer));
  });
}

// What `pfl train` writes last: without a record beside it, the run has none.
const SUMMARY = "summary.json";

// The ε that the training record among the files claims: in its first line, or where the run was resumed last.
async function claimIn(files, name) {
  const record = files.find((file) => file.name === name);
  if (!record && files.some((file) => file.name === SUMMARY)) {
    throw rejection("E_ARTIFACT_MISSING", {
      message: "The run has no training record, which this track requires: it was trained without privacy.",
      where: "the chosen files",
      expected: name,
      found: "no such file",
      next_step: "Submit it to a track without privacy budgets, or train with a method that protects providers (`pfl methods`).",
    });
  }
  if (!record) {
    throw rejection("E_ARTIFACT_MISSING", {
      message: "Without the training record, the site doesn't know which budget the run is for.",
      where: "the chosen files",
      expected: name,
      found: files.length ? files.slice(0, 10).map((file) => file.name).join(", ") : "no file",
      next_step: "Choose the folder that `pfl train --out` wrote, or add the run below and choose its files there.",
    });
  }
  const text = await record.slice(0, MAX_RECORD_BYTES).text().catch((error) => {
    throw new UploadError([unreadable(name, error.message)], 400);
  });
  const [first, ...others] = text.split("\n");
  const claims = [first, ...others.filter((line) => line.includes('"claimed_epsilon"'))].map(claimOf);
  const claim = claims.at(-1);
  if (!(claim >= 0)) throw rejection("E_RECORD_FORMAT", { where: name, expected: "claimed_epsilon, a number", found: "none" });
  return claim;
}

function claimOf(line) {
  try {
    return JSON.parse(line).claimed_epsilon;
  } catch {
    return undefined;
  }
}

// The smallest budget that covers a claim, as for `pfl submit`.
function coveringBudget(claim, budgets, name) {
  const covering = budgets.filter((budget) => claim <= Number(budget)).sort((one, other) => one - other);
  if (covering.length) return covering[0];
  throw rejection("E_RECORD_RULES", {
    where: `${name}, claimed_epsilon`,
    expected: `at most ${Math.max(...budgets.map(Number))}`,
    found: String(Number(claim.toPrecision(4))),
    next_step: "Train with more noise: see `pfl privacy noise`.",
  });
}

function rejection(code, details) {
  return new UploadError([problem(code, details)], 400);
}

function linkTo(heading) {
  const link = document.createElement("a");
  link.href = `#${heading.id}`;
  link.textContent = heading.textContent.trim().replace(/^Run/, "run");
  return link;
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
