"""First downloads: what a track's rule leaves out of a log's bytes, or adds to them."""

from pathlib import Path

import pytest

from evaluator.communication.first_downloads import FirstDownloads
from evaluator.communication.log import LogEntry, read_log, write_log
from evaluator.messages.jobs import SERVER, FirstDownload


def ranked(path: Path, *messages: tuple[int, int, int, int]) -> tuple[int, int]:
    """Return the bytes of a log where first downloads are free, and where they count."""
    write_log(path, [LogEntry(*message) for message in messages])
    downloads = FirstDownloads()
    totals = read_log(path, clients=10, max_rounds=100, on_exchange=downloads.add)
    free, counted = (downloads.ranked_bytes(totals, rule) for rule in FirstDownload)
    assert counted - free == downloads.all_bytes
    return free, counted


LATER = [(2, SERVER, 0, 40), (2, 0, SERVER, 30), (2, SERVER, 5, 40), (2, 5, SERVER, 30)]


@pytest.mark.parametrize(
    ("first", "size"),
    [
        ([(1, SERVER, 0, 100), (1, 0, SERVER, 30)], 100),
        ([(1, SERVER, 0, 0), (1, 0, SERVER, 30)], 40),
        ([(1, 0, SERVER, 30)], 40),
    ],
    ids=["a whole model", "an empty difference", "no message"],
)
def test_where_first_downloads_are_free_every_codec_ranks_alike(
    tmp_path: Path, first: list[tuple[int, int, int, int]], size: int
) -> None:
    assert ranked(tmp_path / "log.csv", *first, *LATER) == (30 + 140, 30 + 140 + size)


def test_a_missing_download_of_a_client_without_later_ones_is_as_large_as_its_upload(tmp_path: Path) -> None:
    assert ranked(tmp_path / "log.csv", (1, 3, SERVER, 25), (2, 3, SERVER, 26), *LATER) == (191, 216)


def test_only_one_message_to_a_client_is_its_first_download(tmp_path: Path) -> None:
    """Whoever writes all downloads into the first round gains nothing, and small messages beside the model count."""
    down = [(4, SERVER, 0, size) for size in (8, 100, 100)]
    assert ranked(tmp_path / "log.csv", *down, (4, 0, SERVER, 30)) == (138, 238)


def test_a_client_that_joins_later_pays_for_its_download(tmp_path: Path) -> None:
    first = [(1, SERVER, 0, 100), (1, 0, SERVER, 30)]
    assert ranked(tmp_path / "log.csv", *first, (2, SERVER, 9, 100), (2, 9, SERVER, 30)) == (160, 260)


def test_a_log_without_messages_has_no_bytes_under_either_rule(tmp_path: Path) -> None:
    assert ranked(tmp_path / "log.csv") == (0, 0)
