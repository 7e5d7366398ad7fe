// Binds the files of a draft's page to uploads.
import { Rate, readableBytes } from "./amounts.js";
import { isSharded, joined } from "./joined.js";
import { problem } from "./problem.js";
import { problemCard } from "./problem-card.js";
import { bindAnyRunFolder, bindRunFolder } from "./run-folder.js";
import { FileUpload, post, UploadError } from "./upload.js";

const page = document.getElementById("uploads");
const settings = { api: page.dataset.api, csrf: page.dataset.csrf, worker: page.dataset.worker };

// The part of a transfer's time that reading the file takes, as far as the bar is concerned.
const READING_SHARE = 0.1;
const TITLE = document.title;

// The files that are being sent, which leaving the page would interrupt, and the part of each that is done.
const sending = new Map();

function showInTitle() {
  const parts = [...sending.values()];
  const done = parts.reduce((sum, part) => sum + part, 0) / parts.length;
  document.title = parts.length ? `${Math.floor(done * 100)}% · ${TITLE}` : TITLE;
}

addEventListener("beforeunload", (event) => {
  if (sending.size) event.preventDefault();
});

// What keeps the draft from being submitted: places whose file hasn't arrived, and folders that are being sent.
const unfinished = new Set();
// A page for a revised proof has none.
const submission = document.getElementById("submit");

function setUnfinished(what, isUnfinished) {
  if (isUnfinished) unfinished.add(what);
  else unfinished.delete(what);
  document.documentElement.classList.toggle("is-uploading", unfinished.size > 0);
}

submission?.addEventListener("submit", (event) => {
  if (!unfinished.size) return;
  event.preventDefault();
  submission.querySelector("[data-on-their-way]").focus();
});

// By the id of the run: the function that sends files to their places in it.
const runs = new Map();
bindAll(page);
const anyRun = document.getElementById("any-run");
if (anyRun) {
  const budgets = [...page.querySelectorAll("[data-budget]")].map((section) => section.dataset.budget);
  bindAnyRunFolder(anyRun, budgets, runAt, `${settings.api}keys`, setUnfinished);
}

// Binds the places of files, and those of run folders, in a part of the page.
function bindAll(part) {
  const places = [...part.querySelectorAll(".draft-file")].map(bind);
  for (const area of part.querySelectorAll(".run-folder")) {
    const own = places.filter((place) => place.section.dataset.run === area.dataset.run);
    runs.set(area.dataset.run, bindRunFolder(area, own, `${settings.api}keys`, setUnfinished));
  }
}

// The run at a budget, which is added if the draft has none there: then its part of the page is fetched again.
async function runAt(budget) {
  let section = page.querySelector(`[data-budget="${budget}"]`);
  if (!section.querySelector(".run-folder")) {
    await post(`${settings.api}submissions/${page.dataset.submission}/runs`, { budget: Number(budget) }, settings.csrf);
    const response = await fetch(location.pathname);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const added = document.adoptNode(fresh.querySelector(`[data-budget="${budget}"]`));
    section.replaceWith(added);
    section = added;
    htmx.process(section);
    bindAll(section);
    section.dispatchEvent(new CustomEvent("artifact-attached", { bubbles: true }));
  }
  return { heading: section.querySelector("h3"), sendAll: runs.get(section.querySelector(".run-folder").dataset.run) };
}

// Returns the place: its section, and how it takes a file as if somebody had chosen it there.
function bind(section) {
  const find = (selector) => section.querySelector(selector);
  const dropzone = find(".dropzone");
  const label = find(".dropzone label");
  const input = find("input[type=file]");
  const replacement = find(".replacement");
  const transfer = find(".transfer");
  const progress = find("progress");
  const numbers = find(".transfer-numbers");
  const status = find(".transfer-status");
  const problems = find(".transfer-problems");
  const button = (action) => find(`[data-action=${action}]`);
  const role = { submission: page.dataset.submission, run: section.dataset.run || null, kind: section.dataset.kind };
  // Takes the focus from what a phase hides.
  const first = {
    idle: input,
    choosing: input,
    asking: button("keep"),
    sending: button("pause"),
    stopped: button("resume"),
  };
  // Whoever comes back to the button hears what is wrong with the last file.
  const showProblems = (cards = []) => {
    problems.replaceChildren(...cards);
    input.ariaInvalid = String(cards.length > 0);
  };
  let upload = null;
  let rate = null;
  // "idle": a file may be chosen; "choosing": the headers of shards are read; "asking": whether the uploaded file is
  // replaced; "sending"; "stopped": it may be resumed.
  let phase = "idle";
  // The stored proof, and how it is displayed.
  let display = displayed();
  // Called with the artifact that the file became, or null, when another file may be chosen.
  let onEnd = () => {};

  enter("idle");
  input.addEventListener("change", () => choose([...input.files]));
  section.addEventListener("dragover", (event) => {
    event.preventDefault();
    section.classList.toggle("is-dropping", phase === "idle");
  });
  section.addEventListener("dragleave", () => section.classList.remove("is-dropping"));
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    section.classList.remove("is-dropping");
    choose([...event.dataTransfer.files]);
  });
  section.addEventListener("htmx:afterSettle", () => {
    const none = input.multiple ? "Choose a file or shards" : "Choose a file";
    label.firstChild.data = find(".tick") ? "Replace" : none;
    announceDisplay();
  });
  section.addEventListener("htmx:beforeRequest", (event) => {
    // A hidden tab doesn't ask for pages that are being drawn.
    if (document.hidden && event.target.dataset.outcome) event.preventDefault();
  });
  button("pause").addEventListener("click", () => upload?.pause());
  button("resume").addEventListener("click", send);
  button("cancel").addEventListener("click", cancel);
  button("replace")?.addEventListener("click", send);
  button("keep")?.addEventListener("click", keep);
  return { section, stored, take };

  // Resolves with the artifact that the files became; with null if they were rejected or canceled, or another file is
  // being sent. While an upload is paused, it waits.
  function take(files) {
    if (phase !== "idle") return Promise.resolve(null);
    return new Promise((resolve) => {
      onEnd = resolve;
      choose(files);
    });
  }

  async function choose(files) {
    if (!files.length || phase !== "idle") return;
    enter("choosing");
    showProblems();
    let replaces;
    try {
      upload = new FileUpload(await oneFile(files), role, { ...settings, onProgress: show });
      const before = find(".tick + strong")?.dataset.sha256;
      replaces = replacement && before && !(await upload.is(before));
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
      returnToChooser();
      reject(error, files.length === 1 ? `${files[0].name} was not uploaded.` : "Nothing was uploaded.");
      return;
    }
    if (replaces) ask();
    else send();
  }

  // What can't be undone is confirmed.
  function ask() {
    enter("asking");
    say("");
    find(".replacement-names").textContent = `Replace ${stored()} with ${upload.file.name}?`;
    button("keep").focus();
  }

  function keep() {
    returnToChooser();
    say(`${stored()} is kept.`);
  }

  function displayed() {
    return { file: find(".tick + strong")?.dataset.sha256, outcome: find("[data-outcome]")?.dataset.outcome };
  }

  // The pages of a PDF are drawn some time after it has arrived. One that can't be shown doesn't count as a file.
  function announceDisplay() {
    const before = display;
    display = displayed();
    if (!display.outcome || (display.file === before.file && display.outcome === before.outcome)) return;
    if (display.outcome === "problem") {
      say(`The pages of ${stored()} can't be shown. Replace the file.`);
      section.dispatchEvent(new CustomEvent("artifact-attached", { bubbles: true }));
    } else if (before.outcome === "waiting" && display.outcome === "shown") {
      say(`The pages of ${stored()} are rendered.`);
    }
  }

  // The name of the file that is in this place.
  function stored() {
    return find(".tick + strong")?.textContent;
  }

  // One file, or, for a checkpoint, the index and all of its shards joined into one.
  async function oneFile(files) {
    if (role.kind === "checkpoint" && isSharded(files)) {
      say(`Joining ${files.length} files.`);
      return joined(files);
    }
    if (files.length === 1) return files[0];
    throw severalFiles(files, input.multiple);
  }

  async function send() {
    if (phase === "sending") return;
    const current = upload;
    enter("sending");
    rate = new Rate();
    numbers.textContent = "";
    progress.value = 0;
    say(`Uploading ${current.file.name}.`);
    showProblems();
    let artifact;
    try {
      artifact = await current.run();
    } catch (error) {
      // Canceled in the meantime.
      if (upload !== current) return;
      stop(error);
      return;
    }
    const removed = artifact.removed.join(" and ");
    const why = removed && ` The site removed ${removed}, which doesn't belong to it. Upload the file that does.`;
    find("[data-no-file]")?.remove();
    say(`${current.file.name} is uploaded.${why}`);
    returnToChooser(artifact);
    section.dispatchEvent(new CustomEvent("artifact-attached", { bubbles: true }));
  }

  function stop(error) {
    if (error.name === "AbortError") {
      enter("stopped");
      say("Paused. The parts already sent stay stored.");
      return;
    }
    if (!(error instanceof UploadError)) {
      returnToChooser();
      throw error;
    }
    const { name } = upload.file;
    // A rejected file stays rejected however often it is sent; only another one helps.
    if (error.isResumable) enter("stopped");
    else returnToChooser();
    reject(error, error.isResumable ? `The upload of ${name} stopped.` : `${name} was not accepted.`);
  }

  async function cancel() {
    if (!upload) return;
    const canceled = upload;
    upload = null;
    try {
      await canceled.cancel();
    } catch (error) {
      // The site removes abandoned uploads by itself.
      if (!(error instanceof UploadError)) throw error;
    }
    say("Canceled.");
    showProblems();
    find("[data-unfinished]")?.remove();
    returnToChooser();
  }

  function returnToChooser(artifact = null) {
    upload = null;
    // Otherwise choosing the same file again would change nothing.
    input.value = "";
    enter("idle");
    onEnd(artifact);
    onEnd = () => {};
  }

  function enter(next) {
    phase = next;
    const focused = document.activeElement;
    const isOpen = phase === "sending" || phase === "stopped";
    dropzone.hidden = isOpen || phase === "asking";
    if (replacement) replacement.hidden = phase !== "asking";
    transfer.hidden = !isOpen;
    button("pause").hidden = phase !== "sending";
    button("resume").hidden = phase !== "stopped";
    // While a transfer is shown, nothing beside it says that there is no file, or how else to resume.
    section.classList.toggle("is-transferring", isOpen);
    // The numbers name the file as well; this line is for those who hear the page.
    status.classList.toggle("visually-hidden", phase === "sending");
    if (phase === "sending") sending.set(section, 0);
    else sending.delete(section);
    setUnfinished(section, phase !== "idle");
    showInTitle();
    if (section.contains(focused) && focused.closest("[hidden]")) first[phase].focus();
  }

  function show(state) {
    // Something may still arrive of an upload that was stopped.
    if (!upload || phase !== "sending") return;
    const name = upload.file.name;
    if (state.phase === "waiting") {
      const reason = state.problems[0].code === "E_STORE_UNAVAILABLE" ? state.problems[0].message : "The connection is bad.";
      numbers.textContent = `${name} · ${reason} Next try in ${state.seconds} s.`;
      return;
    }
    const isSending = state.phase === "sending";
    const part = state.total ? state.done / state.total : 0;
    progress.value = isSending ? READING_SHARE + (1 - READING_SHARE) * part : READING_SHARE * part;
    const amount = `${readableBytes(state.done)} of ${readableBytes(state.total)}`;
    const details = isSending ? [`${amount} sent`, ...rate.inWords(state.done, state.total)] : [`${amount} read`];
    numbers.textContent = [name, ...details].join(" · ");
    sending.set(section, progress.value);
    showInTitle();
  }

  function reject(error, what) {
    say(what);
    showProblems(error.problems.map(problemCard));
  }

  function say(text) {
    status.textContent = text;
  }
}

function severalFiles(files, inShards) {
  const several = problem("E_ARTIFACT_KIND", {
    message: "Several files were chosen where one is needed.",
    expected: inShards ? "one file, or the index of a sharded checkpoint with all of its shards" : "one file",
    found: files.map((file) => file.name).join(", "),
    next_step: "Choose again.",
  });
  return new UploadError([several], 400);
}
