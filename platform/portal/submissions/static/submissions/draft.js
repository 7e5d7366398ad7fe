// Binds the files of a draft's page to uploads.
import { Rate, readableBytes } from "./amounts.js";
import { isSharded, joined } from "./joined.js";
import { problem } from "./problem.js";
import { problemCard } from "./problem-card.js";
import { FileUpload, UploadError } from "./upload.js";

const page = document.getElementById("uploads");
const settings = { api: page.dataset.api, csrf: page.dataset.csrf, worker: page.dataset.worker };

// The files that are being sent, which leaving the page would interrupt.
const sending = new Set();

addEventListener("beforeunload", (event) => {
  if (sending.size) event.preventDefault();
});

for (const section of page.querySelectorAll(".draft-file")) bind(section);

function bind(section) {
  const find = (selector) => section.querySelector(selector);
  const dropzone = find(".dropzone");
  const label = find(".dropzone label");
  const input = find("input[type=file]");
  const transfer = find(".transfer");
  const progress = find("progress");
  const numbers = find(".transfer-numbers");
  const status = find(".transfer-status");
  const problems = find(".transfer-problems");
  const button = (action) => find(`[data-action=${action}]`);
  const role = { submission: page.dataset.submission, run: section.dataset.run || null, kind: section.dataset.kind };
  let upload = null;
  let rate = null;
  // "idle": a file may be chosen; "choosing": the headers of shards are read; "sending"; "stopped": it may be resumed.
  let phase = "idle";

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
  button("pause").addEventListener("click", () => upload?.pause());
  button("resume").addEventListener("click", send);
  button("cancel").addEventListener("click", cancel);

  async function choose(files) {
    if (!files.length || phase !== "idle") return;
    enter("choosing");
    problems.replaceChildren();
    try {
      upload = new FileUpload(await oneFile(files), role, { ...settings, onProgress: show });
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
      returnToChooser();
      reject(error, "Nothing was uploaded.");
      return;
    }
    send();
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
    say(`Uploading ${current.file.name}.`);
    problems.replaceChildren();
    try {
      await current.run();
    } catch (error) {
      // Canceled in the meantime.
      if (upload !== current) return;
      stop(error);
      return;
    }
    say(`${current.file.name} is uploaded.`);
    label.firstChild.data = "Replace";
    returnToChooser();
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
    // A rejected file stays rejected however often it is sent; only another one helps.
    if (error.isResumable) enter("stopped");
    else returnToChooser();
    reject(error, error.isResumable ? "The upload stopped." : "The file was not accepted.");
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
    problems.replaceChildren();
    find("[data-unfinished]")?.remove();
    returnToChooser();
  }

  function returnToChooser() {
    upload = null;
    // Otherwise choosing the same file again would change nothing.
    input.value = "";
    enter("idle");
  }

  function enter(next) {
    phase = next;
    const isOpen = phase === "sending" || phase === "stopped";
    dropzone.hidden = isOpen;
    transfer.hidden = !isOpen;
    button("pause").hidden = phase !== "sending";
    button("resume").hidden = phase !== "stopped";
    if (phase === "sending") sending.add(section);
    else sending.delete(section);
  }

  function show(state) {
    if (state.phase === "waiting") {
      const reason = state.problems[0].code === "E_STORE_UNAVAILABLE" ? state.problems[0].message : "The connection is bad.";
      numbers.textContent = `${reason} Next try in ${state.seconds} s.`;
      return;
    }
    progress.value = state.total ? state.done / state.total : 0;
    const amount = `${readableBytes(state.done)} of ${readableBytes(state.total)}`;
    if (state.phase === "reading") numbers.textContent = `Reading the file: ${amount}`;
    else numbers.textContent = [`Sent: ${amount}`, ...rate.inWords(state.done, state.total)].join(", ");
  }

  function reject(error, what) {
    say(what);
    problems.replaceChildren(...error.problems.map(problemCard));
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
