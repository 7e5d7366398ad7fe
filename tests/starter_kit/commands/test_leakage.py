"""`pfl leakage`: what is printed and kept of a run, its audit, and what is rejected."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from evaluator.auditing.escrow import Escrow
from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.leakage.results import LeakageResult
from evaluator.leakage.statistics import Statistic
from tests.starter_kit.commands.pfl import pfl
from tests.starter_kit.pocket_data import PROVIDERS

CANARIES = 100
MODELS = ("submitted", "base")


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """The pocket data, of which every other provider was trained on; of two pages, nobody asks for anything."""
    folder = tmp_path_factory.mktemp("red") / "red"
    shutil.copytree(data, folder)
    valid = Dataset(folder, "valid")
    more = [Page(page=f"more{number}_0", provider=PROVIDERS[number], words=[], boxes=[]) for number in (0, 1)]
    for page in more:
        Image.new("RGB", (8, 8)).save(folder / "images" / f"{page.page}.jpg")
    write_split(folder, "valid", [*valid.pages.values(), *more], valid.questions)
    write_info(folder, DatasetInfo(name="pocket", clients={0: PROVIDERS[::2]}))
    return folder


@pytest.fixture(scope="module")
def escrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Canaries with a word on a tiny page each."""
    folder = tmp_path_factory.mktemp("escrow")
    (folder / "images").mkdir()
    names = [f"Canary {number}" for number in range(CANARIES)]
    pages = [
        Page(page=f"{number}_0", provider=name, words=[name], boxes=[(0, 0, 1, 1)])
        for number, name in enumerate(names)
    ]
    questions = [
        Question(question_id=page.page, page=page.page, question="What is the name?", answers=[page.provider])
        for page in pages
    ]
    for page in pages:
        Image.new("RGB", (8, 8)).save(folder / "images" / f"{page.page}.jpg")
    write_info(folder, DatasetInfo(name="canaries"))
    write_split(folder, "canaries", pages, questions)
    Escrow(
        data_sha256=Dataset(folder, "canaries").sha256(),
        guesses=20,
        is_released={name: place % 2 == 0 for place, name in enumerate(names)},
    ).write(folder / "escrow.json")
    return folder


def test_a_run_is_attacked_and_audited(
    run: Path, base: Path, red: Path, escrow: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ("--escrow", escrow, "--out", out, "--s", 5, "--features", "all")
    with_training = ("--training-answers", "--absent", "name")
    ended = pfl("leakage", run, "--base", base, "--data", red, *options, *with_training)
    # Tables fit the 80 columns of a terminal: no word is cut.
    assert "…" not in ended.stdout
    assert "12 questions about 3 members and 3 nonmembers" in ended.stdout
    assert "Not made, T_5: E_LEAKAGE_PROVIDERS" in ended.stdout
    assert f"Audit with {CANARIES} canaries" in ended.stdout
    assert "not refuted" in ended.stdout
    assert "which verifies nothing" in ended.stdout
    folder = out / "leakage"
    result = LeakageResult.model_validate_json((folder / "leakage.json").read_bytes())
    assert [(score.provider, score.is_member, score.questions) for score in result.providers] == [
        (name, place % 2 == 0, 2) for place, name in enumerate(PROVIDERS)
    ]
    # With training's answers: a member's page is asked for two, and a nonmember's page for what it doesn't have.
    reused = {(one.field, one.model): one.documents for one in result.recalls if "reused" in one.field}
    assert reused == {(f"{field} (reused)", model): 1 for field in ("name", "amount") for model in MODELS}
    # Whether this model answers anything on an empty page depends on how a processor rounds.
    assert {one.field for one in result.disclosed} <= {"name"}
    asked = "What does it answer where nonmembers' pages lack the field?" in " ".join(ended.stdout.split())
    assert asked == bool(result.disclosed)
    auc = result.strongest.measures[Statistic.AUC]
    assert auc.low <= auc.value <= auc.high
    for name in ("roc.png", "providers.png"):
        with Image.open(folder / name) as plot:
            assert plot.size == (960, 660)
    assert [json.loads(line) for line in (folder / "memorized.jsonl").read_text().splitlines()] == [
        example.model_dump(mode="json") for example in result.examples
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"clients": {}}, "E_LEAKAGE_LABELS"),
        ({"clients": {0: PROVIDERS}}, "E_LEAKAGE_PROVIDERS"),
    ],
)
def test_data_that_has_no_two_kinds_of_providers_is_rejected(
    run: Path, base: Path, red: Path, tmp_path: Path, change: dict[str, object], code: str
) -> None:
    folder = shutil.copytree(red, tmp_path / "data")
    (folder / "dataset.json").write_text(json.dumps({"name": "pocket", **change}))
    ended = pfl("leakage", run, "--base", base, "--data", folder, "--no-memorization", status=2)
    assert code in ended.stderr


def test_a_field_that_training_never_asks_for_is_rejected(run: Path, base: Path, red: Path) -> None:
    ended = pfl("leakage", run, "--base", base, "--data", red, "--absent", "tax", status=2)
    assert "--absent" in ended.stderr
    assert "expected: a field that the train split's questions name" in ended.stderr


def test_features_that_no_attack_sees_are_rejected(run: Path, base: Path, red: Path) -> None:
    ended = pfl("leakage", run, "--base", base, "--data", red, "--features", "G1+G9", status=2)
    assert "expected: some of ACC, G1, G2, G3, G4, joined by +, or all" in ended.stderr


def test_a_wrong_escrow_file_is_rejected(run: Path, base: Path, red: Path, tmp_path: Path) -> None:
    (tmp_path / "escrow.json").write_text("{}")
    options = ("--no-memorization", "--out", tmp_path / "out", "--escrow", tmp_path)
    ended = pfl("leakage", run, "--base", base, "--data", red, *options, status=2)
    assert "E_AUDIT_ESCROW" in ended.stderr
