"""Pages from which the evidence of an answer is taken out, in words and in pixels.

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), section D.1.1: words that are equal to
the answer, or nearly, are left out, and their boxes are blurred with a Gaussian of radius 20. A model that answers all
the same has the answer in its weights.

The paper found that its own hiding left traces, such as a provider's web address beside its hidden name. Here a word
that contains a word of the answer is hidden as well, which takes addresses and emails out. A logo that is no word
stays; so compare members with nonmembers and with the base weights, and never read the raw value.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from PIL import Image, ImageFilter
from rapidfuzz.distance import Levenshtein

from evaluator.docvqa.dataset import Box, Dataset, Page, Question, write_info, write_split
from evaluator.docvqa.page_images import UNREADABLE, read_page_image

BLUR_RADIUS = 20
# Of the longer word: as near as the paper's metric counts a part of a right answer would hide too much.
SIMILARITY = 0.8
# Shorter words are in too many others, and near to too many.
SHORTEST = 4
JPEG_QUALITY = 95
# The sides, at least, of a page that is too large to be decoded as it is.
NEEDED_PX = 1000
SPLIT = "hidden"


class Hiding(StrEnum):
    """What a question is asked without."""

    EVIDENCE = "evidence"
    PAGE = "page"


@dataclass(frozen=True)
class Trial:
    """A question on a page from which some texts are hidden, or the page as a whole."""

    question: Question
    texts: Sequence[str]
    hiding: Hiding = Hiding.EVIDENCE


def hide(page: Page, texts: Iterable[str]) -> tuple[Page, list[Box]]:
    """Return the page without the words that give away one of the texts, and those words' boxes."""
    parts = {part for text in texts for part in _parts(text)}
    hidden = [_gives_away(word, parts) for word in page.words]
    kept = [place for place, is_hidden in enumerate(hidden) if not is_hidden]
    left = page.model_copy(
        update={
            "words": [page.words[place] for place in kept],
            "boxes": [page.boxes[place] for place in kept],
        }
    )
    return left, [box for box, is_hidden in zip(page.boxes, hidden, strict=True) if is_hidden]


def blur(image: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    """Return the image, each box (relative to the page) blurred with what is around it."""
    blurred = image.copy()
    for x0, y0, x1, y1 in boxes:
        left, top = int(x0 * image.width), int(y0 * image.height)
        right, bottom = max(left + 1, round(x1 * image.width)), max(top + 1, round(y1 * image.height))
        # What is farther from the box than three radii has no weight in it.
        margin = 3 * BLUR_RADIUS
        around = (
            max(0, left - margin),
            max(0, top - margin),
            min(image.width, right + margin),
            min(image.height, bottom + margin),
        )
        soft = image.crop(around).filter(ImageFilter.GaussianBlur(BLUR_RADIUS))
        inside = (left - around[0], top - around[1], right - around[0], bottom - around[1])
        blurred.paste(soft.crop(inside), (left, top))
    return blurred


def write_trials(folder: Path, dataset: Dataset, trials: Sequence[Trial]) -> Dataset:
    """Write a data folder with a page of its own for each trial, and return it; question ids stay.

    A page whose image can't be read is left without one, as a page that is hidden as a whole is: the model sees gray.
    """
    (folder / "images").mkdir(parents=True)
    pages, questions = [], []
    for number, trial in enumerate(trials):
        name = f"hidden-{number:06}_0"
        page, boxes = dataset.pages[trial.question.page], list[Box]()
        if trial.hiding is Hiding.PAGE:
            page = page.model_copy(update={"words": [], "boxes": []})
        else:
            page, boxes = hide(page, trial.texts)
            _write_image(folder / "images" / f"{name}.jpg", dataset.image_path(page.page), boxes)
        pages.append(page.model_copy(update={"page": name}))
        questions.append(trial.question.model_copy(update={"page": name}))
    write_info(folder, dataset.info)
    write_split(folder, SPLIT, pages, questions)
    return Dataset(folder, SPLIT)


def _write_image(target: Path, source: Path, boxes: Sequence[Box]) -> None:
    try:
        if not boxes:
            target.symlink_to(source.absolute())
            return
        page = read_page_image(source, needed_px=NEEDED_PX, reduce=False)
        blur(page.image, boxes).save(target, format="jpeg", quality=JPEG_QUALITY)
    except UNREADABLE:
        return


def _parts(text: str) -> Iterable[str]:
    """Yield the words of an answer, without punctuation at their ends."""
    return filter(None, (_plain(part) for part in text.split()))


def _plain(word: str) -> str:
    """Return a word as it is compared: in lower case, without accents, and without punctuation at its ends."""
    bare = "".join(
        letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter)
    )
    return re.sub(r"^\W+|\W+$", "", bare.lower())


def _gives_away(word: str, parts: Iterable[str]) -> bool:
    plain = _plain(word)
    return any(
        plain == part
        or (
            min(len(part), len(plain)) >= SHORTEST
            and (part in plain or Levenshtein.normalized_similarity(plain, part) >= SIMILARITY)
        )
        for part in parts
    )
