"""Snapshots of the leaderboards: files that can be archived, cited, and verified without the site."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import yaml
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

from evaluator.messages.jobs import evaluator_version
from portal.audit.versions import boards_versions
from portal.boards import verify_snapshot
from portal.boards.published import as_csv, publish_all
from portal.boards.required_examinations import require_final_ranks
from portal.challenge.definitions import FIELDS, PHASE_FIELDS
from portal.challenge.models import Phase, Track

# What a track has that isn't public.
PRIVATE_FIELDS = frozenset({"data_sha256"})


class BoardsChangedError(Exception):
    """The boards changed while they were written, so that the files may contradict each other."""


def write_snapshot(folder: Path, name: str, made_at: datetime, phase: str = "") -> None:
    """Write a snapshot of all tracks to a new folder; of one phase, if it is named, the tracks that have it.

    Raises:
        Phase.DoesNotExist: No track has a phase of this name.
        FileExistsError: The folder exists.
        ProblemError: (`E_EXAMINATION_PENDING`) Ranks need an examination that hasn't passed; one problem for each.
        BoardsChangedError: A board changed meanwhile. The folder is left without its list of hashes.
    """
    tracks = list(Track.objects.filter(phases__name=phase) if phase else Track.objects.all())
    if phase and not tracks:
        raise Phase.DoesNotExist
    before = boards_versions([track.pk for track in tracks])
    require_final_ranks(tracks, phase)
    folder.mkdir(parents=True)
    files = {
        verify_snapshot.SNAPSHOT: _snapshot(tracks, name, made_at, phase),
        "CITATION.cff": _citation(name, made_at),
        "README.md": _readme(name, made_at),
        "verify.py": Path(verify_snapshot.__file__).read_text(encoding="utf-8"),
        **{f"{track.slug}.csv": as_csv(track, phase) for track in tracks},
    }
    for file, text in files.items():
        (folder / file).write_bytes(text.encode())
    if boards_versions([track.pk for track in tracks]) != before:
        raise BoardsChangedError
    sums = [f"{hashlib.sha256(text.encode()).hexdigest()}  {file}\n" for file, text in sorted(files.items())]
    (folder / verify_snapshot.SUMS).write_bytes("".join(sums).encode())


def _snapshot(tracks: Sequence[Track], name: str, made_at: datetime, phase: str) -> str:
    content = {
        "name": name,
        "made_at": made_at,
        "site": settings.SITE_URL,
        "evaluator_version": evaluator_version(),
        "phase": phase or None,
        "tracks": [
            {
                "slug": track.slug,
                "name": track.name,
                "rules": {field: getattr(track, field) for field in sorted(FIELDS - PRIVATE_FIELDS)},
                "rule": track.kind.rule.model_dump(mode="json"),
                "phases": list(track.phases.values(*sorted(PHASE_FIELDS))),
                **publish_all(track, phase).model_dump(mode="json", exclude={"track"}),
            }
            for track in tracks
        ],
    }
    return json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1) + "\n"


def _citation(name: str, made_at: datetime) -> str:
    content = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite this snapshot.",
        "type": "dataset",
        "title": f"PFL-DocVQA leaderboards, snapshot {name}",
        "authors": [{"name": settings.ORGANIZERS or "The organizers of the PFL-DocVQA benchmark"}],
        "version": name,
        "date-released": made_at.date(),
        "url": settings.SITE_URL,
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _readme(name: str, made_at: datetime) -> str:
    return f"""# PFL-DocVQA leaderboards, snapshot {name}

Created on {made_at.day} {made_at:%B %Y, %H:%M} UTC from {settings.SITE_URL}, evaluator {evaluator_version()}.

- `{verify_snapshot.SNAPSHOT}`: the rules of every track, and all rows with their rank or the reason for having none.
- `<track>.csv`: the same rows as tables.
- `CITATION.cff`: how to cite it.
- `{verify_snapshot.SUMS}`: the hash of every file. Run `python verify.py` to check the hashes and the ranks.

Scores are truncated to four decimals, of which the site shows `decimals`; their intervals are rounded outward to three.
"""
