import pickle  # noqa: TID251 - makes a file that the reader must withstand
import resource
import sys
import tracemalloc
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.bounded_reading import read_bounded
from tests.evaluator.docvqa.test_imdb import make_row, save, save_stream

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process isn't limited elsewhere"
)


def test_a_table_that_is_larger_than_the_file_explains_is_rejected_before_it_takes_memory(
    tmp_path: Path,
) -> None:
    # An empty list, remembered under the number 2^28: in a table of 4 GiB.
    stream = pickle.PROTO + b"\x03" + pickle.EMPTY_LIST + pickle.LONG_BINPUT + b"\0\0\0\x10" + pickle.STOP
    path = save_stream(tmp_path / "a.npy", stream)
    before = resource.getrlimit(resource.RLIMIT_AS)
    tracemalloc.start()
    try:
        with pytest.raises(ProblemError) as caught:
            read_bounded(path)
        assert tracemalloc.get_traced_memory()[1] < 2**30
    finally:
        tracemalloc.stop()
    assert [problem.code for problem in caught.value.problems] == [ErrorCode.DATASET_FORMAT]
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_other_files_are_read(tmp_path: Path) -> None:
    imdb = read_bounded(save(tmp_path / "a.npy", {}, make_row()))
    assert [question.question for question in imdb.questions] == ["What is the total?"]
