"""What happened to each run token of a team, as its pages show it."""

from collections.abc import Iterable
from dataclasses import dataclass

from docvqa_site.submissions.models import Run, RunToken
from docvqa_site.submissions.states import IN_EVALUATION


@dataclass(frozen=True)
class TokenFate:
    """A run token, and in words what became of it.

    Attributes:
        run: The run that has it, or whose evaluation may yet; None where there is none.
        is_unresolved: Whether its challenge is unresolved, which the team may explain.
        is_held: Whether a training holds it that no record was uploaded of; who requested it may release it.
    """

    token: RunToken
    words: str
    run: Run | None = None
    is_unresolved: bool = False
    is_held: bool = False


def fates_of(tokens: Iterable[RunToken]) -> list[TokenFate]:
    """Return what became of these tokens of one team, which have been read with their runs' submissions."""
    listed = list(tokens)
    open_challenges = [token.challenge for token in listed if token.challenge and token.run is None]
    runs = Run.objects.filter(
        challenge__in=open_challenges,
        state__in=IN_EVALUATION,
        submission__practice=False,
        submission__team__in={token.team_id for token in listed},
    )
    waiting = {run.challenge: run for run in runs.select_related("submission")} if open_challenges else {}
    return [_fate(token, waiting.get(token.challenge)) for token in listed]


def _fate(token: RunToken, waiting: Run | None) -> TokenFate:
    if token.run is not None:
        return TokenFate(token, "ε recomputed", token.run)
    if token.challenge and waiting is not None:
        return TokenFate(
            token,
            "in evaluation, which resolves its challenge once ε is recomputed",
            waiting,
            is_unresolved=True,
        )
    if token.challenge and token.events:
        words = "unresolved challenge: its record was submitted for practice only; submit the same record for a rank"
        return TokenFate(token, words, is_unresolved=True)
    if token.challenge:
        words = "unresolved challenge: a record was uploaded, but ε hasn't been recomputed for its run"
        return TokenFate(token, words, is_unresolved=True)
    if token.training:
        return TokenFate(token, "reserved for a training run; no record was uploaded yet", is_held=True)
    return TokenFate(token, "not used yet; your next pfl train takes it")
