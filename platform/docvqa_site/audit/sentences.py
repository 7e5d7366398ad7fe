"""What audit entries say to a reader: a sentence for each action, names in place of keys, values before and after.

Entries are stored as they were written; see `audit.models`. Objects have the names that they have now, and only those
that the reader sees in the administration have one. Everything that a page needs is fetched in one query per model.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Field, ForeignKey, Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from docvqa_site.audit.models import AuditEntry, readable_details
from docvqa_site.sizes import exact_size

# By the action, with the person and the object. Any other action is "<person> <verb> <noun> <object>".
SENTENCES = {
    "announcement.sent": "{actor} sent an announcement",
    "artifact.attached": "{actor} attached {object}",
    "artifact.staged": "{actor} uploaded {object}, not yet sent",
    "artifact.superseded": "{object} was replaced by a newer version",
    "evaluation.failed": "Evaluation failed: {object}",
    "evaluation.passed": "Evaluation finished: {object}",
    "evaluation.queued": "The next step waits: {object}",
    "evaluation.rejected": "Files rejected: {object}",
    "evaluation.running": "A worker began a step: {object}",
    "examination.queued": "{actor} requested an examination: {object}",
    "export.taken": "{actor} downloaded an export",
    "index.challenged": "{actor} received the challenge of an index of messages",
    "mail.turned_off": "{actor} turned off a kind of email",
    "mail.turned_on": "{actor} turned on a kind of email",
    "outage.changed": "{actor} changed an outage: {object}",
    "outage.ended": "{actor} ended an outage: {object}",
    "outage.planned": "{actor} announced an outage: {object}",
    "outage.removed": "{actor} removed an outage",
    "outage.reported": "{actor} recorded an outage: {object}",
    "outgoingmail.sent_again": "{actor} sent an email again: {object}",
    "proof_review.accepted": "{actor} accepted a proof: {object}",
    "proof_review.assigned": "{actor} assigned a proof: {object}",
    "proof_review.changes_requested": "{actor} requested changes to a proof: {object}",
    "proof_review.recusal_lifted": "{actor} allowed a reviewer to review a proof again",
    "proof_review.recused": "{actor} recorded a recusal: {object}",
    "proof_review.rejected": "{actor} rejected a proof: {object}",
    "proof_review.rejection_stands": "Nobody contradicted a rejection in time: {object}",
    "proof_review.reopened": "{actor} reopened a review: {object}",
    "proof_review.unassigned": "{actor} ended the assignment of a proof: {object}",
    "registration.created": "{actor} registered {object}",
    "review_message.posted": "{actor} wrote a message: {object}",
    "run.checked_again": "{actor} repeated a check of {object}",
    "run.evaluated_again": "{actor} had {object} evaluated again",
    "run.failed": "The evaluation of {object} failed",
    "run.log_accepted": "{actor} accepted the communication log of {object}",
    "run.queued": "{actor} queued {object} for evaluation",
    "run.running": "The evaluation of {object} began",
    "run_token.challenged": "{actor} received the challenge for run token {object}",
    "run_token.claimed": "A run claimed run token {object}",
    "run_token.issued": "{actor} received run token {object}",
    "run_token.released": "{actor} released run token {object}",
    "run_token.taken": "{actor} began a training with run token {object}",
    "staff.invitation_withdrawn": "{actor} withdrew an invitation to the staff of {object}",
    "staff.invited": "{actor} invited a person to the staff of {object}",
    "staff.joined": "{actor} joined the staff of {object}",
    "staff.removed": "{actor} removed a person from the staff of {object}",
    "stepqueue.paused": "{actor} paused queue {object}",
    "stepqueue.resumed": "{actor} resumed queue {object}",
    "submission.copied": "{actor} began submission {object} as a copy",
    "submission.draft": "{actor} canceled submission {object}, which is a draft again",
    "submission.marked_baseline": "{actor} changed whether {object} is a baseline",
    "submission.proof_revised": "{actor} revised the proof of {object}",
    "submission.refunded": "{actor} returned the quota slot of {object}",
    "team.emptied": "Nobody is left in team {object}",
    "team.handed_over": "{actor} handed over team {object}",
    "team.invitation_revoked": "{actor} revoked an invitation to team {object}",
    "team.invited": "{actor} invited a person to team {object}",
    "team.member_removed": "{actor} removed a member from team {object}",
    "team.name_released": "{actor} left team {object}, whose name is free again",
    "team.submissions_granted": "{actor} gave team {object} more submissions than its quota",
    "teamregistration.admitted": "{actor} admitted a team: {object}",
    "teamregistration.declined": "{actor} declined a team: {object}",
    "test_set.revealed": "{actor} revealed the private scores of test set {object}",
    "token.created": "{actor} created API token {object}",
    "token.revoked": "{actor} revoked API token {object}",
    "track.drafted": "{actor} drafted track {object}",
    "track.tested": "{actor} started a test submission in {object}",
    "upload.completed": "{actor} uploaded {object}",
    "user.created": "The account of {object} was created",
    "user.data_downloaded": "{actor} downloaded a copy of their data",
    "user.email_changed": "{actor} changed the email address of {object}",
    "user.erased": "The account of {object} was erased",
    "user.erasure_canceled": "{actor} canceled the erasure of {object}",
    "user.erasure_requested": "{actor} requested the erasure of {object}",
    "user.made_reviewer": "{object} became a reviewer",
    "user.made_organizer": "{object} became an organizer of all tracks",
    "user.made_track_organizer": "{object} became an organizer of single tracks",
    "user.password_changed": "{actor} changed the password of {object}",
    "user.password_reset": "{actor} reset the password of {object}",
    "user.password_set": "{actor} set the password of {object}",
    "user.profile_changed": "{actor} changed the profile of {object}",
    "user.recovery_codes_renewed": "{actor} renewed the recovery codes of {object}",
    "user.second_factor_added": "{actor} added a second factor of {object}",
    "user.second_factor_removed": "{actor} removed a second factor of {object}",
    "user.second_factor_reset": "{actor} reset the second factors of {object}",
    "user.sign_in_linked": "{actor} linked a way to log in as {object}",
    "user.sign_in_unlinked": "{actor} unlinked a way to log in as {object}",
    "user.tokens_revoked": "{actor} revoked the API tokens of {object}",
    "worker.sick": "Worker {object} was taken out of service",
}
# What invitations to roles in every track are about: the track that they are kept with says nothing.
OF_ROLES = {
    "reviewer": "the reviewers of privacy proofs, in every track",
    "all_tracks": "the organizers of all tracks",
}
# The models whose fields the details of actions have, by how these begin, where they aren't those of the object.
DETAILED = {"staff.": "challenge.staffinvitation", "user.second_factor_": "mfa.authenticator"}
SITE = "The site"
# What the details name by its key or slug, beside the foreign keys of the entry's object.
REFERENCES = {
    "by": "accounts.user",
    "member": "accounts.user",
    "new_owner": "accounts.user",
    "owner": "accounts.user",
    "results": "leaderboard.finalresults",
    "reviewer": "accounts.user",
    "run": "submissions.run",
    "source": "submissions.submission",
    "submission": "submissions.submission",
    "team": "teams.team",
    "track": "challenge.track",
    "user": "accounts.user",
}
# Pages of the organizers' desk, which are shown in place of those of the administration, and their permissions.
DESK = ("challenge.organize", "submissions.view_submission")
PAGES = {"submissions.run": ("organizers:run", DESK), "teams.team": ("organizers:team", DESK)}
# What everybody reads at an address of its own.
PUBLIC = {"leaderboard.finalresults"}
MOST_CHARACTERS = 200
# Submissions whose entries are found by their title.
MOST_FOUND = 100
# Hashes and keys, of which the beginning tells them apart.
LONG_HEX = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
UUID_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")

Key = tuple[str, str]


@dataclass(frozen=True)
class Change:
    """A value that an entry gives; with the one before where there was another."""

    name: str
    before: SafeString | str
    after: SafeString | str
    has_before: bool = True


@dataclass(frozen=True)
class Described:
    """An entry as a page shows it."""

    entry: AuditEntry
    sentence: SafeString
    changes: Sequence[Change]


def described(
    entries: Iterable[AuditEntry], request: HttpRequest, known: Iterable[Model] = ()
) -> list[Described]:
    """Return entries as whoever makes the request reads them.

    Args:
        known: What the page names to the reader, also where the administration doesn't show it to them.
    """
    entries = list(entries)
    details = list(readable_details([entry.details for entry in entries]))
    keys = {_subject(entry) for entry in entries}
    keys |= {("accounts.user", str(entry.actor_id)) for entry in entries if entry.actor_id}
    for entry, values in zip(entries, details, strict=True):
        keys |= {key for name, value in _flat(values) if (key := _reference(entry, name, value))}
    names = _names(keys, request)
    for one in known:
        names |= _named(one, request)
    return [
        Described(entry, _sentence(entry, names), list(_changes(entry, values, names)))
        for entry, values in zip(entries, details, strict=True)
    ]


def _subject(entry: AuditEntry) -> Key:
    return entry.object_type, entry.object_id


def _sentence(entry: AuditEntry, names: Mapping[Key, SafeString]) -> SafeString:
    noun, _, verb = entry.action.partition(".")
    named = names.get(_subject(entry), entry.object_id)
    if noun == entry.object_type.partition(".")[2]:
        # The name of a class, which is one word.
        noun = _verbose_name(entry.object_type, noun)
    # An object without a name is called by its kind already.
    kind = "" if named.startswith(f"{noun} ") else f"{noun} "
    default = f"{{actor}} {verb} {kind}{{object}}".replace("_", " ")
    actor = names.get(("accounts.user", str(entry.actor_id)), f"person {entry.actor_id}")
    said = SENTENCES.get(entry.action, default)
    if role := OF_ROLES.get(entry.details.get("role", "")):
        said = said.replace("the staff of {object}", role)
    return format_html(said, actor=actor if entry.actor_id else SITE, object=named)


def _verbose_name(label: str, default: str) -> str:
    try:
        return str(apps.get_model(label)._meta.verbose_name)
    except (LookupError, ValueError):
        return default


def _changes(
    entry: AuditEntry, details: Mapping[str, Any], names: Mapping[Key, SafeString]
) -> Iterable[Change]:
    def shown(name: str, value: object) -> SafeString | str:
        key = _reference(entry, name, value)
        return names.get(key, str(value)) if key else _text(_in_words(entry, name, value))

    for name, value in details.items():
        words = _words(name)
        match name, value:
            case "changes", dict():
                for field, pair in value.items():
                    old, new = _from_difference(pair[0], pair[1])
                    # Of what is new, all values are recorded.
                    has_before = pair[0] != pair[1]
                    yield Change(_words(field), shown(field, old), shown(field, new), has_before)
            case "before", dict():
                after = details.get("after", {})
                for field, old in value.items():
                    yield Change(_words(field), shown(field, old), shown(field, after.get(field)))
            case "after", dict():
                pass
            case "before", str():
                yield Change(
                    "state", value.replace("_", " "), entry.action.partition(".")[2].replace("_", " ")
                )
            case _:
                yield Change(words, "", shown(name, value), has_before=False)


def _words(name: str) -> str:
    """Return the name of a field as a reader says it: its value has the unit."""
    words = name.removeprefix("is_").replace("_", " ")
    return f"{words.removesuffix(' bytes')} size" if words.endswith(" bytes") else words


def _in_words(entry: AuditEntry, name: str, value: object) -> object:
    """Return a value as forms name it: a choice by its label, a number of bytes with its unit."""
    if name.endswith("_bytes") and type(value) is int and value > 0:
        return exact_size(value)
    if (field := _field(entry, name)) is None or not isinstance(value, str | int) or isinstance(value, bool):
        return value
    return dict(field.flatchoices).get(value, value)


def _field(entry: AuditEntry, name: str) -> "Field[Any, Any] | None":
    """Return the field that an entry has a value of, if its object has one of this name."""
    others = (model for beginning, model in DETAILED.items() if entry.action.startswith(beginning))
    about = next(others, entry.object_type)
    try:
        field = apps.get_model(about)._meta.get_field(name)
    except (LookupError, ValueError, FieldDoesNotExist):
        return None
    return field if isinstance(field, Field) else None


def _from_difference(old: object, new: object) -> tuple[object, object]:
    """Return two values, of which long texts begin shortly before the first place where they differ."""
    if not (isinstance(old, str) and isinstance(new, str)) or max(len(old), len(new)) <= MOST_CHARACTERS:
        return old, new
    pairs = enumerate(zip(old, new, strict=False))
    shared = next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
    start = shared - MOST_CHARACTERS // 4
    return (f"…{old[start:]}", f"…{new[start:]}") if start > 0 else (old, new)


def in_full(details: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield each value under its name, none of them cut; of texts of several lines that changed, the difference."""
    for name, value in details.items():
        words = name.replace("_", " ")
        if name == "changes" and isinstance(value, dict):
            yield from ((field.replace("_", " "), _difference(*pair)) for field, pair in value.items())
        elif isinstance(value, dict):
            yield from ((f"{words}: {inner}", text) for inner, text in in_full(value))
        elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
            for number, one in enumerate(value, 1):
                inside = one if isinstance(one, dict) else {"value": one}
                yield from ((f"{words} {number}: {inner}", text) for inner, text in in_full(inside))
        else:
            yield words, _text(value, whole=True)


def _difference(old: object, new: object) -> str:
    """Return the lines of a text that were removed and added; of other values, both."""
    if not (isinstance(old, str) and isinstance(new, str) and "\n" in old + new):
        return f"{_text(old, whole=True)} → {_text(new, whole=True)}"
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    # Without the names of the files.
    return "\n".join(list(lines)[2:]) or "only ends of lines differ"


def _flat(details: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield each value with the name of its field."""
    for name, value in details.items():
        if name in ("changes", "before", "after") and isinstance(value, dict):
            for field, values in value.items():
                yield from ((field, one) for one in (values if isinstance(values, list) else [values]))
        else:
            yield name, value


def _reference(entry: AuditEntry, name: str, value: object) -> Key | None:
    """Return what a value refers to; None where it says what it means."""
    if value in (None, "") or isinstance(value, dict | list | bool):
        return None
    if label := REFERENCES.get(name):
        return label, str(value)
    field = _field(entry, name)
    if isinstance(field, ForeignKey) and isinstance(field.related_model, type):
        return field.related_model._meta.label_lower, str(value)
    return None


def _names(keys: Iterable[Key], request: HttpRequest) -> dict[Key, SafeString]:
    """Return for each key the name of what has it, as a link where there is a page; or its kind and key."""
    by_model = defaultdict(set)
    for label, key in keys:
        by_model[label].add(key)
    found: dict[Key, SafeString] = {}
    for label, wanted in by_model.items():
        found |= {(label, key): format_html("{}", key) for key in wanted}
        try:
            model = apps.get_model(label)
        except (LookupError, ValueError):
            continue
        found |= {(label, key): _unnamed(model, key) for key in wanted}
        for one in _objects(model, wanted, request):
            found |= _named(one, request)
    return found


def _named(one: Model, request: HttpRequest) -> dict[Key, SafeString]:
    """Return the name of an object by its key and by its slug."""
    label, link = one._meta.label_lower, _link(one, request)
    return {(label, str(one.pk)): link, (label, str(getattr(one, "slug", ""))): link}


def _unnamed(model: type[Model], key: str) -> SafeString:
    """Return what an object is called whose name can't be given, such as the run of a draft's test."""
    shown = f"{key[:8]}… (removed, or not shown to you)" if UUID_KEY.fullmatch(key) else key
    return format_html("{} {}", model._meta.verbose_name, shown)


def _objects(model: type[Model], keys: set[str], request: HttpRequest) -> Iterable[Model]:
    """Return those of the objects that the administration shows to whoever makes the request."""
    options = model._meta
    shown_by = admin.site._registry.get(model)
    if shown_by:
        if not shown_by.has_view_permission(request):
            return []
        rows = shown_by.get_queryset(request)
    elif request.user.has_perm(f"{options.app_label}.view_{options.model_name}"):
        rows = model._base_manager.all()
        if any(field.name == "submission" for field in options.concrete_fields):
            rows = rows.filter(submission__in=_shown_submissions(request))
    else:
        return []
    primary = set()
    for key in keys:
        with suppress(ValidationError):
            primary.add(options.pk.to_python(key))
    wanted = Q(pk__in=primary)
    if any(field.name == "slug" for field in options.concrete_fields):
        wanted |= Q(slug__in=keys)
    # Of names that begin with those of other objects, in turn.
    paths = [path for field in _foreign(model) for path in (field.name, *_below(field))]
    return rows.select_related(*paths).filter(wanted)


def _shown_submissions(request: HttpRequest) -> QuerySet[Any]:
    """Return the submissions that the administration shows; what belongs to another one has no name either."""
    return admin.site._registry[apps.get_model("submissions.submission")].get_queryset(request).order_by()


def titled(words: str, request: HttpRequest) -> list[str]:
    """Return the keys of the submissions whose titles have these words, of those that the administration shows."""
    shown = _shown_submissions(request).filter(title__icontains=words)
    return [str(key) for key in shown.values_list("pk", flat=True)[:MOST_FOUND]]


def _foreign(model: type[Model]) -> list["ForeignKey[Any, Any]"]:
    return [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]


def _below(field: "ForeignKey[Any, Any]") -> list[str]:
    target = field.related_model
    return [f"{field.name}__{other.name}" for other in _foreign(target)] if isinstance(target, type) else []


def _link(one: Model, request: HttpRequest) -> SafeString:
    address, name = _address(one, request), _text(str(one))
    return format_html('<a href="{}">{}</a>', address, name) if address else format_html("{}", name)


def _address(one: Model, request: HttpRequest) -> str:
    """Return the address of the page about an object that is open to whoever makes the request; empty without one."""
    options = one._meta
    page, permissions = PAGES.get(options.label_lower, ("", ()))
    if page and request.user.has_perms(permissions):
        return reverse(page, args=[one.pk])
    if options.label_lower in PUBLIC:
        return str(getattr(one, "get_absolute_url")())  # noqa: B009
    shown_by = admin.site._registry.get(type(one))
    # The administration is closed to organizers of single tracks.
    single = getattr(request.user, "organizes_single_tracks", False)
    if not shown_by or single or not shown_by.has_view_permission(request):
        return ""
    return reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[one.pk])


def _text(value: object, *, whole: bool = False) -> str:
    """Return a value for readers, cut unless the `whole` is wanted."""
    if value in (None, "", [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        value = ", ".join(_text(one, whole=whole) for one in value)
    if isinstance(value, dict):
        value = "; ".join(f"{name}: {_text(one, whole=whole)}" for name, one in value.items())
    if ISO_TIME.fullmatch(text := str(value)):
        return f"{datetime.fromisoformat(text).astimezone(UTC):%b %-d, %Y, %H:%M:%S UTC}"
    if whole:
        return text
    text = LONG_HEX.sub(r"\1…", text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
