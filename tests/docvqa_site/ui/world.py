"""A site with something on every page: what each role has to be shown."""

import re
from dataclasses import dataclass
from datetime import timedelta

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.management import call_command
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import create_token, vouch_for_address
from docvqa_site.boards.models import RankRecord
from docvqa_site.challenge.models import Phase, StaffRole, Track
from docvqa_site.challenge.registering import register
from docvqa_site.downloads.models import Terms
from docvqa_site.downloads.services import add_link
from docvqa_site.evaluation.inventories import receive
from docvqa_site.evaluation.models import (
    Evaluation,
    EvaluationState,
    Examination,
    StepQueue,
    StepReport,
    TestSet,
    Worker,
)
from docvqa_site.evaluation.rehearsal import rehearse
from docvqa_site.liveness.models import Cause, Outage
from docvqa_site.news.models import NewsItem
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import link_token
from docvqa_site.organizers import closing
from docvqa_site.organizers.setup import people as people_of_track
from docvqa_site.organizers.setup.drafts import create_draft
from docvqa_site.reviews.checklist import CHECKLIST, Answer
from docvqa_site.reviews.models import Decision
from docvqa_site.reviews.run_appeals import appeal
from docvqa_site.reviews.services import decide
from docvqa_site.reviews.threads import post_message
from docvqa_site.submissions.models import Artifact, Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.proof_versions import stage
from docvqa_site.submissions.services import withdraw
from docvqa_site.teams.models import Team
from docvqa_site.teams.services import invite
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.examinations import CodeIdentity, ConformanceFindings, Report
from evaluator.messages.inventories import Inventory
from evaluator.messages.jobs import ArtifactKind, Outcome, Step, TrustLevel
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_epsilons,
    make_key,
    make_phase,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_upload,
    make_user,
    owner_of,
    revise_proof,
)

PASSWORD = "rose-hill-42-x"
HASH = "0123456789abcdef" * 4
# As long as a title may be, without a place to break it.
LONG_TITLE = "Federated" * 13


@dataclass(frozen=True)
class World:
    """The people, by role, and what addresses are made of."""

    people: dict[str, User]
    ids: dict[str, str]


def make_world() -> World:
    """Return a site on which participants, reviewers and organizers have been at work."""
    call_command("load_tracks", "--publish")
    people = make_people()
    team = make_team(people["participant"], name="Receipts Lab", slug="receipts")
    other = make_team(name="Other", slug="other")
    ids = {
        "team": team.slug,
        "team_id": str(team.pk),
        "terms": str(terms_and_news().pk),
        "secret": invite_newcomer(team, people["newcomer"]),
    }
    submissions = make_submissions(team, people["reviewer"])
    foreign = private_submission(other)
    submissions["foreign"] = foreign
    ids |= {name: str(submission.pk) for name, submission in submissions.items()}
    ids["public_run"] = str(submissions["public"].runs.get().pk)
    ids["run"] = str(foreign.runs.get().pk)
    ids["disqualified_run"] = str(submissions["disqualified"].runs.get().pk)
    upload = make_upload(team, b"# Theorem\n\n$$x^4$$", "proof.md")
    revised = Artifact.pending.create(
        submission=submissions["private"], kind=ArtifactKind.PRIVACY_PROOF, upload=upload
    )
    stage(revised, owner_of(team))
    examine(foreign.runs.get(), people["organizer"])
    revise_proof(foreign, make_upload(other, b"# Theorem\n\n$$x^3$$", "proof.md"), owner_of(other))
    ids["phase"] = str(Phase.objects.get(track__slug="track-2").pk)
    ids["ended"] = str(ended_phase(other).pk)
    ids["test_set"] = TestSet.objects.create(
        name=foreign.track.test_set, sha256=HASH, split_sha256=HASH, private_fraction=0.5
    ).name
    ids["staff_secret"] = set_up_tracks(team, people)
    ids["outage"] = str(short_outage().pk)
    ids["unsubscribe"] = link_token(people["participant"], Kind.RESULTS)
    return World(people, ids)


def set_up_tracks(team: Team, people: dict[str, User]) -> str:
    """Begin a draft, and ask the team to register for a track; return the secret of an invitation to organize."""
    organizer = people["organizer"]
    receive(Inventory(worker="gpu-1", references={"vt5-base": HASH}, test_sets={"pfl-docvqa": HASH}))
    source = Track.objects.get(slug="track-2")
    draft = create_draft(
        name="Next year", slug="next", ranking=source.ranking, source=source, actor=organizer
    )
    link = {"kind": "data", "license": "CC-BY-4.0", "title": "Training data", "filename": "train.zip"}
    add_link("https://example.org/train.zip", "next-data", track=draft, actor=organizer, **link)
    rehearse(draft, organizer)
    people_of_track.invite(draft, people["newcomer"].email, StaffRole.ORGANIZER, by=organizer)
    asks = make_track(
        slug="registered", registration="approval", registration_questions="Which data do you use?"
    )
    register(team, asks, [HASH], people["participant"])
    bodies = "".join(str(one.body) for one in mail.outbox)
    found = re.search(r"/organize/invitations/([^/\s]+)/", bodies)
    assert found
    return found[1]


def short_outage() -> Outage:
    """Return an outage that an organizer entered."""
    began = timezone.now() - timedelta(hours=1)
    ended = began + timedelta(minutes=5)
    return Outage.objects.create(cause=Cause.REPORTED, starts_at=began, ends_at=ended, text="The network.")


def ended_phase(team: Team) -> Phase:
    """Return a phase of track 1 that has ended, with final results."""
    ended = timezone.now() - timedelta(days=30)
    track = Track.objects.get(slug="track-1")
    track.phases.update(starts_at=ended)
    phase = make_phase(track, name="Warm-up", ends_at=ended)
    submission = make_submission(team, track, state="submitted", title="Early", phase=phase)
    make_run(submission, state=RunState.SCORED, anls=0.9, bytes_total=12345)
    publication = closing.Publication(slug="final", title="Warm-up: final results")
    closing.close_phase(phase, publication, seen=closing.version_of(phase), actor=None)
    return phase


def examine(run: Run, organizer: User) -> None:
    """Examine a run twice: once with a report, and once in vain."""
    identity = CodeIdentity(kit_version="1", code_sha256=HASH, settings_sha256=HASH)
    problems = [Problem.of(ErrorCode.CONFORMANCE_CRASHED, where=HASH, expected="a result", found=HASH)]
    report = Report(seconds=1.0, identity=identity, problems=problems, findings=ConformanceFindings(seed=1))
    for state, found in (("failed", report.model_dump(mode="json")), ("broken", None)):
        Examination.objects.create(
            run=run,
            level=TrustLevel.CONFORMING,
            state=state,
            by=organizer,
            machine="examiner-1.a-long-host-name.example",
            finished_at=timezone.now(),
            report=found,
            reason="" if found else f"The judge ended with status 1. {HASH * 4}",
        )


def make_people() -> dict[str, User]:
    """Return one person of each role, who logs in by form."""
    people = {
        "newcomer": make_user(password=PASSWORD),
        "invited by organizers": make_user(),
        "participant": make_user(password=PASSWORD),
        "reviewer": make_user(password=PASSWORD, is_staff=True),
        "organizer": make_user(password=PASSWORD, is_staff=True, is_superuser=True),
    }
    people["reviewer"].user_permissions.add(Permission.objects.get(codename="review_proofs"))
    RecoveryCodes.activate(people["organizer"])
    for user in people.values():
        vouch_for_address(user)
    return people


def terms_and_news() -> Terms:
    NewsItem.objects.create(title="The tracks are open", slug="open", text="# Dates\n\n*Now*, and `later`.")
    return Terms.objects.create(title="Data agreement", version="1", text="# Agreement\n\nNo redistribution.")


def invite_newcomer(team: Team, newcomer: User) -> str:
    """Invite a person, who has no team yet, and return the secret of the link."""
    invite(team, newcomer.email, by=owner_of(team))
    found = re.search(r"/team/join/([^/]+)/", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def make_submissions(team: Team, reviewer: User) -> dict[str, Submission]:
    """Return the team's submissions in every state that has a page of its own."""
    track = Track.objects.get(slug="track-1")
    make_key(team)
    make_token(team, Track.objects.get(slug="track-2"))
    create_token(owner_of(team), "laptop")
    draft = make_submission(team, track, title="A draft")
    make_artifact(make_run(draft), ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
    scored = submitted(
        team, track, title=LONG_TITLE, description="# Method\n\n*FedAvg* and $x^2$.\n\n    code"
    )
    make_run(scored, state=RunState.SCORED, anls=0.91, bytes_total=12345678)
    queued = submitted(team, track, title="Queued")
    make_run(queued, state=RunState.QUEUED)
    failed = submitted(team, track, title="Rejected")
    reject(make_run(failed, state=RunState.REJECTED))
    withdrawn = submitted(team, track, title="Withdrawn")
    make_run(withdrawn, state=RunState.SCORED, anls=0.95, bytes_total=1000)
    withdraw(withdrawn, owner_of(team))
    disqualified = submitted(team, track, title="Disqualified")
    out = make_run(
        disqualified, state=RunState.SCORED, anls=0.92, bytes_total=2000, disqualified_because="A reason."
    )
    appeal(out, "Another reason.", author=owner_of(team))
    private = private_submission(team)
    accept(private, reviewer)
    post_message(private, "noise", "Which deviation has it?", author=reviewer)
    public = private_submission(make_team(name="Public", slug="public"), publishes_proof=True)
    for person in (reviewer, make_reviewer()):
        accept(public, person)
    for run, ranks in ((scored.runs.get(), (4, 2)), (public.runs.get(), (1, 3))):
        for days, rank in zip((30, 8), ranks, strict=True):
            RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=days), rank=rank)
    Notification.objects.create(
        user=owner_of(team), kind=Kind.RESULTS, subject="Your run “DP-FedAvg” has been scored"
    )
    return {
        "draft": draft,
        "scored": scored,
        "queued": queued,
        "failed": failed,
        "withdrawn": withdrawn,
        "disqualified": disqualified,
        "private": private,
        "public": public,
    }


def make_reviewer() -> User:
    reviewer = make_user(is_staff=True)
    reviewer.user_permissions.add(Permission.objects.get(codename="review_proofs"))
    return reviewer


def accept(submission: Submission, reviewer: User) -> None:
    answers = {item.key: Answer.YES for item in CHECKLIST}
    decide(submission, Decision.ACCEPTED, "", answers, actor=reviewer, declares_no_conflict=True)


def submitted(team: Team, track: Track, **fields: object) -> Submission:
    return make_submission(team, track, state=SubmissionState.SUBMITTED, **fields)


def private_submission(team: Team, **fields: object) -> Submission:
    """Return a submission with a proof, a ranked run and a check that failed."""
    submission = submitted(team, Track.objects.get(slug="track-2"), title="DP-FedAvg", **fields)
    run = make_run(submission, budget=1.0, state=RunState.SCORED, anls=0.8, epsilon=0.9)
    make_artifact(
        submission,
        ArtifactKind.PRIVACY_PROOF,
        b"# Theorem\n\n$$x^2$$\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "proof.md",
    )
    checks = [
        {
            "id": "record.checkpoint",
            "status": "failed",
            "expected": HASH,
            "found": HASH,
            "where": f"round 3, {HASH}",
        }
    ]
    types = [
        {"name": "invoice_number", "anls": 0.91, "anls_low": 0.88, "anls_high": 0.94},
        {"name": "total_amount", "anls": 0.62, "anls_low": 0.55, "anls_high": 0.7},
    ]
    change_results(run, checks=checks, epsilons=make_epsilons(0.9, 1.4, 1.6), question_types=types)
    return submission


def reject(run: Run) -> None:
    problems = [
        {
            "code": "E_CHECKPOINT_NOT_FINITE",
            "message": "NaN.",
            "where": HASH,
            "expected": "finite",
            "found": "nan",
        }
    ]
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, state=EvaluationState.REJECTED, step=Step.VALIDATE, finished_at=timezone.now()
    )
    StepReport.objects.create(
        evaluation=evaluation, step=Step.VALIDATE, outcome=Outcome.REJECTED, problems=problems
    )
    queue, _ = StepQueue.objects.get_or_create(name="validation")
    Worker.objects.create(queue=queue, name="worker-1@a-long-host-name.example", seen_at=timezone.now())
