"""`pfl submit` from run folders to the end of the evaluation, against a site over real HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.signing import public_key_of
from starter_kit.commands.submit import follow
from starter_kit.site import api
from starter_kit.site.api import SiteClient
from starter_kit.submitting import prepare, register_keys, send
from tests.starter_kit.pocket_site import TOKEN, PocketSite
from tests.starter_kit.training_runs import KEY, trained


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[PocketSite]:
    monkeypatch.setattr(api, "PAUSE_S", 0.001)
    with PocketSite(part_size_bytes=1_000_000) as site:
        yield site


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> dict[float, Path]:
    """Private runs by their target ε: two for the board of 1, one for that of 8."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        epsilon: trained(
            "fl-provider-dp", base, data, folder / f"{epsilon}", ["rounds=1", f"target_epsilon={epsilon}"]
        ).path
        for epsilon in (0.9, 1, 8)
    }


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    path = tmp_path / "proof.md"
    path.write_text("Because the noise is large enough.")
    return path


def submitted(site: PocketSite, track: str, folders: list[Path], proof: Path | None = None) -> str:
    client = SiteClient(site.url, TOKEN)
    plan = prepare(client, track, folders, proof)
    return str(send(client, plan, "Mine", "", lambda done, total: None)["id"])


def rejection(site: PocketSite, track: str, folders: list[Path], proof: Path | None = None) -> ErrorCode:
    with pytest.raises(ProblemError) as caught:
        prepare(SiteClient(site.url, TOKEN), track, folders, proof)
    return caught.value.problem.code


def test_each_run_goes_to_the_board_that_its_record_claims(
    site: PocketSite, runs: dict[float, Path], proof: Path
) -> None:
    submission = submitted(site, "track-2", [runs[8], runs[1]], proof)
    assert {run["budget"] for run in site.submissions[submission]["runs"]} == {1.0, 8.0}
    of_budget = {run["budget"]: run["id"] for run in site.submissions[submission]["runs"]}
    files = site.files()
    for budget, folder in ((1.0, runs[1]), (8.0, runs[8])):
        for kind, name in (
            (ArtifactKind.CHECKPOINT, "model.safetensors"),
            (ArtifactKind.COMMUNICATION_LOG, "communication_log.csv"),
            (ArtifactKind.TRAINING_RECORD, "training_record.jsonl"),
            (ArtifactKind.TRAINING_ANNEX, "training_annex.jsonl"),
        ):
            assert files[of_budget[budget], kind] == (folder / name).read_bytes()
    assert files[None, ArtifactKind.PRIVACY_PROOF] == proof.read_bytes()
    assert len(files) == 9


def test_track_1_takes_what_it_asks_for_and_no_record(site: PocketSite, runs: dict[float, Path]) -> None:
    submitted(site, "track-1", [runs[8]])
    assert {kind for _, kind in site.files()} == {ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG}


def test_the_key_that_signed_is_registered_unless_the_site_knows_it(
    site: PocketSite, runs: dict[float, Path], proof: Path
) -> None:
    client = SiteClient(site.url, TOKEN)
    plan = prepare(client, "track-2", [runs[8], runs[1]], proof)
    assert register_keys(client, plan) == [public_key_of(KEY)]
    assert register_keys(client, plan) == []
    assert [key["public_key"] for key in site.keys] == [public_key_of(KEY)]


def test_a_run_without_a_record_has_no_key_to_register(site: PocketSite, runs: dict[float, Path]) -> None:
    client = SiteClient(site.url, TOKEN)
    assert register_keys(client, prepare(client, "track-1", [runs[8]], None)) == []
    assert site.keys == []


def test_a_run_without_a_token_is_rejected_before_anything_is_sent(
    site: PocketSite, base: Path, data: Path, proof: Path, tmp_path: Path
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1"], run_token=None)
    assert rejection(site, "track-2", [run.path], proof) is ErrorCode.RECORD_TOKEN
    assert site.submissions == {}
    assert site.keys == []


def test_a_broken_off_submission_is_gone_on_with(site: PocketSite, runs: dict[float, Path]) -> None:
    site.faults["POST /api/v1/submissions/s1/submit"] = 6
    with pytest.raises(ProblemError):
        submitted(site, "track-1", [runs[8]])
    assert submitted(site, "track-1", [runs[8]]) == "s1"
    assert site.submissions["s1"]["state"] == "submitted"
    assert len(site.submissions["s1"]["runs"]) == 1


def test_progress_ends_at_all_bytes(site: PocketSite, runs: dict[float, Path], proof: Path) -> None:
    client = SiteClient(site.url, TOKEN)
    plan = prepare(client, "track-2", [runs[8]], proof)
    told: list[tuple[int, int]] = []
    send(client, plan, "Mine", "", lambda *step: told.append(step))
    assert told[-1] == (plan.size_bytes, plan.size_bytes)
    assert told == sorted(told)


def test_nothing_is_sent_where_something_is_missing(
    site: PocketSite, runs: dict[float, Path], proof: Path, tmp_path: Path
) -> None:
    assert rejection(site, "track-2", [tmp_path], proof) is ErrorCode.ARTIFACT_MISSING
    assert rejection(site, "track-2", [runs[8]]) is ErrorCode.ARTIFACT_MISSING
    assert rejection(site, "track-2", [runs[0.9], runs[1]], proof) is ErrorCode.SUBMISSION_BUDGET
    assert rejection(site, "track-1", [runs[1], runs[8]]) is ErrorCode.SUBMISSION_BUDGET
    assert rejection(site, "track-9", [runs[8]]) is ErrorCode.CONFIGURATION
    assert site.submissions == {}


def test_watching_ends_well_when_every_run_is_scored(
    site: PocketSite, runs: dict[float, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    submission = submitted(site, "track-1", [runs[8]])
    assert follow(SiteClient(site.url, TOKEN), submission)
    assert "ANLS 0.2500" in capsys.readouterr().out


def test_watching_tells_how_long_the_step_still_takes(
    site: PocketSite, runs: dict[float, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    submission = submitted(site, "track-1", [runs[8]])
    scoring = {"state": "running", "step": "scoring"}
    site.underway = [scoring, {**scoring, "remaining_s": 250.0}, {**scoring, "remaining_s": 245.0}]
    assert follow(SiteClient(site.url, TOKEN), submission)
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("run: running, scoring", "run: running, scoring, about 4 min left")
    assert "scored" in third


@pytest.mark.parametrize("outcome", ["rejected", "failed"])
def test_watching_ends_badly_when_a_run_is_not_scored(
    site: PocketSite, runs: dict[float, Path], outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.outcome = outcome
    submission = submitted(site, "track-1", [runs[8]])
    assert not follow(SiteClient(site.url, TOKEN), submission)
    printed = capsys.readouterr()
    assert outcome in printed.out
    assert ("E_CHECKPOINT_NOT_FINITE" in printed.err) == (outcome == "rejected")
