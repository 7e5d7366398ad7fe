"""How long pages take with 10,000 submissions: the whole request and response in one process.

500 teams have 20,000 scored runs on PostgreSQL, with as many checks and ε as the evaluator reports. Times are of the
process's and of its database connection's CPU together, since PostgreSQL works on the request too. As a machine with
other work takes longer for the same instructions, a column compares a page with work of a fixed size, which is measured
before each of its requests. All columns but the last two are of requests with empty caches, such as the first after a
run was scored; the last two are of requests after which nothing has changed.
"""

import csv
import io
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.management import call_command
from django.db import connection
from django.db.models import TextField
from django.db.models.functions import Cast
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from docvqa_site.boards.published import CSV_COLUMNS
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.evaluation.models import Evaluation
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.results_field import WithoutChecks
from docvqa_site.teams.models import Membership, Role, Team
from docvqa_site.web_server import post_worker_init
from evaluator.messages.jobs import Check, CheckStatus, TrustLevel
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import make_epsilons, make_track, make_user

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]

TEAMS = 500
SUBMISSIONS_OF_A_TRACK = 5_000
BUDGETS = [1.0, 4.0, 8.0]
REPEATS, AGAIN = 20, 100
EXPORTS = 3
BOARD_S = 0.060
PAGE_S = 0.100
# Of 95 % of the requests that aren't the first after a change.
AGAIN_P95_S = 0.060
BOARD_BYTES = 150_000
# How many times as long as `careful_export` a file may take. JSON has twice as much in a row.
EXPORTS_OF_CAREFUL = {"csv": 1.75, "json": 2.0}
# The columns of the database that an export has beside the results.
READ = (
    "pk",
    "budget",
    "flagged_checks",
    "disqualified_because",
    "log_accepted_at",
    "rules__first_download",
    "submission_id",
    "submission__title",
    "submission__submitted_at",
    "submission__is_baseline",
    "submission__phase__name",
    "submission__team__name",
    "submission__code_url",
    "submission__license",
    "submission__paper_url",
)
# What `careful_export` leaves empty, as it judges nothing, or numbers without a question.
JUDGED = {"rank", "reason", "pending", "status"}
EPSILONS = {
    "epsilon_two_stage": ("pld", "two_stage"),
    "epsilon_product": ("pld", "product"),
    "epsilon_rdp": ("rdp", "two_stage"),
}
# On a machine with other work, the same instructions take several times as long.
LEEWAY = 3
# The same for few and for many submissions; the tests of each page say how many. The desk has the most parts.
MAX_QUERIES = 30
NANOSECONDS = 1e9
DEFAULTS = RunResults().model_dump(mode="json")


@dataclass(frozen=True)
class Site:
    """A filled site. `member` is of a team with the usual number of submissions, `busy` of one with a thousand."""

    member: Any
    busy: Any
    staff: Any
    bytes_track: Track
    private_track: Track
    scored: Submission
    unreviewed: Submission
    queued: Submission


def results(random_: random.Random, budget: float | None) -> RunResults:
    checks = [
        Check(
            id=f"record.check_{chr(96 + number)}",
            status=CheckStatus.PASSED,
            expected="at most 1.0",
            found=f"0.{number}",
        )
        for number in range(1, 21)
    ]
    epsilon = None if budget is None else random_.uniform(0.5, 1.05) * budget
    anls = random_.random()
    return RunResults(
        anls=anls,
        anls_low=max(0, anls - 0.02),
        anls_high=min(1, anls + 0.02),
        accuracy=random_.random(),
        bytes_total=random_.randrange(10**12),
        counting="declared" if budget else "counted",
        epsilon=epsilon,
        epsilons=[] if epsilon is None else make_epsilons(epsilon, epsilon / 2, epsilon * 2),
        accountant="PLD, dp-accounting 0.6, pessimistic",
        trust_level=TrustLevel.RECOMPUTED,
        checks=checks,
    )


@pytest.fixture
def site() -> Site:
    random_ = random.Random(1)
    owner = make_user()
    teams = Team.objects.bulk_create(
        [Team(name=f"Team {number}", slug=f"team-{number}") for number in range(TEAMS)]
    )
    users = [make_user() for _ in range(2)]
    for team, user in zip(teams, users, strict=False):
        Membership.objects.create(team=team, user=user, role=Role.OWNER)
    tracks = [
        make_track(FEWEST_BYTES, anls_threshold=0.3),
        make_track(BEST_ANLS_AT_BUDGET, budgets=BUDGETS),
    ]
    for track in tracks:
        fill(track, teams, owner, random_)
    scored = Submission.objects.filter(track=tracks[1], team=teams[0]).first()
    unreviewed = Submission.objects.filter(track=tracks[1], acceptances=0, rejections=0).first()
    assert scored is not None
    assert unreviewed is not None
    queued = add_queue(tracks[1], teams, owner)
    vacuum()
    staff = make_user(is_staff=True, is_superuser=True)
    return Site(users[0], users[1], staff, tracks[0], tracks[1], scored, unreviewed, queued)


def vacuum() -> None:
    """Make all rows visible to scans of indexes alone, as they are on a site after a while.

    While autovacuum looks at a table, another vacuum leaves its rows as they are.
    """
    with connection.cursor() as cursor:
        for _ in range(100):
            cursor.execute("VACUUM ANALYZE")
            cursor.execute(
                "SELECT relallvisible = relpages FROM pg_class WHERE relname = %s", [Run._meta.db_table]
            )
            if cursor.fetchone() == (True,):
                return
    raise AssertionError("The rows of runs don't become visible to scans of indexes.")


def fill(track: Track, teams: list[Team], owner: Any, random_: random.Random) -> None:
    now, phase = timezone.now(), track.phases.get()
    submissions = Submission.objects.bulk_create(
        Submission(
            # The second team has a fifth of all.
            team=teams[1] if number % 5 == 1 else teams[number % TEAMS],
            track=track,
            created_by=owner,
            title=f"Method {number} with a name of usual length",
            description="A *method*. " * 50,
            state=SubmissionState.SUBMITTED,
            phase=phase,
            submitted_at=now - timedelta(minutes=number),
            published_at=now - timedelta(minutes=number),
        )
        for number in range(SUBMISSIONS_OF_A_TRACK)
    )
    Run.objects.bulk_create(
        (
            Run(
                submission=submission,
                budget=budget,
                state=RunState.SCORED,
                scored_at=now,
                rules=track.rules(budget).model_dump(mode="json"),
                results=results(random_, budget),
            )
            for submission in submissions
            for budget in track.run_budgets()
        ),
        batch_size=1000,
    )
    if track.kind.has_budgets:
        add_reviews(submissions[::2])


def add_reviews(submissions: list[Submission]) -> None:
    reviewers = [make_user(is_staff=True) for _ in range(2)]
    ProofReview.objects.bulk_create(
        ProofReview(
            submission=submission,
            reviewer=reviewer,
            decision=Decision.REJECTED if number % 10 == 0 else Decision.ACCEPTED,
            reason="no composition" if number % 10 == 0 else "",
            decided_at=timezone.now(),
        )
        for number, submission in enumerate(submissions)
        for reviewer in reviewers
    )
    # As each saved review counts them.
    keys = [submission.pk for submission in submissions]
    Submission.objects.filter(pk__in=keys[::10]).update(rejections=len(reviewers))
    Submission.objects.filter(pk__in=set(keys) - set(keys[::10])).update(acceptances=len(reviewers))


def add_queue(track: Track, teams: list[Team], owner: Any) -> Submission:
    """Queue a submission of three runs of every fifth team, and return the last one, of the first team."""
    phase = track.phases.get()
    queued = Submission.objects.bulk_create(
        Submission(
            team=team,
            track=track,
            created_by=owner,
            title="Queued",
            state=SubmissionState.SUBMITTED,
            phase=phase,
            submitted_at=timezone.now(),
            published_at=timezone.now(),
        )
        for team in reversed(teams[::5])
    )
    runs = Run.objects.bulk_create(
        Run(
            submission=submission,
            budget=budget,
            state=RunState.QUEUED,
            rules=track.rules(budget).model_dump(mode="json"),
        )
        for submission in queued
        for budget in BUDGETS
    )
    Evaluation.objects.bulk_create(Evaluation(run=run, attempt=1, step="validate") for run in runs)
    return queued[-1]


class Processor:
    """The processor time of this process and of the PostgreSQL process that serves its connection."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        self._statistics = Path(f"/proc/{pid}/schedstat")

    def seconds(self) -> float:
        """Those that were used so far."""
        on_processor = int(self._statistics.read_text().split()[0])
        return time.process_time() + on_processor / NANOSECONDS


@dataclass(frozen=True)
class Measured:
    median_s: float
    p95_s: float
    cpu_s: float
    size: int
    queries: int
    queries_again: int = 0
    reference_s: float = 0.0
    again_s: float = 0.0
    again_p95_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times as long as the reference it takes."""
        return self.cpu_s / self.reference_s


def reference() -> None:
    """Work of a fixed size that takes about 10 ms of an idle core, such as pages do: texts, numbers and lists."""
    rows = [
        {"number": number, "name": f"Method {number % 97}", "of": [number / 7] * 3} for number in range(1_200)
    ]
    read = json.loads(json.dumps(rows))
    "".join(f"<td>{row['name']}</td>" for row in sorted(read, key=lambda row: (row["name"], row["number"])))


def measured(ask: Callable[[], Any]) -> Measured:
    """Call `ask` again and again, at first each time with empty caches."""
    walls = []
    ask()
    clear()
    with CaptureQueriesContext(connection) as queries:
        ask()
    count = len(queries)
    processor, used_s, references = Processor(), 0.0, []
    for _ in range(REPEATS):
        clear()
        begun_s = time.process_time()
        reference()
        references.append(time.process_time() - begun_s)
        before_s, start = processor.seconds(), time.perf_counter()
        response = ask()
        walls.append(time.perf_counter() - start)
        used_s += processor.seconds() - before_s
    assert response.status_code == 200
    with CaptureQueriesContext(connection) as queries:
        ask()
    count_again = len(queries)
    again = []
    for _ in range(AGAIN):
        before_s = processor.seconds()
        ask()
        again.append(processor.seconds() - before_s)
    return Measured(
        statistics.median(walls),
        _p95(walls),
        used_s / REPEATS,
        len(response.content),
        count,
        count_again,
        statistics.fmean(references),
        statistics.fmean(again),
        _p95(again),
    )


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95) - 1]


def clear() -> None:
    for cache in caches.all():
        cache.clear()


def pages(site: Site) -> Iterator[tuple[str, float, Any, str]]:
    """Yield each page with its limit in seconds of one core, who asks for it, and its address."""
    bytes_, private = (f"/leaderboard/{track.slug}/" for track in (site.bytes_track, site.private_track))
    yield "home", BOARD_S, None, "/"
    yield "board, track 1", BOARD_S, None, bytes_
    yield "board, track 1, page 60", BOARD_S, None, f"{bytes_}?page=60"
    yield "overview, track 2", BOARD_S, None, private
    yield "board at ε = 4", BOARD_S, None, f"{private}?epsilon=4"
    yield "verified, best of teams", PAGE_S, None, f"{private}?epsilon=4&verified=1&best=1"
    yield "by name, newest first", PAGE_S, None, f"{private}?epsilon=4&q=method+12&sort=newest"
    yield "progress, track 2", PAGE_S, None, f"{private}progress/"
    yield "newest results, feed", PAGE_S, None, f"{private}feed/"
    yield "a team", PAGE_S, None, "/teams/team-0/"
    yield "a team with 2,000", PAGE_S, None, "/teams/team-1/"
    two = [
        f"method={run.submission_id}" for run in Run.objects.filter(budget=4.0, scored_at__isnull=False)[:2]
    ]
    yield "two methods compared", PAGE_S, None, f"{private}compare/?{'&'.join(two)}"
    yield "board at ε = 4, page 50", BOARD_S, None, f"{private}?epsilon=4&page=50"
    yield "board at ε = 4, page 80", BOARD_S, None, f"{private}?epsilon=4&page=80"
    yield "own rows, 10 submissions", PAGE_S, site.member, f"{private}?team=team-0"
    yield "own rows, 2,000 submissions", PAGE_S, site.busy, f"{private}?team=team-1"
    yield "search", PAGE_S, None, "/search/?q=method+12"
    yield "API, 50 rows at ε = 4", PAGE_S, None, f"/api/v1/leaderboards/{site.private_track.slug}?budget=4"
    yield "submission, public", PAGE_S, None, f"/submissions/{site.scored.pk}/"
    yield "submission, queued", PAGE_S, site.member, f"/submissions/{site.queued.pk}/"
    yield "its status", PAGE_S, site.member, f"/submissions/{site.queued.pk}/status/"
    yield "submissions of a team", PAGE_S, site.member, "/submissions/"
    yield "of a team with 2,000", PAGE_S, site.busy, "/submissions/?page=40"
    yield "the same in the API", PAGE_S, site.busy, "/api/v1/submissions"
    yield "proofs to review", PAGE_S, site.staff, "/reviews/"
    yield "one of them", PAGE_S, site.staff, f"/reviews/{site.unreviewed.pk}/"
    yield "organizers' desk", PAGE_S, site.staff, "/organize/"
    yield "organizers: runs", PAGE_S, site.staff, "/organize/runs/"
    yield "admin: submissions", PAGE_S, site.staff, "/admin/submissions/submission/"
    yield "admin: evaluations", PAGE_S, site.staff, "/admin/evaluation/evaluation/"
    yield "admin: audit", PAGE_S, site.staff, "/admin/audit/auditentry/"


def test_pages_with_ten_thousand_submissions(site: Site) -> None:
    call_command("check")
    # As in a process that serves the site.
    post_worker_init(None)
    print(
        f"\n{'':<28} {'median':>8} {'p95':>8} {'CPU':>8} {'size':>9} {'queries':>8} {'again':>6} {'/ reference':>12} "
        f"{'CPU again':>10} {'p95':>6}"
    )
    too_slow = []
    for name, limit_s, user, address in pages(site):
        client = Client()
        if user:
            client.force_login(user)
        page = measured(lambda client=client, address=address: client.get(address))  # type: ignore[misc]
        print(
            f"{name:<28} {page.median_s * 1e3:>6.0f}ms {page.p95_s * 1e3:>6.0f}ms {page.cpu_s * 1e3:>6.0f}ms "
            f"{page.size / 1e3:>7.0f}kB {page.queries:>8} {page.queries_again:>6} "
            f"{page.ratio:>12.1f} {page.again_s * 1e3:>8.0f}ms {page.again_p95_s * 1e3:>4.0f}ms"
        )
        is_slow = page.cpu_s > LEEWAY * limit_s or page.again_p95_s > LEEWAY * AGAIN_P95_S
        is_too_large = limit_s == BOARD_S and page.size > BOARD_BYTES
        if is_slow or page.queries > MAX_QUERIES or is_too_large:
            too_slow.append(name)
    print(
        f"\n{'exports, once a change':<28} {'median':>8} {'CPU':>8} {'size':>9} {'a row':>8} {'/ careful':>10}"
    )
    for track, rows in ((site.bytes_track, 1), (site.private_track, len(BUDGETS))):
        careful = measured_export(lambda track=track: careful_export(track))  # type: ignore[misc]
        print(_export_line(f"careful CSV of {track.slug}", careful, rows, careful))
        ours = Client().get(f"/leaderboard/{track.slug}.csv").getvalue()
        assert unjudged(ours) == unjudged(careful_export(track))
        for form, most in EXPORTS_OF_CAREFUL.items():
            name = f"{form.upper()} of {track.slug}"
            address = f"/leaderboard/{track.slug}.{form}"
            page = measured_export(lambda address=address: Client().get(address).getvalue())  # type: ignore[misc]
            print(_export_line(name, page, rows, careful))
            if page.cpu_s > most * careful.cpu_s:
                too_slow.append(name)
    assert too_slow == []


def careful_export(track: Track) -> bytes:
    """Write the cells of an export, all but those of `JUDGED`, with a plain query and the csv module."""
    runs = Run.objects.filter(submission__track=track, scored_at__isnull=False).order_by("budget", "-anls")
    shown = Cast(WithoutChecks("results"), TextField())
    found = runs.annotate(shown=shown).values_list("shown", *READ, named=True)
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    for rank, row in enumerate(found, 1):
        results = DEFAULTS | json.loads(row.shown)
        epsilons = {(one["accountant"], one["sampling_rule"]): one["epsilon"] for one in results["epsilons"]}
        page = f"{settings.SITE_URL}/submissions/{row.submission_id}/"
        evidence = f"{page}runs/{row.pk}/"
        cells = {
            "rank": rank,
            **results,
            **{name: epsilons.get(of) for name, of in EPSILONS.items()},
            "track": track.slug,
            "budget": row.budget,
            "method": row.submission__title,
            "team": row.submission__team__name,
            "first_download": row.rules__first_download,
            "is_log_accepted": row.log_accepted_at is not None,
            "flagged_checks": row.flagged_checks or 0,
            "is_baseline": row.submission__is_baseline,
            "is_disqualified": bool(row.disqualified_because),
            "is_withheld": False,
            "phase": row.submission__phase__name,
            "license": row.submission__license,
            "submitted_at": row.submission__submitted_at.isoformat(),
            "url": page,
            "code_url": row.submission__code_url,
            "paper_url": row.submission__paper_url,
            "record_url": f"{evidence}training_record/" if results["accountant"] else "",
            "log_url": f"{evidence}communication_log/",
            "transcript_url": f"{evidence}transcript/" if results["rounds_folded"] else "",
        }
        writer.writerow([cells.get(name) for name in CSV_COLUMNS])
    return written.getvalue().encode()


def unjudged(export: bytes) -> list[list[str]]:
    """Return the cells of a CSV file that `careful_export` writes as well, in an order of their own."""
    rows = csv.DictReader(io.StringIO(export.decode(), newline=""))
    return sorted([cell for name, cell in row.items() if name not in JUDGED] for row in rows)


def measured_export(ask: Callable[[], bytes]) -> Measured:
    """Measure what the first request after a change takes; the site streams exports."""
    walls, used, size, processor = [], [], 0, Processor()
    for _ in range(EXPORTS):
        clear()
        shutil.rmtree(Path(settings.HOME, "exports"), ignore_errors=True)
        before_s, start = processor.seconds(), time.perf_counter()
        size = len(ask())
        walls.append(time.perf_counter() - start)
        used.append(processor.seconds() - before_s)
    return Measured(statistics.median(walls), max(walls), statistics.median(used), size, 0)


def _export_line(name: str, page: Measured, boards: int, careful: Measured) -> str:
    row_s = page.cpu_s / (boards * SUBMISSIONS_OF_A_TRACK)
    return (
        f"{name:<28} {page.median_s:>6.2f} s {page.cpu_s:>6.2f} s {page.size / 1e6:>6.1f} MB "
        f"{row_s * 1e6:>5.0f} µs {page.cpu_s / careful.cpu_s:>10.2f}"
    )
