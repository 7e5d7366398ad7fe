// Amounts of bytes, how fast they go and how long the rest takes, in words.

const UNITS = ["kB", "MB", "GB", "TB"];
// The speed is that of the last seconds, and isn't known before the first few of them.
const WINDOW_MS = 10_000;
const KNOWN_AFTER_MS = 1500;

// As the filter `bytes` of the site's templates: three digits, decimal units.
export function readableBytes(bytes) {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${UNITS[unit]}`;
}

export class Rate {
  constructor() {
    this.samples = [];
  }

  // Note that `done` of `total` bytes are sent, and return what can be said of the speed and of the time left.
  inWords(done, total, now = performance.now()) {
    this.samples = this.samples.filter(({ at }) => now - at <= WINDOW_MS);
    this.samples.push({ at: now, done });
    const [first] = this.samples;
    const elapsed = now - first.at;
    const perSecond = elapsed >= KNOWN_AFTER_MS ? ((done - first.done) / elapsed) * 1000 : 0;
    if (perSecond <= 0 || done >= total) return [];
    return [`${readableBytes(perSecond)}/s`, timeLeft((total - done) / perSecond)];
  }
}

function timeLeft(seconds) {
  if (seconds < 55) return `about ${Math.max(5, Math.ceil(seconds / 5) * 5)} s left`;
  if (seconds < 3600) return `about ${Math.round(seconds / 60)} min left`;
  return `about ${(seconds / 3600).toFixed(1)} h left`;
}
