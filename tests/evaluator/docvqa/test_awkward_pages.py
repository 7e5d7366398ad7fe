"""Pages and questions that no model likes: each ends in a result."""

from pathlib import Path

import pytest
from PIL import Image

from evaluator.docvqa.dataset import DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.images import read_page
from evaluator.docvqa.page_images import MAX_PIXELS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, ScoringResult, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
from tests.evaluator.docvqa.factories import WORDS, make_model, make_tokenizer

HUGE = 20_000
PLAIN_BOX = (0.1, 0.1, 0.2, 0.2)


def truncated(path: Path) -> None:
    Image.effect_noise((400, 600), 80).convert("RGB").save(path)
    path.write_bytes(path.read_bytes()[:5_000])


def huge(path: Path) -> None:
    # Every pixel of a gray JPEG of this size would take 400 MB.
    Image.new("L", (HUGE, HUGE), 128).save(path)


def no_image(path: Path) -> None:
    pass


def no_jpeg(path: Path) -> None:
    path.write_bytes(b"%PDF-1.7")


def huge_png(path: Path) -> None:
    Image.new("1", (HUGE, HUGE)).save(path, "PNG")


def plain(path: Path) -> None:
    Image.new("RGB", (40, 60), "white").save(path)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its tokenizer. Not to be changed."""
    folder = tmp_path_factory.mktemp("reference")
    make_model().save(folder)
    make_tokenizer().save(folder)
    return folder


@pytest.mark.parametrize(
    ("make_image", "words", "question", "without_image"),
    [
        pytest.param(plain, WORDS, "What is the total?", 0, id="nothing awkward"),
        pytest.param(no_image, WORDS, "What is the total?", 1, id="no image"),
        pytest.param(no_jpeg, WORDS, "What is the total?", 1, id="a PDF for an image"),
        pytest.param(truncated, WORDS, "What is the total?", 0, id="a truncated JPEG"),
        pytest.param(huge, WORDS, "What is the total?", 0, id="20,000 × 20,000 pixels"),
        pytest.param(
            huge_png, WORDS, "What is the total?", 1, id="20,000 × 20,000 pixels that can't be reduced"
        ),
        pytest.param(
            plain, [f"w{n % 997}" for n in range(100_000)], "What is the total?", 0, id="100,000 words"
        ),
        pytest.param(plain, [""] * 3_000, "What is the total?", 0, id="empty words"),
        pytest.param(plain, [], "What is the total?", 0, id="no words"),
        pytest.param(plain, WORDS, "", 0, id="an empty question"),
        pytest.param(plain, WORDS, "?" * 200_000, 0, id="an endless question"),
        pytest.param(plain, ["x" * 100_000], "\0\ud7ff 🧾", 0, id="an endless word, odd characters"),
    ],
)
def test_an_awkward_page_ends_in_a_result(
    tmp_path: Path, reference: Path, make_image: object, words: list[str], question: str, without_image: int
) -> None:
    data = tmp_path / "data"
    (data / "images").mkdir(parents=True)
    plain(data / "images" / "ordinary_0.jpg")
    make_image(data / "images" / "awkward_0.jpg")  # type: ignore[operator]
    pages = [
        Page(page="ordinary_0", words=WORDS, boxes=[PLAIN_BOX] * len(WORDS)),
        Page(page="awkward_0", words=words, boxes=[PLAIN_BOX] * len(words)),
    ]
    asked = [
        Question(question_id=page.page, page=page.page, question=question, answers=["12.50"])
        for page in pages
    ]
    write_info(data, DatasetInfo(name="awkward"))
    write_split(data, "test", pages, asked)
    inputs = StepInputs(
        {ArtifactKind.CHECKPOINT: reference / "model.safetensors"},
        TrackRules(reference="r", test_set="t", clients=1),
        reference=reference,
        test_set=data,
    )
    findings = run_step(Step.SCORING, inputs, lambda _done, _total: None)
    assert isinstance(findings.result, ScoringResult)
    assert findings.result.questions == 2
    assert findings.detail is not None
    assert findings.detail.pages_without_image == without_image


def test_a_huge_image_looks_like_itself(tmp_path: Path) -> None:
    side = int(MAX_PIXELS**0.5)
    left = Image.new("L", (side // 2, side + 8), 255)
    for name, width in (("within.jpg", side - 16), ("beyond.jpg", side + 16)):
        image = Image.new("L", (width, side + 8), 0)
        image.paste(left, (0, 0))
        image.save(tmp_path / name)
    within, beyond = (read_page(tmp_path / name, 32) for name in ("within.jpg", "beyond.jpg"))
    assert (within - beyond).abs().max() < 0.1


def test_a_huge_progressive_image_is_rejected_rather_than_held_in_memory(tmp_path: Path) -> None:
    side = int(MAX_PIXELS**0.5) + 8
    Image.new("L", (side, side)).save(tmp_path / "page.jpg", progressive=True)
    with pytest.raises(ProblemError) as caught:
        read_page(tmp_path / "page.jpg", 32)
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert f"{side} × {side} pixels" in caught.value.problem.found
