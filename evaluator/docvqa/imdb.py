"""The competition's own data layout: question files called imdb, as NumPy object arrays.

An imdb `.npy` file is a one-dimensional object array: a header dictionary, then one dictionary a question with
`question`, `answers` (one string), `image_name` (`<document>_<page>`, without extension), `ocr_tokens`,
`ocr_normalized_boxes` (n, 4; [x0, y0, x1, y1] in [0, 1]), `set_name` and mostly `question_id`. Beside them,
`data_points.json` says which rows of a client's file are which provider's; rows count from 1, the header being 0.

Such files are pickles, and unpickling runs what the file asks for. `read_imdb` therefore never hands one to
NumPy. Its unpickler knows four names, those that an array, its dtype and its scalars are rebuilt with, and puts
inert objects of this module in their place: no code and no NumPy internals are reached by a file. What remains is
that a hostile file can waste time and memory; its size is capped, and neither site nor workers read such files.
"""

import pickle  # noqa: TID251 - the one restricted reader; see above
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from evaluator.docvqa.dataset import first_line, malformed
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.untrusted_text import decode

# This leaves room for all of the competition's training questions in one file.
MAX_IMDB_BYTES = 8 << 30
MAX_INDEX_BYTES = 256 << 20
# A coordinate above this is no rounding error: the boxes are in pixels, not relative.
PIXELS = 2.0

# What a damaged or hostile file makes the unpickler, or NumPy's parser of the header, raise.
PARSING_ERRORS = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    tokenize.TokenError,
    TypeError,
    ValueError,
)


_BOXES = TypeAdapter(list[tuple[float, float, float, float]])
# `data_points.json`: client ("client_0") -> provider -> rows of the client's file, counted from 1.
_DATA_POINTS = TypeAdapter(dict[str, dict[str, list[int]]])


MEMBER, NONMEMBER = "member", "non_member"


class ImdbQuestion(BaseModel):
    """One row of an imdb file. Fields that the benchmark doesn't use are ignored.

    Attributes:
        provider: In red-team files only, as `label`: `MEMBER` or `NONMEMBER`.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    question: str
    # One answer is text by itself. Test sets whose answers are secret have none.
    answers: Annotated[
        list[str],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else [] if value is None else value),
    ] = []
    image_name: str = Field(min_length=1, max_length=200, pattern=r"^[\w.-]+$")
    ocr_tokens: Annotated[
        list[str], BeforeValidator(lambda value: value.tolist() if isinstance(value, np.ndarray) else value)
    ]
    ocr_normalized_boxes: NDArray[np.float64]
    question_id: Annotated[
        str | None, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)
    ] = None
    set_name: str = ""
    provider: str = ""
    label: str = ""

    @field_validator("ocr_normalized_boxes", mode="before")
    @classmethod
    def _relative(cls, value: object) -> NDArray[np.float64]:
        if not isinstance(value, np.ndarray):
            # Validated before NumPy sees it, which would follow lists to any depth.
            value = _BOXES.validate_python(value)
        boxes = np.asarray(value, dtype=np.float64)
        if boxes.size == 0:
            boxes = boxes.reshape(0, 4)
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"boxes must have the shape (words, 4), not {boxes.shape}")
        if not np.isfinite(boxes).all():
            raise ValueError("boxes must be finite")
        if boxes.size and np.abs(boxes).max() > PIXELS:
            raise ValueError(
                f"boxes must be relative to the page, in [0, 1], not pixels: found {boxes.max():g}"
            )
        return boxes

    @model_validator(mode="after")
    def _one_box_a_token(self) -> "ImdbQuestion":
        if len(self.ocr_tokens) != len(self.ocr_normalized_boxes):
            raise ValueError(f"{len(self.ocr_tokens)} ocr_tokens but {len(self.ocr_normalized_boxes)} boxes")
        return self


@dataclass(frozen=True)
class Imdb:
    """An imdb file. Row r, as `data_points.json` counts, is `questions[r - 1]`."""

    header: dict[str, object]
    questions: list[ImdbQuestion]


def read_imdb(path: Path, max_bytes: int = MAX_IMDB_BYTES) -> Imdb:
    """Read an imdb file without running anything it may contain.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, naming the first row that is wrong.
    """
    header, *rows = _read_objects(path, max_bytes)
    if not isinstance(header, dict):
        raise malformed(path, "a header dictionary as row 0", type(header).__name__)
    questions = []
    for number, row in enumerate(rows, 1):
        _reject_several_pages(row, f"{path.name}, row {number}")
        try:
            questions.append(ImdbQuestion.model_validate(row))
        except ValidationError as error:
            raise malformed(f"{path.name}, row {number}", "a question", first_line(error)) from error
    return Imdb(header, questions)


def _reject_several_pages(row: object, where: str) -> None:
    """Reject a question about a document of several pages by name, which some data sets have in this layout."""
    pages = row.get("image_name") if isinstance(row, dict) else None
    if isinstance(pages, Sequence) and not isinstance(pages, str):
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{where}, image_name",
            expected="one page, as in PFL-DocVQA",
            found=f"{len(pages)} pages: multi-page documents are not supported",
            next_step="Write a row for the page that holds the answer, with its words and boxes alone.",
        )


def write_imdb(path: Path, split: str, questions: Sequence[ImdbQuestion]) -> None:
    """Write an imdb file that `np.load(path, allow_pickle=True)` reads, with one answer a question.

    Rows have the keys `provider` and `label` where these are known.
    """
    rows = np.empty(len(questions) + 1, dtype=object)
    rows[0] = {"version": "pfl-docvqa/1", "split": split}
    for number, question in enumerate(questions, 1):
        unknown = {key for key in ("provider", "label") if not getattr(question, key)}
        rows[number] = question.model_dump(exclude=unknown) | {
            "answers": question.answers[0] if question.answers else ""
        }
    np.save(path, rows, allow_pickle=True)


def read_data_points(path: Path) -> dict[str, dict[str, list[int]]]:
    """Return the rows of each client's providers. Raises `ProblemError` (`E_DATASET_FORMAT`)."""
    try:
        if path.stat().st_size > MAX_INDEX_BYTES:
            raise malformed(path, f"at most {MAX_INDEX_BYTES} bytes", path.stat().st_size)
        return _DATA_POINTS.validate_json(decode(path.read_bytes()))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise malformed(
            path, 'JSON such as {"client_0": {"a provider": [1, 2]}}', first_line(error)
        ) from error


def _read_objects(path: Path, max_bytes: int) -> list[Any]:
    """Return the elements of a one-dimensional object array on disk."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size > max_bytes:
                raise malformed(path, f"at most {max_bytes} bytes", size)
            shape = _read_shape(file)
            array = _Unpickler(file).load()
            if not isinstance(array, _Array):
                raise pickle.UnpicklingError(f"a {type(array).__name__} where an array should be")
            rows = array.rows()
    except ProblemError:
        raise
    except (OSError, *PARSING_ERRORS) as error:
        raise malformed(
            path, "an imdb file: a NumPy object array of plain dictionaries", first_line(error)
        ) from error
    if shape != (len(rows),) or not rows:
        raise malformed(path, "a one-dimensional object array with a header", f"shape {shape}")
    return rows


def _read_shape(file: BinaryIO) -> tuple[int, ...]:
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(file)
    else:
        raise ValueError(f"npy format {version} is not one that object arrays are saved in")
    if dtype != np.dtype(object):
        raise ValueError(f"an array of {dtype}, not of objects")
    return shape


class _Dtype:
    """Stands in for `numpy.dtype`: remembers the code it is made from and its byte order."""

    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] == ">":
            self.code = ">" + self.code

    def real(self) -> np.dtype[Any]:
        """Return the dtype of plain numbers, truth values or text that the code names; nothing else is made."""
        dtype = np.dtype(self.code)
        if dtype.kind not in "fiubU":
            raise pickle.UnpicklingError(f"arrays of {self.code!r} are not read")
        return dtype


class _Array:
    """Stands in for `numpy.ndarray`: holds the pickled state until it is checked."""

    __slots__ = ("data", "dtype", "fortran", "shape")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.dtype, self.fortran, self.data = state

    def rows(self) -> list[Any]:
        """Return the elements of a one-dimensional array, arrays and scalars within them made real."""
        if not isinstance(self.data, list):
            raise pickle.UnpicklingError("the outer array does not hold objects")
        return [
            {key: _real(value) for key, value in row.items()} if isinstance(row, dict) else row
            for row in self.data
        ]

    def real(self) -> NDArray[Any] | list[Any]:
        """Return the array of numbers or text; an object array, as of words, becomes a list."""
        if isinstance(self.data, list):
            if self.shape == (len(self.data),):
                return self.data
        else:
            dtype = self.dtype.real()
            if prod(self.shape) * dtype.itemsize == len(self.data):
                return np.frombuffer(self.data, dtype).reshape(self.shape, order="F" if self.fortran else "C")
        raise pickle.UnpicklingError("an array's shape does not fit its data")


def _real(value: Any) -> Any:
    """Return the value of a row's field: an array, or a list that may hold arrays, such as one box a word.

    Goes no deeper: lists within lists can repeat one another without end.
    """
    if isinstance(value, _Array):
        return value.real()
    if isinstance(value, list):
        parts = [item.real() if isinstance(item, _Array) else item for item in value]
        return [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]
    return value


def _make_array(*_: object) -> _Array:
    return _Array()


def _make_dtype(code: str, *_: object) -> _Dtype:
    return _Dtype(code)


def _make_scalar(dtype: _Dtype, data: bytes) -> Any:
    return np.frombuffer(data, dtype.real())[0].item()


# Functions and a string, not classes: a pickle can set attributes on what it is given.
_STAND_INS: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): "numpy.ndarray",
    ("numpy", "dtype"): _make_dtype,
    ("numpy.core.multiarray", "_reconstruct"): _make_array,
    ("numpy._core.multiarray", "_reconstruct"): _make_array,
    ("numpy.core.multiarray", "scalar"): _make_scalar,
    ("numpy._core.multiarray", "scalar"): _make_scalar,
}


class _Unpickler(pickle.Unpickler):
    """Builds containers, text, numbers and the stand-ins; rejects every other name before anything is looked up."""

    def find_class(self, module: str, name: str) -> object:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed") from None
