// Web Worker: the SHA-256 (FIPS 180-4) of a whole file, read a few megabytes at a time. WebCrypto hashes only what
// is in memory at once, which a checkpoint of a gigabyte must not.
//
// Message in: a File. Messages out: {done} in bytes now and then, then {sha256} in hex, or {error}.
"use strict";

const READ_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of the
// first 8 (section 4.2.2 and 5.3.3 of the standard).
const [K, START] = (() => {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  return [new Int32Array(primes.map((p) => fraction(p, 3n))), primes.slice(0, 8).map((p) => fraction(p, 2n))];
})();

// floor(2^32 · p^(1/degree)), lowest 32 bits; with integers, because floating point has too few digits.
function fraction(prime, degree) {
  const target = BigInt(prime) << (32n * degree);
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** degree <= target) low = middle;
    else high = middle;
  }
  return Number(BigInt.asIntN(32, low));
}

class Sha256 {
  constructor() {
    this.state = new Int32Array(START);
    this.schedule = new Int32Array(64);
    this.rest = new Uint8Array(BLOCK_BYTES);
    this.restLength = 0;
    this.length = 0;
  }

  update(bytes) {
    this.length += bytes.length;
    let at = 0;
    if (this.restLength) {
      at = Math.min(BLOCK_BYTES - this.restLength, bytes.length);
      this.rest.set(bytes.subarray(0, at), this.restLength);
      this.restLength += at;
      if (this.restLength < BLOCK_BYTES) return;
      this.blocks(this.rest, 0, BLOCK_BYTES);
    }
    const whole = at + Math.floor((bytes.length - at) / BLOCK_BYTES) * BLOCK_BYTES;
    this.blocks(bytes, at, whole);
    this.rest.set(bytes.subarray(whole));
    this.restLength = bytes.length - whole;
  }

  hex() {
    const bits = BigInt(this.length) * 8n;
    const padding = new Uint8Array((this.restLength < 56 ? 64 : 128) - this.restLength);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return [...this.state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  blocks(bytes, from, to) {
    const w = this.schedule;
    const state = this.state;
    for (let at = from; at < to; at += BLOCK_BYTES) {
      for (let t = 0, i = at; t < 16; t++, i += 4) {
        w[t] = (bytes[i] << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) | bytes[i + 3];
      }
      for (let t = 16; t < 64; t++) {
        const x = w[t - 15];
        const y = w[t - 2];
        const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        w[t] = (w[t - 16] + s0 + w[t - 7] + s1) | 0;
      }
      let a = state[0];
      let b = state[1];
      let c = state[2];
      let d = state[3];
      let e = state[4];
      let f = state[5];
      let g = state[6];
      let h = state[7];
      for (let t = 0; t < 64; t++) {
        const S1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const t1 = (h + S1 + ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
        const S0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const t2 = (S0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g;
        g = f;
        f = e;
        e = (d + t1) | 0;
        d = c;
        c = b;
        b = a;
        a = (t1 + t2) | 0;
      }
      state[0] += a;
      state[1] += b;
      state[2] += c;
      state[3] += d;
      state[4] += e;
      state[5] += f;
      state[6] += g;
      state[7] += h;
    }
  }
}

self.onmessage = async ({ data: file }) => {
  const digest = new Sha256();
  try {
    for (let at = 0; at < file.size; at += READ_BYTES) {
      digest.update(new Uint8Array(await file.slice(at, at + READ_BYTES).arrayBuffer()));
      self.postMessage({ done: Math.min(at + READ_BYTES, file.size) });
    }
    self.postMessage({ sha256: digest.hex() });
  } catch (error) {
    self.postMessage({ error: String(error) }); // moved, deleted or changed on the disk while it was read
  }
};
