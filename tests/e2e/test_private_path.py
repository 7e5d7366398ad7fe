"""A private run through the command line: what the site takes from its team, and from nobody else."""

from pathlib import Path

import pytest

from tests.demo.stack import Stack
from tests.e2e.conftest import make_participant, pfl, train_privately

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("site")]


def test_a_record_is_taken_with_its_own_teams_token_and_key_only(
    site: Stack, trained: Path, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.md"
    proof.write_text("Because the noise is large enough.")

    def access(team: str) -> dict[str, str]:
        token = make_participant(site, f"{team}@lab.example", team)
        return {"PFL_SITE": site.url, "PFL_TOKEN": token, "PFL_KEY": str(tmp_path / f"{team}.pem")}

    ada, eve = access("ada"), access("eve")
    command = ["--track", "track-2", "--description", "Noise.", "--proof", proof, "--wait"]

    run = train_privately(trained, tmp_path / "run", ada)
    checked = pfl("check", run, "--base", trained / "base", "--track", "track-2")
    assert "accounting: passed" in checked
    submitted = pfl("submit", run, "--title", "Noise", "--publish-proof", *command, environment=ada)
    assert "registered as your team's key" in submitted
    assert "As your team agreed, the proof is public while the result is verified." in submitted
    assert "scored" in submitted

    copied = pfl("submit", run, "--title", "Copied", *command, status=2, environment=eve)
    assert "E_TEAM_KEY" in copied

    # Eve trains herself, with a token that the site issued to Ada.
    lent = pfl("token", "--track", "track-2", environment=ada).split()[0]
    borrowed = train_privately(trained, tmp_path / "borrowed", {**eve, "PFL_RUN_TOKEN": lent})
    rejected = pfl("submit", borrowed, "--title", "Borrowed", *command, status=2, environment=eve)
    assert "E_RECORD_TOKEN" in rejected

    offline = train_privately(trained, tmp_path / "offline", {"PFL_KEY": ada["PFL_KEY"]})
    rejected = pfl("submit", offline, "--title", "Offline", *command, status=2, environment=ada)
    assert "E_RECORD_TOKEN" in rejected
