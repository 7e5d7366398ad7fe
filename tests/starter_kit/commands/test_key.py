"""`pfl key`, `pfl token`, `pfl challenges` and the token and key of a training run, as a shell sees them."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import RunToken
from docvqa_site.teams.models import Team, TeamKey
from evaluator.records.reading import read_record
from tests.docvqa_site.factories import make_token
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import QUICK, run_pfl


@pytest.fixture
def access(site: LiveSite, token: str) -> dict[str, str]:
    """The variables by which a command finds the site and the account."""
    return {"PFL_SITE": site.url, "PFL_TOKEN": token}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home without a key in it."""
    return tmp_path / "home"


def pfl(
    home: Path, *arguments: object, status: int = 0, environment: Mapping[str, str] = {}
) -> tuple[str, str]:
    """Output and errors of one command of a user whose home is `home`."""
    hidden = {"PFL_KEY", "PFL_SITE", "PFL_TOKEN", "PFL_RUN_TOKEN", "XDG_CONFIG_HOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = run_pfl(*arguments, environment={**inherited, "HOME": str(home), **environment})
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout, ended.stderr


def key_file(home: Path) -> Path:
    return home / ".config" / "pfl" / "team_key.pem"


def test_a_key_is_made_for_its_owner_only_and_shown_by_its_public_half(home: Path) -> None:
    made, _ = pfl(home, "key", "create")
    assert stat.S_IMODE(key_file(home).stat().st_mode) == 0o600
    public_key = pfl(home, "key", "show")[0].strip()
    assert len(bytes.fromhex(public_key)) == 32
    assert public_key in made
    assert not set(key_file(home).read_text().splitlines()[1:-1]) & set(made.splitlines())


def test_without_a_key_it_says_how_one_is_made(home: Path) -> None:
    problem = pfl(home, "key", "show", status=2)[1].replace("\n", " ")
    assert "E_SIGNING_KEY: You have no signing key yet." in problem
    assert str(key_file(home)) in problem
    assert "pfl key create" in problem


def test_a_key_is_never_overwritten(home: Path) -> None:
    pfl(home, "key", "create")
    kept = key_file(home).read_bytes()
    assert "E_SIGNING_KEY" in pfl(home, "key", "create", status=2)[1]
    assert key_file(home).read_bytes() == kept


def test_the_key_may_lie_elsewhere(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "key.pem"
    pfl(home, "key", "create", "--out", elsewhere)
    assert not key_file(home).exists()
    shown = pfl(home, "key", "show", environment={"PFL_KEY": str(elsewhere)})[0]
    assert shown == pfl(home, "key", "show", "--key", elsewhere)[0]


def test_showing_a_key_that_is_not_there_is_rejected(home: Path) -> None:
    assert "E_SIGNING_KEY" in pfl(home, "key", "show", status=2)[1]


def test_a_key_is_registered_once_however_often_it_is_requested(home: Path, access: dict[str, str]) -> None:
    pfl(home, "key", "create")
    public_key = pfl(home, "key", "show")[0].strip()
    for _ in range(2):
        assert public_key in pfl(home, "key", "register", "--name", "GPU box", environment=access)[0]
    assert [(key.public_key, key.name) for key in TeamKey.objects.all()] == [(public_key, "GPU box")]


def test_a_token_is_printed_alone(home: Path, access: dict[str, str]) -> None:
    printed, _ = pfl(home, "token", "--track", "track-2", environment=access)
    assert RunToken.objects.get(track__slug="track-2").token == printed.strip()


def test_training_takes_a_token_that_was_requested_by_hand_unless_it_is_reserved(
    home: Path, access: dict[str, str], base: Path, data: Path, tmp_path: Path
) -> None:
    pfl(home, "token", "--reserve", environment=access)
    by_hand = pfl(home, "token", environment=access)[0].strip()
    command = ["train", "fl-provider-dp", "--data", data, "--base", base, *QUICK]
    pfl(home, *command, "--out", tmp_path / "run", environment=access)
    assert token_in(tmp_path / "run") == by_hand
    assert RunToken.objects.count() == 2
    # Another training needs another one: two records with one token can't both be submitted.
    pfl(home, *command, "--out", tmp_path / "other", environment=access)
    assert RunToken.objects.count() == 3
    assert not list(tmp_path.glob("*.training"))


def token_in(run: Path) -> str | None:
    return read_record(run / "training_record.jsonl", max_rounds=1).run.run_token


def test_unresolved_challenges_are_listed_and_explained(
    home: Path, access: dict[str, str], team: Team
) -> None:
    track = Track.objects.get(slug="track-2")
    assert pfl(home, "challenges", "list", environment=access)[0] == "No unresolved challenges in track-2\n"
    lost = make_token(team, track, record_sha256="5" * 64)
    make_token(team, track)
    listed = pfl(home, "challenges", "list", environment=access)[0]
    assert listed.startswith(f"{lost.token}  {lost.challenged_at:%Y-%m-%d %H:%M} UTC  (not explained)\n")
    assert listed.splitlines()[1:] == [
        "The challenge of a run that you are still submitting is resolved once the site has recomputed its ε. Explain "
        "each of the others: `pfl challenges explain TOKEN TEXT`"
    ]
    pfl(home, "challenges", "explain", lost.token, "The disk was full.", environment=access)
    assert "UTC  The disk was full." in pfl(home, "challenges", "list", environment=access)[0]
    assert RunToken.objects.get(pk=lost.pk).explanation == "The disk was full."
    _, errors = pfl(home, "challenges", "explain", "no-token-of-mine", "Why?", status=2, environment=access)
    assert "E_REQUEST_NOT_FOUND" in errors


def test_a_token_needs_a_site(home: Path) -> None:
    assert "E_CONFIGURATION" in pfl(home, "token", status=2)[1]


def test_training_near_a_site_takes_a_token_by_itself_and_one_by_hand_goes_first(
    home: Path, access: dict[str, str], base: Path, data: Path, tmp_path: Path
) -> None:
    command = ["train", "fl-provider-dp", "--data", data, "--base", base, *QUICK]
    printed, _ = pfl(home, *command, "--out", tmp_path / "asked", environment=access)
    assert str(key_file(home)) in printed
    pfl(
        home,
        *command,
        "--out",
        tmp_path / "given",
        environment={**access, "PFL_RUN_TOKEN": "a-token-of-my-own"},
    )
    tokens = [token_in(tmp_path / name) for name in ("asked", "given")]
    assert tokens == [RunToken.objects.get().token, "a-token-of-my-own"]


def test_training_that_cannot_begin_uses_no_token_up(
    home: Path, access: dict[str, str], base: Path, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    command = ["train", "fl-provider-dp", "--data", data, "--base", base, "--out", tmp_path / "out", *QUICK]
    assert "E_RUN_FOLDER" in pfl(home, *command, status=2, environment=access)[1]
    assert not RunToken.objects.exists()
    assert not key_file(home).exists()


def test_a_site_that_would_issue_no_token_is_reported_before_any_page_is_read(
    home: Path, access: dict[str, str], base: Path, data: Path, tmp_path: Path
) -> None:
    unreadable = shutil.copytree(data, tmp_path / "unreadable")
    shutil.rmtree(unreadable / "images")
    command = [
        "train",
        "fl-provider-dp",
        "--data",
        unreadable,
        "--base",
        base,
        "--out",
        tmp_path / "out",
        *QUICK,
    ]
    unknown = {**access, "PFL_TOKEN": "pfl_of_nobody"}
    assert "E_REQUEST_SIGN_IN" in pfl(home, *command, status=2, environment=unknown)[1]
    _, errors = pfl(home, *command, "--track", "track-1", status=2, environment=access)
    assert "a track with privacy budgets" in errors
    _, errors = pfl(home, *command, "--track", "track-9", status=2, environment=access)
    assert "one of track-1, track-2" in errors
    # Nothing is requested of the site for a run that brings its token, or has it already.
    given = {**unknown, "PFL_RUN_TOKEN": "a-token-of-my-own"}
    assert "E_DATASET_FORMAT" in pfl(home, *command, status=2, environment=given)[1]


def test_training_without_privacy_needs_neither_token_nor_key(
    home: Path, access: dict[str, str], base: Path, data: Path, tmp_path: Path
) -> None:
    command = ["train", "fedavg", "--data", data, "--base", base, "--out", tmp_path / "out", *QUICK]
    pfl(home, *command, environment=access)
    assert not RunToken.objects.exists()
    assert not key_file(home).exists()
