import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.models import Decision
from docvqa_site.reviews.verdict import ResultStatus, verdict

ACCEPTED, CHANGES, REJECTED, PENDING = (
    (Decision.ACCEPTED, ""),
    (Decision.CHANGES_REQUESTED, "state the sampling"),
    (Decision.REJECTED, "no composition"),
    (Decision.PENDING, ""),
)
PROPOSAL = "one reviewer proposes to reject the proof; a second opinion is due"
ALL = [ACCEPTED, CHANGES, REJECTED, PENDING]


@pytest.mark.parametrize(
    ("decisions", "required", "status", "reason"),
    [
        ([], 2, ResultStatus.PROVISIONAL, "proof accepted by 0 of 2 reviewers"),
        ([ACCEPTED, PENDING], 2, ResultStatus.PROVISIONAL, "proof accepted by 1 of 2 reviewers"),
        ([ACCEPTED, ACCEPTED], 2, ResultStatus.VERIFIED, "proof accepted by 2 reviewers"),
        ([REJECTED, PENDING], 1, ResultStatus.PROVISIONAL, PROPOSAL),
        ([REJECTED, REJECTED], 1, ResultStatus.REJECTED, "proof rejected: no composition"),
        (
            [ACCEPTED, REJECTED],
            1,
            ResultStatus.PROVISIONAL,
            "reviewers disagree; a third reviewer needs to decide",
        ),
        (
            [ACCEPTED, REJECTED, PENDING],
            2,
            ResultStatus.PROVISIONAL,
            "reviewers disagree; a third reviewer needs to decide",
        ),
        ([ACCEPTED, ACCEPTED, REJECTED], 2, ResultStatus.VERIFIED, "proof accepted by 2 reviewers"),
        (
            [ACCEPTED, ACCEPTED, REJECTED],
            3,
            ResultStatus.PROVISIONAL,
            "reviewers disagree; another reviewer needs to decide",
        ),
        (
            [ACCEPTED, REJECTED, REJECTED],
            2,
            ResultStatus.REJECTED,
            "proof rejected: no composition",
        ),
        ([CHANGES], 2, ResultStatus.PROVISIONAL, "changes to the proof requested"),
        (
            [CHANGES, REJECTED],
            2,
            ResultStatus.PROVISIONAL,
            "changes to the proof requested; another reviewer proposes to reject it",
        ),
        ([CHANGES, ACCEPTED], 1, ResultStatus.PROVISIONAL, "changes to the proof requested"),
        ([CHANGES, ACCEPTED, ACCEPTED], 2, ResultStatus.VERIFIED, "proof accepted by 2 reviewers"),
        ([], 0, ResultStatus.VERIFIED, "proof accepted by 0 reviewers"),
    ],
)
def test_it_follows_from_the_decisions(decisions, required, status, reason):
    assert verdict(decisions, required).status == status
    assert verdict(decisions, required).reason == reason


@given(st.lists(st.sampled_from(ALL)), st.integers(1, 4), st.randoms())
def test_the_order_of_reviews_makes_no_difference_to_the_status(decisions, required, random):
    shuffled = list(decisions)
    random.shuffle(shuffled)
    assert verdict(shuffled, required).status == verdict(decisions, required).status


@given(st.integers(1, 4), st.integers(1, 4))
def test_one_rejection_proposes_and_a_second_one_or_time_withholds(rejections, required):
    found = verdict([REJECTED] * rejections, required)
    assert found.is_proposal == (rejections == 1) == (found.status != ResultStatus.REJECTED)
    assert verdict([REJECTED], required, rejection_stands=True).status == ResultStatus.REJECTED


@given(st.lists(st.sampled_from(ALL)), st.integers(1, 4))
def test_nothing_is_verified_by_fewer_than_required_or_against_as_many(decisions, required):
    accepted = decisions.count(ACCEPTED)
    objections = decisions.count(REJECTED) + decisions.count(CHANGES)
    if verdict(decisions, required).status == ResultStatus.VERIFIED:
        assert accepted >= required
        assert accepted > objections


@given(st.lists(st.sampled_from(ALL)), st.integers(1, 4))
def test_another_acceptance_never_makes_it_worse_nor_another_rejection_better(decisions, required):
    order = [ResultStatus.REJECTED, ResultStatus.PROVISIONAL, ResultStatus.VERIFIED]
    before = order.index(verdict(decisions, required).status)
    assert order.index(verdict([*decisions, ACCEPTED], required).status) >= before
    assert order.index(verdict([*decisions, REJECTED], required).status) <= before


def test_the_checklist_has_each_key_once_and_each_reason():
    assert len({item.key for item in CHECKLIST}) == len(CHECKLIST) >= 15
    assert all(item.key.isidentifier() and item.question.endswith("?") and item.why for item in CHECKLIST)
