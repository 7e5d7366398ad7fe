"""`pfl check` and `pfl train` with a site at hand: they compare with its track what the site would reject later."""

import re
from pathlib import Path

import pytest

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.submissions.models import RunState, RunToken
from docvqa_site.teams.models import Team
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.manifest import manifest_sha256
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_run, make_submission, make_token
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import QUICK, Ended, run_pfl
from tests.starter_kit.pocket_data import CLIENTS

PROVIDERS = [len(providers) for providers in CLIENTS.values()]


@pytest.fixture
def track(site: LiveSite) -> Track:
    return Track.objects.get(slug="track-2")


@pytest.fixture
def access(site: LiveSite, token: str, tmp_path: Path) -> dict[str, str]:
    return {"PFL_SITE": site.url, "PFL_TOKEN": token, "PFL_KEY": str(tmp_path / "key.pem")}


def change(track: Track, **fields: object) -> None:
    Track.objects.filter(pk=track.pk).update(**fields)


def offer(base: Path, folder: Path, settings: object, content: bytes | None = None) -> None:
    """Have the site hold the track's base weights, or others."""
    weights = folder / "references" / "vt5-base" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(content or (base / "model.safetensors").read_bytes())
    settings.REFERENCES_FOLDER = folder / "references"  # type: ignore[attr-defined]


class TestCheck:
    def test_a_private_run_by_the_sites_rules_lacks_only_its_token(
        self,
        run: Path,
        base: Path,
        data: Path,
        track: Track,
        access: dict[str, str],
        tmp_path: Path,
        settings: object,
    ) -> None:
        offer(base, tmp_path, settings)
        change(track, data_sha256=manifest_sha256(Dataset(data, "train")), providers_per_client=PROVIDERS)
        checked = run_pfl("check", run, "--base", base, "--track", "track-2", environment=access)
        assert checked.returncode == 2, checked
        assert f"Rules: track-2 of {access['PFL_SITE']}" in checked.stdout
        assert "site: not passed\n" in checked.stdout
        assert re.findall(r"E_\w+", checked.stderr) == ["E_RECORD_TOKEN"]
        assert "Set PFL_SITE and PFL_TOKEN, and train again." in checked.stderr
        assert "\n  record.challenge      not testable before the upload: " in checked.stdout

    def test_a_run_whose_bytes_are_declared_reads_that_they_do_not_rank(
        self, run: Path, base: Path, site: LiveSite, access: dict[str, str]
    ) -> None:
        checked = run_pfl("check", run, "--base", base, environment=access)
        assert "No rank: the bytes are declared" in checked.stdout
        assert f"See {site.url}/docs/checks/ for" in checked.stdout
        assert f"Next: pfl submit {run} --track track-1 --title TITLE\n" in checked.stdout
        Phase.objects.update(requires_counted=False)
        checked = run_pfl("check", run, "--base", base, environment=access)
        assert "No rank" not in checked.stdout

    def test_a_run_on_other_data_or_base_weights_does_not_pass(
        self, run: Path, base: Path, track: Track, access: dict[str, str], tmp_path: Path, settings: object
    ) -> None:
        offer(base, tmp_path, settings, b"other weights")
        change(track, data_sha256="5" * 64, providers_per_client=[1, 1, 1])
        rejected = run_pfl("check", run, "--base", base, "--track", "track-2", environment=access)
        assert rejected.returncode == 2
        printed = rejected.stdout + rejected.stderr
        for code in ("E_RECORD_DATA", "E_RECORD_ANNEX", "E_TRACK_RULES"):
            assert code in printed

    def test_a_checkpoint_that_was_submitted_before_does_not_pass(
        self, run: Path, base: Path, site: LiveSite, access: dict[str, str]
    ) -> None:
        first = make_submission(track=Track.objects.get(slug="track-1"), state="submitted")
        weights = (run / "model.safetensors").read_bytes()
        make_artifact(
            make_run(first, state=RunState.SCORED), ArtifactKind.CHECKPOINT, weights, "model.safetensors"
        )
        rejected = run_pfl("check", run, "--base", base, environment=access)
        assert rejected.returncode == 2
        assert "E_SUBMISSION_DUPLICATE" in rejected.stderr

    def test_without_a_token_it_says_what_was_not_compared(
        self, run: Path, base: Path, track: Track, site: LiveSite
    ) -> None:
        change(track, data_sha256="5" * 64)
        checked = run_pfl(
            "check", run, "--base", base, "--track", "track-2", environment={"PFL_SITE": site.url}
        )
        assert re.findall(r"E_\w+", checked.stderr) == ["E_RECORD_TOKEN"]
        assert "not compared" in checked.stdout
        assert "which need PFL_TOKEN" in checked.stdout


class TestTrain:
    @staticmethod
    def train(
        config: str, base: Path, data: Path, out: Path, environment: dict[str, str], *changes: str
    ) -> Ended:
        where = ("--data", data, "--base", base, "--out", out)
        return run_pfl("train", config, *where, *QUICK, *changes, environment=environment)

    def test_a_private_run_on_other_data_is_rejected_before_its_token_is_taken(
        self, base: Path, data: Path, track: Track, access: dict[str, str], tmp_path: Path
    ) -> None:
        change(track, data_sha256="5" * 64, delta=1e-6, max_rounds=1, trainable="*.bias")
        rejected = self.train("fl-provider-dp", base, data, tmp_path / "run", access, "--set", "rounds=2")
        assert rejected.returncode == 2
        assert rejected.stderr.count("E_TRACK_RULES") == 4
        for place in (f"--data {data}", "delta", "rounds", "trainable"):
            assert f" at {place}" in rejected.stderr or f"{place}" in rejected.stderr
        assert not RunToken.objects.exists()
        assert not list(tmp_path.glob("run*"))

    def test_a_private_run_over_every_budget_is_rejected_before_its_token_is_taken(
        self, base: Path, data: Path, site: LiveSite, access: dict[str, str], tmp_path: Path
    ) -> None:
        changes = ("--track", "track-2", "--set", "noise_multiplier=null", "--set", "target_epsilon=20")
        rejected = self.train("fl-provider-dp", base, data, tmp_path / "run", access, *changes)
        assert rejected.returncode == 2, rejected
        assert "The run spends more than every privacy budget" in rejected.stderr
        assert "next: Train with --set target_epsilon=8, or less" in rejected.stderr
        assert not RunToken.objects.exists()
        assert not list(tmp_path.glob("run*"))

    def test_a_private_run_reports_its_token_and_the_earlier_ones_that_it_does_not_state(
        self, base: Path, data: Path, track: Track, team: Team, access: dict[str, str], tmp_path: Path
    ) -> None:
        make_token(team, track, record_sha256="5" * 64)
        trained = self.train("fl-provider-dp", base, data, tmp_path / "run", access)
        assert trained.returncode == 0, trained
        assert "The site has 1 earlier training record of your team in track-2" in trained.stderr
        assert "add --set tuning.private_runs=1." in trained.stderr
        token = RunToken.objects.get(record_sha256="")
        assert f"{token.token}: run token of this run, from track-2" in trained.stdout

    def test_another_run_is_told_where_it_differs_and_trains(
        self, base: Path, data: Path, site: LiveSite, access: dict[str, str], tmp_path: Path
    ) -> None:
        Track.objects.filter(slug="track-1").update(clients=7)
        trained = self.train("fedavg", base, data, tmp_path / "run", access)
        assert trained.returncode == 0, trained
        assert "not as track-1" in trained.stderr
        assert "7 clients" in trained.stderr


def test_the_hash_of_the_data_is_for_participants_only(site: LiveSite, track: Track, token: str) -> None:
    from starter_kit.site.client import SiteClient

    change(track, data_sha256="5" * 64)
    assert SiteClient(site.url, token).track("track-2").data_sha256 == "5" * 64
    assert SiteClient(site.url).track("track-2").data_sha256 == ""


def test_the_base_weights_have_the_hash_of_their_file(
    site: LiveSite, base: Path, tmp_path: Path, settings: object
) -> None:
    from starter_kit.site.client import SiteClient

    assert SiteClient(site.url).track("track-2").reference_sha256 == ""
    offer(base, tmp_path, settings)
    assert SiteClient(site.url).track("track-2").reference_sha256 == sha256_of(base / "model.safetensors")
