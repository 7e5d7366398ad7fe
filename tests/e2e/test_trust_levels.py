"""Trust levels 1 to 3 on a whole site, by the commands of docs/trust-levels.md and docs/replay.md."""

import re
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.demo.stack import Stack
from tests.e2e.conftest import PASSWORD, make_participant, pfl

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("site")]

EXAMINER = "olga@organizers.example"
# So small a step that all trainings answer alike, and large enough for its linkage to be checked.
SETTINGS = ["rounds=2", "replayable=true", "server_learning_rate=0.001"]


def submit_replayable_run(site: Stack, trained: Path, folder: Path) -> str:
    """Train and submit a private run by the command line, until it is scored. Returns its submission's page."""
    access = {
        "PFL_SITE": site.url,
        "PFL_TOKEN": make_participant(site, "trudy@lab.example", "trust"),
        "PFL_KEY": str(folder / "trust.pem"),
    }
    where = ["--data", trained / "data" / "public", "--base", trained / "base", "--out", folder / "run"]
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    pfl("train", "fl-provider-dp", *where, *settings, environment=access)
    (folder / "proof.md").write_text("Because the noise is large enough.")
    described = ["--track", "track-2", "--title", "Examined", "--proof", folder / "proof.md"]
    printed = pfl("submit", folder / "run", *described, "--wait", environment=access)
    page = re.search(rf"Submitted: ({site.url}\S+)", printed)
    assert page, printed
    return page.group(1)


def run_of(site: Stack, page: str, token: str) -> dict[str, Any]:
    """The only run of the submission on `page`, as the API has it for its team."""
    number = page.rstrip("/").rpartition("/")[2]
    answer = requests.get(
        f"{site.url}/api/v1/submissions/{number}", headers={"Authorization": f"Bearer {token}"}, timeout=60
    )
    answer.raise_for_status()
    (run,) = answer.json()["runs"]
    return dict(run)


def test_the_documented_commands_earn_a_run_each_level(site: Stack, trained: Path, tmp_path: Path) -> None:
    page = submit_replayable_run(site, trained, tmp_path)
    token, _ = site.manage_all(
        [
            ["create_token", "trudy@lab.example", "--label", "examined"],
            ["create_user", EXAMINER, "--name", "Olga Orgler", "--password-env", "PASSWORD", "--superuser"],
        ],
        PASSWORD=PASSWORD,
    )
    run = run_of(site, page, token)
    assert run["results"]["trust_level"] == 0
    data, base = f"--data={trained / 'data' / 'public'}", f"--base={trained / 'base'}"
    for level, command in {
        "L1 conforming": ["conformance"],
        "L2 replayed": ["replay", data, base],
        "L3 rerun": ["rerun", data, "--repeat=1"],
    }.items():
        name, *options = command
        printed = site.manage(name, run["id"], *options, f"--by={EXAMINER}")
        assert level in printed
        public = requests.get(page, timeout=60).text
        assert f"{level}</span> by Olga Orgler" in public
        assert level in requests.get(f"{site.url}/leaderboard/track-2/?epsilon=8", timeout=60).text
    examinations = run_of(site, page, token)["examinations"]
    assert {(one["level"], one["passed"], one["by"]) for one in examinations} == {
        (level, True, "Olga Orgler") for level in (1, 2, 3)
    }
