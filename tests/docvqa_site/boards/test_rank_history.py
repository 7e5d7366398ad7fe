"""The history of ranks: what is recorded, what a board marks since last week, and the plot on a method's page."""

from datetime import date, timedelta

import pytest
from django.utils import timezone

from docvqa_site.boards.history import ranks_before, record_ranks
from docvqa_site.boards.models import RankRecord
from docvqa_site.celery import RANKS_TASK, app
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.services import withdraw
from tests.docvqa_site.factories import change_results, make_run, make_submission, make_track, owner_of

pytestmark = pytest.mark.django_db

TODAY = date(2026, 11, 24)
WEEK = timedelta(days=7)


@pytest.fixture
def track():
    return make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.5)


def add(track, title, **fields):
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
    return make_run(submission, state=RunState.SCORED, **fields)


def recorded(run):
    return list(RankRecord.objects.filter(run=run).order_by("day").values_list("day", "rank"))


class TestRecording:
    def test_a_rank_is_recorded_when_it_differs_from_the_last_one(self, track):
        first = add(track, "First", bytes_total=2000)
        assert record_ranks(TODAY) == 1
        assert record_ranks(TODAY + timedelta(days=1)) == 0
        better = add(track, "Better", bytes_total=1000)
        assert record_ranks(TODAY + timedelta(days=2)) == 2
        assert recorded(first) == [(TODAY, 1), (TODAY + timedelta(days=2), 2)]
        assert recorded(better) == [(TODAY + timedelta(days=2), 1)]

    def test_of_a_day_the_last_rank_stays(self, track):
        first = add(track, "First", bytes_total=2000)
        record_ranks(TODAY)
        add(track, "Better", bytes_total=1000)
        record_ranks(TODAY)
        assert recorded(first) == [(TODAY, 2)]

    def test_a_lost_rank_is_recorded_once_and_a_regained_one_again(self, track):
        run = add(track, "One", bytes_total=1000, anls=0.9)
        record_ranks(TODAY)
        for days, anls in ((1, 0.4), (2, 0.4), (3, 0.9)):
            change_results(run, anls=anls)
            record_ranks(TODAY + timedelta(days=days))
        found = [((day - TODAY).days, rank) for day, rank in recorded(run)]
        assert found == [(0, 1), (1, None), (3, 1)]

    def test_what_is_on_no_board_is_not_recorded(self, track):
        add(track, "Too low", anls=0.4)
        hidden = make_submission(track=track, state=SubmissionState.SUBMITTED, published_at=None)
        make_run(hidden, state=RunState.SCORED)
        assert record_ranks(TODAY) == 0

    def test_each_budget_has_ranks_of_its_own(self):
        track = make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4])
        submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
        runs = [make_run(submission, state=RunState.SCORED, budget=b, epsilon=0.5) for b in (1.0, 4.0)]
        assert record_ranks(TODAY) == 2
        assert [recorded(run) for run in runs] == [[(TODAY, 1)]] * 2

    def test_ranks_end_with_the_budget_of_their_board(self):
        track = make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4])
        run = add(track, "One", budget=4.0, epsilon=0.5)
        record_ranks(TODAY)
        track.budgets = [1]
        track.save()
        record_ranks(TODAY + WEEK)
        assert recorded(run) == [(TODAY, 1), (TODAY + WEEK, None)]

    def test_it_takes_as_many_queries_for_many_runs_as_for_one(self, track, django_assert_max_num_queries):
        for number in range(20):
            add(track, f"Method {number}")
        with django_assert_max_num_queries(6):
            assert record_ranks(TODAY) == 20

    def test_the_clock_calls_it_every_hour(self):
        app.loader.import_default_modules()
        app.tasks[RANKS_TASK]()
        (entry,) = [entry for entry in app.conf.beat_schedule.values() if entry["task"] == RANKS_TASK]
        assert entry["schedule"] == 3600


class TestSinceLastWeek:
    def test_the_rank_of_a_week_before_is_the_last_one_recorded_by_then(self, track):
        risen, fallen, new = (add(track, name) for name in ("Risen", "Fallen", "New"))
        lost = add(track, "Lost")
        for run, days, rank in (
            (risen, 30, 9),
            (risen, 9, 5),
            (risen, 6, 4),
            (fallen, 7, 1),
            (new, 2, 3),
            (lost, 20, 3),
            (lost, 10, None),
        ):
            RankRecord.objects.create(run=run, day=TODAY - timedelta(days=days), rank=rank)
        runs = [run.pk for run in (risen, fallen, new, lost)]
        assert ranks_before(track, runs, TODAY) == {risen.pk: 5, fallen.pk: 1, new.pk: 0, lost.pk: 0}

    def test_nothing_is_said_before_a_week_was_recorded(self, track):
        run = add(track, "One")
        RankRecord.objects.create(run=run, day=TODAY - timedelta(days=6), rank=2)
        other = add(make_track(), "Elsewhere")
        RankRecord.objects.create(run=other, day=TODAY - timedelta(days=60), rank=2)
        assert ranks_before(track, [run.pk], TODAY) == {}

    def test_the_board_marks_what_has_moved(self, client, track):
        names = ("Up", "Same", "Down", "New")
        up, same, down, _ = (add(track, name, bytes_total=1000 + at) for at, name in enumerate(names))
        for run, rank in ((up, 3), (same, 2), (down, 1)):
            RankRecord.objects.create(run=run, day=timezone.localdate() - WEEK, rank=rank)
        rows = client.get("/leaderboard/bytes/").text.split("<tbody>")[1].split("</tr>")
        shown = {name: next(row for row in rows if f">{name}<" in row) for name in names}
        assert "▲ 2" in shown["Up"]
        assert "up 2 since last week" in shown["Up"]
        assert "▼ 2" in shown["Down"]
        assert "down 2 since last week" in shown["Down"]
        assert "since last week" not in shown["Same"]
        assert "new" in shown["New"]
        assert "not ranked last week" in shown["New"]

    def test_a_page_of_yesterday_is_not_sent_today(self, client, track, monkeypatch):
        run = add(track, "One", bytes_total=1000)
        add(track, "Two", bytes_total=500)
        RankRecord.objects.create(run=run, day=TODAY - WEEK, rank=1)
        monkeypatch.setattr("docvqa_site.pages.track.localdate", lambda: TODAY - timedelta(days=1))
        before = client.get("/leaderboard/bytes/")
        monkeypatch.setattr("docvqa_site.pages.track.localdate", lambda: TODAY)
        after = client.get("/leaderboard/bytes/")
        assert "▼ 1" not in before.text
        assert "▼ 1" in after.text
        assert before["ETag"] != after["ETag"]


class TestPlot:
    def page(self, client, run):
        return " ".join(client.get(run.submission.get_absolute_url()).text.split())

    def test_a_method_shows_how_its_rank_has_changed(self, client, track):
        run = add(track, "One")
        for days, rank in ((40, 4), (20, 2), (10, None), (3, 1)):
            RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=days), rank=rank)
        page = self.page(client, run)
        assert "Rank over time" in page
        assert page.count('<circle class="plot-mark plot-front"') >= 3
        assert "no rank" in page
        assert "since" in page

    def test_a_rank_that_came_back_within_a_day_is_no_change(self, client, track):
        run = add(track, "One")
        for days in (40, 20):
            RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=days), rank=1)
        assert "Rank over time" not in self.page(client, run)

    def test_one_rank_is_no_history(self, client, track):
        run = add(track, "One")
        RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=40), rank=1)
        assert "Rank over time" not in self.page(client, run)

    def test_what_was_withdrawn_has_none(self, client, track):
        run = add(track, "One")
        for days in (40, 20):
            RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=days), rank=days)
        withdraw(run.submission, owner_of(run.submission.team))
        assert "Rank over time" not in self.page(client, run)
