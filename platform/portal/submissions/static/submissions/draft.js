// Binds the files of a draft's page to uploads.
import { isSharded, joined } from "./joined.js";
import { FileUpload, UploadError } from "./upload.js";

const page = document.getElementById("uploads");
const settings = { api: page.dataset.api, csrf: page.dataset.csrf, worker: page.dataset.worker };

for (const section of page.querySelectorAll(".draft-file")) bind(section);

function bind(section) {
  const find = (selector) => section.querySelector(selector);
  const dropzone = find(".dropzone");
  const input = find("input[type=file]");
  const transfer = find(".transfer");
  const progress = find("progress");
  const numbers = find(".transfer-numbers");
  const status = find(".transfer-status");
  const problems = find(".transfer-problems");
  const button = (action) => find(`[data-action=${action}]`);
  const role = { submission: page.dataset.submission, run: section.dataset.run || null, kind: section.dataset.kind };
  let upload = null;
  // True while the headers of shards are read.
  let choosing = false;

  dropzone.hidden = false;
  input.addEventListener("change", () => choose([...input.files]));
  section.addEventListener("dragover", (event) => {
    event.preventDefault();
    section.classList.toggle("is-dropping", !upload);
  });
  section.addEventListener("dragleave", () => section.classList.remove("is-dropping"));
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    section.classList.remove("is-dropping");
    choose([...event.dataTransfer.files]);
  });
  button("pause").addEventListener("click", () => upload.pause());
  button("resume").addEventListener("click", send);
  button("cancel").addEventListener("click", cancel);

  async function choose(files) {
    if (!files.length || upload || choosing) return;
    choosing = true;
    problems.replaceChildren();
    try {
      begin(await oneFile(files));
    } catch (error) {
      if (!(error instanceof UploadError)) throw error;
      // Otherwise choosing the same files again would change nothing.
      input.value = "";
      reject(error, "Nothing was uploaded.");
    } finally {
      choosing = false;
    }
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

  function begin(file) {
    upload = new FileUpload(file, role, { ...settings, onProgress: show });
    dropzone.hidden = true;
    transfer.hidden = false;
    send();
  }

  async function send() {
    running(true);
    problems.replaceChildren();
    try {
      await upload.run();
    } catch (error) {
      running(false);
      if (error instanceof UploadError) reject(error);
      else if (error.name === "AbortError") say("Paused. The parts already sent stay stored.");
      else throw error;
      return;
    }
    say(`${upload.file.name} is uploaded.`);
    close();
    section.dispatchEvent(new CustomEvent("artifact-attached", { bubbles: true }));
  }

  async function cancel() {
    try {
      await upload.cancel();
    } catch (error) {
      // The site removes abandoned uploads by itself.
      if (!(error instanceof UploadError)) throw error;
    }
    say("Canceled.");
    problems.replaceChildren();
    find("[data-unfinished]")?.remove();
    close();
  }

  function close() {
    upload = null;
    input.value = "";
    transfer.hidden = true;
    dropzone.hidden = false;
  }

  function running(is) {
    button("pause").hidden = !is;
    button("resume").hidden = is;
    if (is) say(`Uploading ${upload.file.name}.`);
  }

  function show(state) {
    if (state.phase === "waiting") {
      const reason = state.problems[0].code === "E_STORE_UNAVAILABLE" ? state.problems[0].message : "The connection is bad.";
      numbers.textContent = `${reason} Next try in ${state.seconds} s.`;
      return;
    }
    progress.value = state.done / state.total;
    const verb = state.phase === "reading" ? "Reading the file" : "Sent";
    numbers.textContent = `${verb}: ${megabytes(state.done)} of ${megabytes(state.total)}`;
  }

  function reject(error, what = "The upload stopped.") {
    say(what);
    problems.replaceChildren(...error.problems.map(problemCard));
  }

  function say(text) {
    status.textContent = text;
  }
}

function severalFiles(files, inShards) {
  const problem = {
    code: "E_ARTIFACT_KIND",
    message: "Several files were chosen where one is needed.",
    expected: inShards ? "one file, or the index of a sharded checkpoint with all of its shards" : "one file",
    found: files.map((file) => file.name).join(", "),
    next_step: "Choose again.",
  };
  return new UploadError([problem], 400);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 })} MB`;
}

// The same markup as ui/problem.html.
function problemCard(problem) {
  const card = element("section", "problem");
  card.setAttribute("aria-label", `Problem ${problem.code}`);
  const title = element("p", "problem-title", element("code", "", problem.code), ` ${problem.message}`);
  const facts = element("dl");
  const rows = { where: "Where", expected: "Expected", found: "Found", next_step: "Next" };
  for (const [key, label] of Object.entries(rows)) {
    if (problem[key]) facts.append(element("div", "", element("dt", "", label), element("dd", "", problem[key])));
  }
  card.append(title, facts);
  return card;
}

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}
