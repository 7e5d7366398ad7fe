from pathlib import Path

import pytest
from PIL import Image

from evaluator.docvqa.dataset import Dataset, Page
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.inspection import inspect_folder
from starter_kit.data.phrasings import RECEIPT_PHRASINGS
from starter_kit.data.receipts import ReceiptSettings, import_receipts
from starter_kit.data.summary import Finding, ImportSummary
from tests.starter_kit.data.sources import COMPANIES, ReceiptFolder, sound_receipts

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "sroie"


def run(source: Path, out: Path, **settings: int) -> ImportSummary:
    return import_receipts(source, out / "public", out / "secret", ReceiptSettings.model_validate(settings))


def splits(out: Path) -> list[Dataset]:
    return [
        Dataset(out / "public", "train"),
        Dataset(out / "public", "valid"),
        Dataset(out / "secret", "test"),
    ]


def all_pages(out: Path) -> list[Page]:
    return [page for dataset in splits(out) for page in dataset.pages.values()]


@pytest.fixture
def source(tmp_path: Path) -> ReceiptFolder:
    return sound_receipts(tmp_path / "source")


def page_of(out: Path, company: str) -> Page:
    """The only page of a company with one receipt."""
    (page,) = [page for page in all_pages(out) if page.provider == company]
    return page


def test_sound_receipts_become_two_data_folders(source: ReceiptFolder, tmp_path: Path) -> None:
    summary = run(source.path, tmp_path)
    assert {split: tally.pages for split, tally in summary.splits.items()} == {
        "train": 33,
        "valid": 5,
        "test": 10,
    }
    assert sum(summary.clients.values()) == len(summary.splits["train"].pages_by_provider)
    for folder in ("public", "secret"):
        assert inspect_folder(tmp_path / folder)[1] == []
    for dataset in splits(tmp_path):
        assert len(dataset.questions) == 4 * len(dataset.pages)
        assert all(question.question in RECEIPT_PHRASINGS[question.key] for question in dataset.questions)


def test_held_out_splits_have_seen_and_unseen_providers(source: ReceiptFolder, tmp_path: Path) -> None:
    summary = run(source.path, tmp_path)
    for split in ("valid", "test"):
        assert 0 < summary.seen_providers(split) < len(summary.splits[split].pages_by_provider)


def test_test_images_lie_in_the_secret_folder_only(source: ReceiptFolder, tmp_path: Path) -> None:
    run(source.path, tmp_path)
    public, secret = (
        {path.stem for path in (tmp_path / name / "images").iterdir()} for name in ("public", "secret")
    )
    assert secret == splits(tmp_path)[2].pages.keys()
    assert not public & secret
    assert len(public | secret) == 48


def test_the_same_seed_gives_the_same_data_set(source: ReceiptFolder, tmp_path: Path) -> None:
    run(source.path, tmp_path / "a")
    run(source.path, tmp_path / "b")
    run(source.path, tmp_path / "c", seed=8)
    a, b, c = ([dataset.sha256() for dataset in splits(tmp_path / name)] for name in "abc")
    assert a == b
    assert a != c


def test_words_share_the_box_of_their_line_by_their_letters(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "ALONE", box=b"10,20,90,22,90,40,10,38,AB  CD,EF 1")
    run(source.path, tmp_path)
    page = page_of(tmp_path, "ALONE")
    assert page.words == ["AB", "CD,EF", "1"]
    # 11 letters and spaces over 80 of 100 pixels, from pixel 10; lines 20 to 40 of 200
    assert page.boxes[0] == pytest.approx((0.1, 0.1, 0.1 + 0.16 / 1.1, 0.2), abs=1e-4)
    assert page.boxes[1] == pytest.approx((0.1 + 0.32 / 1.1, 0.1, 0.1 + 0.72 / 1.1, 0.2), abs=1e-4)
    assert page.boxes[2] == pytest.approx((0.1 + 0.8 / 1.1, 0.1, 0.9, 0.2), abs=1e-4)


def test_large_images_shrink_and_boxes_stay_relative(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "ALONE", box=b"0,0,1500,0,1500,60,0,60,WIDE")
    Image.new("L", (3000, 600), 255).save(source.path / "img" / "x.jpg")
    run(source.path, tmp_path)
    page = page_of(tmp_path, "ALONE")
    assert page.boxes == [(0.0, 0.0, 0.5, 0.1)]
    (path,) = tmp_path.glob(f"*/images/{page.page}.jpg")
    with Image.open(path) as image:
        assert (image.size, image.mode) == ((1000, 200), "RGB")


def test_spellings_of_a_company_join_under_the_commonest(source: ReceiptFolder, tmp_path: Path) -> None:
    for number, spelling in enumerate(["AH KOW S/B", "AH KOW SDN BHD", "AH KOW SDN. BHD.", "Ah Kow Sdn Bhd"]):
        source.add(f"x{number}", spelling)
    source.add("x9", "AH KOW SDN BHD")
    summary = run(source.path, tmp_path)
    assert [page.provider for page in all_pages(tmp_path)].count("AH KOW SDN BHD") == 5
    assert summary.findings.counts[Finding.JOINED_SPELLINGS] == 1


def test_a_company_with_one_receipt_is_a_provider_and_is_counted(
    source: ReceiptFolder, tmp_path: Path
) -> None:
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.ONE_DOCUMENT] == 18
    assert {page.provider for page in all_pages(tmp_path)} == set(COMPANIES)


@pytest.mark.parametrize("image", [b"", b"not an image", b"\xff\xd8\xff\xe0\x00\x10JFIF"])
def test_a_broken_image_leaves_its_page_out(source: ReceiptFolder, tmp_path: Path, image: bytes) -> None:
    source.add("x", "ALONE", image=image)
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.BROKEN_IMAGE] == 1
    assert summary.findings.examples[Finding.BROKEN_IMAGE] == ["x.jpg"]
    assert len(all_pages(tmp_path)) == 48


def test_a_truncated_image_leaves_its_page_out(source: ReceiptFolder, tmp_path: Path) -> None:
    whole = (source.path / "img" / "000.jpg").read_bytes()
    source.add("x", "ALONE", image=whole[: len(whole) // 2])
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.BROKEN_IMAGE] == 1
    assert len(all_pages(tmp_path)) == 48


def test_a_missing_image_leaves_its_page_out(source: ReceiptFolder, tmp_path: Path) -> None:
    (source.path / "img" / "000.jpg").unlink()
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.MISSING_IMAGE] == 1
    assert len(all_pages(tmp_path)) == 47


@pytest.mark.parametrize("box", [b"", b"\n\n", b"1,2,3,4,5,6,7,8,\n1,2,3,4,5,6,7,8,  \n"])
def test_an_empty_transcription_keeps_its_page_without_words(
    source: ReceiptFolder, tmp_path: Path, box: bytes
) -> None:
    source.add("x", "ALONE", box=box)
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.EMPTY_OCR] == 1
    assert summary.findings.counts[Finding.ANSWER_NOT_IN_OCR] == 4
    assert page_of(tmp_path, "ALONE").words == []


def test_a_missing_transcription_keeps_its_page_without_words(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "ALONE")
    (source.path / "box" / "x.csv").unlink()
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.MISSING_BOXES] == 1
    assert page_of(tmp_path, "ALONE").words == []


def test_malformed_lines_are_left_out_and_counted(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "ALONE", box=b"1,2,3,4,5,6,7,8,good\n1,2,3,4,5,6,7,8\n1,2,x,4,5,6,7,8,bad\nno numbers\n")
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.BAD_BOX_LINE] == 3
    assert summary.findings.examples[Finding.BAD_BOX_LINE][0] == "x.csv, line 2"
    assert page_of(tmp_path, "ALONE").words == ["good"]


def test_a_missing_key_is_not_asked_for(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", key={"company": "ALONE", "date": " ", "total": 9})
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.MISSING_KEY] == 3
    page = page_of(tmp_path, "ALONE").page
    asked = [q.key for dataset in splits(tmp_path) for q in dataset.questions if q.page == page]
    assert asked == ["company"]


def test_a_receipt_without_company_is_left_out(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", company=None)
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.NO_COMPANY] == 1
    assert len(all_pages(tmp_path)) == 48


@pytest.mark.parametrize("key", [b"", b"{", b"[]", b'"company"', b"[" * 100_000, b'{"company": "\\ud800"}'])
def test_an_unreadable_key_file_leaves_its_receipt_out(
    source: ReceiptFolder, tmp_path: Path, key: bytes
) -> None:
    source.add("x", key=key)
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.BAD_KEY_FILE] == 1
    assert len(all_pages(tmp_path)) == 48


def test_latin_1_bytes_and_letters_beyond_ascii_are_kept(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "CAFÉ", box="1,2,30,2,30,8,1,8,CAFÉ".encode("latin-1"))
    source.add("y", "咖啡店", box="1,2,30,2,30,8,1,8,咖啡店".encode())
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.NOT_UTF8] == 1
    assert summary.findings.examples[Finding.NOT_UTF8] == ["box/x.csv"]
    assert summary.findings.counts[Finding.NON_ASCII] == 2
    assert page_of(tmp_path, "CAFÉ").words == ["CAFÉ"]
    assert page_of(tmp_path, "咖啡店").words == ["咖啡店"]


def test_boxes_beyond_the_page_are_clipped_and_counted(source: ReceiptFolder, tmp_path: Path) -> None:
    source.add("x", "ALONE", box=b"-10,20,150,20,150,300,-10,300,WIDE")
    summary = run(source.path, tmp_path)
    assert summary.findings.counts[Finding.CLIPPED_BOX] == 1
    assert page_of(tmp_path, "ALONE").boxes == [(0.0, 0.1, 1.0, 1.0)]


def test_an_answer_that_is_not_in_the_transcription_is_kept_and_counted(
    source: ReceiptFolder, tmp_path: Path
) -> None:
    source.add(
        "x", key={"company": "ALONE", "date": "31/12/1999", "address": "1, JALAN SATU,IPOH", "total": "9.00"}
    )
    summary = run(source.path, tmp_path)
    assert summary.findings.examples[Finding.ANSWER_NOT_IN_OCR] == ["x: company", "x: date"]


def test_a_folder_in_another_layout_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        run(tmp_path, tmp_path / "out")
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert caught.value.problem.found == "no folder img"


def test_too_few_companies_for_the_clients_are_rejected(tmp_path: Path) -> None:
    folder = ReceiptFolder(tmp_path / "source")
    folder.add("x")
    with pytest.raises(ProblemError, match="at least 10 training providers"):
        run(folder.path, tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason=f"the SROIE receipts are not at {REAL}")
def test_the_real_receipts_import_without_loss(tmp_path: Path) -> None:
    summary = run(REAL, tmp_path)
    receipts = len(list((REAL / "img").glob("*.jpg")))
    assert sum(tally.pages for tally in summary.splits.values()) == receipts
    assert len(summary.clients) == 10
    assert summary.findings.counts[Finding.JOINED_SPELLINGS] > 0
    for folder in ("public", "secret"):
        assert inspect_folder(tmp_path / folder)[1] == []
