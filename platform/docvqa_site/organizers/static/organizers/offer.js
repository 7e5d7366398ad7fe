// Uploads the file of a download in parts before its form is sent, which then names the upload in place of the file.
import { readableBytes } from "../submissions/amounts.js";
import { problemCard } from "../submissions/problem-card.js";
import { FileUpload, UploadError } from "../submissions/upload.js";

const form = document.getElementById("offer");
const { api, worker } = form.dataset;
const csrf = form.elements.csrfmiddlewaretoken.value;
const file = form.elements.file;
const button = form.querySelector("button[type=submit]");
const progress = form.querySelector("progress");
const status = form.querySelector("[role=status]");
const problems = form.querySelector(".transfer-problems");

file.addEventListener("change", () => {
  form.elements.upload.value = "";
});

form.addEventListener("submit", async (event) => {
  const chosen = file.files[0];
  if (!chosen || form.elements.upload.value) return;
  event.preventDefault();
  button.disabled = true;
  progress.hidden = false;
  problems.replaceChildren();
  try {
    const upload = new FileUpload(chosen, {}, { api, csrf, worker, onProgress: show });
    form.elements.upload.value = (await upload.run()).upload;
    file.disabled = true; // it isn't sent again
    form.requestSubmit();
  } catch (error) {
    if (!(error instanceof UploadError)) throw error;
    status.textContent = "The upload stopped. Press the button again to resume it.";
    problems.append(...error.problems.map((one) => problemCard(one)));
  } finally {
    button.disabled = false;
    progress.hidden = true;
  }
});

function show({ phase, done, total }) {
  if (phase === "waiting") {
    status.textContent = "The connection is interrupted; the next try follows.";
    return;
  }
  progress.max = total;
  progress.value = done;
  status.textContent = `${phase === "reading" ? "Read" : "Sent"}: ${readableBytes(done)} of ${readableBytes(total)}`;
}
