"""The data manifest: which documents every client's providers have to train on, as one SHA-256.

Everybody who has the organizers' data gets the same one, whatever the order of lines, the dates of files or the name of
the data set are. It depends on clients, providers, documents, pages with their words and boxes, and questions with
their answers and keys; not on the pixels of the pages, which are large and may be stored in several ways.

A page's hash is SHA-256 of canonical JSON (ASCII, no spaces) of [page, words, questions], followed by a newline and its
boxes as little-endian float64, where questions are [id, question, answers, key] sorted by id. The manifest is SHA-256
of "pfl-docvqa-manifest/1", a newline and canonical JSON of {client: {provider: {document: {page: hash}}}} with sorted
keys. A provider that is listed without pages has no documents; a page of a provider that no client has isn't part of
it.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from evaluator.docvqa.dataset import Dataset, Page, Question

SCHEMA = "pfl-docvqa-manifest/1"


def manifest_sha256(dataset: Dataset) -> str:
    """Return the hash of the manifest of `dataset`, the training split of a data folder, in hexadecimal.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) The folder can't be read.
    """
    questions: dict[str, list[Question]] = defaultdict(list)
    for question in dataset.questions:
        questions[question.page].append(question)
    providers: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for name, page in dataset.pages.items():
        providers[page.provider][page.document][name] = _page_sha256(page, questions[name])
    clients = {
        str(client): {provider: providers[provider] for provider in listed}
        for client, listed in dataset.info.clients.items()
    }
    return hashlib.sha256(f"{SCHEMA}\n{_canonical(clients)}".encode()).hexdigest()


def _page_sha256(page: Page, questions: Sequence[Question]) -> str:
    rows = sorted([one.question_id, one.question, one.answers, one.key] for one in questions)
    text = _canonical([page.page, page.words, rows])
    return hashlib.sha256(f"{text}\n".encode() + np.array(page.boxes, "<f8").tobytes()).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
