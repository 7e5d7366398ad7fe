"""Conversion of a data folder into the competition's files, so that the competition's own kit can train on it.

What the layout has no place for is left behind: the questions' keys, and answers beyond the first.
"""

import json
import shutil
from itertools import chain
from pathlib import Path

from evaluator.docvqa.dataset import Dataset, read_info
from evaluator.docvqa.imdb import MEMBER, NONMEMBER, ImdbQuestion, write_imdb
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import FOR_ATTACKS, malformed, splits_of
from starter_kit.data.summary import Finding, Findings, ImportSummary, SplitTally

# Split -> what the competition calls it, and the file of one that isn't in training.
SET_NAMES = {"train": "train", "valid": "val", "test": "test"}
RED = "red_test"
FILES = {"valid": "imdb_val.npy", "test": "imdb_test.npy", "red": "red_test.npy"}


def export_imdb(folder: Path, out: Path, on_progress: OnProgress = ignore_progress) -> ImportSummary:
    """Write the splits that `folder` has: question files and indexes to `out/imdb`, images to `out/images`.

    A split `red-<name>` becomes `SaTML_PMIA_<name>.npy`, whose rows say who is a member.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if `folder` is no data folder or has no split, an image is missing, or a
            training page's provider is no client's.
    """
    info = read_info(folder)
    datasets = [Dataset(folder, split) for split in splits_of(folder)]
    members = {provider for names in info.clients.values() for provider in names}
    total, done = sum(len(dataset.pages) for dataset in datasets), 0
    findings = Findings()
    providers: dict[str, dict[str, str]] = {}
    (out / "imdb").mkdir(parents=True, exist_ok=True)
    (out / "images").mkdir(exist_ok=True)
    for dataset in datasets:
        rows = _rows_by_provider(dataset, findings)
        if dataset.split == "train":
            _write_training(rows, info.clients, out / "imdb")
        else:
            _write_held_out(dataset.split, rows, members, out / "imdb")
        for page in dataset.pages.values():
            providers[page.document] = {"provider": page.provider}
            _copy_image(dataset.image_path(page.page), out / "images")
            done += 1
            on_progress(done, total)
    _write_json(out / "imdb" / "doc2provider.json", providers)
    return ImportSummary(info, {dataset.split: SplitTally.of(dataset) for dataset in datasets}, findings)


def _rows_by_provider(dataset: Dataset, findings: Findings) -> dict[str, list[ImdbQuestion]]:
    rows: dict[str, list[ImdbQuestion]] = {}
    for provider, questions in dataset.questions_by_provider().items():
        for question in questions:
            if len(question.answers) > 1:
                findings.note(Finding.MORE_ANSWERS, question.question_id)
            page = dataset.pages[question.page]
            rows.setdefault(provider, []).append(
                ImdbQuestion.model_validate(
                    {
                        "question": question.question,
                        "answers": question.answers,
                        "image_name": page.page,
                        "ocr_tokens": page.words,
                        "ocr_normalized_boxes": page.boxes,
                        "question_id": question.question_id,
                        "set_name": SET_NAMES.get(dataset.split, RED),
                    }
                )
            )
    return rows


def _write_training(rows: dict[str, list[ImdbQuestion]], clients: dict[int, list[str]], folder: Path) -> None:
    """One file a client, and the index that says which of its rows are which provider's."""
    homeless = rows.keys() - {provider for providers in clients.values() for provider in providers}
    if homeless:
        raise malformed(
            "dataset.json, clients", "every training provider with a client", f"none for {min(homeless)}"
        )
    data_points: dict[str, dict[str, list[int]]] = {}
    for client, providers in clients.items():
        own: list[ImdbQuestion] = []
        index: dict[str, list[int]] = {}
        for provider in providers:
            # A provider without questions must not be listed: the competition's loader takes [] for everything.
            if provider in rows:
                index[provider] = list(range(len(own) + 1, len(own) + 1 + len(rows[provider])))
                own += rows[provider]
        data_points[f"client_{client}"] = index
        write_imdb(folder / f"imdb_train_client_{client}.npy", "train", own)
    _write_json(folder / "data_points.json", data_points)


def _write_held_out(split: str, rows: dict[str, list[ImdbQuestion]], members: set[str], folder: Path) -> None:
    """The file of a split that isn't in training. In those of the red-team challenge, a row names its provider."""
    name = FILES.get(split)
    if name is None:
        name = f"SaTML_PMIA_{split.removeprefix(FOR_ATTACKS)}.npy"
        for provider, questions in rows.items():
            known = {"provider": provider, "label": MEMBER if provider in members else NONMEMBER}
            rows[provider] = [question.model_copy(update=known) for question in questions]
    write_imdb(folder / name, SET_NAMES.get(split, RED), list(chain.from_iterable(rows.values())))


def _copy_image(source: Path, folder: Path) -> None:
    try:
        shutil.copyfile(source, folder / source.name)
    except FileNotFoundError as error:
        raise malformed(source, "an image for every page", "none") from error


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
