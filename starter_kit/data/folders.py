"""Writing data folders: splits page by page, and outputs that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from evaluator.docvqa.dataset import DatasetInfo, Page, Question, to_line, write_info
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.progress import OnProgress
from starter_kit.data.summary import SplitTally
from starter_kit.disk import is_full, room_for

PUBLIC = "public"  # train and valid: for everybody
SECRET = "secret"  # noqa: S105 - a folder's name: test, for the organizers alone
SPLITS = ("train", "valid", "test", "red")
Drawn = TypeVar("Drawn")  # a made-up provider
# What the names of further splits for attacks begin with, which are for the organizers alone.
FOR_ATTACKS = "red-"


def malformed(where: object, expected: object, found: object, next_step: str = "") -> ProblemError:
    """Return the error (`E_DATASET_FORMAT`) of data that isn't laid out as expected."""
    return ProblemError.of(ErrorCode.DATASET_FORMAT, str(where), expected, found, next_step=next_step)


def splits_of(folder: Path) -> list[str]:
    """Return the splits of a data folder, those for attacks last.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if there are none.
    """
    for_attacks = sorted(path.name for path in folder.glob(f"{FOR_ATTACKS}*"))
    found = [split for split in (*SPLITS, *for_attacks) if (folder / split).is_dir()]
    if not found:
        raise malformed(folder, "a folder train, valid, test or red", "none")
    return found


class SplitWriter:
    """Writes one split of a data folder, a page with its questions at a time, and counts what it writes."""

    def __init__(self, folder: Path, split: str) -> None:
        target = folder / split
        target.mkdir(parents=True, exist_ok=True)
        self.tally = SplitTally()
        self._pages = (target / "pages.jsonl").open("w", encoding="utf-8")
        self._questions = (target / "questions.jsonl").open("w", encoding="utf-8")

    def add(self, page: Page, questions: list[Question]) -> None:
        """Write one page and its questions."""
        self._pages.write(to_line(page))
        self._questions.writelines(map(to_line, questions))
        self.tally.add(page, questions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._pages.close()
        self._questions.close()


def write_drawn(
    folders: Mapping[str, Path],
    plan: Mapping[str, Sequence[Drawn]],
    info: DatasetInfo,
    draw: Callable[[Path, str, int, Drawn], tuple[Page, list[Question]]],
    on_progress: OnProgress,
) -> dict[str, SplitTally]:
    """Write the drawn splits of a data set, and return their counts.

    Args:
        folders: The data folder of each split. Each gets the clients, too: scores are grouped by seen and unseen
            providers.
        plan: The provider of each page of each split.
        draw: Writes a page's image into a data folder, given the page's split, number and provider.
        on_progress: Called with the pages done and all pages.
    """
    for folder in set(folders.values()):
        write_info(folder, info if folder == folders.get("train") else _without_training(info))
        (folder / "images").mkdir(exist_ok=True)
    total, done = sum(map(len, plan.values())), 0
    tallies = {}
    for split, providers in plan.items():
        with SplitWriter(folders[split], split) as writer:
            for number, provider in enumerate(providers):
                writer.add(*draw(folders[split], split, number, provider))
                done += 1
                on_progress(done, total)
        tallies[split] = writer.tally
    return tallies


def write_divided(
    public: Path,
    secret: Path,
    info: DatasetInfo,
    splits: Mapping[str, str],
    rows: Callable[[str], Iterable[tuple[Page, list[Question]]]],
) -> dict[str, SplitTally]:
    """Write train and valid to one data folder and test to another, and return their counts.

    Args:
        public: Has the images of all pages already. Those of the test move to `secret`.
        splits: Document -> split, in the order of writing.
        rows: Returns the pages of a document with their questions.
    """
    # Both state the clients: scores are grouped by seen and unseen providers.
    write_info(public, info)
    write_info(secret, _without_training(info))
    (secret / "images").mkdir(parents=True, exist_ok=True)
    tallies: dict[str, SplitTally] = {}
    for split in ("train", "valid", "test"):
        with SplitWriter(secret if split == "test" else public, split) as writer:
            for page, questions in (row for name in splits if splits[name] == split for row in rows(name)):
                writer.add(page, questions)
                if split == "test":
                    image = f"images/{page.page}.jpg"
                    shutil.move(public / image, secret / image)
        tallies[split] = writer.tally
    return tallies


def _without_training(info: DatasetInfo) -> DatasetInfo:
    """Return what a test set states: not how the training providers were divided."""
    return info.model_copy(update={"partition": ""})


@contextmanager
def atomic_folder(out: Path, *, force: bool, entries: frozenset[str]) -> Iterator[Path]:
    """Yield a temporary folder that replaces `out` if the block succeeds, and that is removed if it fails.

    Args:
        force: Replace a folder that holds something, if it is one of ours: nothing in it but `entries`.

    Raises:
        ProblemError: `E_DATASET_FOLDER`, if `out` can't be written or holds what may not be replaced.
    """
    out = out.absolute()
    _reject_occupied(out, force=force, entries=entries)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        if is_full(error):
            raise
        raise ProblemError.of(ErrorCode.DATASET_FOLDER, str(out), found=error.strerror) from error
    try:
        fresh = staging / "new"
        fresh.mkdir()
        with room_for(out):
            yield fresh
            _swap(fresh, out, staging / "old")
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _swap(fresh: Path, out: Path, old: Path) -> None:
    """Put `fresh` in the place of `out`; on failure, put what was there back."""
    if not out.exists():
        os.replace(fresh, out)
        return
    os.replace(out, old)
    try:
        os.replace(fresh, out)
    except OSError:
        os.replace(old, out)
        raise


def _reject_occupied(out: Path, *, force: bool, entries: frozenset[str]) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise ProblemError.of(ErrorCode.DATASET_FOLDER, str(out), "a folder", "a file")
    found = {path.name for path in out.iterdir()}
    if found and not force:
        raise ProblemError.of(ErrorCode.DATASET_FOLDER, str(out), "an empty or new folder", _some(found))
    if found - entries:
        raise ProblemError.of(
            ErrorCode.DATASET_FOLDER,
            message="The folder holds what this command didn't write, so --force won't replace it.",
            where=str(out),
            expected=f"nothing but {_some(set(entries))}",
            found=_some(found - entries),
            next_step="Choose another folder.",
        )


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
