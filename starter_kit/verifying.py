"""Recomputing what a site publishes, from its public files: `pfl verify`.

For each run on a board, ε follows from the training record and the bytes from the communication log; both are compared
with the figures on the board. The index of counted messages must list what the log does. The record's signature is
verified, and the checks that need nothing else. Ranks follow from all figures by the track's rule. What needs the
checkpoint, the annex or the secret test set isn't checked here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import TypeAdapter, ValidationError

from evaluator.communication.first_downloads import FirstDownloads
from evaluator.communication.log import read_log
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.lines import OwnFile
from evaluator.folding.reading import check_log, read_transcript
from evaluator.messages.api import TrackInfo
from evaluator.messages.jobs import CheckStatus, FirstDownload
from evaluator.messages.rankings import BUDGET, Limits, RankingRule
from evaluator.messages.results import RunResults
from evaluator.records.case import Case, RunFile
from evaluator.records.check_table import RECORD_CHECKS
from evaluator.records.epsilon import account
from evaluator.records.reading import read_record

TIMEOUT_S = (10, 120)
PAGE = 200
# Another processor may round the accountant's last digits otherwise.
TOLERANCE = 1e-6
CHUNK_BYTES = 1 << 20

_TRACKS: TypeAdapter[list[TrackInfo]] = TypeAdapter(list[TrackInfo])


@dataclass(frozen=True)
class Difference:
    """A published figure that doesn't follow from the public files.

    Attributes:
        where: The track, the board and the run.
    """

    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, and the site says {self.found}"


@dataclass
class Verified:
    """How much was verified, and of what there are no public files."""

    runs: int = 0
    epsilons: int = 0
    bytes_counted: int = 0
    ranks: int = 0
    without_files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PublicSite:
    """A site as everybody sees it, without an account."""

    address: str

    def tracks(self) -> list[TrackInfo]:
        """Return the tracks and their rules."""
        return _TRACKS.validate_python(self._json("api/v1/leaderboards"))

    def boards(self, slug: str) -> dict[float | None, list[dict[str, Any]]]:
        """Return all rows of a track's boards by their budget, ranked rows first."""
        found: dict[float | None, list[dict[str, Any]]] = {}
        while True:
            fewest = max(map(len, found.values()), default=0)
            page = self._json(f"api/v1/leaderboards/{slug}?limit={PAGE}&offset={fewest}")
            for board in page["boards"]:
                found.setdefault(board["budget"], []).extend(board["rows"])
            if all(len(found[board["budget"]]) >= board["count"] for board in page["boards"]):
                return found

    def save(self, address: str, path: Path) -> None:
        """Save the file at an address, of which the path counts: the site may know itself by another name."""
        with self._get(self._at(urlsplit(address).path), stream=True) as response, path.open("wb") as file:
            for chunk in response.iter_content(CHUNK_BYTES):
                file.write(chunk)

    def _json(self, path: str) -> Any:
        return self._get(self._at(path)).json()

    def _at(self, path: str) -> str:
        return f"{self.address.rstrip('/')}/{path.lstrip('/')}"

    def _get(self, address: str, *, stream: bool = False) -> requests.Response:
        try:
            response = requests.get(address, timeout=TIMEOUT_S, stream=stream)
            response.raise_for_status()
        except requests.RequestException as error:
            raise ProblemError.of(
                ErrorCode.SITE_UNREACHABLE, where=address, found=" ".join(str(error).split())
            ) from error
        return response


def verify(site: PublicSite, track: TrackInfo, verified: Verified) -> Iterator[Difference]:
    """Yield every difference in a track, and count in `verified` what was recomputed.

    Raises:
        ProblemError: (`E_SITE_UNREACHABLE`) The site doesn't answer.
    """
    for budget, rows in site.boards(track.slug).items():
        board = track.slug if budget is None else f"{track.slug}, ε = {budget:g}"
        for row in rows:
            yield from _of_run(site, track, budget, row, f"{board}, {row['method']}", verified)
        yield from rank_differences(track, budget, rows, board)
        verified.ranks += sum(row["rank"] is not None for row in rows)


def _of_run(
    site: PublicSite,
    track: TrackInfo,
    budget: float | None,
    row: Mapping[str, Any],
    where: str,
    verified: Verified,
) -> Iterator[Difference]:
    results, verified.runs = RunResults.model_validate(row["results"]), verified.runs + 1
    if row["log_url"] is None:
        verified.without_files.append(where)
        return
    with TemporaryDirectory(prefix="verify-") as folder:
        log, index, record = (Path(folder) / name for name in ("log.csv", "transcript.jsonl", "record.jsonl"))
        try:
            site.save(row["log_url"], log)
            downloads = FirstDownloads()
            totals = read_log(
                log, clients=track.clients, max_rounds=track.max_rounds, on_exchange=downloads.add
            )
            ranked = downloads.ranked_bytes(totals, FirstDownload(row["first_download"]))
            if (expected := ranked + results.decoder_bytes) != results.bytes_total:
                yield Difference(f"{where}, bytes", f"{expected}", f"{results.bytes_total}")
            if row["transcript_url"] is not None:
                site.save(row["transcript_url"], index)
                yield from _of_transcript(track, results, index, log, where)
            verified.bytes_counted += 1
            if row["record_url"] is not None and budget is not None:
                site.save(row["record_url"], record)
                yield from _of_record(track, budget, results, record, log, where)
                verified.epsilons += 1
        except ProblemError as error:
            if error.problems[0].code == ErrorCode.SITE_UNREACHABLE:
                raise
            yield Difference(f"{where}, {error.problems[0].where}", "a file that can be read", str(error))


def _of_transcript(
    track: TrackInfo, results: RunResults, path: Path, log: Path, where: str
) -> Iterator[Difference]:
    """Yield what is wrong with the index of the messages, which must list those of the log and their codec."""
    transcript = read_transcript(path)
    check_log(transcript, log, clients=track.clients, max_rounds=track.max_rounds)
    codec = transcript.run.codec
    size_bytes = codec.size_bytes if isinstance(codec, OwnFile) else 0
    if size_bytes != results.decoder_bytes:
        yield Difference(f"{where}, bytes of the decoder", f"{size_bytes}", f"{results.decoder_bytes}")


def _of_record(
    track: TrackInfo, budget: float, results: RunResults, path: Path, log: Path, where: str
) -> Iterator[Difference]:
    """Yield what is wrong with a record: reading it has verified its chain and its signature."""
    record = read_record(path, max_rounds=track.max_rounds)
    rules = track.rules(budget)
    if rules.privacy is None:
        return
    found = account(record, rules.privacy, []).epsilon
    if results.epsilon is None or not isclose(found, results.epsilon, rel_tol=TOLERANCE):
        yield Difference(f"{where}, ε", f"{found:.6f}", f"{results.epsilon}")
    case = Case(record, rules, {RunFile.LOG: log})
    for check in RECORD_CHECKS:
        if set(check.needs) <= {RunFile.LOG} and (made := check.make(case)).status is CheckStatus.FAILED:
            yield Difference(f"{where}, {made.id}", made.expected, made.found)


def rank_differences(
    track: TrackInfo, budget: float | None, rows: Sequence[Mapping[str, Any]], board: str
) -> Iterator[Difference]:
    """Yield where ranks don't follow from the figures: who has one, which numbers they are, and in which order."""
    limits = {name: float(getattr(track, name)) for name in track.rule.fields} | {BUDGET: budget}
    counted = {phase.name for phase in track.phases if phase.requires_counted}
    for row in rows:
        qualifies = _qualifies(track.rule, row, limits, requires_counted=row["phase"] in counted)
        if qualifies != (row["rank"] is not None):
            expected, found = ("a rank", "none") if qualifies else ("no rank", f"rank {row['rank']}")
            yield Difference(f"{board}, {row['method']}", expected, found)
    ranked = [row for row in rows if row["rank"] is not None]
    numbers = [row["rank"] for row in ranked]
    if numbers != list(range(1, len(ranked) + 1)):
        yield Difference(board, "the ranks 1, 2, 3 and so on", f"{numbers}")
    keys = [
        (track.rule.key_of(RunResults.model_validate(row["results"])), row["submitted_at"]) for row in ranked
    ]
    for place, (key, due) in enumerate(zip(keys, sorted(keys), strict=True)):
        if key != due:
            row = ranked[place]
            yield Difference(f"{board}, rank {row['rank']}", "the order of the rule", row["method"])
            return


def _qualifies(rule: RankingRule, row: Mapping[str, Any], limits: Limits, *, requires_counted: bool) -> bool:
    results = RunResults.model_validate(row["results"])
    is_taken_off = row["is_disqualified"] or row["status"] == "rejected" or results.failed_level is not None
    return not (
        is_taken_off
        or row["is_withheld"]
        or rule.unmet(results, limits)
        or rule.is_unconfirmed(results, limits)
        or rule.is_uncounted(results, requires_counted=requires_counted)
        or rule.is_doubtful(results, is_log_accepted=row["is_log_accepted"])
    )


def site_at(address: str) -> PublicSite:
    """Return the site at an address.

    Raises:
        ProblemError: (`E_SITE_UNREACHABLE`) Nothing there answers as a site of this version does.
    """
    site = PublicSite(address)
    try:
        site.tracks()
    except ValidationError as error:
        raise ProblemError.of(
            ErrorCode.SITE_UNREACHABLE, where=address, found=" ".join(str(error).split())[:200]
        ) from error
    return site
