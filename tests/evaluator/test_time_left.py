import pytest

from evaluator.time_left import in_words


@pytest.mark.parametrize(
    ("remaining_s", "words"),
    [
        (None, ""),
        (0, "less than a minute left"),
        (59.9, "less than a minute left"),
        (60, "about 1 min left"),
        (250, "about 4 min left"),
        (59.4 * 60, "about 59 min left"),
        (59.8 * 60, "about 1 h left"),
        (80 * 60, "about 1 h 20 min left"),
        (119 * 60, "about 2 h left"),
        (9.95 * 3600, "about 10 h left"),
        (47 * 3600, "about 47 h left"),
        (71 * 3600, "about 3 days left"),
    ],
)
def test_what_remains_is_told_no_finer_than_it_is_known(remaining_s: float | None, words: str) -> None:
    assert in_words(remaining_s) == words
