"""Whether a record carries the run token that a track asks for. Loads no library that trains."""

from collections.abc import Iterator

from evaluator.errors import ErrorCode, Problem
from evaluator.messages.api import TrackInfo
from evaluator.records.lines import RunLine


def token_problems(run: RunLine, track: TrackInfo, where: str) -> Iterator[Problem]:
    """Yield that a record doesn't carry the run token that the track asks for."""
    if track.rule.is_accounted and run.run_token is None:
        yield Problem.of(
            ErrorCode.RECORD_TOKEN,
            where,
            "a run token, requested before the training",
            "no run token",
            next_step="Set PFL_SITE and PFL_TOKEN, and train again.",
        )
