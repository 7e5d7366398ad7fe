"""Trust levels 1 to 3 on a whole site, by the organizers' button."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.demo.stack import Stack
from tests.docvqa_site.accounts.codes import code_of
from tests.e2e.conftest import PASSWORD, make_participant, pfl

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

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
    described = ["--track", "track-2", "--title", "Examined", "--description", "Noise."]
    printed = pfl(
        "submit", folder / "run", *described, "--proof", folder / "proof.md", "--wait", environment=access
    )
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


@pytest.fixture
def examined(site: Stack, trained: Path, tmp_path: Path) -> tuple[str, str]:
    """The page of a scored submission, and its team's token."""
    page = submit_replayable_run(site, trained, tmp_path)
    return page, site.manage("create_token", "trudy@lab.example", "--label", "examined")


@pytest.fixture
def organizer(site: Stack) -> requests.Session:
    """An organizer's browser, logged in with both factors."""
    printed = site.manage(
        *("create_user", EXAMINER, "--name", "Olga Orgler", "--password-env", "PASSWORD"),
        *("--superuser", "--second-factor"),
        PASSWORD=PASSWORD,
    )
    secret = re.search(r"Authenticator secret: (\w+)", printed)
    assert secret, printed
    session = requests.Session()
    post(session, f"{site.url}/account/login/", {"login": EXAMINER, "password": PASSWORD})
    post(session, f"{site.url}/account/2fa/authenticate/", {"code": code_of(secret.group(1))})
    return session


@pytest.fixture
def machine(site: Stack, trained: Path) -> Iterator[None]:
    """A machine that takes examinations, as docs/examinations.md starts it."""
    environment = {
        **site.environment,
        "PFL_EXAMINATION_DATA": str(trained / "data" / "public"),
        "PFL_EXAMINATION_REPEATS": "1",
        "PFL_WORKER_NAME": "examiner-1",
    }
    command = ["-m", "celery", "-A", "docvqa_site.celery", "worker", "-P", "solo", "-Q", "examinations"]
    with site.log_path("examinations").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *command], env=environment, cwd=site.home, stdout=log, stderr=log
        )
        yield
        process.terminate()
        process.wait()


def post(session: requests.Session, address: str, values: dict[str, str]) -> str:
    """Send a form of the page at this address, or of the page that leads there; returns what follows."""
    session.get(address, timeout=60)
    values = {"csrfmiddlewaretoken": session.cookies["csrftoken"], **values}
    answer = session.post(address, values, headers={"Referer": address}, timeout=60)
    answer.raise_for_status()
    return answer.text


def wait_for(session: requests.Session, address: str, text: str, log: Path) -> str:
    """The page as soon as it has this text."""
    deadline = time.monotonic() + 300
    while True:
        page = session.get(address, timeout=60).text
        if text in page:
            return page
        assert time.monotonic() < deadline, f"{page}\n{log.read_text()[-4000:]}"
        time.sleep(0.5)


def test_the_organizers_button_earns_a_run_each_level(
    site: Stack, examined: tuple[str, str], organizer: requests.Session, machine: None
) -> None:
    page, token = examined
    run = run_of(site, page, token)
    assert run["results"]["trust_level"] == 0
    desk = f"{site.url}/organize/runs/{run['id']}/"
    for level, name in enumerate(("L1 conforming", "L2, 2 of 2 rounds", "L3 rerun"), 1):
        followed = post(organizer, f"{desk}examine/", {"level": str(level)})
        assert "The examination is waiting for a machine." in followed
        rejected = post(organizer, f"{desk}examine/", {"level": str(level)})
        assert "E_EXAMINATION_ACTIVE" in rejected
        shown = wait_for(
            organizer, f"{desk}examinations/", "Request an examination", site.log_path("examinations")
        )
        assert "run by examiner-1" in shown
        public = requests.get(f"{page}runs/{run['id']}/", timeout=60).text
        assert f"{name}</span> by Olga Orgler" in public, shown
        assert name in requests.get(f"{site.url}/leaderboard/track-2/?epsilon=8", timeout=60).text
    examinations = run_of(site, page, token)["examinations"]
    assert [(one["level"], one["passed"], one["by"]) for one in examinations] == [
        (level, True, "Olga Orgler") for level in (3, 2, 1)
    ]
