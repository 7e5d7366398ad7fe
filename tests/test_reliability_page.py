"""docs/reliability.md is what `make faults` made of its counts, and the counts would show what is wrong."""

from pathlib import Path

from tests.faults.counts import Attempt, EvaluatedRun, count_runs, findings
from tests.faults.page import page, read_results

DOCS = Path(__file__).resolve().parents[1] / "docs"


def evaluated_run(title: str, *attempts: Attempt, state: str = "scored") -> EvaluatedRun:
    return EvaluatedRun(
        submission=title, title=title, state=state, refunded=False, attempts=list(attempts), mails=1
    )


PASSED = Attempt(state="passed", step="scoring", scorings=1)
LOST = Attempt(state="lost", step="scoring", scorings=0)


def test_the_page_is_made_of_the_counts_beside_it() -> None:
    assert (DOCS / "reliability.md").read_text() == page(read_results(DOCS / "reliability.json"))


def test_a_scenario_that_was_not_run_says_so() -> None:
    assert page([]).count("| not run |") > 20


def test_nothing_is_wrong_when_each_run_was_scored_once() -> None:
    counts = count_runs(2, [evaluated_run("a", PASSED), evaluated_run("b", LOST, PASSED)])
    assert (counts.attempts, counts.lost_attempts) == (3, 1)
    assert findings(counts) == []


def test_a_submission_that_the_site_has_forgotten_is_lost() -> None:
    counts = count_runs(2, [evaluated_run("a", PASSED)])
    assert counts.lost == 1
    assert "lost: 1, not 0" in findings(counts)


def test_a_run_that_never_ends_is_lost() -> None:
    assert count_runs(1, [evaluated_run("a", LOST, state="queued")]).lost == 1


def test_a_run_that_was_scored_twice_is_found() -> None:
    scored_and_lost = Attempt(state="lost", step="scoring", scorings=1)
    assert count_runs(1, [evaluated_run("a", scored_and_lost, PASSED)]).twice == 1


def test_a_submission_that_was_made_twice_is_found() -> None:
    assert count_runs(1, [evaluated_run("a", PASSED), evaluated_run("a", PASSED)]).twice == 1
