import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import Budget, Prediction, predict
from evaluator.docvqa.vt5 import VT5
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer

TOKENIZER = make_tokenizer()
MODEL = make_model()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_dataset(tmp_path_factory.mktemp("data") / "folder")


@pytest.fixture(scope="module")
def one_by_one(dataset: Dataset) -> list[Prediction]:
    return [
        prediction
        for question in dataset.questions
        for prediction in predict(MODEL, TOKENIZER, dataset, questions=[question])
    ]


def assert_same(found: list[Prediction], expected: list[Prediction]) -> None:
    assert [(p.question_id, p.answer) for p in found] == [(p.question_id, p.answer) for p in expected]
    assert [p.confidence for p in found] == pytest.approx([p.confidence for p in expected], rel=1e-4)


@pytest.mark.parametrize("token_budget", [None, 1, 150, 10_000])
def test_answers_do_not_depend_on_the_batches(
    dataset: Dataset, one_by_one: list[Prediction], token_budget: int | None
) -> None:
    budget = Budget(token_budget, 5, 3) if token_budget else None
    assert_same(predict(MODEL, TOKENIZER, dataset, budget=budget), one_by_one)


def test_answers_do_not_depend_on_how_many_pages_are_held(
    dataset: Dataset, one_by_one: list[Prediction]
) -> None:
    assert_same(predict(MODEL, TOKENIZER, dataset, budget=Budget(3_000, 64, pages=2)), one_by_one)


def test_answers_differ_between_questions(one_by_one: list[Prediction]) -> None:
    assert len({(prediction.answer, prediction.confidence) for prediction in one_by_one}) > 1


def test_predictions_are_exactly_repeatable(dataset: Dataset) -> None:
    assert predict(MODEL, TOKENIZER, dataset) == predict(MODEL, TOKENIZER, dataset)


def test_chosen_questions_are_answered_in_their_order(dataset: Dataset, one_by_one: list[Prediction]) -> None:
    chosen = [7, 0, 4]
    found = predict(MODEL, TOKENIZER, dataset, questions=[dataset.questions[index] for index in chosen])
    assert_same(found, [one_by_one[index] for index in chosen])


def test_no_questions_have_no_answers(dataset: Dataset) -> None:
    assert predict(MODEL, TOKENIZER, dataset, questions=[]) == []


def test_every_page_image_is_encoded_once(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0
    page_features = VT5.page_features

    def counting(model: VT5, pixel_values: object) -> object:
        nonlocal encoded
        encoded += len(pixel_values)  # type: ignore[arg-type]
        return page_features(model, pixel_values)  # type: ignore[arg-type]

    monkeypatch.setattr(VT5, "page_features", counting)
    predict(MODEL, TOKENIZER, dataset)
    assert encoded == len(dataset.pages)


def test_progress_is_reported_after_every_pass_and_ends_complete(dataset: Dataset) -> None:
    reported: list[tuple[int, int]] = []
    predict(
        MODEL,
        TOKENIZER,
        dataset,
        budget=Budget(1, 1, 256),
        on_progress=lambda done, total: reported.append((done, total)),
    )
    pages, questions = len(dataset.pages), len(dataset.questions)
    assert reported == [(0, questions)] * pages + [(done, questions) for done in range(1, questions + 1)]


def test_a_model_in_training_stays_in_training(dataset: Dataset, one_by_one: list[Prediction]) -> None:
    model = make_model().train()
    assert_same(predict(model, TOKENIZER, dataset), one_by_one)
    assert model.training
