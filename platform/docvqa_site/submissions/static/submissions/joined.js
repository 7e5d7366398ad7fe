// Makes one safetensors file of a sharded checkpoint: its index and the shards that it names. Only headers are read;
// the returned file reads the tensors from the shards when somebody reads it.
//
//   const file = await joined([...input.files]);   // rejects with UploadError
//
// evaluator/checkpoints/sharding.py writes the same bytes, and says how they are made.
import { problem, unreadable } from "./problem.js";
import { UploadError } from "./upload.js";

const CHOOSE_ALL = "Choose the index and all of its shards together.";
const NAME = "model.safetensors";
const INDEX = ".safetensors.index.json";
const MAX_HEADER_BYTES = 4 * 1024 * 1024;
const MAX_TENSORS = 20_000;
const MAX_SHARDS = 1000;
const SHARD_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
const SHARD_NUMBER = /-\d+-of-(\d+)\.safetensors$/; // model-00001-of-00003.safetensors
const DTYPE = /^[A-Z][A-Z0-9]{1,7}$/;

// Whether files that were chosen together are meant as a sharded checkpoint, or a part of one.
export function isSharded(files) {
  return files.some((file) => isIndex(file) || Number(SHARD_NUMBER.exec(file.name)?.[1]) > 1);
}

// The index and the shards among files of which others have nothing to do with the checkpoint.
export function shardFiles(files) {
  return files.filter((file) => isIndex(file) || SHARD_NUMBER.test(file.name));
}

export async function joined(files) {
  const index = onlyIndex(files);
  const placed = await readIndex(index);
  const shards = chosenShards(index, placed, files);
  const tensors = [];
  const contents = [];
  let start = 0;
  for (const [name, names] of [...placed].sort(([one], [other]) => compare(one, other))) {
    const shard = shards.get(name);
    const header = await readHeader(shard);
    checkPlaces(name, names, header.tensors);
    for (const tensor of header.tensors) {
      tensors.push({ ...tensor, begin: start + tensor.begin, end: start + tensor.end });
    }
    contents.push(shard.slice(header.dataStart));
    start += shard.size - header.dataStart;
  }
  const header = encodeHeader(tensors);
  if (header.length - 8 > MAX_HEADER_BYTES) {
    throw badIndex(index, `a joined header of at most ${MAX_HEADER_BYTES} bytes`, `${header.length - 8} bytes`);
  }
  const file = new File([header, ...contents], NAME);
  // What an upload is recognized by after a reload: all of the files, since a joined one has no date of its own.
  const parts = [index, ...shards.values()];
  file.identity = parts.map(({ name, size, lastModified }) => [name, size, lastModified].join(":")).sort().join("|");
  return file;
}

function onlyIndex(files) {
  const indexes = files.filter(isIndex);
  if (indexes.length === 1) return indexes[0];
  const message = indexes.length
    ? "Indexes of more than one sharded checkpoint were chosen."
    : "Shards of a checkpoint were chosen without the index that belongs to them.";
  throw rejection("E_CHECKPOINT_INDEX", {
    message,
    expected: `one file that ends in ${INDEX}, and its shards`,
    found: namesOf(files),
    next_step: CHOOSE_ALL,
  });
}

function isIndex(file) {
  return file.name.endsWith(INDEX);
}

// Returns the names of the tensors that the index assigns to each shard.
async function readIndex(index) {
  if (index.size > MAX_HEADER_BYTES) throw badIndex(index, `at most ${MAX_HEADER_BYTES} bytes`, `${index.size} bytes`);
  const content = parse(await bytesOf(index), (found) => badIndex(index, "JSON", found));
  const map = isObject(content) ? content.weight_map : undefined;
  if (!isObject(map) || !Object.keys(map).length) {
    throw badIndex(index, "a weight_map from tensors to files", "none");
  }
  const entries = Object.entries(map);
  if (entries.length > MAX_TENSORS) throw badIndex(index, `at most ${MAX_TENSORS} tensors`, entries.length);
  const placed = new Map();
  for (const [tensor, shard] of entries) {
    if (/\p{Surrogate}/u.test(tensor)) throw badIndex(index, "names in Unicode", tensor);
    if (typeof shard !== "string" || !SHARD_NAME.test(shard) || !shard.endsWith(".safetensors")) {
      throw badIndex(index, "the name of a .safetensors file in the same folder", shard, `tensor ${tensor}`);
    }
    if (!placed.has(shard)) placed.set(shard, new Set());
    placed.get(shard).add(tensor);
  }
  if (placed.size > MAX_SHARDS) throw badIndex(index, `at most ${MAX_SHARDS} shards`, placed.size);
  return placed;
}

// The files of the shards by name. Other JSON files may have been chosen along with them, other tensors not.
function chosenShards(index, placed, files) {
  const shards = new Map(files.filter((file) => placed.has(file.name)).map((file) => [file.name, file]));
  const missing = [...placed.keys()].filter((name) => !shards.has(name)).sort(compare);
  if (missing.length) {
    const found = `${missing.length} missing: ${missing.join(", ")}`;
    throw badShard(index.name, `its ${placed.size} shards`, found, CHOOSE_ALL);
  }
  const foreign = files.filter((file) => !placed.has(file.name) && !file.name.endsWith(".json"));
  if (foreign.length) {
    const next = "Choose the index and its shards, and nothing else.";
    throw badShard(index.name, "only the shards that the index names", namesOf(foreign), next);
  }
  return shards;
}

// The tensors of a shard in the order of their bytes, and where in the file these begin.
async function readHeader(shard) {
  const start = await bytesOf(shard.slice(0, 9));
  const length = start.length === 9 ? Number(new DataView(start.buffer).getBigUint64(0, true)) : Infinity;
  if (length > shard.size - 8 || start[8] !== 0x7b) {
    const details = { where: shard.name, expected: "safetensors", found: "another format" };
    throw rejection("E_CHECKPOINT_FORMAT", details);
  }
  if (length > MAX_HEADER_BYTES) throw badHeader(shard, `at most ${MAX_HEADER_BYTES} bytes`, `${length} bytes`);
  const entries = parse(await bytesOf(shard.slice(8, 8 + length)), (found) => badHeader(shard, "JSON", found));
  if (!isObject(entries)) throw badHeader(shard, "a JSON object", typeof entries);
  const tensors = Object.entries(entries)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, entry]) => readEntry(shard, name, entry))
    .sort((one, other) => one.begin - other.begin || one.end - other.end || compare(one.name, other.name));
  checkLayout(shard, tensors, shard.size - 8 - length);
  return { tensors, dataStart: 8 + length };
}

function readEntry(shard, name, entry) {
  const { dtype, shape, data_offsets: offsets } = isObject(entry) ? entry : {};
  if (!DTYPE.test(dtype) || !areCounts(shape) || !areCounts(offsets) || offsets.length !== 2) {
    throw badHeader(shard, "dtype, shape and data_offsets", JSON.stringify(entry), `tensor ${name}`);
  }
  return { name, dtype, shape, begin: offsets[0], end: offsets[1] };
}

function checkLayout(shard, tensors, dataBytes) {
  let position = 0;
  for (const { name, begin, end } of tensors) {
    if (begin !== position || end < begin) {
      throw badLayout(shard, `tensor ${name}`, `to begin at byte ${position}`, `byte ${begin}`);
    }
    position = end;
  }
  if (position !== dataBytes) {
    throw badLayout(shard, "end of file", `${position} bytes of tensors`, `${dataBytes} bytes`);
  }
}

// Checks that a shard has exactly the tensors that the index assigns to it.
function checkPlaces(shard, names, tensors) {
  const present = new Set(tensors.map((tensor) => tensor.name));
  const absent = [...names].find((name) => !present.has(name));
  if (absent !== undefined) throw badShard(`${shard}, tensor ${absent}`, "the tensor, as the index says", "nothing");
  const foreign = [...present].find((name) => !names.has(name));
  if (foreign !== undefined) {
    throw badShard(`${shard}, tensor ${foreign}`, "only tensors that the index places in this shard", "this one");
  }
}

// Written by hand, for an object would put names that look like numbers first.
function encodeHeader(tensors) {
  const entries = tensors.map(
    ({ name, dtype, shape, begin, end }) =>
      `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":[${shape}],"data_offsets":[${begin},${end}]}`,
  );
  const text = new TextEncoder().encode(`{${['"__metadata__":{"format":"pt"}', ...entries].join(",")}}`);
  const length = Math.ceil(text.length / 8) * 8;
  const header = new Uint8Array(8 + length).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(length), true);
  header.set(text, 8);
  return header;
}

function parse(bytes, reject) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    throw reject(error.message);
  }
}

async function bytesOf(blob) {
  try {
    return new Uint8Array(await blob.arrayBuffer());
  } catch (error) {
    throw new UploadError([unreadable(blob.name, error.message)], 400);
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areCounts(value) {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

// By code points, as Python sorts; JavaScript's own order is that of UTF-16.
function compare(one, other) {
  const [a, b] = [[...one], [...other]];
  const at = a.findIndex((character, i) => character !== b[i]);
  if (at === -1) return a.length - b.length;
  return at < b.length ? a[at].codePointAt() - b[at].codePointAt() : 1;
}

function namesOf(files) {
  return files.map((file) => file.name).join(", ");
}

function badIndex(index, expected, found, location = "") {
  const where = [index.name, location].filter(Boolean).join(", ");
  return rejection("E_CHECKPOINT_INDEX", { where, expected, found });
}

function badShard(where, expected, found, next_step) {
  return rejection("E_CHECKPOINT_SHARD", { where, expected, found, ...(next_step && { next_step }) });
}

function badHeader(shard, expected, found, location = "") {
  const where = [shard.name, location].filter(Boolean).join(", ");
  return rejection("E_CHECKPOINT_HEADER", { where, expected, found });
}

function badLayout(shard, location, expected, found) {
  return rejection("E_CHECKPOINT_OFFSETS", { where: `${shard.name}, ${location}`, expected, found });
}

function rejection(code, details) {
  const shortened = Object.entries(details).map(([key, value]) => [key, shorten(String(value))]);
  return new UploadError([problem(code, Object.fromEntries(shortened))], 400);
}

function shorten(text, limit = 300) {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}
