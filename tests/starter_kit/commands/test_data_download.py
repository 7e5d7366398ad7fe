"""`pfl data download`: what a track's participants need, from the real site's store."""

import shutil
import tarfile
from pathlib import Path

import pytest
import requests
from django.core.management import call_command

from docvqa_site.downloads.models import Acceptance, Download, Terms
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.archives import unpack
from starter_kit.site.client import SiteClient
from starter_kit.site.downloading import fetch
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import failing, passing

CONTENT = bytes(range(256)) * 5000


@pytest.fixture(autouse=True)
def access(site: LiveSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PFL_SITE", site.url)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def offered(site: LiveSite, tmp_path: Path) -> None:
    """A data set and base weights, as the organizers pack them."""
    for name, kind, files in (
        ("forms", "data", {"dataset.json": b"{}", "pages/1.png": CONTENT}),
        ("weights", "weights", {"model.safetensors": CONTENT}),
    ):
        folder = tmp_path / "organizers" / name
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        archive = shutil.make_archive(str(folder), "zip", folder)
        call_command("add_download", archive, "--kind", kind, "--title", name, "--license", "CC0-1.0")


def test_data_and_weights_are_fetched_checked_and_unpacked_without_an_account(
    offered: None, tmp_path: Path, site: LiveSite
) -> None:
    printed = passing("data", "download", "--track", "track-1")
    assert "data/public: forms (CC0-1.0), SHA-256 as the site states" in printed
    assert (tmp_path / "data/public/pages/1.png").read_bytes() == CONTENT
    assert (tmp_path / "base/model.safetensors").read_bytes() == CONTENT
    assert list(tmp_path.glob("*.zip*")) == []
    site.calls.clear()
    assert "base: has weights.zip already" in passing("data", "download", "--track", "track-1")
    assert not any("/data/" in call for call in site.calls)


def test_files_from_elsewhere_are_reported_before_anything_is_downloaded(
    offered: None, tmp_path: Path
) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/model.safetensors").write_bytes(b"of my own")
    printed = failing("data", "download", "--track", "track-1")
    for text in (
        "E_DATASET_FOLDER",
        "contains other data or base weights",
        "model.safetensors",
        "--out FOLDER",
    ):
        assert text in printed
    assert not (tmp_path / "data").exists()
    assert not list(tmp_path.glob("*.zip*"))
    passing("data", "download", "--track", "track-1", "--force")
    assert (tmp_path / "base/model.safetensors").read_bytes() == CONTENT


def test_an_unknown_track_and_one_without_files_are_reported(site: LiveSite) -> None:
    assert "E_REQUEST_NOT_FOUND" in failing("data", "download", "--track", "track-9")
    assert "offers no files" in failing("data", "download", "--track", "track-1", status=1)


def test_terms_are_shown_and_must_be_accepted(
    offered: None, site: LiveSite, tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = Terms.objects.create(title="Data agreement", version="2", text="No redistribution.")
    Download.objects.filter(kind="data").update(terms=terms)
    assert f"Create a token at {site.url}/account/tokens/" in failing(
        "data", "download", "--track", "track-1"
    )
    monkeypatch.setenv("PFL_TOKEN", token)
    assert "No redistribution." in failing("data", "download", "--track", "track-1")
    assert not (tmp_path / "data").exists()
    passing("data", "download", "--track", "track-1", "--accept-terms")
    assert Acceptance.objects.get().terms == terms
    assert (tmp_path / "data/public/dataset.json").exists()


def test_an_interrupted_download_continues_and_a_wrong_file_is_removed(
    offered: None, tmp_path: Path, site: LiveSite
) -> None:
    client = SiteClient(site.url, "", first_pause_s=0.001)
    (weights,) = [one for one in client.downloads("track-1") if one.kind == "weights"]
    whole = requests.get(weights.url, timeout=60).content
    part = tmp_path / "weights.zip.part"
    part.write_bytes(whole[:500])
    seen: list[int] = []
    assert fetch(client, weights, tmp_path, lambda done, _: seen.append(done)).read_bytes() == whole
    assert seen[0] > 500
    part.write_bytes(b"x" * 500)
    with pytest.raises(ProblemError) as caught:
        fetch(client, weights, tmp_path, lambda *_: None)
    assert caught.value.problem.code is ErrorCode.ARTIFACT_HASH
    assert not part.exists()


def test_an_archive_of_one_folder_is_unpacked_without_it_and_never_outside(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top/file").write_text("content")
    with tarfile.open(tmp_path / "good.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "top", "top")
    unpack(tmp_path / "good.tar.gz", tmp_path / "out", name="good", sha256="")
    assert (tmp_path / "out/file").read_text() == "content"
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(tmp_path / "top/file", "../../evil")
    with pytest.raises(ProblemError):
        unpack(tmp_path / "bad.tar", tmp_path / "out" / "deep", name="bad", sha256="")
    assert not (tmp_path / "evil").exists()
    with pytest.raises(ProblemError):
        unpack(tmp_path / "good.tar.gz", tmp_path / "out", name="good", sha256="")
