"""The signing key and the run token, as `pfl train` obtains them."""

import stat
from pathlib import Path

import pytest

from docvqa_site.submissions.models import RunToken
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.signing import create_key, public_key_of
from starter_kit.site.client import SiteClient
from starter_kit.site.credentials import obtain_credentials


def test_the_first_private_run_makes_a_key_and_keeps_it_from_others(tmp_path: Path) -> None:
    path = tmp_path / "config" / "team_key.pem"
    first = obtain_credentials(path, "a-token-of-the-site", "track-2", None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first.new_key
    kept = path.read_bytes()
    second = obtain_credentials(path, "another-token-of-it", "track-2", None)
    assert public_key_of(first.key) == public_key_of(second.key)
    assert path.read_bytes() == kept
    assert not second.new_key


def test_a_file_that_is_no_key_is_rejected_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "team_key.pem"
    path.write_text("a letter")
    for use in (lambda: obtain_credentials(path, None, "track-2", None), lambda: create_key(path)):
        with pytest.raises(ProblemError) as caught:
            use()
        assert caught.value.problem.code is ErrorCode.SIGNING_KEY
    assert path.read_text() == "a letter"


def test_the_site_issues_a_token_for_each_run_that_brings_none(
    site_client: SiteClient, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    tokens = {obtain_credentials(key, None, "track-2", site_client).run_token for _ in range(2)}
    issued = RunToken.objects.filter(track__slug="track-2")
    assert tokens == {token.token for token in issued}
    assert len(tokens) == 2
    given = obtain_credentials(key, "given-on-the-line", "track-2", site_client)
    assert given.run_token == "given-on-the-line"
    assert RunToken.objects.count() == 2


def test_a_training_that_starts_over_gets_its_token_again(site_client: SiteClient, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"

    def token_of(name: str) -> str | None:
        return obtain_credentials(key, None, "track-2", site_client, training=tmp_path / name).run_token

    by_hand = site_client.issue_run_token("track-2").token
    assert [token_of("first"), token_of("first")] == [by_hand, by_hand]
    assert token_of("second") != by_hand
    (tmp_path / "first").write_text("not a name")
    assert token_of("first") != by_hand
    assert RunToken.objects.count() == 3


def test_a_name_that_cannot_be_kept_is_reported(site_client: SiteClient, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        obtain_credentials(tmp_path / "key.pem", None, "track-2", site_client, training=tmp_path)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert not RunToken.objects.exists()


def test_a_resumed_run_requests_no_token(site_client: SiteClient, tmp_path: Path) -> None:
    resumed = obtain_credentials(tmp_path / "key.pem", None, "track-2", site_client, resumed=True)
    assert resumed.run_token is None
    assert RunToken.objects.count() == 0


def test_a_run_without_a_site_has_no_token(tmp_path: Path) -> None:
    assert obtain_credentials(tmp_path / "key.pem", None, "track-2", None).run_token is None
