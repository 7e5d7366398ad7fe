"""The workflows of the repository: what they may do, and whose code they run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
READ_ONLY = {"contents": "read"}
# All that any job may do beyond reading the code.
ALLOWED = {
    ("codeql.yml", "analyze"): {"security-events"},
    ("docs.yml", "publish"): {"id-token", "pages"},
    ("release.yml", "attest"): {"attestations", "id-token"},
    ("release.yml", "images"): {"attestations", "id-token", "packages"},
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "publish"): {"contents"},
}
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def jobs(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text())["jobs"]


def test_workflows_have_the_form_that_github_expects() -> None:
    schema = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    checked = subprocess.run([*schema, *WORKFLOWS], capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stdout


@every_workflow
def test_an_action_is_pinned_by_its_commit_with_the_version_beside_it(path: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.+)$", path.read_text(), re.MULTILINE)
    assert len(used) == sum("uses" in step for job in jobs(path).values() for step in job["steps"])
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_all_workflows_use_the_same_version_of_an_action() -> None:
    used = {use for path in WORKFLOWS for use in re.findall(r"uses: (\S+) #", path.read_text())}
    commits: dict[str, set[str]] = {}
    for action, _, commit in (use.partition("@") for use in used):
        commits.setdefault("/".join(action.split("/")[:2]), set()).add(commit)
    assert {name: found for name, found in commits.items() if len(found) > 1} == {}


@every_workflow
def test_a_job_may_do_only_what_it_needs(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == READ_ONLY
    for name, job in jobs(path).items():
        written = {scope for scope, right in job.get("permissions", {}).items() if right == "write"}
        assert written == ALLOWED.get((path.name, name), set()), name
        assert job["timeout-minutes"] <= 120
    assert set(re.findall(r"secrets\.(\w+)", path.read_text())) <= {"GITHUB_TOKEN"}


@every_workflow
def test_no_token_stays_in_the_clone_and_no_value_is_pasted_into_a_command(path: Path) -> None:
    for job in jobs(path).values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


@every_workflow
def test_what_a_job_installs_from_the_index_is_compared_with_hashes(path: Path) -> None:
    commands = [step.get("run", "") for job in jobs(path).values() for step in job["steps"]]
    assert [
        command for command in commands if "pip install" in command and "--require-hashes" not in command
    ] == []
