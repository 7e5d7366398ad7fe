from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaluator.docvqa.dataset import Dataset, Page, Question
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.docile import DocileSettings, import_docile
from starter_kit.data.inspection import inspect_folder
from starter_kit.data.phrasings import DOCILE_PHRASINGS
from starter_kit.data.summary import Finding, ImportSummary
from tests.starter_kit.data.sources import SIZE, DocileFolder, ocr_page


def run(source: DocileFolder, out: Path, **settings: Any) -> ImportSummary:
    chosen = DocileSettings(**({"clients": 2} | settings))
    return import_docile(source.path, out / "public", out / "secret", chosen)


def everything(out: Path) -> tuple[dict[str, Page], list[Question]]:
    """All pages and questions, whichever split they are in."""
    pages: dict[str, Page] = {}
    questions: list[Question] = []
    for folder, split in (("public", "train"), ("public", "valid"), ("secret", "test")):
        dataset = Dataset(out / folder, split)
        pages |= dataset.pages
        questions += dataset.questions
    return pages, questions


@pytest.fixture
def source(tmp_path: Path) -> DocileFolder:
    folder = DocileFolder(tmp_path / "source")
    for number in range(8):
        folder.add(
            f"d{number}", {"document_id": f"INV-{number}"}, vendor=f"Vendor {number % 4}", cluster=number
        )
    return folder


def test_documents_become_two_data_folders_with_a_question_per_field(
    source: DocileFolder, tmp_path: Path
) -> None:
    source.add("two", {"document_id": "7"}, {"amount_due": "12.50\nUSD"}, vendor="ACME Inc.", cluster=50)
    summary = run(source, tmp_path)
    pages, questions = everything(tmp_path)
    assert len(pages) == 10
    for folder in ("public", "secret"):
        assert inspect_folder(tmp_path / folder)[1] == []
    asked = {(question.page, question.key): question for question in questions}
    assert asked["two_1", "amount_due"].answers == ["12.50 USD"]
    assert asked["two_0", "vendor_name"].answers == ["ACME Inc."]
    assert all(question.question in DOCILE_PHRASINGS[question.key] for question in questions)
    assert pages["two_1"].provider == "ACME Inc."
    assert (pages["two_1"].words, pages["two_1"].boxes[1]) == (["12.50", "USD"], (0.1, 0.11, 0.3, 0.12))
    assert sum(summary.clients.values()) == len(summary.splits["train"].pages_by_provider)
    with Image.open(next((tmp_path / "public" / "images").iterdir())) as image:
        assert image.size == (750, 1000)
    assert set(summary.findings.counts) == {Finding.ONE_DOCUMENT}


def test_a_document_without_a_vendor_belongs_to_the_only_one_of_its_cluster(
    source: DocileFolder, tmp_path: Path
) -> None:
    source.add("joined", {"document_id": "1"}, cluster=3)
    source.add("other", {"document_id": "2"}, vendor="VENDOR 0.", cluster=2)
    source.add("ambiguous", {"document_id": "3"}, cluster=2)
    source.add("unnamed", {"document_id": "4"}, cluster=99)
    source.add("nobody", {"document_id": "5"}, cluster=None)
    source.add("several", {"document_id": "6", "vendor_name": ["Vendor 1", "Another"]}, cluster=98)
    summary = run(source, tmp_path)
    pages, _ = everything(tmp_path)
    providers = {page.document: page.provider for page in pages.values()}
    assert providers["joined"] == "Vendor 3"
    assert providers["other"] == "Vendor 0"
    assert providers["ambiguous"] == "layout cluster 2"
    assert providers["unnamed"] == "layout cluster 99"
    assert providers["several"] == "Vendor 1"
    assert "nobody" not in providers
    counted = {
        Finding.VENDOR_OF_CLUSTER: 1,
        Finding.CLUSTER_AS_PROVIDER: 2,
        Finding.NO_VENDOR: 1,
        Finding.SEVERAL_VENDORS: 1,
        Finding.JOINED_SPELLINGS: 1,
    }
    assert counted.items() <= summary.findings.counts.items()


def test_what_cannot_be_asked_or_shown_is_counted(source: DocileFolder, tmp_path: Path) -> None:
    source.add("odd", {"date_issue": ["1 May", "2 May"], "novelty": "x", "document_id": ""}, vendor="Odd")
    source.add("same", {"document_id": ["A 1", "A1"]}, vendor="Same")
    source.add("misread", {"document_id": "Z"}, vendor="Misread")
    source.write("ocr/misread.json", {"pages": [ocr_page(0, ["2"])]})
    source.add("silent", {"document_id": "9"}, vendor="Silent")
    (source.path / "ocr" / "silent.json").unlink()
    source.add("wide", {"document_id": "9"}, vendor="Wide")
    source.change("wide", page_sizes_at_200dpi=[(80, 60)])
    source.add("broken", {"document_id": "9"}, vendor="Broken")
    (source.path / "pdfs" / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    source.add("unlabeled", {})
    summary = run(source, tmp_path)
    pages, questions = everything(tmp_path)
    assert {"wide_0", "broken_0", "unlabeled_0"}.isdisjoint(pages)
    assert pages["silent_0"].words == []
    asked = {(question.page, question.key): question.answers for question in questions}
    assert ("odd_0", "date_issue") not in asked
    assert asked["same_0", "document_id"] == ["A 1", "A1"]
    counted = {
        Finding.SEVERAL_VALUES: 1,
        Finding.UNKNOWN_FIELD: 1,
        Finding.MISSING_KEY: 1,
        Finding.ANSWER_NOT_IN_OCR: 4,
        Finding.MISSING_BOXES: 1,
        Finding.OTHER_SHAPE: 1,
        Finding.BROKEN_IMAGE: 1,
        Finding.NO_FIELDS: 1,
    }
    assert counted.items() <= summary.findings.counts.items()


def test_stored_page_images_are_read_instead_of_the_pdf(source: DocileFolder, tmp_path: Path) -> None:
    stored = source.path / "cached_images" / "d0"
    stored.mkdir(parents=True)
    Image.new("RGB", SIZE, "black").save(stored / "0.png")
    run(source, tmp_path)
    (image,) = tmp_path.glob("*/images/d0_0.jpg")
    with Image.open(image) as page:
        assert page.size == SIZE
        assert page.getpixel((5, 5)) == (0, 0, 0)


def test_only_the_documents_of_a_split_are_imported_if_one_is_named(
    source: DocileFolder, tmp_path: Path
) -> None:
    source.write("val.json", ["d1", "d3", "d4", "d6"])
    run(source, tmp_path, split="val")
    assert everything(tmp_path)[0].keys() == {"d1_0", "d3_0", "d4_0", "d6_0"}
    source.write("val.json", ["d1", "d99"])
    with pytest.raises(ProblemError) as rejected:
        run(source, tmp_path / "again", split="val")
    assert rejected.value.problem.found == "d99"


@pytest.mark.parametrize(
    ("place", "content", "says"),
    [
        ("annotations/d0.json", {"metadata": {}}, "metadata.page_count"),
        ("ocr/d0.json", {"pages": [ocr_page(0, []), ocr_page(1, [])]}, "pages 0, 1"),
        ("ocr/d0.json", [], "an object"),
    ],
)
def test_a_damaged_file_is_rejected_by_name(
    source: DocileFolder, tmp_path: Path, place: str, content: object, says: str
) -> None:
    source.write(place, content)
    with pytest.raises(ProblemError) as rejected:
        run(source, tmp_path)
    problem = rejected.value.problem
    assert (problem.code, problem.where) == (ErrorCode.DATASET_FORMAT, str(source.path / place))
    assert says in f"{problem.expected} {problem.found}"


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"page_count": 2}, "page_count is 2, page_sizes_at_200dpi has 1"),
        ({"page_count": 2, "page_sizes_at_200dpi": [SIZE, SIZE]}, "1"),
    ],
)
def test_sources_that_state_other_numbers_of_pages_are_rejected(
    source: DocileFolder, tmp_path: Path, metadata: dict[str, object], found: str
) -> None:
    source.change("d0", **metadata)
    with pytest.raises(ProblemError) as rejected:
        run(source, tmp_path)
    assert found in rejected.value.problem.found
