"""How long a step still takes: estimated by the worker, and in words, the same on the site and in the terminal."""

from dataclasses import dataclass, replace

MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400
# A longer estimate counts as none.
MAX_REMAINING_S = 30.0 * DAY_S


@dataclass(frozen=True)
class Pace:
    """How far a step is, and how fast it goes since the first of its units finished.

    Attributes:
        since_s, since_done: When that was, and how many were done then.
        now_s: When the last of them finished.
    """

    done: int = 0
    total: int = 0
    since_s: float | None = None
    since_done: int = 0
    now_s: float = 0.0

    def at(self, done: int, total: int, now_s: float) -> "Pace":
        """Return the pace after `done` of `total`; another total is another piece of work."""
        if total != self.total or done < self.done:
            return Pace(done, total)
        if done == self.done:
            return self
        if self.since_s is None:
            return Pace(done, total, now_s, done, now_s)
        return replace(self, done=done, now_s=now_s)

    def remaining_s(self, now_s: float) -> float | None:
        """Return the seconds left at this pace; None before it can be estimated."""
        if self.since_s is None or self.done == self.since_done:
            return None
        per_unit_s = (self.now_s - self.since_s) / (self.done - self.since_done)
        left_s = max(0.0, (self.total - self.done) * per_unit_s - (now_s - self.now_s))
        return left_s if left_s <= MAX_REMAINING_S else None


def in_words(remaining_s: float | None) -> str:
    """Return text such as "about 4 min left", as coarse as the estimate is; empty where there is none."""
    if remaining_s is None:
        return ""
    if remaining_s < MINUTE_S:
        return "less than a minute left"
    minutes = round(remaining_s / MINUTE_S)
    if minutes < 60:
        return f"about {minutes} min left"
    hours, tens = divmod(round(remaining_s / (10 * MINUTE_S)), 6)
    if hours < 10:
        return f"about {hours} h {f'{tens}0 min ' if tens else ''}left"
    hours = round(remaining_s / HOUR_S)
    return f"about {hours} h left" if hours < 48 else f"about {round(remaining_s / DAY_S)} days left"
