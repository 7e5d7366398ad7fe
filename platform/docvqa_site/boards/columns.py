"""The columns of the boards: one table, which every view and every export reads.

A column is one row of `COLUMNS`. Boards and their cards on phones, the method page, the comparison, the text command,
CSV, JSON with its schema, and docs/columns.md follow from it.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.conf import settings

from docvqa_site.boards import cells
from docvqa_site.boards.column import Column, Shown
from docvqa_site.boards.comparing import (
    accuracy_in_words,
    bytes_in_words,
    leakage_in_words,
    ranks_in_words,
    score_difference,
)
from docvqa_site.boards.ranking import Row
from docvqa_site.boards.selection import Sort
from docvqa_site.boards.uncertainty import Ends
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.display.results import EPSILON_COLUMNS, EpsilonColumn, leakage_text
from docvqa_site.ui.rounding import rounded_up
from docvqa_site.ui.templatetags.bounds import epsilon
from docvqa_site.ui.templatetags.ui import bytes_tag, readable_bytes, score
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from evaluator.messages.results import RunResults
from evaluator.scoring.metrics import cut

# Marks the ε that is compared with the budget, in text.
DECIDES = "*"
EVERYWHERE = Shown.BOARD | Shown.METHOD | Shown.COMPARISON | Shown.TEXT | Shown.DATA


def _accounted(track: Track) -> bool:
    return track.kind.is_accounted


def _by_bytes(track: Track) -> bool:
    return track.kind.rule.ranks_bytes


def _result(key: str, title: str, meaning: str, **more: Any) -> Column:
    """Return the column of a field of `RunResults`."""
    return Column(key, title, meaning, attrgetter(f"entry.results.{key}"), is_result=True, **more)


def _bytes(key: str, title: str, meaning: str, **more: Any) -> Column:
    """Return the column of a number of bytes."""

    def text(row: Row) -> str:
        found = getattr(row.entry.results, key)
        return "" if found is None else readable_bytes(found)

    def cell(row: Row) -> str:
        return bytes_tag(getattr(row.entry.results, key))

    def difference(one: Row, other: Row, _: Ends | None) -> str:
        return bytes_in_words(getattr(one.entry.results, key), getattr(other.entry.results, key))

    return _result(
        key,
        title,
        meaning,
        text=text,
        cell=cell,
        css="num",
        difference=difference,
        quantity="bytes",
        **more,
    )


def _verified(results: RunResults) -> str:
    if results.trust_level is None:
        return ""
    return ", ".join(filter(None, [f"L{results.trust_level.value}", results.trust_rounds]))


def _score(key: str, title: str, meaning: str, **more: Any) -> Column:
    def text(row: Row) -> str:
        found = getattr(row.entry.results, key)
        return "" if found is None else cut(found, row.entry.results.decimals)

    return _result(key, title, meaning, text=text, css="num", **more)


def _epsilon(key: str, title: str, meaning: str, **more: Any) -> Column:
    def text(row: Row) -> str:
        found = getattr(row.entry.results, key)
        return "" if found is None else rounded_up(found)

    def cell(row: Row) -> str:
        return epsilon(getattr(row.entry.results, key))

    return _result(
        key,
        title,
        meaning,
        text=text,
        css="num",
        applies=_accounted,
        quantity="epsilon",
        **{"cell": cell, **more},
    )


def _recomputed(column: EpsilonColumn) -> Column:
    """Return the column of ε by one accountant under one sampling rule."""

    def text(row: Row) -> str:
        found = column.of(row.entry.results)
        if found is None or found.epsilon is None:
            return ""
        return rounded_up(found.epsilon) + (DECIDES if found.decides else "")

    def value(row: Row) -> float | None:
        found = column.of(row.entry.results)
        return None if found is None else found.epsilon

    return Column(
        f"epsilon_{column.key}",
        column.title,
        column.meaning + ".",
        value,
        Shown.MORE | Shown.TEXT | Shown.DATA,
        is_result=True,
        text=text,
        cell=lambda row: cells.recomputed(column.of(row.entry.results)),
        applies=_accounted,
        css="num",
        quantity="epsilon",
    )


METHOD = Column(
    "method",
    "Method",
    "Title of the submission.",
    lambda row: row.entry.method,
    Shown.BOARD | Shown.TEXT | Shown.DATA,
    text=lambda row: row.entry.method + (" (baseline)" if row.entry.is_baseline else ""),
    cell=lambda row: cells.method(row.entry),
    css="board-method",
    has_label=False,
    heads_row=True,
    sort=Sort.METHOD,
)
STATUS = Column(
    "status",
    "Status",
    "Status of the review: `provisional` (under review), `verified` (proof accepted) or `rejected` (proof rejected). "
    "`scored` in tracks without a privacy proof.",
    lambda row: row.entry.status,
    Shown.BOARD | Shown.TEXT | Shown.DATA,
    text=lambda row: ", ".join(filter(None, [row.entry.status.label, row.pending_words])),
    cell=cells.status,
    css="board-status",
    sort=Sort.STATUS,
)
LEAKAGE = Column(
    "leakage",
    "Leakage",
    "AUC of an attack on the checkpoint; `n.s.` if not significant.",
    lambda row: leakage_text(row.entry.results.leakage),
    EVERYWHERE,
    is_result=True,
    cell=lambda row: cells.leakage_of(row.entry),
    difference=lambda one, other, _: leakage_in_words(one.entry.results.leakage, other.entry.results.leakage),
    applies=lambda track: bool(track.leakage_set),
    css="num",
    sort=Sort.LEAKAGE,
)
EPSILON = _epsilon(
    "epsilon",
    "ε",
    "Recomputed ε, compared with the budget.",
    shown=Shown.BOARD | Shown.METHOD | Shown.COMPARISON | Shown.DATA,
    sort=Sort.EPSILON,
)
JOINT_EPSILON = _epsilon(
    "joint_epsilon",
    "Joint ε",
    "Total ε of all the team's training runs in the track up to and including this one.",
    shown=Shown.MORE | Shown.METHOD | Shown.COMPARISON | Shown.DATA,
    cell=lambda row: cells.joint_epsilon(row.entry.results),
)
BYTES_TOTAL = _bytes(
    "bytes_total",
    "Communication",
    "Bytes sent in both directions during the whole training run (including first downloads only if the track "
    "counts them), plus the size of the team's own codec file.",
    shown=EVERYWHERE,
    sort=Sort.BYTES,
)
# In the order in which tables show them; on a board, the result that ranks it comes first.
COLUMNS: tuple[Column, ...] = (
    Column(
        "rank",
        "Rank",
        "Rank; empty for an unranked run.",
        lambda row: row.rank,
        Shown.BOARD | Shown.COMPARISON | Shown.TEXT | Shown.DATA,
        type=int | None,
        cell=cells.rank,
        css="num board-rank",
        sort=Sort.RANK,
        difference=lambda one, other, paired: (
            ranks_in_words(one.entry.results, other.entry.results, paired)
            if one.possible_ranks or other.possible_ranks
            else ""
        ),
    ),
    Column("reason", "Reason", "Reason why the run is not ranked.", lambda row: row.reason),
    Column(
        "pending",
        "Pending",
        "Level of verification that the run still needs for a final rank; empty if the rank is final.",
        lambda row: row.pending,
        type=TrustLevel | None,
    ),
    METHOD,
    Column(
        "team",
        "Team",
        "Team; an alias if the team is anonymous.",
        lambda row: row.entry.team,
        Shown.TEXT | Shown.DATA,
    ),
    _score(
        "anls",
        "ANLS",
        "Mean ANLS on the test set, truncated to four decimals. Pages show as many decimals as the test set supports.",
        shown=EVERYWHERE,
        cell=lambda row: cells.scored(row.entry),
        sort=Sort.ANLS,
        difference=lambda one, other, paired: score_difference(
            one.entry.results, other.entry.results, paired
        ),
    ),
    _score("anls_low", "ANLS, low", "Lower end of the 95% interval of `anls` over providers."),
    _score("anls_high", "ANLS, high", "Upper end of this interval."),
    _score(
        "public_anls", "Public ANLS", "`anls` on the public part, once ranks are based on the private part."
    ),
    EPSILON,
    JOINT_EPSILON,
    _result("joint_runs", "Joint runs", "Number of training runs included in `joint_epsilon`."),
    BYTES_TOTAL,
    _result(
        "counting",
        "Byte count",
        "`counted`: the evaluator computed the checkpoint from the run's messages, so nothing else went into it. "
        "For a large run, it computed the last round and the rounds selected by the site. "
        "`declared`: the bytes come from the team's log.",
        shown=EVERYWHERE,
        applies=_by_bytes,
        cell=lambda row: cells.counting(row.entry.results),
    ),
    _result(
        "not_counted_because",
        "Not counted",
        "Reason why the bytes aren't counted although a transcript was attached.",
    ),
    _result(
        "rounds_folded",
        "Rounds recomputed",
        "Number of rounds that the evaluator computed from their messages.",
    ),
    _result("log_rounds", "Rounds", "Number of rounds in the communication log."),
    _bytes(
        "bytes_sent",
        "Logged bytes, with first downloads",
        "Bytes of all messages in the communication log, including first downloads.",
        shown=Shown.MORE | Shown.METHOD | Shown.COMPARISON | Shown.TEXT | Shown.DATA,
        applies=_by_bytes,
    ),
    _bytes(
        "first_download_bytes",
        "First downloads",
        "Bytes of the downloads in the first round, whether or not they are in the log.",
        shown=Shown.MORE | Shown.METHOD | Shown.COMPARISON | Shown.DATA,
        applies=_by_bytes,
    ),
    Column(
        "first_download",
        "First download",
        "`free` or `counted`: whether `bytes_total` includes the first round's downloads, under the rule that applied "
        "when the run was submitted.",
        lambda row: row.entry.first_download,
    ),
    _result("decoder_bytes", "Decoder", "Size of the team's own codec file."),
    _result(
        "log_flag",
        "Flagged log",
        "First flagged check of the log of a run with declared bytes, or of the index of a run with counted bytes; "
        "the run has no rank until an organizer accepts the log.",
    ),
    Column(
        "is_log_accepted",
        "Accepted log",
        "Whether an organizer accepted the log despite a flagged check.",
        lambda row: row.entry.is_log_accepted,
        type=bool,
    ),
    _result("bytes_needed", "Bytes needed", "Lower bound on the bytes needed to send the changed weights."),
    _score(
        "accuracy",
        "Accuracy",
        "Share of exact matches.",
        shown=Shown.MORE | Shown.COMPARISON | Shown.TEXT | Shown.DATA,
        cell=lambda row: score(row.entry.results.accuracy, row.entry.results.decimals),
        difference=lambda one, other, _: accuracy_in_words(one.entry.results, other.entry.results),
    ),
    _score("public_accuracy", "Public accuracy", "`accuracy` on the public part."),
    _result("decimals", "Decimals", "Number of decimals that pages show for scores."),
    *map(_recomputed, EPSILON_COLUMNS),
    Column(
        "accountant",
        "Accountant",
        "Accountant used for ranking, with its version and precision.",
        lambda row: row.entry.results.accountant,
        Shown.MORE | Shown.COMPARISON | Shown.TEXT | Shown.DATA,
        is_result=True,
        text=lambda row: row.entry.accountant_name,
        applies=_accounted,
    ),
    LEAKAGE,
    _result(
        "trust_level",
        "Verification",
        "Level of verification, 0 to 3.",
        shown=EVERYWHERE,
        text=lambda row: _verified(row.entry.results),
        cell=lambda row: cells.verification(row.entry.results),
    ),
    _result(
        "trust_rounds", "Verified part", "The part of the run that this level covers, if not the whole run."
    ),
    _result("trust_by", "Verified by", "Who confirmed this level: the evaluator or an organizer."),
    _result("trust_at", "Verified at", "Time of this confirmation."),
    _result(
        "unbound",
        "Unbound",
        "Check that leaves the run unbound, and its outcome; empty if the checkpoint is tied to noised sums.",
    ),
    _result(
        "failed_level",
        "Failed level",
        "Level of the latest replay or rerun, if it failed; the run then has no rank.",
    ),
    _result("failed_because", "Failure", "What that examination found."),
    STATUS,
    Column(
        "flagged_checks",
        "Flags",
        "Number of flagged checks.",
        lambda row: row.entry.flagged_checks,
        Shown.TEXT | Shown.DATA,
        type=int,
    ),
    Column(
        "is_baseline",
        "Baseline",
        "Whether the submission is one of the organizers' baselines, which keep their ranks.",
        lambda row: row.entry.is_baseline,
        type=bool,
    ),
    Column(
        "is_disqualified",
        "Disqualified",
        "Whether the organizers disqualified the run.",
        lambda row: bool(row.entry.disqualified_because),
        type=bool,
    ),
    Column(
        "is_withheld",
        "Withheld",
        "Whether the rank is withheld until a reviewer accepts a revised proof.",
        lambda row: row.entry.is_withheld,
        type=bool,
    ),
    Column("phase", "Phase", "Phase of the submission.", lambda row: row.entry.phase),
    Column(
        "license",
        "License",
        "License of the submission, as an SPDX identifier; empty if the track stated none.",
        lambda row: row.entry.license,
    ),
    Column(
        "submitted_at",
        "Submitted",
        "Submission time (UTC).",
        lambda row: row.entry.submitted_at,
        type=datetime,
        sort=Sort.NEWEST,
    ),
    Column("url", "Page", "Address of the method's page.", lambda row: settings.SITE_URL + row.entry.url),
    Column(
        "code_url",
        "Code",
        "Address of the method's code, as its team states it.",
        lambda row: row.entry.code_url or None,
        type=str | None,
    ),
    Column(
        "paper_url",
        "Paper",
        "Address of the paper on the method, as its team states it.",
        lambda row: row.entry.paper_url or None,
        type=str | None,
    ),
    Column(
        "proof_url",
        "Proof",
        "Address of the privacy proof, if public.",
        lambda row: settings.SITE_URL + row.entry.proof_url if row.entry.proof_url else None,
        type=str | None,
    ),
    Column(
        "record_url",
        "Training record",
        "Address of the training record, from which ε follows; empty for runs without one and anonymous teams.",
        lambda row: (
            row.entry.file_url(ArtifactKind.TRAINING_RECORD) if row.entry.results.accountant else None
        ),
        type=str | None,
    ),
    Column(
        "log_url",
        "Communication log",
        "Address of the communication log, from which the bytes follow; empty for anonymous teams.",
        lambda row: row.entry.file_url(ArtifactKind.COMMUNICATION_LOG),
        type=str | None,
    ),
    Column(
        "transcript_url",
        "Transcript",
        "Address of the index of the messages; empty for runs whose bytes are declared and anonymous teams.",
        lambda row: row.entry.file_url(ArtifactKind.TRANSCRIPT) if row.entry.results.rounds_folded else None,
        type=str | None,
    ),
)
# In tracks that don't rank bytes, no column says whether they were counted.
WITHOUT_COUNTING = {
    "bytes_total": replace(BYTES_TOTAL, cell=lambda row: cells.bytes_total(row.entry.results)),
}

# In tracks without proofs, all runs with a rank have one status.
WITHOUT_REVIEWS = {"status": replace(STATUS, sort=None)}


def columns_of(track: Track, where: Shown, without: Collection[str] = ()) -> list[Column]:
    """Return the columns that a view of a track shows, the result that ranks before the other results."""
    found = [
        column
        for column in _columns(track)
        if column.shown & where
        and column.key not in without
        and (where & Shown.DATA or column.applies(track))
    ]
    if where & Shown.DATA:
        return found
    results = [column for column in found if column.is_result]
    results.sort(key=lambda column: column.key != track.kind.first)
    first = next((place for place, column in enumerate(found) if column.is_result), 0)
    others = [column for column in found if not column.is_result]
    return [*others[:first], *results, *others[first:]]


def sorts_of(track: Track) -> set[Sort]:
    """Return the orders of a track's boards."""
    return {column.sort for column in _columns(track) if column.sort is not None and column.applies(track)}


def _columns(track: Track) -> list[Column]:
    other = ({} if _by_bytes(track) else WITHOUT_COUNTING) | (
        {} if track.kind.is_reviewed else WITHOUT_REVIEWS
    )
    return [other.get(column.key, column) for column in COLUMNS]


def catalog() -> str:
    """Return docs/columns.md."""
    lines = [
        "# Columns of the leaderboards",
        "",
        "Generated by `make docs` from `platform/docvqa_site/boards/columns.py`. A track's CSV file begins with the",
        "columns `track` and `budget` (ε of the board), and has one line per run. In JSON and in the API, the columns",
        "marked as results are in the object `results`, which also has ε by every accountant and rule, the checks and",
        "scores by question type.",
        "",
        "| column | result | meaning |",
        "| --- | --- | --- |",
        *(
            f"| `{column.key}` | {'yes' if column.is_result else ''} | {column.meaning} |"
            for column in COLUMNS
            if Shown.DATA in column.shown
        ),
    ]
    return "\n".join(lines) + "\n"
