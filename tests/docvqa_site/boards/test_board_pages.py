"""Long boards come in pages, and whoever has the current version of one isn't sent it again."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.published import csv_lines, json_parts
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.evaluation.models import Examination
from docvqa_site.pages import track as track_page
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from docvqa_site.submissions.services import withdraw
from evaluator.messages.jobs import TrustLevel
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.factories import (
    change_results,
    make_epsilons,
    make_phase,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
)

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(days=30)


@pytest.fixture
def track():
    track = make_track(FEWEST_BYTES, slug="communication", name="Communication", anls_threshold=0.5)
    for number in range(5):
        add_run(track, number)
    return track


@pytest.fixture
def private_track():
    track = make_track(BEST_ANLS_AT_BUDGET, slug="privacy", name="Privacy", budgets=[1, 4])
    for number in range(3):
        add_run(track, number, budget=4.0, epsilon=3.0, anls=0.9 - number / 10)
    return track


def add_run(track, number, team=None, **fields):
    submission = make_submission(
        team,
        track,
        state=SubmissionState.SUBMITTED,
        title=f"Method {number}.",
        submitted_at=LONG_AGO + timedelta(minutes=number),
    )
    return make_run(
        submission, state=RunState.SCORED, **{"budget": None, "bytes_total": 1000 + number, **fields}
    )


def board(client, address):
    """The page without the plot, which has names of runs too."""
    html = client.get(address).text
    return html[html.index('id="board"') :].partition('id="plot"')[0]


def visible(html):
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def shown(client, address):
    html = board(client, address)
    return [number for number in range(9) if f"Method {number}." in html]


def test_a_board_says_what_its_filters_leave_alone(client, track):
    ignored = "The plot ignores the filters", "not only those that match the filters"
    for address, is_filtered in [
        ("/leaderboard/communication/", False),
        ("/leaderboard/communication/?q=none", True),
    ]:
        page = client.get(address).text
        assert [words in page for words in ignored] == [is_filtered] * 2
        assert '<a href="/docs/columns/">What each column means</a>' in page


class TestPages:
    @pytest.mark.parametrize(("page", "methods"), [("1", [0, 1]), ("3", [4])])
    def test_a_board_has_pages(self, client, track, monkeypatch, page, methods):
        monkeypatch.setattr(track_page, "PAGE_LENGTH", 2)
        assert shown(client, f"/leaderboard/communication/?page={page}") == methods

    @pytest.mark.parametrize("page", ["99", "0", "-1", "x"])
    def test_a_page_that_a_board_does_not_have_is_not_found(self, client, track, page):
        assert client.get(f"/leaderboard/communication/?page={page}").status_code == 404

    def test_a_page_that_is_cached_takes_the_queries_of_the_track_its_version_data_and_the_notices(
        self, client, track, django_assert_num_queries
    ):
        first = client.get("/leaderboard/communication/?page=1").text
        with django_assert_num_queries(5):
            assert client.get("/leaderboard/communication/?page=1").text == first

    def test_ranks_go_on_from_page_to_page(self, client, track, monkeypatch):
        monkeypatch.setattr(track_page, "PAGE_LENGTH", 2)
        assert "<strong>4</strong>" in client.get("/leaderboard/communication/?page=2").text
        assert "Page 2 of 3" in client.get("/leaderboard/communication/?page=2").text

    def test_the_overview_shows_the_leading_methods_of_every_budget(self, client, private_track, monkeypatch):
        monkeypatch.setattr(track_page, "LEADING", 2)
        monkeypatch.setattr(track_page, "PAGE_LENGTH", 2)
        html = client.get("/leaderboard/privacy/").text
        assert shown(client, "/leaderboard/privacy/") == [0, 1]
        assert 'href="?epsilon=4#board"' in html
        assert shown(client, "/leaderboard/privacy/?epsilon=4&page=2") == [2]
        assert 'href="?epsilon=4&amp;page=2"' in client.get("/leaderboard/privacy/?epsilon=4").text

    def test_the_button_that_filters_follows_the_fields(self, client, private_track):
        for address, summary in (("", "Filter and sort"), ("?epsilon=4", "Filter and sort")):
            form = client.get(f"/leaderboard/privacy/{address}").text.partition('class="filters"')[2]
            fields = form.partition("</form>")[0]
            assert f"<summary>{summary}</summary>" in fields
            assert fields.rindex("<select") < fields.index(">Show</button>")

    def test_heads_sort_the_rows_and_keep_ranks_and_filters(self, client, private_track):
        for number, size in ((1, 10), (2, 20)):
            run = private_track.submissions.get(title=f"Method {number}.").runs.get()
            change_results(run, bytes_total=size)
        boards_changed(private_track.pk)
        ranked = board(client, "/leaderboard/privacy/?epsilon=4&baselines=none")
        assert re.findall(r'aria-label="(\w+)" aria-sort="(\w+)"', ranked) == [("Rank", "ascending")]
        links = dict(re.findall(r'aria-label="(\w+)"><a class="board-sort" href="([^"]+)"', ranked))
        assert list(links) == ["Method", "ANLS", "ε", "Communication", "Status"]
        by_bytes = board(client, "/leaderboard/privacy/" + unescape(links["Communication"]))
        assert 'aria-label="Communication" aria-sort="ascending"' in by_bytes
        assert "Ranked by ANLS at ε\xa0=\xa04, sorted by fewest bytes" in by_bytes
        assert re.findall(r"Method (\d)\.</a>", by_bytes.partition("<tbody>")[2]) == ["1", "2", "0"]
        assert re.findall(r'class="board-top">(\d)', by_bytes) == ["2", "3", "1"]
        again = re.search(r'aria-sort="ascending"><a class="board-sorted" href="([^"]+)"', by_bytes)
        assert again
        most_bytes = board(client, "/leaderboard/privacy/" + unescape(again[1]))
        assert 'aria-label="Communication" aria-sort="descending"' in most_bytes
        assert re.findall(r"Method (\d)\.</a>", most_bytes.partition("<tbody>")[2]) == ["0", "2", "1"]
        assert "sorted by fewest bytes, in reverse order" in most_bytes
        assert re.findall(r'class="board-top">(\d)', most_bytes) == ["1", "3", "2"]
        back = re.search(r'aria-label="Rank"><a class="board-sort" href="([^"]+)"', by_bytes)
        assert back
        assert unescape(back[1]) == "?epsilon=4&baselines=none#board"
        assert "board-sort" not in board(client, "/leaderboard/privacy/?epsilon=4&rank=none")

    def test_the_overview_is_sorted_by_the_score_at_each_budget(self, client, private_track):
        for number, anls in ((7, 0.5), (8, 0.6)):
            run = add_run(private_track, number, budget=4.0, epsilon=3.0, anls=0.95 - number / 100)
            make_run(run.submission, state=RunState.SCORED, budget=1.0, epsilon=0.9, anls=anls)
        titles = re.compile(r"Method (\d)\.</a>")

        def order(query=""):
            return titles.findall(board(client, f"/leaderboard/privacy/{query}").partition("<tbody>")[2])

        assert order() == ["8", "0", "7", "1", "2"]
        # Those without a run at this budget come last, whichever way.
        assert order("?epsilon=all&by=1") == ["8", "7", "0", "1", "2"]
        assert order("?epsilon=all&by=-1") == ["7", "8", "0", "1", "2"]
        assert order("?epsilon=all&by=4") == ["0", "7", "8", "1", "2"]
        assert order("?epsilon=all&by=5") == order()
        html = board(client, "/leaderboard/privacy/?epsilon=all&by=1&baselines=none")
        sort = r'<th scope="col" class="num"[^>]*aria-label="ε = {}"{}><a class="{}" href="([^"]+)"'
        sort = sort.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        here = re.search(sort.format(1, ' aria-sort="descending"', "board-sorted"), html)
        other = re.search(sort.format(4, "", "board-sort"), html)
        assert here
        assert other
        assert unescape(here[1]) == "?epsilon=all&by=-1&baselines=none#board"
        assert unescape(other[1]) == "?epsilon=all&by=4&baselines=none#board"
        assert '<option value="1" selected>ANLS at ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1</option>' in html
        assert "ANLS and rank, sorted by ANLS at ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1" in html
        assert 'href="?epsilon=4&amp;baselines=none#board"' in html

    def test_the_overview_has_epsilon_joint_epsilon_and_leakage_on_demand(self, client, private_track):
        private_track.leakage_set = "red"
        private_track.save()
        found = {"epsilon": 0.95, "joint_epsilon": 1.83, "leakage": Leakage(providers=120)}
        add_run(private_track, 8, budget=1.0, anls=0.5, **found)
        said = "ε 0.9500 , joint 1.8300"
        assert said not in visible(board(client, "/leaderboard/privacy/"))
        more = board(client, "/leaderboard/privacy/?epsilon=all&more=1")
        assert f"{said} leakage n.s." in visible(more)
        assert re.search(r'<a class="board-more" href="[^"]+#board">Without ε and leakage</a>', more)
        assert "“With ε and leakage”" in client.get("/leaderboard/privacy/").text

    def test_a_board_explains_its_status_exports_and_command(self, client, track, private_track):
        private = client.get("/leaderboard/privacy/").text
        assert "CSV (all rows)" in private
        assert "name in commands and guides: <code>privacy</code>" in private
        assert 'href="/docs/glossary/#row-anls">ANLS</a>' in private.partition("In the glossary: ")[2]
        assert "is part of the" in private.partition('id="verify"')[2].partition("</p>")[0]
        assert "Under review: reviewers have yet to accept the privacy proof" in private
        by_bytes = client.get(f"/leaderboard/{track.slug}/").text
        assert "requires no proof" in by_bytes
        only_workers = "the site's workers made the count, and the messages aren't public"
        assert [only_workers in page for page in (private, by_bytes)] == [False, True]

    def test_the_title_of_the_page_names_the_board(self, client, track, private_track):
        titles = {
            "privacy/": ", All privacy budgets ·",
            "privacy/?epsilon=4": ", ε = 4 ·",
            f"{track.slug}/": f"{track} ·",
        }
        for address, end in titles.items():
            title = (
                client.get(f"/leaderboard/{address}").text.partition("<title>")[2].partition("</title>")[0]
            )
            assert end in title.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")

    def test_on_the_overview_a_method_is_one_row_with_its_rank_at_every_budget(self, client, private_track):
        run = add_run(private_track, 8, budget=4.0, epsilon=3.0, anls=0.85)
        make_run(run.submission, state=RunState.SCORED, budget=1.0, epsilon=0.9, anls=0.5)
        html = " ".join(board(client, "/leaderboard/privacy/").split())
        assert html.count("Method 8.</a>") == 1
        row = html[html.index("Method 8.</a>") :]
        assert row.index("0.5000") < row.index("#1") < row.index("0.8500") < row.index("#2")

    @pytest.mark.parametrize("of_one", ["", "epsilon=4&"])
    def test_a_first_day_after_the_last_is_pointed_out(self, client, private_track, of_one):
        days = "since=2024-05-0{}&until=2024-05-02"
        found = [board(client, f"/leaderboard/privacy/?{of_one}{days.format(day)}") for day in (1, 3)]
        assert ["is later than the day in" in html for html in found] == [False, True]

    @pytest.mark.parametrize(
        ("scores", "order"),
        [
            # Ranks 1, 3, 2 and 2, 2, 1; the third has no run at two of the ε.
            ({6: (0.55, 0.91, 0.92), 7: (0.54, 0.95, 0.97), 8: (None, 0.99, None)}, "768"),
            # Ranks 1, 2 and 2, 1: the mean score decides.
            ({6: (0.55, 0.91), 7: (0.54, 0.95)}, "76"),
        ],
    )
    def test_equal_best_ranks_on_the_overview_are_ordered_by_all_ranks_then_by_the_mean_score(
        self, client, db, scores, order
    ):
        budgets = [1, 4, 8][: len(scores[6])]
        track = make_track(BEST_ANLS_AT_BUDGET, slug="private", name="Private", budgets=budgets)
        for number, found in scores.items():
            runs = [(float(budget), anls) for budget, anls in zip(budgets, found, strict=True) if anls]
            first = add_run(track, number, budget=runs[0][0], epsilon=0.9, anls=runs[0][1])
            for budget, anls in runs[1:]:
                make_run(first.submission, state=RunState.SCORED, budget=budget, epsilon=0.9, anls=anls)
        html = board(client, "/leaderboard/private/").partition("<tbody>")[2]
        assert "".join(re.findall(r"Method (\d)\.</a>", html)) == order
        assert "Of methods with the same best rank" in html
        assert "Of methods with the same best rank" not in board(client, "/leaderboard/private/?by=4")

    def test_ranges_of_ranks_and_more_columns_are_explained_where_they_are_shown(self, client, private_track):
        for sentence in ("“More columns” above the board", "▲ and ▼ show"):
            assert sentence not in client.get("/leaderboard/privacy/").text
            assert sentence in client.get("/leaderboard/privacy/?epsilon=4").text
        for address in ("/leaderboard/privacy/", "/leaderboard/privacy/?epsilon=4"):
            assert "“Could be 1–2” lists the ranks" in client.get(address).text

    def test_a_column_that_repeats_another_one_in_every_row_is_left_out_with_a_note(
        self, client, private_track
    ):
        runs = [private_track.submissions.get(title=f"Method {number}.").runs.get() for number in range(3)]
        for number, run in enumerate(runs):
            epsilon = 3.0 + number / 10
            rows = [row.model_dump(mode="json") for row in make_epsilons(epsilon, epsilon, 3.5)]
            change_results(run, epsilon=epsilon, epsilons=rows, joint_epsilon=epsilon)
        address = "/leaderboard/privacy/?epsilon=4&more=1"

        def heads() -> list[str]:
            return re.findall(r'<th scope="col"[^>]* aria-label="([^"]*)"', board(client, address))

        boards_changed(private_track.pk)
        assert "ε" in heads()
        assert not {"ε two-stage", "ε product", "Joint ε"} & set(heads())
        note = re.sub("<[^>]+>", "", board(client, address)).partition("Left out, because ")[2]
        assert note.startswith("equal to ε in every row: Joint ε, ε two-stage, ε product.")
        # A row in which they differ brings both back, and the board keeps its own columns in any case.
        rows = [row.model_dump(mode="json") for row in make_epsilons(3.2, 2.9, 3.5)]
        change_results(runs[2], epsilons=rows, joint_epsilon=6.0)
        boards_changed(private_track.pk)
        assert {"ε", "Joint ε", "ε product"} <= set(heads())
        assert "ε two-stage" not in heads()

    def test_more_columns_keep_the_board_in_sight_and_are_asked_for_above_it(self, client, private_track):
        for more, words in (("", "More columns"), ("&more=1", "Fewer columns")):
            html = board(client, f"/leaderboard/privacy/?epsilon=4{more}")
            link = re.search(rf'<a class="board-more" href="[^"]+#board">{words}</a>', html)
            assert link
            assert link.start() < html.index("<table")
        overview = board(client, "/leaderboard/privacy/")
        assert re.search(r'<a class="board-more" href="[^"]+#board">With ε</a>', overview)

    def test_every_head_is_explained_below_the_board(self, client, private_track):
        html = board(client, "/leaderboard/privacy/?epsilon=4")
        explained = html.partition("In the glossary: ")[2].partition("</p>")[0]
        for head in ("Rank", "ANLS", "ε", "Communication", "Status"):
            assert f">{head}</a>" in explained
        overview = (
            board(client, "/leaderboard/privacy/").partition("In the glossary: ")[2].partition("</p>")[0]
        )
        assert ">ANLS</a>" in overview
        assert ">Communication</a>" not in overview
        assert html.index("</table>") < html.index('href="#reading"')
        assert 'id="reading"' in client.get("/leaderboard/privacy/?epsilon=4").text

    def test_the_reasons_why_a_run_is_unbound_are_a_list(self, client, private_track):
        assert (
            "<li>The check <code>record.alignment</code> flagged the run.</li>"
            in client.get("/leaderboard/privacy/").text
        )

    def test_the_home_page_says_what_the_score_is(self, client, track):
        assert "average normalized Levenshtein similarity" in client.get("/").text

    @pytest.mark.parametrize("query", ["epsilon=2", "epsilon=", "epsilon=nan"])
    def test_what_the_track_does_not_have_is_not_found(self, client, private_track, query):
        assert client.get(f"/leaderboard/privacy/?{query}").status_code == 404

    def test_a_team_finds_its_own_rows_with_their_ranks_and_sees_them_marked(self, client, track):
        team = make_team()
        add_run(track, 8, team)
        visited = client.get("/leaderboard/communication/").text
        assert "your team" not in visited
        assert "data-here" not in visited
        client.force_login(team.memberships.get().user)
        page = client.get("/leaderboard/communication/").text
        # In the row, and beside the plot of two drawings, of which the table has the numbers.
        assert page.count("badge-own") == 2
        assert page.count("data-here") == 2
        # Between the drawings and the table of their numbers, which may be unfolded.
        plot = page[page.index('<figure class="card stack plot">') :]
        assert plot.index("</svg>your team's methods</li>") < plot.index("<summary>Data table")
        assert shown(client, f"/leaderboard/communication/?team={team.slug}") == [8]
        assert "<strong>6</strong>" in client.get(f"/leaderboard/communication/?team={team.slug}").text

    def test_what_a_filter_shows_is_in_the_address_and_keeps_its_ranks(self, client, track):
        mine = track.submissions.get(title="Method 3.")
        type(mine).objects.filter(pk=mine.pk).update(code_url="https://example.org/code")
        boards_changed(track.pk)
        assert shown(client, "/leaderboard/communication/?code=1") == [3]
        html = client.get("/leaderboard/communication/?code=1").text
        assert "<strong>4</strong>" in html
        assert 'name="code" value="1" checked' in client.get("/leaderboard/communication/?code=1").text
        assert 'href="https://example.org/code"' in html
        assert shown(client, "/leaderboard/communication/?q=mETHOD+2") == [2]
        assert shown(client, "/leaderboard/communication/?q=%25") == []
        type(mine.team).objects.filter(pk=mine.team_id).update(name="Ökonomie")
        boards_changed(track.pk)
        assert shown(client, "/leaderboard/communication/?q=ÖKONOM") == [3]
        assert shown(client, "/leaderboard/communication/?sort=newest&best=1&baselines=none") == [
            0,
            1,
            2,
            3,
            4,
        ]
        assert "No run matches these filters" in client.get("/leaderboard/communication/?q=nothing").text

    @pytest.mark.parametrize(
        ("query", "methods"),
        [
            ("since=2026-03-02", [1, 2]),
            ("until=2026-03-02", [0, 1]),
            ("since=2026-03-02&until=2026-03-02", [1]),
            ("since=2026-03-03&until=2026-03-01", []),
            ("since=0001-01-01&until=9999-12-31", [0, 1, 2]),
        ],
    )
    def test_days_of_submission_are_a_filter_that_keeps_the_ranks(self, client, query, methods):
        track = make_track(FEWEST_BYTES, slug="dated", anls_threshold=0.5)
        for number, at in enumerate(["2026-03-01T23:59Z", "2026-03-02T23:59Z", "2026-03-03T00:00Z"]):
            run = add_run(track, number)
            type(run.submission).objects.filter(pk=run.submission_id).update(submitted_at=at)
        address = f"/leaderboard/dated/?{query}"
        assert shown(client, address) == methods
        html = board(client, address)
        assert [int(rank) for rank in re.findall(r"board-top\">(\d)", html)] == [
            number + 1 for number in methods
        ]
        for name, value in (pair.split("=") for pair in query.split("&")):
            assert f'name="{name}" value="{value}"' in html
        assert f"more=1&amp;{query.replace('&', '&amp;')}" in html

    def test_days_that_a_visitor_asks_for_fill_no_cache(self, client, track, monkeypatch):
        kept = []
        monkeypatch.setattr(track_page, "cached", lambda _, name, draw: kept.append(name) or draw())
        client.get("/leaderboard/communication/?since=2026-03-02")
        client.get("/leaderboard/communication/?until=2026-03-02")
        assert not kept
        client.get("/leaderboard/communication/?since=2026-02-30")
        assert kept

    def test_what_the_best_run_saves_beside_the_best_baseline_is_at_the_head(self, client, track):
        assert "as many bytes" not in client.get("/leaderboard/communication/").text
        for number, size in ((8, 250_000), (9, 2500)):
            submission = add_run(track, number, bytes_total=size).submission
            type(submission).objects.filter(pk=submission.pk).update(is_baseline=True)
        boards_changed(track.pk)
        assert (
            "the baseline Method 9. sent 2.5× as many bytes" in client.get("/leaderboard/communication/").text
        )

    def test_a_board_says_so_while_no_training_was_examined(self, client, track):
        said = "No training here has been replayed or rerun"
        run = add_run(track, 1)
        boards_changed(track.pk)
        assert said in client.get("/leaderboard/communication/").text
        change_results(run, trust_level=TrustLevel.REPLAYED)
        boards_changed(track.pk)
        assert said not in client.get("/leaderboard/communication/").text

    def test_on_a_board_of_scores_the_head_says_how_far_the_best_run_is_above_the_best_baseline(self, client):
        track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1])
        add_run(track, 1, budget=1.0, epsilon=0.9, anls=0.5709, bytes_total=10)
        weaker = add_run(track, 2, budget=1.0, epsilon=0.9, anls=0.5299, bytes_total=20).submission
        type(weaker).objects.filter(pk=weaker.pk).update(is_baseline=True)
        with CaptureQueriesContext(connection) as queries:
            html = client.get("/leaderboard/private/").text
        assert "0.0410 above the baseline Method 2." in html
        asked = [query["sql"] for query in queries]
        assert len(asked) == len(set(asked))
        assert "as many bytes" not in html
        # As pages show them, 0.57 and 0.52.
        for run in track.submissions.values_list("runs", flat=True):
            change_results(Run.objects.get(pk=run), decimals=2)
        boards_changed(track.pk)
        html = client.get("/leaderboard/private/").text
        assert "0.04 above the baseline Method 2., computed before truncation" in html

    def test_a_page_without_unranked_runs_says_so_and_the_overview_leads_to_none(self, client):
        track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
        add_run(track, 1, budget=1.0, epsilon=0.9)
        assert "Not ranked" not in board(client, "/leaderboard/private/")
        alone = board(client, "/leaderboard/private/?epsilon=1&rank=none")
        assert "Every scored run here has a rank." in alone
        assert "No scored runs" not in alone
        add_run(track, 2, budget=4.0, epsilon=9.0)
        boards_changed(track.pk)
        html = board(client, "/leaderboard/private/")
        assert "Not ranked (1)" in html
        assert re.findall(r'href="[^"]*rank=none#board">([^<]*)</a>', html) == ["ε\xa0=\xa04 (1)"]

    @pytest.mark.parametrize("query", ["sort=x", "baselines=x", "verified=x"])
    def test_what_the_address_misspells_is_ignored(self, client, track, query):
        assert client.get(f"/leaderboard/communication/?{query}").status_code == 200

    def test_runs_without_a_rank_are_folded_and_have_pages_of_their_own(self, client, track, monkeypatch):
        monkeypatch.setattr(track_page, "NEAREST", 1)
        add_run(track, 7, anls=0.1)
        add_run(track, 8, anls=0.4)
        html = board(client, "/leaderboard/communication/")
        assert "Not ranked (2)" in html
        assert "ANLS 0.4000 &lt; 0.5000" in html
        assert "Method 7." not in html
        assert shown(client, "/leaderboard/communication/?rank=none") == [7, 8]

    def test_the_level_of_verification_is_shown_where_it_differs(self, client, track):
        assert "Verification" not in client.get("/leaderboard/communication/").text
        run = track.submissions.get(title="Method 0.").runs.get()
        Examination.objects.create(run=run, level=1, state="passed", report={}, finished_at=timezone.now())
        boards_changed(track.pk)
        assert "Verification" in client.get("/leaderboard/communication/").text

    def test_the_api_has_pages(self, client, private_track):
        body = client.get("/api/v1/leaderboards/privacy?budget=4&limit=1&offset=1").json()
        (board,) = body["boards"]
        assert (board["budget"], board["count"]) == (4.0, 3)
        assert [(row["rank"], row["method"]) for row in board["rows"]] == [(2, "Method 1.")]

    @pytest.mark.parametrize("query", ["limit=0", "limit=201", "offset=-1", "limit=x", "offset=1e30"])
    def test_the_api_sends_no_page_without_bounds(self, client, private_track, query):
        assert client.get(f"/api/v1/leaderboards/privacy?{query}").status_code == 422


ADDRESSES = [
    "/",
    "/leaderboard/communication/",
    "/leaderboard/communication.csv",
    "/api/v1/leaderboards/communication",
]


@pytest.mark.parametrize("address", ADDRESSES)
class TestVersions:
    def test_a_visitor_with_the_current_version_is_not_sent_it_again(self, client, track, address):
        first = client.get(address)
        assert first["Cache-Control"] == "no-cache"
        again = client.get(address, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")

    def test_a_change_is_shown_at_once(self, client, track, address):
        first = client.get(address)
        assert "Method 0." in first.text
        submission = track.submissions.get(title="Method 0.")
        withdraw(submission, owner_of(submission.team))
        second = client.get(address, headers={"If-None-Match": first["ETag"]})
        assert second.status_code == 200
        assert "Method 0." not in second.text


def test_a_score_has_a_bar_that_tells_no_more_than_its_digits(client, private_track):
    run = add_run(private_track, 7, budget=1.0, epsilon=0.5, anls=0.50499)
    change_results(run, anls_low=0.4, anls_high=0.6)
    for address in ("/leaderboard/privacy/", "/leaderboard/privacy/?epsilon=1"):
        assert '<rect width="50" height="4"/></svg>0.5049' in board(client, address)


class TestDeadlineAndQuota:
    ADDRESS = "/leaderboard/communication/"

    def test_it_says_how_long_the_phase_is_open(self, client, track):
        assert "Open for submissions, no deadline." in client.get(self.ADDRESS).text
        track.phases.update(ends_at=timezone.now() + timedelta(days=3, minutes=1))
        assert "(in 3\xa0days)</time>." in client.get(self.ADDRESS).text
        make_phase(track, name="Final", starts_at=timezone.now() + timedelta(days=5))
        assert (
            f"Phase {track.phases.get(ends_at__isnull=False).name}: open for" in client.get(self.ADDRESS).text
        )

    def test_it_says_why_none_is_taken(self, client, track):
        track.phases.update(ends_at="2026-02-01T12:00Z")
        assert (
            "Not open for submissions: the deadline was Feb 1, 2026, 12:00 UTC."
            in client.get(self.ADDRESS).text
        )

    def test_a_visitor_with_an_older_distance_is_sent_the_page_again(self, client, track, monkeypatch):
        track.phases.update(ends_at=timezone.now() + timedelta(hours=5, minutes=1))
        known = {"If-None-Match": client.get(self.ADDRESS)["ETag"]}
        assert client.get(self.ADDRESS, headers=known).status_code == 304
        # An hour less is left, and nothing else has changed.
        track.phases.update(ends_at=F("ends_at") - timedelta(hours=1))
        again = client.get(self.ADDRESS, headers=known)
        assert "(in 4\xa0h)" in again.text

    def test_only_members_see_their_quota(self, client, track):
        team = make_team()
        track.phases.update(submissions_per_day=2)
        assert "Your team has used" not in client.get(self.ADDRESS).text
        client.force_login(owner_of(team))
        assert "Your team has used 0 of 2 submissions" in client.get(self.ADDRESS).text
        for _ in range(2):
            make_submission(team, track, state="submitted", submitted_at=timezone.now())
        html = client.get(self.ADDRESS).text
        assert "Your team has used 2 of 2 submissions" in html
        assert "the next slot opens" in html
        client.logout()
        assert "Your team has used" not in client.get(self.ADDRESS).text

    def test_the_quota_and_the_own_marks_in_the_plot_take_one_query_each(
        self, client, track, django_assert_num_queries
    ):
        client.force_login(user := make_user())
        client.get(self.ADDRESS)
        with CaptureQueriesContext(connection) as without:
            client.get(self.ADDRESS)
        make_team(user)
        with django_assert_num_queries(len(without) + 2):
            client.get(self.ADDRESS)


def test_a_page_of_someone_who_logged_in_is_their_own(client, track):
    etag = client.get("/leaderboard/communication/")["ETag"]
    user = make_user(name="Ada")
    client.force_login(user)
    response = client.get("/leaderboard/communication/", headers={"If-None-Match": etag})
    assert response.status_code == 200
    assert "Ada" in response.text
    assert "ETag" not in response


def test_no_page_and_no_export_has_more_digits_of_a_score_than_four(client, private_track):
    run = add_run(private_track, 7, budget=1.0, epsilon=0.5, anls=0.123456789, accuracy=0.987654321)
    change_results(run, anls_low=0.111222333, anls_high=0.222333444)
    client.force_login(run.submission.team.memberships.get().user)
    addresses = ["/leaderboard/privacy/", "/leaderboard/privacy.csv", "/api/v1/leaderboards/privacy", "/"]
    addresses += [run.submission.get_absolute_url()]
    addresses += [f"/api/v1/submissions/{run.submission.pk}"]
    for address in addresses:
        text = client.get(address).text
        assert "0.1234" in text
        assert "0.12345" not in text
        assert "0.98765" not in text
        assert "0.1112" not in text
        assert "0.2223" not in text


class TestPhases:
    def test_the_board_is_filtered_by_phase_and_keeps_the_ranks(self, client):
        track = make_track(slug="track", anls_threshold=0.5, closes_at="2030-01-01T00:00Z")
        assert "board-phase" not in client.get("/leaderboard/track/").text
        final = make_phase(track, name="Final & last", starts_at="2030-01-01T00:00Z")
        for title, phase in (("Early", track.phases.first()), ("Late", final)):
            submission = make_submission(track=track, state="submitted", title=title, phase=phase)
            make_run(submission, state="scored", bytes_total=10 if title == "Early" else 20)
        assert 'id="board-phase"' in client.get("/leaderboard/track/").text
        page = client.get("/leaderboard/track/?phase=Final+%26+last").text
        board = page[page.index('id="board"') :]
        assert "Late" in board
        assert "Early" not in board
        assert 'board-top">2<' in board
        assert client.get("/leaderboard/track/?phase=Nowhere").status_code == 404


@pytest.mark.parametrize("form", ["csv", "json"])
def test_an_export_is_written_row_by_row_once_for_each_version_and_sent_from_its_file(
    client, private_track, form, django_assert_max_num_queries
):
    for number in range(3):
        add_run(private_track, number, budget=1.0, epsilon=0.5)
    address = f"/leaderboard/privacy.{form}"
    with django_assert_max_num_queries(2 * len(private_track.run_budgets()) + 2):
        parts = (
            csv_lines(private_track) if form == "csv" else json_parts(private_track, "https://example.org")
        )
        assert max(part.count("Method") for part in parts) == 1
    first = client.get(address)
    assert first.streaming
    with django_assert_max_num_queries(4):
        again = client.get(address)
    text = again.text
    assert text == first.text
    add_run(private_track, 3, budget=1.0, epsilon=0.5)
    boards_changed(private_track.pk)
    assert client.get(address).text != text
    assert len(list(Path(settings.HOME, "exports").iterdir())) == 1
