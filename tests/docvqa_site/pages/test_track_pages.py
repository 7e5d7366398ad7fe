import csv
import io
import json
import re
from datetime import datetime, timedelta
from html import unescape

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from docvqa_site.about.citations import COMPETITION_PAPER, DATA_PAPER
from docvqa_site.api.ranks import Ranks
from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.boards import boards_of
from docvqa_site.boards.standings import rank_at_the_time
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from docvqa_site.submissions.services import mark_baseline
from evaluator.accounting.accountant import Accountant
from tests.docvqa_site.factories import (
    make_download,
    make_epsilons,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def bytes_track():
    return make_track(FEWEST_BYTES, slug="communication", name="Communication", anls_threshold=0.8)


@pytest.fixture
def private_track():
    return make_track(BEST_ANLS_AT_BUDGET, slug="privacy", name="Privacy", budgets=[1, 4], required_reviews=1)


def add_run(track, title="Method", *, budget=None, team=None, **fields):
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED, title=title)
    return make_run(submission, state=RunState.SCORED, budget=budget, **fields)


def review(run, decision, reason=""):
    return ProofReview.objects.create(
        submission=run.submission,
        reviewer=make_user(is_staff=True),
        decision=decision,
        reason=reason,
        decided_at=timezone.now(),
    )


def page_of(client, track):
    return client.get(reverse("leaderboard:track", args=[track.slug])).text


class TestBoards:
    def test_the_bytes_track_has_one_board(self, bytes_track):
        add_run(bytes_track, "Big", bytes_total=30)
        add_run(bytes_track, "Small", bytes_total=10)
        add_run(bytes_track, "Weak", bytes_total=1, anls=0.5)
        (board,) = boards_of(bytes_track)
        assert [(row.entry.method, row.rank) for row in board.rows] == [
            ("Small", 1),
            ("Big", 2),
            ("Weak", None),
        ]

    def test_the_private_track_has_a_board_for_every_budget(self, private_track):
        add_run(private_track, "One", budget=1.0, epsilon=0.9)
        add_run(private_track, "Four", budget=4.0, epsilon=3.9)
        boards = boards_of(private_track)
        assert [(board.budget, [row.entry.method for row in board.rows]) for board in boards] == [
            (1.0, ["One"]),
            (4.0, ["Four"]),
        ]

    def test_reviews_decide_the_status(self, private_track):
        accepted, rejected, _ = (
            add_run(private_track, title, budget=1.0, epsilon=0.9, anls=anls)
            for title, anls in [("Accepted", 0.7), ("Rejected", 0.8), ("Unread", 0.6)]
        )
        review(accepted, Decision.ACCEPTED)
        for _ in range(2):
            review(rejected, Decision.REJECTED, "no composition")
        rows = boards_of(private_track)[0].rows
        assert [(row.entry.method, row.rank, str(row.entry.status), row.reason) for row in rows] == [
            ("Accepted", 1, "verified", ""),
            ("Unread", 2, "provisional", ""),
            ("Rejected", None, "rejected", "proof rejected: no composition"),
        ]

    def test_what_is_not_scored_or_was_withdrawn_is_not_listed(self, bytes_track):
        for state in RunState:
            if state not in (RunState.SCORED, RunState.DRAFT):
                make_run(make_submission(track=bytes_track, state=SubmissionState.SUBMITTED), state=state)
        withdrawn = make_submission(
            track=bytes_track, state=SubmissionState.WITHDRAWN, submitted_at=timezone.now()
        )
        make_run(withdrawn, state=RunState.SCORED)
        add_run(make_track(), "Of another track")
        assert boards_of(bytes_track)[0].rows == []

    def test_a_budget_that_the_track_no_longer_has_is_not_listed(self, private_track):
        add_run(private_track, budget=8.0, epsilon=7.9)
        assert [board.rows for board in boards_of(private_track)] == [[], []]


class TestTrackPage:
    def test_it_shows_ranked_runs_and_why_others_have_no_rank(self, client, bytes_track):
        run = add_run(bytes_track, "Small", bytes_total=1_234_567, anls=0.87654)
        add_run(bytes_track, "Weak", anls=0.5)
        page = page_of(client, bytes_track)
        assert "1.23 MB" in page
        assert "0.8765" in page
        assert run.submission.team.name in page
        assert run.submission.get_absolute_url() in page
        assert "Not ranked (1)" in page
        assert "ANLS 0.5000 &lt; 0.8000" in page

    def test_it_shows_every_epsilon_rounded_up_and_which_decides(self, client, private_track):
        add_run(
            private_track,
            budget=1.0,
            epsilon=0.987654,
            epsilons=make_epsilons(0.987654, 0.456781, 1.234561),
            accountant="PLD, evaluator 1",
        )
        assert "0.9877" in client.get("/leaderboard/privacy/?epsilon=1").text
        page = client.get("/leaderboard/privacy/?epsilon=1&more=1").text
        assert page.count("0.4568") == page.count("1.2346") == 1
        assert "PLD, evaluator 1" in page
        assert page.count("<strong><data") == 1
        assert '<strong><data value="0.987654"' in page
        assert "ε\xa0=\xa01" in page
        assert "ε\xa0=\xa04" in page

    def test_a_leading_baseline_is_compared_with_the_next_run_and_marked_in_the_plot(
        self, client, private_track
    ):
        for title, anls in (("Baseline", 0.5194), ("Next", 0.5192)):
            found = make_submission(track=private_track, state=SubmissionState.SUBMITTED, title=title)
            results = {"anls": anls, "anls_low": 0.49, "anls_high": 0.55, "decimals": 2}
            make_run(found, state=RunState.SCORED, budget=1.0, epsilon=1.0, **results)
            if title == "Baseline":
                mark_baseline(found, True, make_user())
        page = " ".join(page_of(client, private_track).split())
        lead = page.partition('<dl class="headlines"')[2].partition("</dl>")[0]
        assert "less than 0.01 above Next (intervals overlap)" in lead
        address = unescape(re.findall(r'href="([^"]*/compare/[^"]*)"', lead)[0])
        assert "<h1>Baseline and Next</h1>" in client.get(address).text
        # Both are shown as 0.51; the mark of the first rank is the large one, and the other lies on it.
        drawn = page.partition('<svg class="plot-wide"')[2].partition("</svg>")[0]
        assert re.findall(r'class="plot-mark plot-(front|other)', drawn) == ["front", "other"]
        assert "Baseline (baseline): ANLS 0.51" in page

    def test_where_intervals_overlap_every_page_says_which_ranks_are_possible(self, client, private_track):
        scores = [("Leader", 1.0, 0.55, 0.53, 0.58), ("Baseline", 1.0, 0.52, 0.49, 0.54)]
        scores += [("Leader", 4.0, 0.7, 0.68, 0.73), ("Baseline", 4.0, 0.5, 0.48, 0.53)]
        methods = {
            title: make_submission(track=private_track, state=SubmissionState.SUBMITTED, title=title)
            for title in ("Leader", "Baseline")
        }
        for title, budget, anls, low, high in scores:
            results = {"anls": anls, "anls_low": low, "anls_high": high}
            make_run(methods[title], state=RunState.SCORED, budget=budget, epsilon=budget, **results)
        mark_baseline(methods["Baseline"], True, make_user())
        board = page_of(client, private_track)
        assert "#1 (could be 1–2)" in board
        assert "#2 (could be 1–2)" in board
        assert board.count("could be") == 2
        of_one = client.get(reverse("leaderboard:track", args=["privacy"]), {"epsilon": "1"}).text
        assert 'could be <span class="nowrap">1–2</span>' in of_one
        assert "0.0300 above the baseline Baseline (intervals overlap)" in board
        assert "0.2000 above the baseline Baseline</span>" in board
        # At ε = 4, the intervals are apart.
        assert board.count("compare with the next run") == 1
        # Of two methods at two budgets, in two drawings.
        assert board.count('<polyline class="plot-line plot-whisker"') == 8
        assert "0.5500 (0.530–0.580)" in board
        assert client.get(reverse("home")).text.count("rank could be 1–2") == 1
        method = client.get(methods["Leader"].get_absolute_url()).text
        assert "<strong>#1</strong> (could be 1–2) at" in method
        # So do the team's own pages, its notifications, and the answers for `pfl`.
        client.force_login(methods["Leader"].created_by)
        own = "<strong>#1</strong> (could be 1–2)"
        assert client.get(reverse("submissions:list")).text.count(own) == 1
        assert client.get(reverse("home")).text.count(own) == 1
        first, second = methods["Leader"].runs.order_by("budget")
        assert [rank_at_the_time(run=run) for run in (first, second)] == [
            "#1 of 2 (could be 1–2) at the time",
            "#1 of 2 at the time",
        ]
        ranks = Ranks.of_runs([first, second])
        assert [ranks.possible_ranks(run) for run in (first, second)] == ["1–2", ""]

    def test_the_rules_of_the_run_say_which_epsilon_decides(self, client, private_track):
        epsilons = make_epsilons(0.5, rdp=0.9, accountant=Accountant.RDP)
        add_run(private_track, budget=1.0, epsilon=0.9, epsilons=epsilons)
        page = client.get("/leaderboard/privacy/?epsilon=1&more=1").text
        assert '<strong><data value="0.9"' in page

    def test_it_says_what_the_levels_of_verification_mean(self, client, bytes_track):
        assert "Nobody has verified that the training ran" in page_of(client, bytes_track)

    def test_flagged_checks_are_counted_and_linked(self, client, bytes_track):
        checks = [
            {"id": "log.directions", "status": "passed"},
            *[{"id": "log.message_sizes", "status": "flagged"}] * 2,
        ]
        run = add_run(bytes_track, checks=checks)
        page = page_of(client, bytes_track)
        assert f'<a href="{run.submission.get_absolute_url()}runs/{run.pk}/">2 checks flagged</a>' in page

    def test_nothing_is_said_of_checks_that_passed(self, client, bytes_track):
        add_run(bytes_track, checks=[{"id": "log.directions", "status": "passed"}])
        assert "flagged" not in page_of(client, bytes_track)

    def test_a_baseline_is_marked(self, client, bytes_track):
        run = add_run(bytes_track)
        assert "badge-baseline" not in page_of(client, bytes_track)
        mark_baseline(run.submission, True, make_user())
        assert "badge-baseline" in page_of(client, bytes_track)

    def test_an_empty_board_says_how_to_fill_it(self, client, bytes_track):
        assert "No scored runs yet" in page_of(client, bytes_track)

    def test_names_are_text(self, client, bytes_track):
        add_run(bytes_track, "<script>alert(1)</script>", team=make_team(name="<img src=x>"))
        page = page_of(client, bytes_track)
        assert "<script>alert" not in page
        assert "<img src=x>" not in page

    def test_a_missing_track_is_not_found_and_nothing_is_posted(self, client, bytes_track):
        for name in ("leaderboard:track", "leaderboard:csv"):
            assert client.get(reverse(name, args=["missing"])).status_code == 404
            assert client.post(reverse(name, args=[bytes_track.slug])).status_code == 405

    def test_the_number_of_queries_does_not_grow_with_the_runs(
        self, client, private_track, django_assert_num_queries
    ):
        for number in range(6):
            run = add_run(private_track, f"Method {number}", budget=1.0, epsilon=0.9)
            review(run, Decision.ACCEPTED)
        # The tracks, their versions and data, the first of two boards, their runs, and the rows. Of the plot: the first
        # of two boards, their best baselines, and the runs that lost their ranks. And the counts of two boards, whether
        # the set is split, the final results, the intervals beside the leading ones, and the notices.
        with django_assert_num_queries(16):
            page_of(client, private_track)
        # The tracks, their versions, data and phases, the counts, the levels, the first rows with a rank and without,
        # the rows, the intervals beside theirs, whether ranks of last week are known, whether the test set is split,
        # and the notices. The plot is cached.
        with django_assert_num_queries(11):
            client.get("/leaderboard/privacy/?epsilon=1")
        rejected = add_run(private_track, "Rejected", budget=1.0, epsilon=0.9)
        for _ in range(2):
            review(rejected, Decision.REJECTED, "no composition")
        boards_changed(private_track.pk)
        # And the reasons of rejections; for the plot, the first of two boards, their best baselines, the best without
        # privacy, in two queries the runs that lost their ranks, and the final results.
        with django_assert_num_queries(12 + 1 + 7):
            assert "proof rejected" in client.get("/leaderboard/privacy/?epsilon=1").text

    def test_of_own_rows_each_board_takes_a_query_for_its_first_and_one_for_those_in_the_plot(self, client):
        counts = []
        for budgets in ([1, 4], [1, 4, 8]):
            track = make_track(BEST_ANLS_AT_BUDGET, budgets=budgets)
            team = make_team()
            for title in ("First", "Second"):
                submission = make_submission(team, track, state=SubmissionState.SUBMITTED, title=title)
                for budget in track.run_budgets():
                    make_run(submission, state=RunState.SCORED, budget=budget, epsilon=0.9)
            with CaptureQueriesContext(connection) as queries:
                client.get(f"/leaderboard/{track.slug}/?team={team.slug}")
            counts.append(len(queries))
        assert counts[1] - counts[0] == 2

    def test_a_page_of_one_version_is_computed_once(self, client, private_track, django_assert_num_queries):
        add_run(private_track, budget=1.0, epsilon=0.9)
        first = page_of(client, private_track)
        with django_assert_num_queries(5):
            assert page_of(client, private_track) == first

    def test_own_rows_are_drawn_once_and_those_of_any_other_name_each_time(
        self, client, private_track, django_assert_num_queries, django_assert_max_num_queries
    ):
        team = add_run(private_track, "Ours", budget=1.0, epsilon=0.9).submission.team
        client.force_login(owner_of(team))
        own, other = (f"/leaderboard/privacy/?team={name}" for name in (team.slug, "nobody"))
        # Then also the visitor, their team, the methods in the plot, the quota, and what is unread.
        for _ in range(2):
            client.get(own)
            client.get(other)
        with django_assert_max_num_queries(11):
            assert "Ours" in client.get(own).text
        with CaptureQueriesContext(connection) as queries:
            client.get(other)
        assert len(queries) > 15


class TestHome:
    def test_it_names_the_benchmark_and_shows_the_best_of_every_track(
        self, client, bytes_track, private_track
    ):
        for number in range(7):
            add_run(bytes_track, f"Bytes method {number}.", bytes_total=1000 + number)
        add_run(bytes_track, "Weak method", anls=0.1)
        add_run(private_track, "Private method", budget=4.0, epsilon=3.0)
        page = client.get(reverse("home")).text
        assert "Privacy-preserving federated document VQA" in page
        assert "Bytes method 0." in page
        assert "Bytes method 1." not in page
        assert "Weak method" not in page
        assert "Private method" in page
        # A number of bytes says little without the score that it took.
        assert re.search(r"<strong>1\.00 kB at ANLS 0\.\d+</strong>", page)
        assert all(
            reverse("leaderboard:track", args=[track.slug]) in page for track in (bytes_track, private_track)
        )

    def test_while_no_proof_is_accepted_a_card_says_so_once(self, client, private_track):
        add_run(private_track, "Private method", budget=4.0, epsilon=3.0)
        for name in ("home", "leaderboard:index"):
            page = client.get(reverse(name)).text
            assert page.count("No run with an accepted proof yet. Best so far:") == 1
            assert page.count("No run with an accepted proof yet") == 1
            assert ">Current best: test set synthetic, base weights vt5-tiny</h4>" in page
            assert "Best with an accepted proof" not in page
            assert page.index("accepted proof yet") < page.index("Private method")

    def test_home_and_leaderboards_say_how_many_take_part(self, client, bytes_track):
        for number in range(2):
            add_run(bytes_track, bytes_total=number + 1)
        baseline = add_run(bytes_track, bytes_total=9).submission
        Submission.objects.filter(pk=baseline.pk).update(is_baseline=True)
        link = f'<a href="{reverse("participation")}">2 participating teams, 2 submissions so far</a>'
        for name in ("home", "leaderboard:index"):
            assert link in client.get(reverse(name)).text

    def test_a_board_shows_joint_epsilon_where_it_is_larger(self, client, private_track):
        add_run(private_track, "Later", budget=4.0, epsilon=3.0, joint_epsilon=8.75, joint_runs=2)
        add_run(private_track, "First", budget=4.0, epsilon=2.0, joint_epsilon=2.0, joint_runs=1)
        board = reverse("leaderboard:track", args=["privacy"])
        joint = r'<div class="muted small nowrap">joint (?:<[^>]+>)?([\d.]+)'
        assert re.findall(joint, client.get(board, {"epsilon": "4"}).text) == ["8.7500"]
        assert re.findall(joint, client.get(board, {"epsilon": "4", "more": "1"}).text) == []

    def test_without_tracks_it_says_so(self, client):
        assert "No tracks yet" in client.get(reverse("home")).text

    def test_it_takes_a_fixed_number_of_queries_per_track(
        self, client, bytes_track, django_assert_num_queries
    ):
        for number in range(6):
            add_run(bytes_track, bytes_total=number + 1)
        # Tracks, their phases, versions, news, kinds of files, the kit's, the first run with a rank, its row, the final
        # results, the notices; and once an hour registrations, teams, submissions, downloads, countries.
        with django_assert_num_queries(15):
            client.get(reverse("home"))

    def test_the_list_of_leaderboards_has_their_leaders(self, client, bytes_track):
        add_run(bytes_track, "First method", bytes_total=1_234)
        page = client.get(reverse("leaderboard:index")).text
        assert "First method" in page
        assert "1.23 kB" in page

    def test_a_member_finds_their_team(self, client, bytes_track):
        team = add_run(bytes_track, "Mine").submission.team
        client.force_login(owner_of(team))
        page = client.get(reverse("home")).text
        assert team.name in page
        assert f"{reverse('leaderboard:track', args=[bytes_track.slug])}?team={team.slug}" in page

    def test_it_says_until_when_and_offers_a_reminder(self, client, bytes_track):
        bytes_track.phases.update(ends_at=timezone.now() + timedelta(days=3, minutes=1))
        assert "(in 3\xa0days)" in client.get(reverse("home")).text
        calendar = client.get(reverse("challenge:deadline", args=[bytes_track.slug]))
        assert calendar["Content-Type"].startswith("text/calendar")
        assert f"DTSTART:{bytes_track.closes_at:%Y%m%dT%H%M%SZ}\r\n" in calendar.text

    def test_the_deadline_of_each_open_track_is_named(self, client, bytes_track, private_track):
        bytes_track.phases.update(ends_at=timezone.now() + timedelta(days=9))
        make_track(name="Paused one", paused=True)
        text = " ".join(client.get("/").text.split())
        open_, paused = "badge-open", '<span class="badge">paused'
        for track, state in ((bytes_track, "until <time"), (private_track, "no deadline")):
            card = text.partition(f'id="track-{track.slug}"')[2].partition("</article>")[0]
            assert f'{open_}">open</span> <span class="muted">{state}' in card
        assert text.partition(">Paused one</h3>")[2].partition("</article>")[0].count(paused) == 1
        assert "No track is open" not in text

    def test_a_track_without_a_deadline_has_no_reminder(self, client, bytes_track):
        assert client.get(reverse("challenge:deadline", args=[bytes_track.slug])).status_code == 404

    def test_it_leads_to_the_papers_of_the_data_set_and_of_the_competition(self, client):
        page = client.get(reverse("home")).text
        for paper in (DATA_PAPER, COMPETITION_PAPER):
            assert f'href="{paper.url}"' in page
            assert f'href="{reverse("about:cite")}#{paper.key}"' in page

    def test_the_kit_is_installed_from_the_site_if_it_offers_one(self, client, settings):
        settings.SOURCE_URL = "https://code.example/pfl"
        assert "git+https://code.example/pfl" in client.get(reverse("home")).text
        files = {"kit": "pfl_docvqa_benchmark-1-py3-none-any.whl", "pins": "constraints.txt"}
        for slug, name in files.items():
            Download.objects.create(
                slug=slug,
                kind=DownloadKind.KIT,
                title=slug,
                license="Apache-2.0",
                filename=name,
                size_bytes=1,
                sha256="0" * 64,
                store_key=f"dl/{slug}",
            )
        page = unescape(strip_tags(client.get(f"{reverse('home')}?again").text))
        assert f"-c {settings.SITE_URL}/data/pins/constraints.txt" in page
        assert f'"pfl-docvqa-benchmark[kit] @ {settings.SITE_URL}/data/kit/{files["kit"]}"' in page

    def test_it_prints_the_commands_of_its_own_open_track_once_data_and_weights_are_offered(
        self, client, bytes_track, settings
    ):
        trial = unescape(strip_tags(client.get(reverse("home")).text))
        assert "pfl data forms data" in trial
        assert "pfl submit save" not in trial
        for kind in (DownloadKind.DATA, DownloadKind.WEIGHTS):
            make_download(kind)
        shown = client.get(f"{reverse('home')}?again").text
        needed, _, after = shown.partition('id="take-part"')[2].partition("<pre")
        for address in ("account_signup", "teams:mine", "accounts:tokens"):
            assert f'href="{reverse(address)}"' in needed
        assert "python3 -m venv .venv" in needed
        assert "python3 -m venv .venv" not in after
        page = unescape(strip_tags(shown))
        assert f"export PFL_SITE={settings.SITE_URL} PFL_TOKEN=${{PFL_TOKEN:-…}}" in page
        assert "Replace “My method” with your method's title." in page
        for verb in ("data download", f"submit save/{bytes_track.slug}"):
            assert f"pfl {verb} --track {bytes_track.slug}" in page
        assert f"pfl check save/{bytes_track.slug} --base base --track {bytes_track.slug}" in page
        assert "pfl data forms" not in page

    def test_nothing_is_posted(self, client):
        assert client.post(reverse("home")).status_code == 405


class TestCsv:
    def read(self, client, track):
        response = client.get(reverse("leaderboard:csv", args=[track.slug]))
        assert response["Content-Disposition"] == f'attachment; filename="leaderboard-{track.slug}.csv"'
        return list(csv.DictReader(io.StringIO(response.text)))

    def test_it_has_every_row_with_scores_of_four_decimals(self, client, private_track):
        run = add_run(private_track, "Method, one", budget=1.0, epsilon=0.987654321, anls=0.123456789)
        add_run(private_track, "Two", budget=4.0, epsilon=5.0)
        first, second = self.read(client, private_track)
        assert (first["track"], first["budget"], first["rank"], first["status"]) == (
            "privacy",
            "1.0",
            "1",
            "provisional",
        )
        assert (first["method"], first["epsilon"], first["anls"]) == (
            "Method, one",
            "0.987654321",
            "0.1234",
        )
        assert first["url"] == settings.SITE_URL + run.submission.get_absolute_url()
        assert (second["rank"], second["reason"]) == ("", "recomputed ε = 5.0000 exceeds the budget of 4")

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
    def test_no_cell_is_a_formula(self, client, bytes_track, start):
        formula = f'{start}HYPERLINK("https://example.org")'
        add_run(bytes_track, formula, team=make_team(name=formula))
        (row,) = self.read(client, bytes_track)
        assert row["method"] == row["team"] == "'" + formula

    def test_every_cell_is_quoted_so_that_no_separator_makes_a_new_one(self, client, bytes_track):
        add_run(bytes_track, "x;=1+1")
        (_, line) = client.get(reverse("leaderboard:csv", args=[bytes_track.slug])).text.splitlines()
        assert '"x;=1+1"' in line
        assert all(len(cell) < 2 or cell[0] == cell[-1] == '"' for cell in line.split(","))


class TestCommand:
    def printed(self, *arguments):
        output = io.StringIO()
        call_command("leaderboard", *arguments, stdout=output)
        return output.getvalue()

    def test_it_prints_the_boards_of_all_tracks_aligned(self, bytes_track, private_track):
        add_run(bytes_track, "A", team=make_team(name="Short"), bytes_total=1_234_567)
        add_run(bytes_track, "A long name", team=make_team(name="A team"), bytes_total=2_000_000, anls=0.1)
        add_run(
            private_track,
            "P",
            budget=1.0,
            epsilon=0.95,
            epsilons=make_epsilons(0.95, 0.9),
            accountant="PLD",
        )
        lines = self.printed().splitlines()
        assert lines[:2] == ["Communication", "============="]
        header, first, second = lines[2:5]
        assert header.index("Team") == first.index("Short") == second.index("A team")
        assert "1.23 MB" in first
        assert second.endswith("no rank: ANLS 0.1000 is below the threshold of 0.8000")
        assert "Privacy, ε = 1" in lines
        private = next(line for line in lines if " P " in line)
        assert re.search(r"0\.95\* +0\.9 +– +PLD +L0", private)
        assert "Privacy, ε = 4" in lines
        assert lines[-2:] == ["No scored runs yet.", ""]

    def test_it_prints_one_track(self, bytes_track, private_track):
        assert "Privacy" not in self.printed("communication")

    def test_an_unknown_track_is_an_error(self, bytes_track):
        with pytest.raises(CommandError, match="no track 'missing'"):
            self.printed("missing")


class TestApi:
    def test_everyone_reads_the_boards(self, client, private_track):
        run = add_run(
            private_track,
            "One",
            budget=1.0,
            epsilon=0.9,
            epsilons=make_epsilons(0.9, 0.8, 1.0),
            accountant="PLD, evaluator 1",
            checks=[{"id": "team.declared_runs", "status": "flagged"}],
        )
        add_run(private_track, "Two", budget=1.0, epsilon=1.1)
        answer = client.get("/api/v1/leaderboards/privacy")
        assert answer.status_code == 200
        body = json.loads(answer.text)
        assert body["track"] == "privacy"
        assert [board["budget"] for board in body["boards"]] == [1.0, 4.0]
        first, second = body["boards"][0]["rows"]
        submission = run.submission
        files = f"{settings.SITE_URL}/submissions/{submission.pk}/runs/{run.pk}"
        expected = {
            "rank": 1,
            "reason": "",
            "pending": None,
            "status": "provisional",
            "is_baseline": False,
            "is_disqualified": False,
            "is_withheld": False,
            "method": "One",
            "team": submission.team.name,
            "phase": "Submissions",
            "results": run.results.model_dump(mode="json"),
            "flagged_checks": 1,
            "submitted_at": first["submitted_at"],
            "url": settings.SITE_URL + submission.get_absolute_url(),
            "code_url": None,
            "paper_url": None,
            "proof_url": None,
            "log_url": f"{files}/communication_log/",
            "record_url": f"{files}/training_record/",
        }
        assert {key: first[key] for key in expected} == expected
        assert abs(submission.submitted_at - datetime.fromisoformat(first["submitted_at"])) < timedelta(
            seconds=1
        )
        assert (second["rank"], second["reason"]) == (None, "recomputed ε = 1.1000 exceeds the budget of 1")

    def test_of_a_private_run_some_checks_are_published_without_their_findings(self, client, private_track):
        checks = [
            {
                "id": check,
                "status": "flagged",
                "expected": "17",
                "found": "18 of client 7",
                "where": "round 3",
            }
            for check in ("record.providers", "record.rounds", "record.clients", "log.rounds")
        ]
        add_run(private_track, budget=1.0, epsilon=0.9, checks=checks)
        body = client.get("/api/v1/leaderboards/privacy").json()
        hidden, *public = body["boards"][0]["rows"][0]["results"]["checks"]
        assert hidden == {
            "id": "record.providers",
            "status": "flagged",
            "expected": "",
            "found": "",
            "where": "",
        }
        # The last two follow from the record and the log, which are public for a named team.
        assert public == checks[1:]

    def test_a_missing_track_is_not_found(self, client):
        assert client.get("/api/v1/leaderboards/missing").status_code == 404
