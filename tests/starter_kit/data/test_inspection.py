"""Counts of a data set beside the published ones."""

from collections import Counter

from evaluator.docvqa.dataset import DatasetInfo
from starter_kit.data.inspection import PART_COUNTS, differences_from_published, published_parts
from starter_kit.data.summary import ImportSummary, SplitTally


def published_data() -> ImportSummary:
    """The training data as they were published: a client's first provider has all that the others lack."""
    info = DatasetInfo(name="pfl-docvqa", clients={})
    tally = SplitTally()
    for client in range(10):
        counts = published_parts()[f"client {client}"]
        names = [f"{client}-{number}" for number in range(counts["providers"])]
        info.clients[client] = names
        for kind, tallied in (("pages", tally.pages_by_provider), ("questions", tally.questions_by_provider)):
            tallied.update(names)
            tallied[names[0]] += counts[kind] - len(names)
        documents = [f"{client}/{number}" for number in range(counts["documents"])]
        for number, document in enumerate(documents):
            tally.documents_by_provider[names[number % len(names)]].add(document)
    return ImportSummary(info, {"train": tally})


def test_the_published_counts_are_no_difference() -> None:
    summary = published_data()
    assert differences_from_published(summary) == []
    totals = Counter[str]()
    for part in summary.parts():
        totals.update({name: getattr(part, name) for name in PART_COUNTS})
    assert totals == {"providers": 4149, "documents": 24900, "pages": 69894, "questions": 221319}


def test_a_client_with_a_question_less_is_a_difference_that_names_both_counts() -> None:
    summary = published_data()
    summary.splits["train"].questions_by_provider["3-0"] -= 1
    (problem,) = differences_from_published(summary)
    assert problem.where == "client 3"
    assert problem.expected == "22,148 questions, as published in Table A1"
    assert problem.found == "22,147 questions"
