import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.proofs import changes
from docvqa_site.proofs.changes import Change, DiffLine, compare

LINES = [f"line {number}" for number in range(1, 31)]


def test_equal_texts_have_no_changes():
    found = compare(LINES, LINES)
    assert (found.passages, found.removed, found.added, found.is_cut) == ([], 0, 0, False)


def test_a_changed_line_is_shown_with_both_numbers_and_the_lines_around_it():
    after = ["new", *LINES[:14], "σ = 2", *LINES[15:]]
    first, second = compare(LINES, after).passages
    assert first.lines[0] == DiffLine(Change.ADDED, "new", None, 1)
    assert (first.skipped, second.skipped) == (0, 8)
    assert list(second.lines) == [
        *(DiffLine(Change.KEPT, f"line {number}", number, number + 1) for number in (12, 13, 14)),
        DiffLine(Change.REMOVED, "line 15", 15, None),
        DiffLine(Change.ADDED, "σ = 2", None, 16),
        *(DiffLine(Change.KEPT, f"line {number}", number, number + 1) for number in (16, 17, 18)),
    ]


def test_changes_near_each_other_are_one_passage():
    after = [*LINES[:9], *LINES[10:14], *LINES[15:]]
    (passage,) = compare(LINES, after).passages
    assert passage.skipped == 6
    assert [line.text for line in passage.lines if line.change is Change.REMOVED] == ["line 10", "line 15"]


@given(st.lists(st.sampled_from("abc"), max_size=40), st.lists(st.sampled_from("abc"), max_size=40))
def test_kept_and_added_lines_are_the_newer_text_and_kept_and_removed_ones_the_older(before, after):
    found = compare(before, after)
    shown = [line for passage in found.passages for line in passage.lines]
    older = {line.before: line.text for line in shown if line.before}
    newer = {line.after: line.text for line in shown if line.after}
    assert all(before[number - 1] == text for number, text in older.items())
    assert all(after[number - 1] == text for number, text in newer.items())
    assert found.removed - found.added == len(before) - len(after)
    skipped = sum(passage.skipped for passage in found.passages)
    assert skipped + len(older) <= len(before)


@pytest.mark.parametrize("different", [3, 30, 100, 150])
def test_texts_that_are_made_to_be_hard_to_compare_take_a_second_at_most(different):
    order = random.Random(1)
    before, after = ([f"{order.randrange(different)}" for _ in range(changes.MAX_LINES)] for _ in range(2))
    started = time.process_time()
    compare(before, after)
    compare([f"{n}" for n in range(5_000)], [f"{n}" for n in range(4_999, -1, -1)])
    compare(["", "a"] * 90, ["b", ""] * 90)
    words = [f"w{number}" for number in range(changes.MAX_WORDS // 4)]
    compare([" ".join(words + words)], [" ".join(words[::-1] + words[::-1])])
    assert time.process_time() - started < 5


def test_long_texts_are_cut_and_say_so(monkeypatch):
    monkeypatch.setattr(changes, "MAX_SHOWN_LINES", 10)
    found = compare(["a"] * 50, ["b"] * 50)
    assert sum(len(passage.lines) for passage in found.passages) == 10
    assert found.is_cut
    assert (found.removed, found.added) == (50, 50)
    monkeypatch.setattr(changes, "MAX_LINES", 20)
    assert compare(LINES, LINES).is_cut
    assert compare(["x" * 6_000], []).passages[0].lines[0].text.endswith("x…")


def marked(before, after):
    """The marked words of each line."""
    (passage,) = compare(before, after).passages
    return [[part.text for part in line.parts if part.is_changed] for line in passage.lines]


def test_changed_words_of_a_changed_line_are_marked():
    before = "The noise multiplier σ is at least 1."
    assert marked([before], [before + "5, by Lemma 2."]) == [["1."], ["1.5, by Lemma 2."]]


def test_of_a_rewrapped_paragraph_only_the_new_words_are_marked():
    before = ["Every provider has one client,", "which clips what it sends."]
    after = ["Every provider has exactly one", "client, which clips what it sends."]
    assert marked(before, after) == [[], [], ["exactly"], []]


def test_of_lines_with_little_in_common_no_word_is_marked():
    assert marked(["a lemma on the noise"], ["another proof of it, on two pages"]) == [[], []]


def test_parts_are_the_line():
    (passage,) = compare(["  two  spaces, σ = 1  "], ["  two  spaces, σ = 2  "]).passages
    assert ["".join(part.text for part in line.parts) for line in passage.lines] == [
        line.text for line in passage.lines
    ]
