"""Snapshots of the leaderboards: files that can be archived, cited, and verified without the site."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards import verify_snapshot
from docvqa_site.boards.earlier_rules import earlier_rules
from docvqa_site.boards.models import published_by
from docvqa_site.boards.published import as_csv, publish_all
from docvqa_site.boards.required_examinations import require_final_ranks
from docvqa_site.challenge.definitions import FIELDS, PHASE_FIELDS
from docvqa_site.challenge.models import Phase, Track
from evaluator.messages.jobs import evaluator_version

# What a track has that isn't public.
PRIVATE_FIELDS = frozenset({"data_sha256"})


class BoardsChangedError(Exception):
    """The boards changed while they were written, so that the files may contradict each other."""


@dataclass(frozen=True)
class Edition:
    """What a snapshot calls itself. `url` is where it is published; by default the site.

    `corrects` is the address of the earlier edition that it corrects, with the reason; empty where there is none.
    """

    name: str
    title: str
    made_at: datetime
    url: str
    corrects: str = ""
    reason: str = ""

    @classmethod
    def of(cls, name: str, made_at: datetime) -> "Edition":
        return cls(name, f"PFL-DocVQA leaderboards, snapshot {name}", made_at, settings.SITE_URL)


def write_snapshot(folder: Path, name: str, made_at: datetime, phase: str = "") -> None:
    """Write a snapshot of all tracks to a new folder; of one phase, if it is named, the tracks that have it.

    Raises:
        Phase.DoesNotExist: No track has a phase of this name.
        FileExistsError: The folder exists.
        ProblemError, BoardsChangedError: See `snapshot_files`. Nothing is written.
    """
    tracks = list(Track.objects.filter(phases__name=phase) if phase else Track.objects.all())
    if phase and not tracks:
        raise Phase.DoesNotExist
    if folder.exists():
        raise FileExistsError
    files = snapshot_files(tracks, Edition.of(name, made_at), phase)
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)


def snapshot_files(tracks: Sequence[Track], edition: Edition, phase: str = "") -> dict[str, bytes]:
    """Return the files of a snapshot of these tracks, or of what was submitted to them in one phase, by their names.

    Raises:
        ProblemError: (`E_EXAMINATION_PENDING`) Ranks need an examination that hasn't passed; one problem for each.
        BoardsChangedError: A board changed meanwhile.
    """
    before = boards_versions([track.pk for track in tracks])
    require_final_ranks(tracks, phase)
    texts = {
        verify_snapshot.SNAPSHOT: _snapshot(tracks, edition, phase),
        "CITATION.cff": _citation(edition),
        "README.md": _readme(edition),
        "verify.py": Path(verify_snapshot.__file__).read_text(encoding="utf-8"),
        **{f"{track.slug}.csv": as_csv(track, phase) for track in tracks},
    }
    if boards_versions([track.pk for track in tracks]) != before:
        raise BoardsChangedError
    files = {file: text.encode() for file, text in texts.items()}
    sums = "".join(f"{sha256(content)}  {file}\n" for file, content in sorted(files.items()))
    return {**files, verify_snapshot.SUMS: sums.encode()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _snapshot(tracks: Sequence[Track], edition: Edition, phase: str) -> str:
    content = {
        "name": edition.name,
        "made_at": edition.made_at,
        "site": settings.SITE_URL,
        "evaluator_version": evaluator_version(),
        "phase": phase or None,
        "corrects": edition.corrects or None,
        "correction_reason": edition.reason or None,
        "tracks": [
            {
                "slug": track.slug,
                "name": track.name,
                "rules": {field: getattr(track, field) for field in sorted(FIELDS - PRIVATE_FIELDS)},
                "earlier_rules": [one.published for one in earlier_rules(track, phase)],
                "rule": track.kind.rule.model_dump(mode="json"),
                "phases": list(track.phases.values(*sorted(PHASE_FIELDS))),
                **publish_all(track, phase).model_dump(mode="json", exclude={"track"}),
            }
            for track in tracks
        ],
    }
    return json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1) + "\n"


def _citation(edition: Edition) -> str:
    content = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite this snapshot.",
        "type": "dataset",
        "title": edition.title,
        "authors": [{"name": published_by()}],
        "version": edition.name,
        "date-released": edition.made_at.date(),
        "url": edition.url,
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _correction(edition: Edition) -> str:
    return f"\nIt corrects {edition.corrects}. Reason: {edition.reason}\n" if edition.corrects else ""


def _readme(edition: Edition) -> str:
    made_at = edition.made_at
    return f"""# {edition.title}

Created on {made_at:%B} {made_at.day}, {made_at:%Y, %H:%M} UTC from {edition.url}, evaluator {evaluator_version()}.
{_correction(edition)}
- `{verify_snapshot.SNAPSHOT}`: the rules of every track, and all rows with their rank or the reason for having none.
  Thresholds and all else that decides a rank are those of the day of these files. Each run was evaluated under the
  other rules of its submission; `earlier_rules` lists the ranked runs for which these differed from the track's
  `rules`, with the values.
- `<track>.csv`: the same rows as tables. A row's `license` is that of its submission, if the track states one.
- `CITATION.cff`: how to cite it.
- `{verify_snapshot.SUMS}`: the hash of every file. Run `python verify.py` to check the hashes and the ranks.

Scores are truncated to four decimals, of which the site shows `decimals`; their intervals are rounded outward to three.
"""
