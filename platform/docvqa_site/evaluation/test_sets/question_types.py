"""ANLS by type of question, as everybody may read it of a secret test set.

A question's type is its key in the test set. Besides, there are the questions about providers of the training data, and
about others, as the papers report them (in and out of distribution). Each submission shows one mean for each type
instead of one for all, so these tell less: only types of at least `MIN_QUESTIONS` questions are shown, with scores of
two decimals (`docvqa_site.submissions.results_field`), so that one answer moves a mean by half of what can be seen at
most. How many questions a type has isn't shown. Of a split test set, the questions are those of the part on which the
results are.
"""

from evaluator.messages.jobs import OTHER_KEY, GroupScore, ScoringDetail, TestSetPart
from evaluator.messages.results import QuestionTypeScore

MIN_QUESTIONS = 200
# What the pages call the questions about providers of the training data, and about others.
PROVIDERS = {"seen": "seen_providers", "unseen": "unseen_providers"}


def question_types(detail: ScoringDetail, part: TestSetPart) -> list[QuestionTypeScore]:
    """Return the scores of the types that are shown, the most frequent first and seen and unseen providers last.

    They are exact as long as they aren't stored.

    Args:
        part: Of a test set that isn't split, empty.
    """
    return [
        QuestionTypeScore(
            name=PROVIDERS[group.group] if group.by == "provider" else group.group,
            anls=group.anls,
            anls_low=group.anls_low,
            anls_high=group.anls_high,
        )
        for by in ("key", "provider")
        for group in detail.groups
        if (group.by, group.part) == (by, part) and is_shown(group)
    ]


def is_shown(group: GroupScore) -> bool:
    """Return whether the group is a type with enough questions, of enough providers for an interval."""
    has_interval = (group.anls_low, group.anls_high) != (0, 1)
    return group.group != OTHER_KEY and group.questions >= MIN_QUESTIONS and has_interval
