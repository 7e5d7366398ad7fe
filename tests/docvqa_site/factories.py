"""Factories of the site's objects. Each creates what it needs and isn't given."""

import hashlib
from itertools import count
from typing import Any

from allauth.mfa.totp.internal.auth import TOTP
from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import transaction
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES, Ranking
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.submissions.models import (
    Artifact,
    ArtifactState,
    Run,
    RunState,
    RunToken,
    Submission,
    SubmissionState,
)
from docvqa_site.submissions.proof_versions import send_revision, stage
from docvqa_site.teams.look_alikes import skeleton
from docvqa_site.teams.models import Membership, Role, Team, TeamKey
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import ArtifactKind, Epsilon, TrustLevel
from evaluator.messages.results import RunResults

numbers = count(1)
# Of a track's phase; the second two have names of their own.
PHASE_FIELDS = {
    "submissions_per_day",
    "results",
    "allows_private",
    "anonymity",
    "examined_ranks",
    "examined_level",
    "requires_counted",
}
TIMES = {"opens_at": "starts_at", "closes_at": "ends_at"}
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
SCORES: dict[str, Any] = {
    "anls": 0.9,
    "accuracy": 0.8,
    "bytes_total": 1_000_000,
    "counting": "counted",
    "trust_level": TrustLevel.RECOMPUTED,
}


def make_user(email: str = "", password: str | None = None, **fields: Any) -> User:
    """Without a password nobody logs in by form; `client.force_login` works, and hashing takes no time.

    Staff has an authenticator app, unless `second_factor` is false.
    """
    number = next(numbers)
    has_second_factor = fields.pop("second_factor", fields.get("is_staff", False))
    fields = {"name": f"Person {number}", **fields}
    user = User.objects.create_user(email or f"person{number}@example.org", password, **fields)
    if has_second_factor:
        TOTP.activate(user, TOTP_SECRET)
    return user


def make_organizer(*permissions: str, **fields: Any) -> User:
    """Staff with these permissions, by code name; without any, with the one to see what teams submit."""
    user = make_user(is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions or ["view_submission"]))
    return user


def sign_in_organizer(client: Client, *permissions: str, **fields: Any) -> User:
    """An organizer with these permissions, who is signed in at `client`."""
    organizer = make_organizer(*permissions, **fields)
    client.force_login(organizer)
    return organizer


def make_reviewer(**fields: Any) -> User:
    """Staff who review proofs."""
    reviewer = make_user(is_staff=True, **fields)
    reviewer.user_permissions.add(Permission.objects.get(codename="review_proofs"))
    return reviewer


def make_team(owner: User | None = None, **fields: Any) -> Team:
    number = next(numbers)
    fields = {"name": f"Team {number}", "slug": f"team-{number}", **fields}
    team = Team.objects.create(**{"name_skeleton": skeleton(fields["name"]), **fields})
    Membership.objects.create(team=team, user=owner or make_user(), role=Role.OWNER)
    return team


def make_key(team: Team, **fields: Any) -> TeamKey:
    """A signing key of the team; nobody has its private half."""
    public_key = hashlib.sha256(f"key {next(numbers)}".encode()).hexdigest()
    defaults = {"public_key": public_key, "added_by": owner_of(team)}
    return TeamKey.objects.create(team=team, **{**defaults, **fields})


def make_track(ranking: Ranking | str = FEWEST_BYTES, **fields: Any) -> Track:
    """A track with one phase, which takes its quota, times and rules from `fields` too."""
    number = next(numbers)
    defaults = {
        "slug": f"track-{number}",
        "name": f"Track {number}",
        "summary": "A track.",
        "description": "*Rules.*",
        "reference": "vt5-tiny",
        "test_set": "synthetic",
    }
    phase = {name: fields.pop(name) for name in PHASE_FIELDS & fields.keys()}
    phase |= {new: fields.pop(old) for old, new in TIMES.items() if old in fields}
    key = ranking if isinstance(ranking, str) else ranking.key
    track = Track.objects.create(ranking=key, **{**defaults, **fields})
    Phase.objects.create(track=track, **phase)
    return track


def make_phase(track: Track, **fields: Any) -> Phase:
    """One more phase of the track; the caller keeps it apart from the others."""
    return Phase.objects.create(track=track, **{"name": f"Phase {next(numbers)}", **fields})


def make_submission(
    team: Team | None = None, track: Track | None = None, *, state: str = SubmissionState.DRAFT, **fields: Any
) -> Submission:
    team = team or make_team()
    if state == SubmissionState.SUBMITTED:
        fields.setdefault("submitted_at", timezone.now())
    track = track or make_track()
    if fields.get("submitted_at"):
        fields.setdefault("phase", track.phases.first())
        fields.setdefault("published_at", fields["submitted_at"])
    if fields.get("anonymous") and state != SubmissionState.DRAFT:
        fields.setdefault("alias", f"Anonymous {next(numbers):06x}")
    fields.setdefault("created_by", owner_of(team))
    fields.setdefault("title", f"Method {next(numbers)}")
    return Submission.objects.create(team=team, track=track, state=state, **fields)


def make_run(
    submission: Submission | None = None,
    *,
    state: str = RunState.DRAFT,
    budget: float | None = None,
    **fields: Any,
) -> Run:
    """A run; once submitted, with its track's rules, and once scored, with scores. Results are given by name."""
    if submission is None:
        drafted = state == RunState.DRAFT
        submission = make_submission(state=SubmissionState.DRAFT if drafted else SubmissionState.SUBMITTED)
    if state != RunState.DRAFT:
        fields.setdefault("rules", submission.track.rules(budget).model_dump(mode="json"))
        fields.setdefault("challenge", make_challenge())
    results = {name: fields.pop(name) for name in RunResults.model_fields.keys() & fields.keys()}
    if state == RunState.SCORED:
        fields.setdefault("scored_at", timezone.now())
        results = {**SCORES, **results}
    return Run.objects.create(
        submission=submission, state=state, budget=budget, results=RunResults(**results), **fields
    )


def scored_submission(**fields: Any) -> Submission:
    """A submission to a privacy track with one scored run, so that its proof can be reviewed; it has none yet."""
    submission = make_submission(
        track=make_track(BEST_ANLS_AT_BUDGET), **{"state": SubmissionState.SUBMITTED, **fields}
    )
    make_run(submission, budget=1.0, state=RunState.SCORED)
    return submission


def change_results(run: Run, **fields: Any) -> None:
    """Store the run with some of its results changed, and give its boards a new version."""
    run.results = RunResults.model_validate({**run.results.model_dump(), **fields})
    run.save()
    boards_changed(run.submission.track_id)


def make_epsilons(
    two_stage: float | None = None,
    product: float | None = None,
    rdp: float | None = None,
    *,
    rule: SamplingRule = SamplingRule.TWO_STAGE,
    accountant: Accountant = Accountant.PLD,
) -> list[Epsilon]:
    """The ε of a run by both PLD columns and by RDP under `rule`; the one by `rule` and `accountant` decides."""
    rows = [
        (SamplingRule.TWO_STAGE, Accountant.PLD, two_stage),
        (SamplingRule.PRODUCT, Accountant.PLD, product),
        (rule, Accountant.RDP, rdp),
    ]
    return [
        Epsilon(
            sampling_rule=row_rule,
            accountant=row_accountant,
            epsilon=epsilon,
            within_budget=True,
            margin=None,
            decides=(row_rule, row_accountant) == (rule, accountant),
        )
        for row_rule, row_accountant, epsilon in rows
    ]


def make_challenge() -> str:
    return hashlib.sha256(f"challenge {next(numbers)}".encode()).hexdigest()


def make_token(team: Team, track: Track, **fields: Any) -> RunToken:
    """A token; that of a run or record has come with a record, and has its challenge."""
    defaults = {"token": f"token-{next(numbers):016}", "issued_to": owner_of(team)}
    if fields.keys() & {"run", "record_sha256"}:
        defaults |= {
            "record_sha256": make_challenge(),
            "challenge": make_challenge(),
            "challenged_at": timezone.now(),
        }
    return RunToken.objects.create(team=team, track=track, **{**defaults, **fields})


def make_upload(team: Team, content: bytes = b"content", filename: str = "file.bin", **fields: Any) -> Upload:
    """A completed upload, its content in the store."""
    key = f"te/{next(numbers)}-{hashlib.sha256(content).hexdigest()[:16]}"
    path = settings.STORE_FOLDER / "objects" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    defaults = {
        "created_by": owner_of(team),
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "part_size_bytes": settings.UPLOAD_PART_SIZE_BYTES,
        "state": UploadState.COMPLETED,
        "store_key": key,
        "store_upload": "",
        "finished_at": timezone.now(),
    }
    return Upload.objects.create(team=team, filename=filename, **{**defaults, **fields})


def make_artifact(
    of: Submission | Run, kind: ArtifactKind, content: bytes = b"content", filename: str = ""
) -> Artifact:
    """An artifact of a run, or the privacy proof of a submission."""
    submission = of if isinstance(of, Submission) else of.submission
    run = of if isinstance(of, Run) else None
    upload = make_upload(submission.team, content, filename or f"{kind}.bin")
    return Artifact.objects.create(
        submission=submission, run=run, kind=kind, upload=upload, state=ArtifactState.ATTACHED
    )


@transaction.atomic
def make_download(kind: DownloadKind, **fields: Any) -> Download:
    """A file that the site offers; nothing is in the store."""
    slug = f"{kind}-{next(numbers)}"
    defaults = {
        "title": slug,
        "license": "Apache-2.0",
        "filename": f"{slug}.zip",
        "size_bytes": 1,
        "sha256": "0" * 64,
    }
    return Download.objects.create(slug=slug, kind=kind, store_key=f"dl/{slug}", **{**defaults, **fields})


def revise_proof(submission: Submission, upload: Upload, actor: User, note: str = "Better.") -> Artifact:
    """The newest version of the submission's proof, with this file."""
    revised = Artifact.pending.create(submission=submission, kind=ArtifactKind.PRIVACY_PROOF, upload=upload)
    stage(revised, actor)
    return send_revision(submission, note, actor)


def owner_of(team: Team) -> User:
    return team.memberships.get(role=Role.OWNER).user
