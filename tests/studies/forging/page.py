"""The page on forged records."""

from pathlib import Path

from evaluator.messages.jobs import CheckStatus
from evaluator.records.check_table import UNCAUGHT
from tests.evaluator.records.test_lies import LIES, Lie
from tests.studies.forging.measuring import LITTLE_NOISE, Forged, Forging, Verdict
from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.experiment import TASK, Results
from tests.studies.study import DOCS, Study

VERDICTS: tuple[Verdict, ...] = ("rejected", "no rank", "flagged", "passed")


def page(forging: Forging) -> str:
    """Return the page of these outcomes."""
    return fill(
        Path(__file__).with_suffix(".md"),
        providers=f"{TASK.providers:,}",
        clients=TASK.clients,
        base=forging.base,
        wanted=forging.wanted,
        honest=_honest(1),
        honest_4=_honest(4),
        honest_8=_honest(8),
        little_noise=f"{LITTLE_NOISE:,}",
        genuine=(table_row(title, found) for title, found in forging.genuine.items()),
        forgeries=map(_row, forging.forged),
        lies=map(_lie, LIES),
        uncaught=(table_row(lie, levels) for lie, levels in UNCAUGHT.items()),
    )


def _row(forged: Forged) -> str:
    tried = sum(forged.verdicts.values())
    counts = [f"{forged.verdicts.get(verdict, 0)} of {tried}" for verdict in VERDICTS]
    checks = ", ".join(f"`{check}`" for check in forged.found_by)
    return table_row(
        forged.name, f"{forged.anls:.4f}", *counts, checks or "–", "found" if forged.is_replayable else "–"
    )


def _lie(lie: Lie) -> str:
    by = {
        status: ", ".join(f"`{check}`" for check, found in lie.caught.items() if found is status) or "–"
        for status in (CheckStatus.FAILED, CheckStatus.FLAGGED)
    }
    return table_row(lie.name, by[CheckStatus.FAILED], by[CheckStatus.FLAGGED])


def _honest(epsilon: int) -> str:
    """Return the mean ANLS of honest runs with the settings that the forgeries declare at ε."""
    results = Study("reproduction", Results, lambda _: iter(()), lambda _: "").read(DOCS)
    scores = [one.anls for one in results.outcomes if one.row == f"fl-provider-dp-{epsilon}"]
    return f"{sum(scores) / len(scores):.4f}"
