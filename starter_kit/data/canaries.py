"""Canaries: made-up providers of whom a secret coin decides whether they are in the released training data.

Every model that is trained on that data can then be audited (`evaluator.auditing`), at no cost for whoever trains:
their claim of ε is about providers, and a canary is one, with its name, addresses, layout, logo and documents.

Guarantee: the coins are independent, fair, and drawn from the operating system; so is the seed of the canaries' look,
so that who has this code can't draw those that were left out. No document of one canary is another's.

What it doesn't do: hide canaries. Whoever looks for invoices drawn by this code finds them, and may leave them out.
"""

import secrets
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from evaluator.auditing.escrow import GUESS_SHARE, LEAST_CANARIES, SPLIT, Escrow
from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import SplitWriter, malformed
from starter_kit.data.summary import ImportSummary, SplitTally, questions_by_page
from starter_kit.data.synthetic.generation import write_page
from starter_kit.data.synthetic.providers import Provider, all_names, providers

ESCROW = "escrow"
ESCROW_FILE = "escrow.json"
QUESTIONS_A_PAGE = (3,)

Documents = dict[str, list[tuple[Page, list[Question]]]]  # by provider


class CanarySettings(BaseModel):
    """How many canaries there are, and of what size.

    Attributes:
        canaries: All of them, of whom about half are released.
        pages: Of each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    canaries: int = Field(default=400, ge=LEAST_CANARIES, le=1000)
    pages: int = Field(default=4, ge=1, le=20)


def add_canaries(
    source: Path,
    folder_public: Path,
    folder_escrow: Path,
    settings: CanarySettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Copy the data folder `source` with the winners among its training providers; write all canaries and the escrow.

    Returns the summary of the escrow's data: the released data has no list of its canaries.

    Raises:
        ProblemError: (`E_AUDIT_CANARIES`) The data leaves too few names. (`E_DATASET_FOLDER`) The
            output is inside the source. (`E_DATASET_FORMAT`) It can't be read, or has
            no clients.
    """
    if folder_public.resolve().is_relative_to(source.resolve()):
        raise ProblemError.of(
            ErrorCode.DATASET_FOLDER,
            where=str(source),
            expected="an output folder that isn't inside the data that is copied",
            found="one inside it",
            next_step="Choose another folder.",
        )
    training = Dataset(source, "train")
    drawn = _canaries(training, settings)
    if not training.info.clients:
        raise malformed(source / "dataset.json", "clients", "none")
    shutil.copytree(source, folder_public, dirs_exist_ok=True)
    (folder_escrow / "images").mkdir(parents=True)
    look = secrets.randbits(128)
    documents: Documents = {}
    # Numbered as further training pages, and as few gaps tell, in an order that no coin has entered.
    first = len(training.pages)
    for number, provider in enumerate(drawn):
        for page in range(settings.pages):
            place = first + number * settings.pages + page
            written = write_page(look, folder_escrow, "train", place, provider, QUESTIONS_A_PAGE)
            documents.setdefault(provider.name, []).append(written)
        on_progress(number + 1, len(drawn))
    is_released = {provider.name: secrets.randbits(1) == 1 for provider in drawn}
    _release(training, folder_public, folder_escrow, documents, is_released)
    tally = _write_escrow(training, folder_escrow, documents, is_released)
    return ImportSummary(DatasetInfo(name="canaries"), {SPLIT: tally})


def _canaries(training: Dataset, settings: CanarySettings) -> list[Provider]:
    known = {page.provider for page in training.pages.values()}
    known |= {name for names in training.info.clients.values() for name in names}
    everyone = providers(secrets.randbits(128), len(all_names()))
    free = [provider for provider in everyone if provider.name not in known]
    if len(free) < settings.canaries:
        raise ProblemError.of(
            ErrorCode.AUDIT_CANARIES,
            expected=f"{settings.canaries} names that no provider of the data has",
            found=f"{len(free)}",
        )
    return free[: settings.canaries]


def _release(
    training: Dataset,
    folder_public: Path,
    folder_escrow: Path,
    documents: Documents,
    is_released: dict[str, bool],
) -> None:
    """Write the training split again with the winners, pages in a new order, and every winner with a client."""
    asked = questions_by_page(training)
    all_pages = [(page, asked[name]) for name, page in training.pages.items()]
    clients = {client: list(names) for client, names in training.info.clients.items()}
    draw = secrets.SystemRandom()
    for name in (name for name, coin in is_released.items() if coin):
        all_pages += documents[name]
        names = clients[draw.choice(sorted(clients))]
        names.insert(draw.randrange(len(names) + 1), name)
        for page, _ in documents[name]:
            shutil.copy2(
                folder_escrow / "images" / f"{page.page}.jpg", folder_public / "images" / f"{page.page}.jpg"
            )
    draw.shuffle(all_pages)
    write_split(
        folder_public,
        "train",
        [page for page, _ in all_pages],
        [question for _, questions in all_pages for question in questions],
    )
    write_info(folder_public, training.info.model_copy(update={"clients": clients}))


def _write_escrow(
    training: Dataset,
    folder: Path,
    documents: Documents,
    is_released: dict[str, bool],
) -> SplitTally:
    released = [name for name, coin in is_released.items() if coin]
    write_info(folder, DatasetInfo(name=f"{training.info.name}: canaries", clients={0: released}))
    with SplitWriter(folder, SPLIT) as writer:
        for pages in documents.values():
            for page, questions in pages:
                writer.add(page, questions)
    Escrow(
        data_sha256=Dataset(folder, SPLIT).sha256(),
        guesses=round(GUESS_SHARE * len(is_released)),
        is_released=is_released,
    ).write(folder / ESCROW_FILE)
    return writer.tally
