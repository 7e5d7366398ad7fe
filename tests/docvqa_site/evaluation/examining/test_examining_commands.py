"""`manage.py examine`, from the attached files to the page, the API and the board."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from docvqa_site.accounts.services import create_token
from docvqa_site.evaluation import models
from docvqa_site.evaluation.examining import sandbox
from docvqa_site.evaluation.models import ExaminationState
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.examinations import RerunFindings
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from evaluator.scoring.split import Split, write_split
from starter_kit.scaffolding.writing import write_method
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_track,
    make_user,
)
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.starter_kit.pocket_data import make_base, make_data

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("kit")]

SETTINGS = """
method: fedavg
experiment: again
rounds: 1
max_input_tokens: 32
local: {max_steps: 1, batch_size: 4, learning_rate: 0.001}
"""


def scored_run(track: Any, **fields: Any) -> Run:
    submission = make_submission(track=track, state="submitted")
    return make_run(submission, state=RunState.SCORED, **fields)


def attach(run: Run, settings: str, method: str = "", name: str = "odd.py") -> None:
    make_artifact(run, ArtifactKind.SETTINGS, settings.encode(), "settings.yaml")
    if method:
        make_artifact(run, ArtifactKind.METHOD_FILE, method.encode(), name)


class TestConformance:
    @pytest.mark.slow
    def test_an_attached_method_earns_its_level_which_page_and_api_show(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = scored_run(make_private_track(), budget=4.0, epsilon=3.0)
        write_method("odd", tmp_path, private=True)
        attach(run, (tmp_path / "odd.yaml").read_text(), (tmp_path / "odd.py").read_text())
        organizer = make_organizer(name="Ada Lovelace", email="ada@example.org")
        call_command("examine", str(run.pk), "--level=1", "--by", "ada@example.org")
        assert "L1 conforming" in capsys.readouterr().out
        run.refresh_from_db()
        assert (run.results.trust_level, run.results.trust_by) == (TrustLevel.CONFORMING, organizer.name)
        html = Client().get(f"{run.submission.get_absolute_url()}runs/{run.pk}/").content.decode()
        assert "L1 conforming</span> by Ada Lovelace" in html
        token = create_token(run.submission.created_by, "test")[1]
        status = Client().get(
            f"/api/v1/submissions/{run.submission.pk}", headers={"authorization": f"Bearer {token}"}
        )
        (examination,) = json.loads(status.content)["runs"][0]["examinations"]
        assert (examination["level"], examination["passed"], examination["by"]) == (1, True, "Ada Lovelace")
        assert len(examination["report"]["findings"]["tests"]) > 20

    def test_without_settings_or_an_organizer_nothing_is_examined(self) -> None:
        run = scored_run(make_private_track(), budget=4.0)
        make_user("somebody@example.org")
        with pytest.raises(CommandError, match="No organizer"):
            call_command("examine", str(run.pk), "--level=1", "--by", "somebody@example.org")
        with pytest.raises(CommandError, match="E_ARTIFACT_MISSING"):
            call_command("examine", str(run.pk), "--level=1")
        assert not run.examinations.exists()

    def test_a_failure_of_our_own_is_no_examination(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = scored_run(make_private_track(), budget=4.0)
        attach(run, SETTINGS)

        monkeypatch.setattr(sandbox, "JUDGES", "starter_kit.no_judge")
        with pytest.raises(CommandError, match="No module named starter_kit"):
            call_command("examine", str(run.pk), "--level=1")
        examination = run.examinations.get()
        assert (examination.state, examination.report) == (ExaminationState.BROKEN, None)
        run.refresh_from_db()
        assert run.results.trust_level is TrustLevel.RECOMPUTED


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command's options: data, base and a test set, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("rerun")
    test_set = make_data(folder / "secret")
    (test_set / "valid").rename(test_set / "test")
    data, base = make_data(folder / "data"), make_base(folder / "base")
    return [f"--data={data}", f"--base={base}", f"--test-set={test_set}"]


class TestRerun:
    def rerun(self, run: Run, folders: list[str], settings: str) -> None:
        attach(run, settings)
        call_command("examine", str(run.pk), "--level=3", *folders, "--repeat=1")

    def test_scores_that_differ_are_stored_as_failed_and_those_that_agree_earn_the_level(
        self, folders: list[str]
    ) -> None:
        track = make_track(clients=3)
        first = scored_run(track, anls=0.99, bytes_total=1)
        with pytest.raises(CommandError, match="did not pass"):
            self.rerun(first, folders, SETTINGS)
        report = first.examinations.get().found
        assert report.problems == []
        assert isinstance(report.findings, RerunFindings)
        assert [one.is_explained for one in report.findings.comparisons] == [False, False]
        first.refresh_from_db()
        assert first.results.trust_level is TrustLevel.RECOMPUTED
        (scores,) = report.findings.repeats
        honest = scored_run(track, anls=scores.anls, bytes_total=scores.bytes_total)
        self.rerun(honest, folders, SETTINGS)
        honest.refresh_from_db()
        assert honest.results.trust_level is TrustLevel.RERUN

    @pytest.mark.slow
    def test_files_that_do_not_train_are_a_failed_examination(self, folders: list[str]) -> None:
        run = scored_run(make_track(clients=3))
        with pytest.raises(CommandError, match="did not pass"):
            self.rerun(run, folders, SETTINGS.replace("fedavg", "missing.py"))
        report = run.examinations.get().found
        assert [problem.code for problem in report.problems] == ["E_CONFIGURATION"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fraction", [pytest.param(None, id="no split"), pytest.param(0.5, id="another split")]
)
def test_a_run_is_rerun_on_the_split_on_which_it_was_scored_only(
    tmp_path: Path, fraction: float | None
) -> None:
    run = scored_run(make_track(test_set="secret"))
    split = Split.drawn(0.5)
    models.TestSet.objects.create(
        name="secret", sha256="0" * 64, split_sha256=split.sha256, private_fraction=0.5
    )
    if fraction:
        write_split(tmp_path, Split.drawn(fraction))
    folders = [f"--{name}={tmp_path}" for name in ("data", "base", "test-set")]
    with pytest.raises(CommandError, match="E_ARTIFACT_MISSING"):
        call_command("examine", str(run.pk), "--level=3", *folders)
    attach(run, SETTINGS)
    with pytest.raises(CommandError, match=f"is split by {split.sha256}.* give it the workers' split.json"):
        call_command("examine", str(run.pk), "--level=3", *folders)
    assert run.examinations.get().state == ExaminationState.BROKEN
    (tmp_path / "split.json").unlink(missing_ok=True)
    write_split(tmp_path, split)
    # On the same split it is trained, for which there is no data here.
    with pytest.raises(CommandError, match="did not pass the examination"):
        call_command("examine", str(run.pk), "--level=3", *folders)
