import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from evaluator.docvqa.inference import Budget, predict
from evaluator.docvqa.vt5 import VT5
from evaluator.scoring import predictions as module
from evaluator.scoring.predictions import Answered, Scoring, answer_all
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer
from tests.services.forked import server

PAGES = 12
ONE_PAGE = Budget(tokens=500, rows=8, pages=1)  # a shard for each page
KILLS = 8


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Scoring:
    folder = tmp_path_factory.mktemp("scoring")
    make_model().save(folder / "reference")
    make_tokenizer().save(folder / "reference")
    dataset = make_dataset(folder / "data", pages=PAGES)
    return Scoring(folder / "reference" / "model.safetensors", folder / "reference", dataset)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `expected` has stored its shards. Not to be changed."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def expected(scoring: Scoring, finished: Path) -> Answered:
    return answer_all(scoring, kept=finished, budget=ONE_PAGE)


@pytest.fixture
def kept(expected: Answered, finished: Path, tmp_path: Path) -> Path:
    """A copy of all shards of the finished scoring."""
    return shutil.copytree(finished, tmp_path / "kept")


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that have loaded their libraries in place of spawned ones: both get copies of all that they need."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: {"spawn": server}[method])


def shard_files(kept: Path) -> list[Path]:
    return sorted(kept.glob("*/shard-*.json"))


def test_answers_are_those_of_a_single_pass_in_the_order_of_the_questions(
    scoring: Scoring, expected: Answered
) -> None:
    model = VT5.from_checkpoint(scoring.reference, scoring.checkpoint)
    whole = predict(model, make_tokenizer(), scoring.dataset)
    assert [p.question_id for p in expected.predictions] == [p.question_id for p in whole]
    assert [p.answer for p in expected.predictions] == [p.answer for p in whole]
    assert (expected.without_image, expected.precision) == ([], "float32")


def test_killed_at_any_moment_it_resumes_and_gives_the_same(
    scoring: Scoring, expected: Answered, tmp_path: Path
) -> None:
    def begin(kept: Path) -> multiprocessing.process.BaseProcess:
        process = server.Process(
            target=answer_all, args=(scoring,), kwargs={"kept": kept, "budget": ONE_PAGE}
        )
        process.start()
        return process

    moments = random.Random(os.urandom(8))
    kept = tmp_path / "kept-0"
    for kill in range(KILLS):
        finished_before = len(shard_files(kept))
        process = begin(kept)
        enough = moments.randrange(finished_before, PAGES)
        while len(shard_files(kept)) < enough and process.exitcode is None:
            process.join(0.001)
        # Anywhere between two shards.
        process.join(moments.uniform(0, 0.05))
        process.kill()
        process.join()
        finished = {path: path.stat().st_mtime_ns for path in shard_files(kept)}
        assert len(finished) >= enough
        if kill % 3 < 2 and len(finished) < PAGES:
            continue  # kill the same scoring again
        assert answer_all(scoring, kept=kept, budget=ONE_PAGE) == expected
        assert finished.items() <= {path: path.stat().st_mtime_ns for path in shard_files(kept)}.items()
        kept = tmp_path / f"kept-{kill + 1}"
    assert answer_all(scoring, kept=kept, budget=ONE_PAGE) == expected


def test_progress_begins_where_the_finished_shards_end(
    scoring: Scoring, expected: Answered, kept: Path
) -> None:
    for path in shard_files(kept)[4:]:
        path.unlink()
    reported: list[tuple[int, int]] = []
    again = answer_all(
        scoring,
        kept=kept,
        budget=ONE_PAGE,
        on_progress=lambda done, total: reported.append((done, total)),
    )
    assert again == expected
    assert reported[0] == (8, 2 * PAGES)
    assert reported[-1] == (2 * PAGES, 2 * PAGES)
    assert reported == sorted(reported)


def test_a_finished_scoring_needs_no_model(
    scoring: Scoring, expected: Answered, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VT5", None)
    assert answer_all(scoring, kept=kept, budget=ONE_PAGE) == expected


def test_broken_shards_and_one_in_the_place_of_another_are_answered_again(
    scoring: Scoring, expected: Answered, finished: Path, kept: Path
) -> None:
    files, whole = shard_files(kept), shard_files(finished)
    for file, content in zip(
        files[:4], (b"", b'{"predictions": [', b"{}", files[5].read_bytes()), strict=True
    ):
        file.write_bytes(content)
    assert answer_all(scoring, kept=kept, budget=ONE_PAGE) == expected
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in whole]


def test_what_was_kept_of_another_scoring_is_not_used(scoring: Scoring, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    changed = make_model(num_layers=2)
    changed.language_backbone.shared.weight.data.mul_(-1)
    changed.save(tmp_path / "saved")
    (tmp_path / "saved" / "model.safetensors").rename(other)
    reported: list[int] = []
    answer_all(
        Scoring(other, scoring.reference, scoring.dataset),
        kept=kept,
        budget=ONE_PAGE,
        on_progress=lambda done, _: reported.append(done),
    )
    assert reported[0] == 0
    answer_all(scoring, kept=kept, on_progress=lambda done, _: reported.append(done))
    assert reported.count(0) >= 2  # another budget, other rounding


def test_another_image_is_another_scoring(scoring: Scoring, tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", pages=3)
    mine = Scoring(scoring.checkpoint, scoring.reference, dataset)
    before = answer_all(mine, kept=tmp_path / "kept", budget=ONE_PAGE)
    dataset.image_path("doc1_0").unlink()
    after = answer_all(mine, kept=tmp_path / "kept", budget=ONE_PAGE)
    assert (before.without_image, after.without_image) == ([], ["doc1_0"])


@pytest.mark.usefixtures("forked")
def test_several_devices_share_a_scoring(scoring: Scoring, expected: Answered, tmp_path: Path) -> None:
    reported: list[int] = []
    shared = answer_all(
        scoring,
        kept=tmp_path,
        devices=["cpu", "cpu"],
        budget=ONE_PAGE,
        on_progress=lambda done, _: reported.append(done),
    )
    assert shared == expected
    assert reported[0] == 0
    assert reported == sorted(reported)


@pytest.mark.usefixtures("forked")
def test_a_device_that_fails_ends_the_scoring(scoring: Scoring, kept: Path) -> None:
    for path in shard_files(kept)[:2]:
        path.unlink()
    with pytest.raises(RuntimeError, match="scoring on meta ended with exit code 1"):
        answer_all(scoring, kept=kept, devices=["cpu", "meta"], budget=ONE_PAGE)


def test_shards_are_forgotten_after_two_weeks(scoring: Scoring, kept: Path) -> None:
    old, young = kept / "old", kept / "young"
    for folder, age_days in ((old, 15), (young, 13)):
        folder.mkdir()
        then = time.time() - age_days * 24 * 3600
        os.utime(folder, (then, then))
    answer_all(scoring, kept=kept, budget=ONE_PAGE)
    assert (old.exists(), young.exists()) == (False, True)
