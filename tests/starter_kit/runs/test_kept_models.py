"""Models of earlier rounds that a run keeps, and the questions by which rounds are compared."""

from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, TrackRules
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.evaluation.steps import check_run
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    best_round,
    read_metrics,
    read_summary,
)
from starter_kit.reporting.report import write_report
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.kept_models import CHECKPOINTS
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.training_runs import trained

# Steps that are large enough to change answers.
CHANGES = [
    "rounds=4",
    "clients_per_round=1",
    "local.learning_rate=0.05",
    "checkpoints={every: 2, best: true}",
]
RULES = TrackRules(reference="local", test_set="local", clients=3, max_rounds=10)


def names(run: RunFolder) -> list[str]:
    return sorted(path.name for path in (run.path / CHECKPOINTS).iterdir())


def test_models_of_earlier_rounds_are_run_folders_of_their_own(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = [*CHANGES, "evaluate_every=1"]
    run = trained("fedavg", base, data, tmp_path / "run", changes)
    metrics = read_metrics(run.path / METRICS)
    best = max(metrics, key=lambda line: line.anls or 0)
    assert read_summary(run.path / SUMMARY).best_round == best.round
    assert names(run) == [f"best-round-{best.round}", "round-2", "round-4"]
    for name in names(run):
        number = int(name.rpartition("-")[2])
        kept = RunFolder(run.path / CHECKPOINTS / name)
        assert all(outcome.accepted for outcome in check_run(kept, RULES, base))
        log = kept.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()[1:]
        assert {int(line.split(",")[0]) for line in log} == set(range(1, number + 1))
        checkpoint = kept.file(ArtifactKind.CHECKPOINT)
        found = score_checkpoint(checkpoint, base=base, data=data, split="valid", on_progress=lambda *_: None)
        assert metrics[number - 1].anls == pytest.approx(found.result.anls)
    last = RunFolder(run.path / CHECKPOINTS / "round-4")
    kind = ArtifactKind.CHECKPOINT
    assert last.file(kind).read_bytes() == run.file(kind).read_bytes()


def test_a_run_that_was_interrupted_keeps_the_same_models(base: Path, data: Path, tmp_path: Path) -> None:
    changes = [*CHANGES, "evaluate_every=1", "evaluate_questions=6"]
    whole = trained("fedavg", base, data, tmp_path / "whole", changes)
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=CutOff(4))
    run = trained("fedavg", base, data, tmp_path / "run", changes, resume=True)
    assert names(run) == names(whole)
    for name in names(run):
        file = Path(CHECKPOINTS) / name / "model.safetensors"
        assert (run.path / file).read_bytes() == (whole.path / file).read_bytes()


def test_rounds_in_between_are_scored_on_some_questions_and_the_last_on_all(
    base: Path, data: Path, tmp_path: Path
) -> None:
    some = trained("fedavg", base, data, tmp_path / "some", ["evaluate_every=1", "evaluate_questions=3"])
    whole = trained("fedavg", base, data, tmp_path / "whole", ["evaluate_every=1"])
    between, last = read_metrics(some.path / METRICS)
    assert (between.anls, between.accuracy, between.sample_questions) == (None, None, 3)
    assert between.sample_anls is not None
    assert last.anls == read_metrics(whole.path / METRICS)[-1].anls
    assert (last.sample_anls is not None, last.sample_questions) == (True, 3)
    summary = read_summary(some.path / SUMMARY)
    assert (summary.anls, summary.split, summary.sample_questions) == (last.anls, "valid", 3)
    assert some.file(ArtifactKind.CHECKPOINT).read_bytes() == whole.file(ArtifactKind.CHECKPOINT).read_bytes()
    page = write_report(some.path).read_text()
    assert "3 questions of the validation split" in page
    assert "ANLS on a sample" in page


def test_as_many_questions_as_there_are_make_no_sample(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["rounds=1", "evaluate_every=1", "evaluate_questions=100000"]
    run = trained("fedavg", base, data, tmp_path / "run", changes)
    (line,) = read_metrics(run.path / METRICS)
    assert (line.anls is not None, line.sample_anls) == (True, None)


def test_the_best_round_is_the_first_of_the_best_on_the_same_questions() -> None:
    def scored(number: int, sample: float | None, anls: float | None = None) -> RoundMetrics:
        return RoundMetrics(round=number, bytes_down=0, bytes_up=0, anls=anls, sample_anls=sample)

    assert best_round([scored(1, 0.2), scored(2, None), scored(3, 0.5), scored(4, 0.5, 0.9)]) == 3
    assert best_round([scored(1, None, 0.1), scored(2, None, 0.4)]) == 2
    assert best_round([scored(1, None)]) is None


@pytest.mark.parametrize(
    ("config", "changes", "said"),
    [
        ("fl-provider-dp", ["checkpoints.every=1"], "validation_on_private_data=true"),
        ("fl-provider-dp", ["checkpoints.best=true", "evaluate_every=1"], "validation_on_private_data=true"),
        ("client-dp", ["checkpoints.every=1"], "ε doesn't cover a choice"),
        ("fedavg", ["checkpoints.best=true"], "checkpoints.best does nothing while evaluate_every is 0"),
        ("fedavg", ["evaluate_questions=3"], "evaluate_questions does nothing while evaluate_every is 0"),
    ],
)
def test_what_would_choose_a_model_by_private_data_or_by_nothing_is_rejected(
    config: str, changes: list[str], said: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        load_settings(config, changes)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert said in caught.value.problem.expected


def test_a_private_run_that_declares_its_choice_keeps_models(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["rounds=2", "checkpoints.every=1", "validation_on_private_data=true"]
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes)
    assert names(run) == ["round-1", "round-2"]
    assert run.record(max_rounds=2).run.validation_on_private_data
