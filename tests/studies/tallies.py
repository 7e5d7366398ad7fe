"""Counts of false alarms that grow over many sittings: so many trials of each honest thing, and what they found.

A tally is of the code that made it. While a new one is smaller than one by earlier code, both are kept, so that nothing
that was counted is lost before it was counted again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from tests.studies.markdown import table_row


class Trial(NamedTuple):
    """What one trial found, by id or code; nothing if there was no alarm; and its seconds of computing."""

    found: list[str]
    seconds: float


class Tally(BaseModel):
    """The trials of one thing by the same code.

    Attributes:
        code: The hash of the code that made them (`starter_kit.runs.executed_code`).
        trials: How many there were.
        alarms: In how many of them anything was found.
        found: What was found, and in how many trials.
        longest_s: Seconds of computing that the longest took.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    code: str
    trials: int = 0
    alarms: int = 0
    found: dict[str, int] = {}
    longest_s: float = 0.0

    def plus(self, trial: Trial) -> "Tally":
        """Return the tally with one more trial."""
        found = {id_: self.found.get(id_, 0) + (id_ in trial.found) for id_ in [*self.found, *trial.found]}
        return Tally(
            name=self.name,
            code=self.code,
            trials=self.trials + 1,
            alarms=self.alarms + bool(trial.found),
            found=found,
            longest_s=max(self.longest_s, round(trial.seconds, 1)),
        )


def current(tallies: Sequence[Tally], codes: Mapping[str, str]) -> list[Tally]:
    """Return the tally by the present code for each name in `codes`, an empty one where there was no trial."""
    known = {(tally.name, tally.code): tally for tally in tallies}
    return [known.get((name, code)) or Tally(name=name, code=code) for name, code in codes.items()]


def earlier(tallies: Sequence[Tally], codes: Mapping[str, str]) -> list[Tally]:
    """Return the tallies by other code than the present, of the names in `codes`."""
    return [tally for tally in tallies if codes.get(tally.name, tally.code) != tally.code]


def started(tallies: Sequence[Tally], codes: Mapping[str, str]) -> list[Tally]:
    """Return the tallies of these names, with an empty one where the present code has tried nothing yet."""
    old = [tally for tally in tallies if tally.name in codes and tally.code != codes[tally.name]]
    return sorted([*old, *current(tallies, codes)], key=lambda tally: tally.name)


def updated(tallies: Sequence[Tally], new: Tally) -> list[Tally]:
    """Return the tallies with `new` in place of those of its name that aren't larger."""
    others = [tally for tally in tallies if tally.name != new.name or tally.trials > new.trials]
    return sorted([*others, new], key=lambda tally: tally.name)


def order(tallies: Sequence[Tally], codes: Mapping[str, str], trials: int) -> list[str]:
    """Return the names to try so that each has so many trials by the present code, those with the fewest first."""
    made = current(tallies, codes)
    return [tally.name for number in range(trials) for tally in made if tally.trials <= number]


def count(
    tallies: Sequence[Tally],
    codes: Mapping[str, str],
    trials: int,
    attempt: Callable[[str], Trial],
    processes: int = 1,
) -> Iterator[tuple[Tally, list[Tally]]]:
    """Make the trials that are missing; yield after each one the tally that has grown, and all of them.

    Args:
        codes: The hash of the present code for each name.
        attempt: Makes one trial. For several processes it must be a function that can be pickled.
    """
    known = list(tallies)
    names = order(known, codes, trials)
    for name, trial in zip(names, _outcomes(attempt, names, processes), strict=True):
        grown = current(known, {name: codes[name]})[0].plus(trial)
        known = updated(known, grown)
        yield grown, known


def _outcomes(attempt: Callable[[str], Trial], names: Sequence[str], processes: int) -> Iterator[Trial]:
    if processes == 1:
        yield from map(attempt, names)
        return
    # Spawned: forked processes would draw the same coins and noise.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(attempt, names)


def table(tallies: Sequence[Tally], codes: Mapping[str, str]) -> list[str]:
    """Return the rows: name, alarms by the present code, what was found, the longest trial, alarms by earlier code.

    Args:
        codes: The hash of the present code for each name.
    """
    before = earlier(tallies, codes)
    return [_row(now, [old for old in before if old.name == now.name]) for now in current(tallies, codes)]


def alarms_of(tallies: Sequence[Tally]) -> str:
    """Return the alarms of all trials, as "0 of 200"."""
    return f"{sum(tally.alarms for tally in tallies)} of {sum(tally.trials for tally in tallies)}"


def _row(now: Tally, before: Sequence[Tally]) -> str:
    found = ", ".join(f"`{id_}`: {times}" for id_, times in now.found.items()) or "nothing"
    made = [alarms_of([now]), found, f"{now.longest_s:.1f} s"] if now.trials else ["not tried", "", ""]
    return table_row(now.name, *made, alarms_of(before) if before else "")
