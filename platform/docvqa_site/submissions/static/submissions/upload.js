// Uploads one file in parts through the site's API, and resumes where it stopped. Knows nothing of any page.
//
//   const upload = new FileUpload(file, {submission, run, kind}, {api, csrf, worker, onProgress});
//   await upload.run();      // resolves with the artifact; rejects with UploadError, or AbortError after pause()
//
// The file's beginning goes first, by which the site rejects a wrong file before it is read. The server alone knows what
// is stored: every start asks it which parts it has. The browser keeps just the SHA-256 of a file that it sends, so that
// the file need not be read twice after a reload.
import { problem, unreadable } from "./problem.js";

const PARALLEL = 3;
const ATTEMPTS = 8;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;
const HEAD_BYTES = 256 * 1024; // as evaluator/messages/api.py
const PASSING = new Set(["E_UPLOAD_URL", "E_UPLOAD_PART"]); // a fresh address or another try may well do
const OF_STORE = { 400: "E_UPLOAD_PART", 403: "E_UPLOAD_URL", 404: "E_UPLOAD_STATE" };
const MEMORY = "pfl-sha256:";
const MEMORY_MS = 7 * 24 * 60 * 60 * 1000; // the site keeps an unfinished upload no longer

export class UploadError extends Error {
  // `problems` are coded, as in the API's responses.
  constructor(problems, status = 0) {
    super(problems.map((problem) => `${problem.code}: ${problem.message}`).join("\n"));
    this.problems = problems;
    this.status = status;
  }

  // Whether sending the same file again may help: the connection, the site or its store was the reason.
  get isResumable() {
    return this.passes || this.status === 507;
  }

  get passes() {
    if (this.status === 507) return false; // the site is out of storage
    return this.status === 0 || this.status >= 500 || this.status === 429 || this.problems.some((p) => PASSING.has(p.code));
  }
}

export class FileUpload {
  constructor(file, role, { api, csrf, worker, onProgress = () => {} }) {
    Object.assign(this, { file, role, api, csrf, worker, onProgress });
    this.id = null;
    this.key = null;
    this.control = new AbortController();
  }

  async run() {
    this.control = new AbortController();
    const file = { ...this.role, filename: this.file.name, size_bytes: this.file.size };
    const head = await base64(this.file.slice(0, HEAD_BYTES)).catch((error) => {
      throw this.unreadable(error.message);
    });
    await this.retrying(() => this.call("POST", "uploads/check", { ...file, head }));
    const sha256 = await this.hash();
    const upload = await this.retrying(() => this.call("POST", "uploads", { ...file, sha256 }));
    this.id = upload.id;
    for (let round = 0; ; round++) {
      // A completed one is in its place already.
      if (upload.state !== "completed") await this.sendMissing(upload);
      try {
        const artifact = await this.retrying(() => this.call("POST", `uploads/${this.id}/complete`));
        forget(this.key);
        return artifact;
      } catch (error) {
        const lacksParts = error instanceof UploadError && error.problems.some((p) => p.code === "E_UPLOAD_INCOMPLETE");
        if (!lacksParts || round === 2) throw error;
      }
    }
  }

  // Whether it is the file of this SHA-256.
  async is(sha256) {
    return (await this.hash()) === sha256;
  }

  pause() {
    this.control.abort();
  }

  async cancel() {
    this.pause();
    forget(this.key);
    if (this.id) await this.call("DELETE", `uploads/${this.id}`, undefined, null);
  }

  async hash() {
    const head = await digest(await this.file.slice(0, HEAD_BYTES).arrayBuffer());
    // A joined file has no date of its own and says what it is made of.
    const { name, size, lastModified, identity = lastModified } = this.file;
    this.key = MEMORY + [name, size, identity, head].join("|");
    const known = remembered(this.key);
    if (known) return known;
    const sha256 = await this.hashInWorker();
    localStorage.setItem(this.key, `${sha256} ${Date.now()}`);
    return sha256;
  }

  hashInWorker() {
    const signal = this.control.signal;
    return new Promise((resolve, reject) => {
      const worker = new Worker(this.worker);
      const end = (settle, value) => {
        worker.terminate();
        settle(value);
      };
      signal.addEventListener("abort", () => end(reject, signal.reason), { once: true });
      worker.onerror = (event) => end(reject, this.unreadable(event.message));
      worker.onmessage = ({ data }) => {
        if (data.sha256) end(resolve, data.sha256);
        else if (data.error) end(reject, this.unreadable(data.error));
        else this.onProgress({ phase: "reading", done: data.done, total: this.file.size });
      };
      worker.postMessage(this.file);
    });
  }

  async sendMissing({ part_size_bytes: partSize, parts_total: total }) {
    const { parts } = await this.retrying(() => this.call("GET", `uploads/${this.id}/parts`));
    const stored = new Map(parts.map((part) => [part.number, part.size_bytes]));
    const missing = [];
    for (let number = 1; number <= total; number++) {
      if (stored.get(number) !== this.part(number, partSize).size) missing.push(number);
    }
    const sent = new Map(); // bytes of the parts that are being sent or stored
    const before = this.file.size - missing.reduce((sum, number) => sum + this.part(number, partSize).size, 0);
    const report = () => {
      const done = [...sent.values()].reduce((sum, bytes) => sum + bytes, before);
      this.onProgress({ phase: "sending", done, total: this.file.size });
    };
    report();
    const lane = async () => {
      for (let number = missing.shift(); number; number = missing.shift()) {
        await this.retrying(() =>
          this.sendPart(number, this.part(number, partSize), (bytes) => {
            sent.set(number, bytes);
            report();
          }),
        );
      }
    };
    try {
      await Promise.all(Array.from({ length: PARALLEL }, lane));
    } catch (error) {
      this.control.abort(error); // the other lanes stop as well
      throw error;
    }
  }

  unreadable(detail) {
    return new UploadError([unreadable(this.file.name, detail)], 400);
  }

  part(number, partSize) {
    return this.file.slice((number - 1) * partSize, number * partSize);
  }

  async sendPart(number, blob, onSent) {
    const bytes = await blob.arrayBuffer().catch((error) => {
      throw this.unreadable(error.message);
    });
    const part = { number, size_bytes: bytes.byteLength, sha256: await digest(bytes) };
    const { urls } = await this.call("POST", `uploads/${this.id}/part-urls`, { parts: [part] });
    await this.put(urls[0], bytes, onSent);
    onSent(bytes.byteLength);
  }

  // XMLHttpRequest, because fetch doesn't report how much of a body has been sent.
  put({ url, headers }, bytes, onSent) {
    const signal = this.control.signal;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PUT", url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = (event) => onSent(event.loaded);
      request.onload = () => {
        if (request.status < 300) resolve();
        else reject(new UploadError(partProblems(request.responseText, request.status), request.status));
      };
      request.onerror = () => reject(offline());
      const stop = () => {
        request.abort();
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop);
      request.onloadend = () => signal.removeEventListener("abort", stop); // which would keep the bytes in memory
      request.send(bytes);
    });
  }

  async call(method, path, body, signal = this.control.signal) {
    let response;
    try {
      response = await fetch(this.api + path, {
        method,
        signal,
        headers: { "Content-Type": "application/json", "X-CSRFToken": this.csrf },
        body: body && JSON.stringify(body),
      });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw offline();
    }
    const text = await response.text();
    if (!response.ok) throw new UploadError(problemsIn(text, response.status), response.status);
    return text ? JSON.parse(text) : null;
  }

  // Try again, with growing pauses, what a bad connection or a busy server may have interrupted.
  async retrying(action) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await action();
      } catch (error) {
        this.control.signal.throwIfAborted();
        if (!(error instanceof UploadError) || !error.passes || attempt === ATTEMPTS) throw error;
        const wait = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
        this.onProgress({ phase: "waiting", seconds: Math.ceil(wait / 1000), problems: error.problems });
        await this.pauseFor(wait);
      }
    }
  }

  // Ends early when the connection is back, and at once on pause().
  pauseFor(milliseconds) {
    const signal = this.control.signal;
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        removeEventListener("online", done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      addEventListener("online", done);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}

// Sends JSON to an address of the API. Rejects with UploadError.
export async function post(address, body, csrf) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrf };
  const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => {
    throw offline();
  });
  if (!response.ok) throw new UploadError(problemsIn(await response.text(), response.status), response.status);
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

// The SHA-256 of a file whose upload has begun; those of abandoned uploads are forgotten.
function remembered(key) {
  for (const other of Object.keys(localStorage).filter((name) => name.startsWith(MEMORY))) {
    const at = Number(localStorage.getItem(other).split(" ")[1] ?? 0);
    if (Date.now() - at > MEMORY_MS) forget(other);
  }
  return localStorage.getItem(key)?.split(" ")[0];
}

function forget(key) {
  if (key) localStorage.removeItem(key);
}

async function digest(bytes) {
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// What an address for a part answers: coded problems, or, from a store that isn't the site, a status and XML.
function partProblems(text, status) {
  const code = OF_STORE[status];
  return codedProblems(text) ?? (code ? [problem(code, { next_step: "Resume; the parts already stored stay there." })] : problemsIn(text, status));
}

function codedProblems(text) {
  try {
    const { problems } = JSON.parse(text);
    return Array.isArray(problems) && problems.length ? problems : null;
  } catch {
    return null; // not JSON: a proxy's page, for instance
  }
}

function problemsIn(text, status) {
  const next_step = "Try again in a while; the parts already stored stay there.";
  return codedProblems(text) ?? [problem("E_SITE_UNREACHABLE", { found: `status ${status}`, next_step })];
}

function offline() {
  const message = "The connection to the site is lost.";
  const next_step = "Check your network and resume; the parts already stored stay there.";
  return new UploadError([problem("E_SITE_UNREACHABLE", { message, next_step })]);
}
