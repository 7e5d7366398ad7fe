"""The image features of pages: the frozen image tower's output, which depends on the page's image alone.

Few are kept in memory. More are kept in a file beside the data, made once and read by every run and process after that:
197 × 768 numbers a page are 42 GB as float32 for 69,894 pages, 21 GB as float16. The file is read page by page, so
training takes no memory for pages that aren't in the batch; the system caches what it has memory for. It isn't mapped:
an error of the disk would end the process without a word, and mapped pages count as the process's memory.

    <data>/page-features/<image tower>-<precision>-<kind of device>/
        features.bin      rows of V × dv numbers, in the order in which they were made
        index.jsonl       one `_Entry` a line; of several lines about a page the last one counts
        lock              held by the process that adds rows

Rows are on disk before their lines are, so a row without a line was never finished: the next process cuts it off and
makes it. A row that was changed afterwards doesn't have the checksum that its line has. A page whose image has changed
gets a new row.

The environment variable `PFL_PAGE_FEATURES` names another folder. Where none can be written, features are in a file
without a name, in the folder for temporary files, for as long as the process runs.
"""

import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

import torch
from filelock import FileLock
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.images import read_page
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.learning.trainable_model import TrainableModel

Precision = Literal["float32", "float16"]
# Called with the number of pages that are done, and of all pages.
OnPage = Callable[[int, int], None]

FOLDER_VARIABLE = "PFL_PAGE_FEATURES"
FOLDER = "page-features"
PAGES_AT_ONCE = 64
MAX_THREADS = 16
# Features of at most this size are kept in memory.
IN_MEMORY_BYTES = 1 << 28


@dataclass(frozen=True)
class InMemory:
    """Features (P, V, dv) of some pages in memory, on the CPU, as float32 or float16."""

    features: Tensor

    def read(self, places: Sequence[int]) -> Tensor:
        """Return the features (P, V, dv) of the pages at these places."""
        return self.features[list(places)]


def page_features(
    model: TrainableModel,
    dataset: Dataset,
    pages: Sequence[str],
    on_page: OnPage,
    *,
    precision: Precision = "float32",
    in_memory_bytes: int = IN_MEMORY_BYTES,
) -> "InMemory | FeatureRows":
    """Return the image features of `pages` of the dataset, from memory or from the file beside the data.

    Args:
        precision: What features are stored as. float16 rounds each to 11 significant bits.
        in_memory_bytes: More than this is kept in a file.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) A page can't be read; (`E_DATASET_FOLDER`) there is no room for the file.
    """
    if len(pages) * row_bytes(model, precision) <= in_memory_bytes:
        return _in_memory(model, dataset, pages, on_page, _dtype(precision))
    file = FeatureFile(_writable_folder(dataset, model, precision), _shape(model), _dtype(precision))
    return file.of_pages(model, dataset, pages, on_page)


def row_bytes(model: TrainableModel, precision: Precision) -> int:
    """Return the bytes of a page's features."""
    tokens, width = _shape(model)
    return tokens * width * _dtype(precision).itemsize


def _shape(model: TrainableModel) -> tuple[int, int]:
    return model.config.visual.tokens, model.config.visual.hidden_size


def _dtype(precision: Precision) -> torch.dtype:
    return torch.float16 if precision == "float16" else torch.float32


def _in_memory(
    model: TrainableModel, dataset: Dataset, pages: Sequence[str], on_page: OnPage, dtype: torch.dtype
) -> InMemory:
    features = torch.empty(len(pages), *_shape(model), dtype=dtype)
    done = 0
    for images in _decoded(model, dataset, pages):
        pixels = torch.stack([image.pixels for image in images])
        features[done : done + len(images)] = model.page_features(pixels)
        done += len(images)
        on_page(done, len(pages))
    return InMemory(features)


def _writable_folder(dataset: Dataset, model: TrainableModel, precision: Precision) -> Path | None:
    """Return the folder of the features' file, created if it wasn't there; None if it can't be written."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    folder = Path(chosen) if chosen else dataset.folder / FOLDER
    folder /= f"{model.image_tower_sha256[:32]}-{precision}-{model.device.type}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@dataclass(frozen=True)
class _Image:
    """A decoded page (3, H, W), with what its file was."""

    page: str
    pixels: Tensor
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class _Entry:
    """A line of the index: the row of a page, the checksum of its bytes, and the file that the page was read from."""

    page: str
    row: int
    crc32: int
    size: int
    mtime_ns: int
    sha256: str


class FeatureFile:
    """Rows of features of `shape` (V, dv) in a folder, or in a file without a name where `folder` is None."""

    def __init__(self, folder: Path | None, shape: tuple[int, int], dtype: torch.dtype) -> None:
        self._folder = folder
        self._shape = shape
        self._dtype = dtype
        self._row_bytes = shape[0] * shape[1] * dtype.itemsize
        self._entries: dict[str, _Entry] = {}
        self._file: BinaryIO = tempfile.TemporaryFile() if folder is None else _opened(folder)  # noqa: SIM115

    def of_pages(
        self, model: TrainableModel, dataset: Dataset, pages: Sequence[str], on_page: OnPage
    ) -> "FeatureRows":
        """Return the features of `pages`, after making those that the file lacks.

        One process at a time makes rows; others wait for it, and read what it made.
        """
        if self._folder is None:
            self._make(model, dataset, pages, on_page)
        elif not self._is_complete(dataset, pages):
            with FileLock(self._folder / "lock"):
                self._cut_unfinished()
                current = self._current(dataset, pages)
                self._write_index([entry for page, entry in current.items() if entry != self._entries[page]])
                self._make(model, dataset, [page for page in pages if page not in current], on_page)
        return FeatureRows(self._file, self._shape, self._dtype, [self._entries[page] for page in pages])

    @property
    def _index(self) -> Path | None:
        return self._folder / "index.jsonl" if self._folder else None

    def _is_complete(self, dataset: Dataset, pages: Sequence[str]) -> bool:
        """Whether nothing has to be written for `pages`."""
        current = self._current(dataset, pages)
        return all(page in current and current[page] == self._entries[page] for page in pages)

    def _current(self, dataset: Dataset, pages: Sequence[str]) -> dict[str, _Entry]:
        """Return the entries of those of `pages` whose image is the one that their row was made of."""
        self._entries = self._read_index()
        known = {page: self._entries[page] for page in pages if page in self._entries}
        found = {page: _current_entry(dataset.image_path(page), entry) for page, entry in known.items()}
        return {page: entry for page, entry in found.items() if entry is not None}

    def _read_index(self) -> dict[str, _Entry]:
        """Return the entries of all rows that are whole; a line without its end was never finished."""
        if self._index is None or not self._index.exists():
            return {}
        whole = os.fstat(self._file.fileno()).st_size // self._row_bytes
        lines = self._index.read_bytes().split(b"\n")[:-1]
        entries = (_Entry(**json.loads(line)) for line in lines)
        return {entry.page: entry for entry in entries if entry.row < whole}

    def _cut_unfinished(self) -> None:
        """Cut off what a process that was killed left: a line without its end, and rows without a line."""
        if self._index is None:
            return
        if self._index.exists():
            content = self._index.read_bytes()
            os.truncate(self._index, content.rfind(b"\n") + 1)
        entries = self._read_index()
        rows = 1 + max((entry.row for entry in entries.values()), default=-1)
        os.truncate(self._file.fileno(), rows * self._row_bytes)

    def _make(self, model: TrainableModel, dataset: Dataset, pages: Sequence[str], on_page: OnPage) -> None:
        if not pages:
            return
        self._check_room(len(pages))
        done = 0
        for images in _decoded(model, dataset, pages):
            pixels = torch.stack([image.pixels for image in images])
            # Always as many at once, so that rounding doesn't depend on where an earlier process was killed.
            padding = pixels[-1:].expand(PAGES_AT_ONCE - len(pixels), -1, -1, -1)
            features = model.page_features(torch.cat([pixels, padding]))[: len(images)].to(self._dtype)
            _check_finite(features, images[0].page)
            self._append(images, features)
            done += len(images)
            on_page(done, len(pages))

    def _append(self, images: Sequence[_Image], features: Tensor) -> None:
        """Write rows, then their lines."""
        first = os.fstat(self._file.fileno()).st_size // self._row_bytes
        entries = []
        self._file.seek(first * self._row_bytes)
        for row, (image, row_features) in enumerate(zip(images, features, strict=True), first):
            content = row_features.contiguous().numpy().tobytes()
            self._file.write(content)
            entries.append(
                _Entry(image.page, row, zlib.crc32(content), image.size, image.mtime_ns, image.sha256)
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        self._write_index(entries)

    def _write_index(self, entries: Sequence[_Entry]) -> None:
        self._entries |= {entry.page: entry for entry in entries}
        if self._index is None or not entries:
            return
        with self._index.open("ab") as index:
            index.write("".join(f"{json.dumps(asdict(entry))}\n" for entry in entries).encode())
            index.flush()
            os.fsync(index.fileno())

    def _check_room(self, pages: int) -> None:
        folder = self._folder or Path(tempfile.gettempdir())
        needed, free = pages * self._row_bytes, shutil.disk_usage(folder).free
        if needed > free:
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER,
                where=str(folder),
                expected=f"{needed / 1e9:.1f} GB of room, for the image features of {pages:,} pages",
                found=f"{free / 1e9:.1f} GB",
                next_step=f"Make room there, or name another folder in the environment variable {FOLDER_VARIABLE}. "
                "compute.features=float16 takes half of float32.",
            )


@dataclass(frozen=True)
class FeatureRows:
    """The features of some pages in a file, each checked the first time that it is read."""

    file: BinaryIO
    shape: tuple[int, int]
    dtype: torch.dtype
    entries: Sequence[_Entry]
    _checked: set[int] = field(default_factory=set)

    def read(self, places: Sequence[int]) -> Tensor:
        """Return the features (P, V, dv) of the pages at these places. Threads may read at once.

        Raises:
            ProblemError: (`E_DATASET_FORMAT`) The file isn't as it was written.
        """
        features = torch.empty(len(places), *self.shape, dtype=self.dtype)
        # The memory of the tensor, whose bytes `numpy` gives.
        rows = features.view(len(places), -1).numpy().view("u1")
        for row, place in zip(rows, places, strict=True):
            self._read_row(memoryview(row), place)
        return features

    def _read_row(self, row: memoryview, place: int) -> None:
        entry = self.entries[place]
        count = os.preadv(self.file.fileno(), [row], entry.row * len(row))
        if place not in self._checked:
            if count < len(row) or zlib.crc32(row) != entry.crc32:
                raise ProblemError.of(
                    ErrorCode.DATASET_FORMAT,
                    where=f"{self.file.name}, page {entry.page}",
                    expected="image features as they were written",
                    found="others",
                    next_step="Delete the folder of that file; the next run makes it again.",
                )
            self._checked.add(place)


def _current_entry(path: Path, entry: _Entry) -> _Entry | None:
    """Return the entry as it is now; None if the image is another one than its row was made of."""
    try:
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) == (entry.size, entry.mtime_ns):
            return entry
        # A copy of the data has other times.
        same = found.st_size == entry.size and _sha256(path) == entry.sha256
    except OSError:
        return None
    return replace(entry, mtime_ns=found.st_mtime_ns) if same else None


def _check_finite(features: Tensor, page: str) -> None:
    if not features.isfinite().all():
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"image features of {page} and the pages after it",
            expected=f"numbers that {features.dtype} can hold",
            found="larger ones",
            next_step="Set compute.features=float32.",
        )


def _decoded(model: TrainableModel, dataset: Dataset, pages: Sequence[str]) -> Iterator[list[_Image]]:
    """Yield the pages in groups of `PAGES_AT_ONCE`, each decoded in threads while the one before it is in use."""
    size = model.config.visual.image_size
    groups = [pages[start : start + PAGES_AT_ONCE] for start in range(0, len(pages), PAGES_AT_ONCE)]
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1), "pages") as pool:

        def begin(group: Sequence[str]) -> list[Future[_Image]]:
            return [pool.submit(_read_image, dataset, page, size) for page in group]

        try:
            begun = begin(groups[0]) if groups else []
            for following in [*groups[1:], []]:
                current, begun = begun, begin(following)
                if current:
                    yield [image.result() for image in current]
        finally:
            pool.shutdown(cancel_futures=True)


def _read_image(dataset: Dataset, page: str, size: int) -> _Image:
    path = dataset.image_path(page)
    pixels = read_page(path, size)
    found = path.stat()
    return _Image(page, pixels, found.st_size, found.st_mtime_ns, _sha256(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(folder: Path) -> BinaryIO:
    """Return the file of rows, to read and write anywhere; created if it wasn't there."""
    return os.fdopen(os.open(folder / "features.bin", os.O_RDWR | os.O_CREAT, 0o644), "r+b")
