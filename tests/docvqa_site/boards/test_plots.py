"""The plots of the leaderboards: what they draw, that a keyboard reaches it, and that a table has the same numbers."""

import re
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.plots import time_axis
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.ui.axes import MARGIN
from docvqa_site.ui.labels import text_width
from docvqa_site.ui.plots import NARROW
from tests.docvqa_site.factories import make_run, make_submission, make_track, make_user

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(days=30)


def add(track, title, day=0, budget=None, **fields):
    submission = make_submission(
        track=track, state=SubmissionState.SUBMITTED, title=title, submitted_at=LONG_AGO + timedelta(days=day)
    )
    return make_run(submission, state=RunState.SCORED, budget=budget, **fields)


def drawing(html):
    """The first plot as a wide page shows it."""
    start = html.index('<svg class="plot-wide"')
    return html[start : html.index("</svg>", start)]


def marks(html):
    """The label of each mark with its kind."""
    svg = drawing(html)
    kinds = re.findall(r'class="plot-mark plot-([\w-]+)[^"]*"[^>]* data-of="([^"]+)"', svg)
    labels = dict(re.findall(r'<a href="([^"]+)" aria-label="([^"]+)"', svg))
    return [(labels.get(url), kind) for kind, url in kinds]


def hollow(html):
    """Whether the mark of each method is drawn hollow."""
    svg = drawing(html)
    drawn = {url: kind for kind, url in re.findall(r'class="(plot-mark [^"]*)"[^>]* data-of="([^"]+)"', svg)}
    names = re.findall(r'<a href="([^"]+)" aria-label="(\w+): ', svg)
    return {name: "plot-hollow" in drawn[url] for url, name in names}


@pytest.fixture
def track():
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.8)
    add(track, "Small", day=2, bytes_total=1000, anls=0.81)
    add(track, "Good", day=1, bytes_total=10_000, anls=0.9)
    add(track, "Worse", day=0, bytes_total=20_000, anls=0.85)
    add(track, "Weak", day=3, bytes_total=10, anls=0.5)
    return track


def test_a_baseline_is_named_although_it_is_not_on_the_front(client, track):
    Submission.objects.filter(title="Weak").update(is_baseline=True)
    boards_changed(track.pk)
    html = client.get("/leaderboard/bytes/").text
    assert ">Weak</text>" in drawing(html)
    assert "baseline, not on the front" in html


def test_progress_has_ticks_of_shown_decimals_and_no_value_on_the_edge(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1])
    for day, anls in enumerate((0.5203, 0.5209)):
        add(track, f"Run {day}", day, budget=1, epsilon=0.9, anls=anls, decimals=2, bytes_total=5)
    html = client.get("/leaderboard/private/progress/").text
    ticks = re.findall(r">(0\.\d+)</text>", drawing(html))
    assert {"0.51", "0.52", "0.53"} <= set(ticks)
    assert not [tick for tick in ticks if len(tick) > 4]
    assert "Communication" not in html
    assert "the later one is better in decimals" in html
    add(track, "Run 2", 2, budget=1, epsilon=0.9, anls=0.6, decimals=2, bytes_total=5)
    Submission.objects.filter(title="Run 1").delete()
    boards_changed(track.pk)
    assert "look equal" not in client.get("/leaderboard/private/progress/").text


def test_progress_says_if_the_intervals_of_a_step_overlap(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1])
    for day, (anls, low, high) in enumerate([(0.4, 0.38, 0.42), (0.5, 0.48, 0.52), (0.51, 0.49, 0.53)]):
        ends = {"anls_low": low, "anls_high": high}
        add(track, f"Run {day}", day, budget=1, epsilon=0.9, anls=anls, bytes_total=5, **ends)
    caveat = "the 95% intervals overlap"
    assert caveat in client.get("/leaderboard/private/progress/").text
    Submission.objects.filter(title="Run 2").delete()
    boards_changed(track.pk)
    assert caveat not in client.get("/leaderboard/private/progress/").text


def test_the_front_has_the_runs_that_no_other_beats_in_both(client, track):
    html = client.get("/leaderboard/bytes/").text
    assert sorted(marks(html)) == [
        ("Good: 10.0 kB, ANLS 0.9000, on the Pareto front", "front"),
        ("Small: 1.00 kB, ANLS 0.8100, on the Pareto front", "front"),
        ("Weak: 10 B, ANLS 0.5000, not on the front", "other"),
        ("Worse: 20.0 kB, ANLS 0.8500, not on the front", "other"),
    ]
    assert drawing(html).count("<polyline") == 1
    assert "threshold 0.8000" in html
    assert "plot-below" in html


def test_a_name_that_is_cut_ends_in_an_ellipsis(client, track):
    add(track, "Sparse updates with error feedback", day=4, bytes_total=5000, anls=0.85)
    html = client.get("/leaderboard/bytes/").text
    assert set(re.findall(r"<text[^>]*>(Sparse[^<]*)<", html)) == {"Sparse updates with e…"}


def test_a_name_is_not_cut_to_say_that_it_is_a_baseline(client):
    private = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
    for title, anls in (("FL-PROVIDER-DP", 0.4), ("Plain", 0.6)):
        add(private, title, budget=1.0, epsilon=0.9, anls=anls)
    Submission.objects.update(is_baseline=True)
    names = re.findall(
        r"<text[^>]*>(FL-[^<]*|Plain[^<]*)<", drawing(client.get("/leaderboard/private/").text)
    )
    assert set(names) == {"FL-PROVIDER-DP", "Plain (baseline)"}


def test_a_baseline_on_the_front_is_marked_as_one_and_the_key_has_every_mark(client, track):
    Submission.objects.filter(title="Good").update(is_baseline=True)
    boards_changed(track.pk)
    html = client.get("/leaderboard/bytes/").text
    assert ("Good: 10.0 kB, ANLS 0.9000, baseline, on the front", "front-baseline") in marks(html)
    key = re.findall(r'plot-([\w-]+)"[^>]*></svg>([^<]+)<', html)
    for entry in [
        ("front", "on the Pareto front"),
        ("front-baseline", "baseline, on the front"),
        ("front", "Pareto front of ranked runs"),
    ]:
        assert entry in key


def test_a_table_has_the_numbers_of_the_plot(client, track):
    html = client.get("/leaderboard/bytes/").text
    table = html[html.index("Data table") : html.index("</figure>")]
    assert all(
        cell in table for cell in ("Small", "1.00 kB", "0.8100", "Weak", "10 B", "0.5000", "not on the front")
    )


def test_a_run_that_sent_nothing_is_at_the_left_end_apart_from_the_others(client, track):
    add(track, "Untrained", day=5, bytes_total=0, anls=0.85)
    html = client.get("/leaderboard/bytes/").text
    assert ("Untrained: 0 B, ANLS 0.8500, on the Pareto front", "front") in marks(html)
    ticks = [
        (float(at), text)
        for at, text in re.findall(
            r'<text class="plot-text" x="([\d.]+)"[^>]*text-anchor="middle">([^<]+)<', drawing(html)
        )
    ]
    assert ticks[0][1] == "0 bytes"
    targets = re.findall(r'aria-label="(\w+): [^>]*>.*?cx="([\d.]+)"', drawing(html))
    at = {name: float(x) for name, x in targets}
    assert at["Untrained"] == ticks[0][0]
    # Between it and the fewest bytes of the others is a gap.
    assert min(x for name, x in at.items() if name != "Untrained") >= ticks[1][0] > at["Untrained"] + 50
    progress = client.get("/leaderboard/bytes/progress/").text
    assert ">0 bytes</text>" in progress


def test_where_all_sent_nothing_there_is_a_plot_all_the_same(client):
    alone = make_track(FEWEST_BYTES, slug="silent", anls_threshold=0.8)
    add(alone, "Untrained", bytes_total=0, anls=0.85)
    assert ">0 bytes</text>" in client.get("/leaderboard/silent/").text
    assert ">0 bytes</text>" in client.get("/leaderboard/silent/progress/").text


def test_progress_has_those_that_were_better_than_all_before(client, track):
    html = client.get("/leaderboard/bytes/progress/").text
    found = [label.split(":")[0] for label, _ in marks(html)]
    assert found == ["Worse", "Good", "Small"]


def test_progress_ends_with_the_best_of_today(client, track, monkeypatch):
    monkeypatch.setattr("docvqa_site.pages.progress.MOST_RECORDS", 2)
    found = marks(client.get("/leaderboard/bytes/progress/").text)
    assert [label.split(":")[0] for label, _ in found] == ["Good", "Small"]


def test_of_equal_scores_the_front_has_the_one_with_fewer_bytes(client, track):
    add(track, "Later", day=4, bytes_total=18_000, anls=0.9)
    assert ("Later: 18.0 kB, ANLS 0.9000, not on the front", "other") in marks(
        client.get("/leaderboard/bytes/").text
    )


def test_the_score_without_privacy_is_that_of_the_track_with_the_same_test_set(client, track):
    private = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
    add(private, "One", budget=1.0, epsilon=0.9, anls=0.4)
    add(private, "Two", budget=4.0, epsilon=3.9, anls=0.6)
    html = client.get("/leaderboard/private/").text
    best = Run.objects.get(submission__title="Good").submission
    link = rf'<a href="{best.get_absolute_url()}"><text [^>]*>without privacy 0.9000 \(Good\)</text></a>'
    assert re.search(link, html)
    assert sorted(marks(html)) == [
        ("One: ANLS 0.4000 at ε\xa0=\xa01, under review", "front"),
        ("Two: ANLS 0.6000 at ε\xa0=\xa04, under review", "front"),
    ]
    etag = client.get("/leaderboard/private/")["ETag"]
    # With as many digits as the board shows of it.
    add(track, "Newer", bytes_total=1, anls=0.9587, decimals=2)
    boards_changed(track.pk)
    second = client.get("/leaderboard/private/", headers={"If-None-Match": etag})
    assert "without privacy 0.95 (Newer)" in second.text
    assert client.get("/leaderboard/private/progress/").text.count("<figure") == 2


def test_marks_are_filled_when_verified_and_hollow_under_review(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4], required_reviews=2)
    add(track, "Open", budget=1.0, epsilon=0.9, anls=0.4)
    checked = add(track, "Checked", budget=1.0, epsilon=0.9, anls=0.3).submission
    html = client.get("/leaderboard/private/").text
    assert hollow(html) == {"Open": True, "Checked": True}
    for _ in range(track.required_reviews):
        ProofReview.objects.create(
            submission=checked,
            reviewer=make_user(is_staff=True),
            decision=Decision.ACCEPTED,
            decided_at=timezone.now(),
        )
    boards_changed(track.pk)
    html = client.get("/leaderboard/private/").text
    assert hollow(html) == {"Open": True, "Checked": False}
    assert "Checked: ANLS 0.3000 at ε\xa0=\xa01, proof accepted" in html
    rows = re.findall(
        r'<tr><th scope="row"><a href="[^"]+">(\w+)</a></th>.*?<td class="num" data-label="Status">([a-z ]+)</td></tr>',
        html,
    )
    assert rows == [("Open", "under review"), ("Checked", "proof accepted")]
    key = re.findall(r'plot-(verified|hollow)"[^>]*></svg>([a-z ]+)<', html)
    assert key == [("verified", "proof accepted"), ("hollow", "under review")]


def test_the_line_of_each_leading_method_is_named_at_its_end(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
    for title, anls in (("Upper", 0.8), ("Lower", 0.4)):
        submission = add(track, title, budget=1.0, epsilon=0.9, anls=anls).submission
        make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9, anls=anls + 0.1)
    svg = drawing(client.get("/leaderboard/private/").text)
    named = re.findall(r'<text class="[^"]*plot-label" x="([\d.]+)"[^>]*>([^<]+)<', svg)
    assert [name for _, name in named] == ["Upper", "Lower"]
    lines = re.findall(r'<polyline class="plot-line plot-thin" points="([^"]+)"', svg)
    assert all(float(x) > float(line.split()[0].split(",")[0]) for x, _ in named for line in lines)


@pytest.mark.parametrize(
    ("first", "last", "ticks", "is_long"),
    [
        # As far apart as seconds, minutes, hours, days and months.
        ("2026-11-30 13:26:28", "2026-11-30 13:26:30", ["Nov 30, 13:26", "Nov 30, 13:27"], False),
        ("2026-11-30 13:26:00", "2026-11-30 13:26:00", ["Nov 30, 13:26", "Nov 30, 13:27"], False),
        (
            "2026-11-30 13:26:28",
            "2026-11-30 13:31:30",
            ["Nov 30, 13:28", "Nov 30, 13:30"],
            False,
        ),
        (
            "2026-11-29 23:10:00",
            "2026-11-30 02:01:00",
            ["Nov 30, 00:00", "Nov 30, 01:00", "Nov 30, 02:00"],
            False,
        ),
        (
            "2026-11-21 13:26:28",
            "2026-11-30 13:26:30",
            ["Nov 23, 2026", "Nov 25, 2026", "Nov 27, 2026", "Nov 29, 2026"],
            True,
        ),
        ("2025-11-21 13:26:28", "2026-11-30 13:26:30", ["Feb 12, 2026", "Jun 4, 2026", "Sep 24, 2026"], True),
    ],
)
def test_an_axis_of_times_has_round_ticks_and_no_more_room_than_the_times(first, last, ticks, is_long):
    times = [datetime.fromisoformat(f"{one}+00:00").timestamp() for one in (first, last)]
    axis = time_axis("submitted", times)
    assert [tick.text for tick in axis.ticks] == ticks
    assert axis.title == ("submitted" if is_long else "submitted (UTC)")
    assert 0 < axis.at(times[0]) <= axis.at(times[1]) < 1
    if times[1] - times[0] > 120:
        assert axis.at(times[0]) == pytest.approx(MARGIN)
        assert axis.at(times[1]) == pytest.approx(1 - MARGIN)


def test_nothing_is_plotted_where_there_is_nothing(client):
    make_track(FEWEST_BYTES, slug="empty")
    make_track(BEST_ANLS_AT_BUDGET, slug="private")
    for address in ("/leaderboard/empty/", "/leaderboard/private/", "/leaderboard/empty/progress/"):
        assert "<figure" not in client.get(address).text


def test_a_plot_has_no_more_digits_than_the_board(client, track):
    add(track, "Probe", bytes_total=500, anls=0.8765432198)
    assert "0.87654" not in client.get("/leaderboard/bytes/").text


def test_runs_that_lost_their_ranks_are_crosses_named_with_the_reason(client, track):
    add(track, "Cheat", day=4, bytes_total=100, anls=0.9, disqualified_because="copied answers")
    html = client.get("/leaderboard/bytes/").text
    assert ("Cheat (disqualified): 100 B, ANLS 0.9000", "out") in marks(html)
    assert '<path class="plot-mark plot-out"' in drawing(html)
    assert "rejected or disqualified</li>" in html
    private = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4], required_reviews=1)
    add(private, "Good", budget=1.0, epsilon=0.9, anls=0.4)
    wrong = add(private, "Wrong", budget=4.0, epsilon=3.9, anls=0.6).submission
    for _ in range(2):
        ProofReview.objects.create(
            submission=wrong,
            reviewer=make_user(is_staff=True),
            decision=Decision.REJECTED,
            reason="no composition",
            decided_at=timezone.now(),
        )
    html = client.get("/leaderboard/private/").text
    assert ("Wrong (proof rejected): ANLS 0.6000 at ε\xa0=\xa04", "out") in marks(html)
    board = html[html.index('id="board"') :]
    assert "Not ranked (1, all rejected or disqualified)" in board
    assert '<span class="badge badge-rejected">proof rejected</span>' in board


def test_runs_at_the_same_place_share_a_mark_that_leads_to_their_numbers(client, track):
    add(track, "Twin", day=4, bytes_total=1000, anls=0.8101)
    svg = drawing(client.get("/leaderboard/bytes/").text)
    assert re.findall(r'<a href="(#[^"]+)" aria-label="(2 marks: [^"]+)"', svg) == [
        (
            "#bytes-numbers",
            "2 marks: Twin: 1.00 kB, ANLS 0.8101, on the Pareto front; Small: 1.00 kB, ANLS 0.8100, not on the front",
        )
    ]
    assert ">Twin, Small</text>" in svg
    assert ">Small</text>" not in svg


def test_every_mark_of_few_has_its_name_on_a_wide_page_and_on_a_phone(client, track):
    add(track, "Mine", day=4, bytes_total=10_000, anls=0.89)
    Submission.objects.filter(title="Good").update(is_baseline=True)
    boards_changed(track.pk)
    drawings = client.get("/leaderboard/bytes/").text.split('<svg class="plot-')[1:3]
    assert len(drawings) == 2
    for one in drawings:
        names = re.findall(r'<text class="[^"]*plot-label"[^>]*>([^<]+)<', one.partition("</svg>")[0])
        assert sorted(names) == ["Good, Mine", "Small", "Weak", "Worse"]


def test_progress_has_ticks_at_whole_days_hours_or_minutes(client, track):
    svg = drawing(client.get("/leaderboard/bytes/progress/").text)
    ticks = re.findall(r">(\w{3} \d+, \d{4}|\w{3} \d+, \d\d:\d\d)</text>", svg)
    assert 2 <= len(ticks) == len(set(ticks))


def test_the_title_of_an_axis_of_bytes_has_room_on_a_phone(client, track):
    add(track, "Nothing sent", bytes_total=0, anls=0.4)
    html = client.get("/leaderboard/bytes/").content.decode()
    narrow = html.partition('<svg class="plot-narrow"')[2].partition("</svg>")[0]
    [title] = re.findall(r">(communication[^<]*)</text>", narrow)
    assert "0 set apart" in title
    assert text_width(title) <= NARROW.width - NARROW.right
