import io
import os
import pickle  # noqa: TID251 - makes the files that the reader must withstand
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.docvqa.imdb import ImdbQuestion, read_data_points, read_imdb, write_imdb
from evaluator.errors import ErrorCode, ProblemError


def make_row(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "question": "What is the total?",
        "answers": "12.50",
        "image_name": "0123456789abcdef01234567_0",
        "ocr_tokens": ["Total", "12.50"],
        "ocr_normalized_boxes": np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.6, 0.4]]),
        "question_id": "7",
        "set_name": "train",
    }
    return row | changes


def save(path: Path, *rows: object) -> Path:
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    np.save(path, array, allow_pickle=True)
    return path


def save_stream(path: Path, stream: bytes, length: int = 2) -> Path:
    """An npy file of `length` objects whose pickle is `stream`."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": (length,)})
    path.write_bytes(header.getvalue() + stream)
    return path


def rejection(path: Path) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        read_imdb(path)
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    return caught.value


def test_a_file_saved_by_numpy_reads_back(tmp_path: Path) -> None:
    imdb = read_imdb(save(tmp_path / "a.npy", {"version": "1"}, make_row()))
    assert imdb.header == {"version": "1"}
    (question,) = imdb.questions
    assert question.question == "What is the total?"
    assert question.answers == ["12.50"]
    assert question.ocr_tokens == ["Total", "12.50"]
    assert question.ocr_normalized_boxes.tolist() == [[0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.6, 0.4]]
    assert question.question_id == "7"


@pytest.mark.parametrize(
    "boxes",
    [
        [[0.25, 0.5, 0.75, 1.0]],
        np.array([[0.25, 0.5, 0.75, 1.0]], dtype=np.float32),
        np.array([[0.25, 0.5, 0.75, 1.0]], dtype=">f8"),
        np.asfortranarray([[0.25, 0.5, 0.75, 1.0]]),
        [np.array([0.25, 0.5, 0.75, 1.0])],
        [(np.float64(0.25), 0.5, np.float32(0.75), 1)],
        [[0.25, 0.5, 0.75, np.float64(1.0)]],
    ],
    ids=[
        "lists",
        "float32",
        "big-endian",
        "Fortran order",
        "list of arrays",
        "scalars in tuples",
        "scalars in lists",
    ],
)
def test_boxes_are_read_in_every_form_that_numpy_pickles(tmp_path: Path, boxes: object) -> None:
    path = save(tmp_path / "a.npy", {}, make_row(ocr_tokens=["Total"], ocr_normalized_boxes=boxes))
    assert read_imdb(path).questions[0].ocr_normalized_boxes.tolist() == [[0.25, 0.5, 0.75, 1.0]]


@pytest.mark.parametrize(
    "tokens", [["Zoë", "12"], np.array(["Zoë", "12"]), np.array(["Zoë", "12"], dtype=object)]
)
def test_words_are_read_from_lists_and_arrays(tmp_path: Path, tokens: object) -> None:
    path = save(tmp_path / "a.npy", {}, make_row(ocr_tokens=tokens))
    assert read_imdb(path).questions[0].ocr_tokens == ["Zoë", "12"]


def test_an_empty_transcription_has_boxes_of_shape_0_by_4(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", {}, make_row(ocr_tokens=[], ocr_normalized_boxes=np.array([])))
    assert read_imdb(path).questions[0].ocr_normalized_boxes.shape == (0, 4)


@pytest.mark.parametrize("secret", [{"answers": None}, {"answers": []}, {}])
def test_questions_of_a_secret_test_set_have_no_answers(tmp_path: Path, secret: dict[str, object]) -> None:
    row = make_row()
    del row["answers"]
    (question,) = read_imdb(save(tmp_path / "a.npy", {}, row | secret)).questions
    assert question.answers == []


def test_a_missing_question_id_is_left_to_the_caller(tmp_path: Path) -> None:
    row = make_row()
    del row["question_id"]
    assert read_imdb(save(tmp_path / "a.npy", {}, row)).questions[0].question_id is None


def test_the_names_of_older_numpy_releases_are_known(tmp_path: Path) -> None:
    rows = np.empty(2, dtype=object)
    rows[:] = [{}, make_row(question_id=np.int64(7))]
    stream = pickle.dumps(rows, protocol=3).replace(b"numpy._core.", b"numpy.core.")
    assert b"numpy.core." in stream
    imdb = read_imdb(save_stream(tmp_path / "a.npy", stream))
    assert imdb.questions[0].ocr_normalized_boxes.shape == (2, 4)
    assert imdb.questions[0].question_id == "7"


def test_what_is_written_is_the_layout_that_plain_numpy_loads(tmp_path: Path) -> None:
    write_imdb(tmp_path / "a.npy", "train", [ImdbQuestion.model_validate(make_row())])
    loaded = np.load(tmp_path / "a.npy", allow_pickle=True)
    assert loaded.dtype == object
    assert loaded.shape == (2,)
    assert isinstance(loaded[0], dict)
    assert loaded[1].keys() == make_row().keys()
    assert loaded[1]["answers"] == "12.50"
    assert loaded[1]["ocr_tokens"] == ["Total", "12.50"]
    assert loaded[1]["ocr_normalized_boxes"].shape == (2, 4)
    assert read_imdb(tmp_path / "a.npy").questions[0].question == "What is the total?"


class Payload:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self.command,)


def test_a_file_that_would_run_a_command_is_rejected_and_nothing_runs(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    path = save(tmp_path / "a.npy", {}, make_row(question=Payload(f"touch {trace}")))
    assert "system" in rejection(path).problem.found
    assert not trace.exists()
    np.load(path, allow_pickle=True)  # the same file runs it under plain NumPy
    assert trace.exists()


@pytest.mark.parametrize(
    "stream",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'a'\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n(S'a'\ntR.",
        b"c__builtin__\n__import__\n(S'os'\ntR.",
        b"\x80\x04\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94.",  # names taken from the stack
        b"\x80\x02cnumpy\nndarray\n)\x81.",  # an instance of an allowed name, made without its function
        b"P1\n.",  # a persistent id
        b"",
        b"\x80\x04",
        b"\x80\x04].",  # a plain list, not an array
        b"not a pickle at all",
    ],
)
def test_every_other_pickle_is_rejected(tmp_path: Path, stream: bytes) -> None:
    rejection(save_stream(tmp_path / "a.npy", stream))


def test_a_pickle_cannot_change_the_reader_for_later_files(tmp_path: Path) -> None:
    # BUILD sets attributes on whatever is on the stack: here on the function that stands in for numpy.dtype.
    rejection(save_stream(tmp_path / "a.npy", b"\x80\x02cnumpy\ndtype\n}X\x08\x00\x00\x00__call__K\x01sb."))
    read_imdb(save(tmp_path / "b.npy", {}, make_row()))


def test_lists_that_repeat_each_other_without_end_are_rejected_at_once(tmp_path: Path) -> None:
    bomb: list[object] = [0.5]
    for _ in range(60):
        bomb = [bomb, bomb, bomb, bomb]
    rejection(save(tmp_path / "a.npy", {}, make_row(ocr_normalized_boxes=bomb)))
    rejection(save(tmp_path / "b.npy", {}, make_row(ocr_tokens=bomb)))
    boxed = np.empty(1, dtype=object)
    boxed[0] = bomb
    rejection(save(tmp_path / "c.npy", {}, make_row(ocr_normalized_boxes=[boxed])))


def test_an_array_whose_data_does_not_fit_its_shape_is_rejected(tmp_path: Path) -> None:
    rows = np.empty(2, dtype=object)
    rows[:] = [{}, make_row(ocr_normalized_boxes=np.zeros((3, 4)))]
    stream = pickle.dumps(rows, protocol=3)
    assert stream.count(b"K\x03K\x04\x86") == 1
    rejection(save_stream(tmp_path / "a.npy", stream.replace(b"K\x03K\x04\x86", b"K\xffK\x04\x86")))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_rejected_with_a_code(
    tmp_path_factory: pytest.TempPathFactory, stream: bytes
) -> None:
    rejection(save_stream(tmp_path_factory.mktemp("fuzz") / "a.npy", stream))


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_damaged_file_is_read_or_rejected_with_a_code(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    path = save(tmp_path_factory.mktemp("damage") / "a.npy", {}, make_row())
    content = bytearray(path.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(content)
    with suppress(ProblemError):  # any other exception fails the test
        read_imdb(path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"image_name": "../../secret"}, "image_name"),
        ({"image_name": ["doc_0", "doc_1"]}, "2 pages: multi-page documents are not supported"),
        ({"image_name": np.array(["doc_0", "doc_1", "doc_2"], dtype=object)}, "3 pages"),
        ({"question": 5}, "question"),
        ({"ocr_tokens": ["one"]}, "1 ocr_tokens but 2 boxes"),
        ({"ocr_normalized_boxes": np.array([[10, 20, 300, 400], [1, 2, 3, 4]])}, "not pixels"),
        ({"ocr_normalized_boxes": np.array([[0, 0, np.nan, 1], [0, 0, 1, 1]])}, "finite"),
        ({"ocr_normalized_boxes": np.zeros((2, 3))}, "shape"),
        ({"ocr_normalized_boxes": np.array(["a", "b"])}, "boxes"),
    ],
)
def test_a_bad_row_is_rejected_by_its_number(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    error = rejection(save(tmp_path / "a.npy", {}, make_row(), make_row(**changes)))
    assert error.problem.where.startswith("a.npy, row 2")
    assert named in error.problem.found


def test_a_file_above_the_cap_is_rejected_unread(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", {}, make_row())
    with pytest.raises(ProblemError, match="at most 100 bytes"):
        read_imdb(path, max_bytes=100)


def test_an_array_of_numbers_is_no_imdb_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    rejection(tmp_path / "a.npy")


def test_a_missing_file_is_rejected_with_its_name(tmp_path: Path) -> None:
    assert "nowhere.npy" in rejection(tmp_path / "nowhere.npy").problem.where


def test_a_byte_order_mark_before_the_data_points_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "data_points.json").write_text('{"client_0": {"a provider": [1]}}', encoding="utf-8-sig")
    assert read_data_points(tmp_path / "data_points.json") == {"client_0": {"a provider": [1]}}


def test_data_points_that_are_not_lists_of_rows_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "data_points.json").write_text('{"client_0": {"a provider": "all"}}')
    with pytest.raises(ProblemError, match=r"client_0\.a provider"):
        read_data_points(tmp_path / "data_points.json")
