import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.reviews.checklist import CHECKLIST
from portal.reviews.models import Decision
from portal.reviews.verdict import ResultStatus, verdict

ACCEPTED, REJECTED, PENDING = (
    (Decision.ACCEPTED, ""),
    (Decision.REJECTED, "no composition"),
    (Decision.PENDING, ""),
)


@pytest.mark.parametrize(
    ("decisions", "required", "status", "reason"),
    [
        ([], 2, ResultStatus.PROVISIONAL, "proof accepted by 0 of 2 reviewers"),
        ([ACCEPTED, PENDING], 2, ResultStatus.PROVISIONAL, "proof accepted by 1 of 2 reviewers"),
        ([ACCEPTED, ACCEPTED], 2, ResultStatus.VERIFIED, "proof accepted by 2 reviewers"),
        ([ACCEPTED, ACCEPTED, REJECTED], 2, ResultStatus.REJECTED, "proof rejected: no composition"),
        ([REJECTED], 1, ResultStatus.REJECTED, "proof rejected: no composition"),
        ([], 0, ResultStatus.VERIFIED, "proof accepted by 0 reviewers"),
    ],
)
def test_it_follows_from_the_decisions(decisions, required, status, reason):
    assert verdict(decisions, required).status == status
    assert verdict(decisions, required).reason == reason


@given(st.lists(st.sampled_from([ACCEPTED, REJECTED, PENDING])), st.integers(1, 4), st.randoms())
def test_the_order_of_reviews_makes_no_difference_to_the_status(decisions, required, random):
    shuffled = list(decisions)
    random.shuffle(shuffled)
    assert verdict(shuffled, required).status == verdict(decisions, required).status


@given(st.lists(st.sampled_from([ACCEPTED, PENDING])), st.integers(1, 4))
def test_a_rejection_always_withholds(decisions, required):
    assert verdict([*decisions, REJECTED], required).status == ResultStatus.REJECTED


def test_the_checklist_has_each_key_once_and_each_reason():
    assert len({item.key for item in CHECKLIST}) == len(CHECKLIST) >= 15
    assert all(item.key.isidentifier() and item.question.endswith("?") and item.why for item in CHECKLIST)
