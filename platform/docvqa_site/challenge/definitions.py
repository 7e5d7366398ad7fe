"""Tracks as files: a JSON list of objects whose keys are columns of `Track`. A text may be a list of its lines.

`phases` is a list of objects whose keys are columns of `Phase`, by its name; a track that names none has one phase
without beginning and end. Those that a file leaves out are removed unless something was submitted in them.

A description may be in a Markdown file of its own, named by `description_file` relative to the list. Overrides
such as `*.reference=vt5-tiny` adapt a definition to another edition without a file of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import DateTimeField, Model, ProtectedError, TextField

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.phases import overlap
from evaluator.errors import ErrorCode, ProblemError

DEFAULT_DEFINITIONS = Path(__file__).with_name("tracks.json")
FIELDS = frozenset(field.name for field in Track._meta.concrete_fields) - {"id", "slug", "is_draft"}
PHASE_FIELDS = frozenset(field.name for field in Phase._meta.concrete_fields) - {
    "id",
    "track",
    "extended_minutes",
}
PHASES = "phases"


@dataclass(frozen=True)
class Definition:
    """One entry of a file, for the track `slug`; columns that it doesn't name stay unchanged."""

    slug: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Override:
    """A value for one column of every track whose slug matches `pattern`."""

    pattern: str
    field: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> "Override":
        """Read `PATTERN.FIELD=VALUE`; the value is JSON where it can be read so, else text."""
        target, equals, value = text.partition("=")
        pattern, dot, field = target.rpartition(".")
        if not equals or not dot or not pattern:
            raise _rejection(
                f"override {text}", expected="TRACK.FIELD=VALUE, such as track-1.anls_threshold=0.8"
            )
        _require_field(f"override {text}", field)
        try:
            return cls(pattern, field, json.loads(value))
        except ValueError:
            return cls(pattern, field, value)


def read_definitions(path: Path) -> list[Definition]:
    """Read a file of tracks. Raises `ProblemError` unless it has the form that is described above."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _rejection(str(path), expected="a readable file", found=error.strerror) from error
    except ValueError as error:
        raise _rejection(str(path), expected="JSON in UTF-8", found=error) from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _rejection(str(path), expected="a list of objects, one for each track")
    return [_definition(path, number, entry) for number, entry in enumerate(entries, start=1)]


def overridden(definitions: Sequence[Definition], overrides: Sequence[Override]) -> list[Definition]:
    """Return the definitions with the overrides applied in order. Raises `ProblemError` for one without a track."""
    for change in overrides:
        if not any(fnmatchcase(definition.slug, change.pattern) for definition in definitions):
            slugs = ", ".join(definition.slug for definition in definitions)
            raise _rejection(f"override of {change.field}", expected=f"one of {slugs}", found=change.pattern)
    return [
        Definition(
            definition.slug,
            definition.fields
            | {c.field: c.value for c in overrides if fnmatchcase(definition.slug, c.pattern)},
        )
        for definition in definitions
    ]


@transaction.atomic
def save_tracks(
    definitions: Sequence[Definition], *, are_drafts: bool = False, actor: User | None = None
) -> dict[str, list[str]]:
    """Update the tracks to the definitions: all of them or, when one is not valid, none.

    Args:
        are_drafts: Whether new tracks are drafts; the others stay as public as they are.

    Returns:
        For each slug the columns that were changed; a second run changes none.
    """
    return {definition.slug: _save_track(definition, are_drafts, actor) for definition in definitions}


def _save_track(definition: Definition, is_draft: bool, actor: User | None) -> list[str]:
    track = Track.with_drafts.select_for_update().filter(slug=definition.slug).first()
    is_new = track is None
    track = track or Track(slug=definition.slug, is_draft=is_draft)
    fields = {name: value for name, value in definition.fields.items() if name != PHASES}
    before = {name: getattr(track, name) for name in fields}
    for name, value in fields.items():
        setattr(track, name, _column_value(Track, f"{definition.slug}.{name}", name, value))
    _clean(track, definition.slug, fields)
    after = {name: getattr(track, name) for name in before}
    changes = {
        name: [str(before[name]), str(after[name])]
        for name in before
        if is_new or before[name] != after[name]
    }
    if is_new or changes:
        track.save()
    if PHASES in definition.fields or is_new:
        changes |= _save_phases(track, definition.fields.get(PHASES, [{}]))
    if changes:
        boards_changed(track.pk)
        record(actor, "track.added" if is_new else "track.changed", track, changes=changes)
    return sorted(changes)


def _save_phases(track: Track, entries: object) -> dict[str, list[str]]:
    """Update the phases of a locked track to the entries, and return whether they changed, as text."""
    where = f"{track.slug}.{PHASES}"
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise _rejection(where, expected="a list of objects, one for each phase", found=entries)
    before = list(track.phases.all())
    phases = [_phase(track, before, f"{where}[{number}]", entry) for number, entry in enumerate(entries)]
    if problem := overlap(phases):
        raise _rejection(where, expected=problem)
    old = phases_in_words(track)
    for phase in phases:
        phase.save()
    for phase in before:
        if phase not in phases:
            try:
                phase.delete()
            except ProtectedError as error:
                raise _rejection(
                    where, expected="a phase in which nothing was submitted", found=phase
                ) from error
    new = phases_in_words(track)
    return {PHASES: [old, new]} if old != new else {}


def _phase(track: Track, known: Sequence[Phase], where: str, entry: dict[str, Any]) -> Phase:
    """Return the phase of this name as the entry has it; it isn't saved."""
    name = entry.get("name", Phase().name)
    phase = next((phase for phase in known if phase.name == name), None) or Phase(track=track)
    for field, value in entry.items():
        _require_field(f"{where}.{field}", field, PHASE_FIELDS)
        setattr(phase, field, _column_value(Phase, f"{where}.{field}", field, value))
    _clean(phase, where, entry)
    return phase


def phases_in_words(track: Track) -> str:
    """Return all that the track's phases say, one after the other."""
    rows = track.phases.order_by("starts_at", "pk").values("name", *sorted(PHASE_FIELDS - {"name"}))
    return "; ".join(
        ", ".join(f"{field.replace('_', ' ')}: {_in_words(value)}" for field, value in row.items())
        for row in rows
    )


def _in_words(value: object) -> str:
    """Return a column's value as the audit trail says it."""
    match value:
        case None | "":
            return "–"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%b %-d, %Y, %H:%M:%S UTC}"
        case _:
            return str(value)


def _clean(instance: Track | Phase, where: str, fields: Mapping[str, Any]) -> None:
    try:
        # Phases that change places are compared with each other, not with those in the database.
        instance.full_clean(exclude=["track"], validate_constraints=isinstance(instance, Track))
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise _rejection(
            f"{where}.{name}", expected=" ".join(messages), found=fields.get(name, "")
        ) from error


def _definition(path: Path, number: int, entry: dict[str, Any]) -> Definition:
    where = f"{path}, entry {number}"
    fields = dict(entry)
    slug = fields.pop("slug", "")
    if not isinstance(slug, str) or not slug:
        raise _rejection(where, expected="a slug, such as track-1", found=slug)
    if name := fields.pop("description_file", None):
        try:
            fields["description"] = (path.parent / str(name)).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _rejection(where, expected="a readable description_file in UTF-8", found=name) from error
    for field in fields:
        _require_field(where, field)
    return Definition(slug, fields)


def _column_value(model: type[Model], where: str, name: str, value: Any) -> Any:
    """Return a value from a file as the column takes it."""
    column = model._meta.get_field(name)
    if isinstance(column, DateTimeField) and value:
        return _time(where, value)
    if isinstance(column, TextField) and isinstance(value, list):
        if not all(isinstance(line, str) for line in value):
            raise _rejection(where, expected="a text, or a list of its lines", found=value)
        return "\n".join(value)
    return value


def _time(where: str, value: object) -> datetime:
    """Return a time that is written with its zone; without one, organizers and teams would read it differently."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _rejection(where, expected="a time with its zone, such as 2030-01-31T12:00:00Z", found=value)
    return moment


def _require_field(where: str, field: str, known: frozenset[str] = FIELDS | {PHASES}) -> None:
    if field not in known:
        raise _rejection(where, expected=f"one of {', '.join(sorted(known))}", found=field)


def _rejection(where: str, *, expected: str, found: object = "") -> ProblemError:
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        message="The definition of the tracks can't be used.",
        where=where,
        expected=expected,
        found=found,
        next_step="Correct it and run load_tracks again; nothing was changed.",
    )
