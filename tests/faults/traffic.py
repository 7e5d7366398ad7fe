"""Participants who submit through the site's API, as `pfl submit` does, and try again as a person would."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.states import SubmissionState
from starter_kit.site.client import SiteClient
from starter_kit.submitting import PlannedRun, SubmissionPlan, send
from tests.faults.back_ends import wait_until
from tests.faults.counts import Counts, count_runs, read_runs
from tests.faults.sites import Site

TRACK = "track-1"
# How long a participant keeps trying, and how long the last evaluation may take to end after the last fault.
PATIENCE_S = 300
FINISH_S = 600
# What a person waits out; anything else that the site answers is a finding.
PASSING = {ErrorCode.SITE_UNREACHABLE}
PASSING_NAMES = {"STORE_UNAVAILABLE", "STORE_FULL", "TOO_MANY_REQUESTS"}

MAKE_PARTICIPANTS = """
import io, json
from django.core.management import call_command
def run(*words):
    printed = io.StringIO()
    call_command(*words, stdout=printed)
    return printed.getvalue().strip()
tokens = []
for number in range({teams}):
    email = f"ada-{{number}}@lab.example"
    run("create_user", email, "--name", f"Ada {{number}}")
    run("create_team", f"Team {{number}}", "--owner", email)
    tokens.append(run("create_token", email, "--label", "faults"))
print(json.dumps(tokens))
"""


@dataclass(frozen=True)
class Material:
    """The files that submissions are made of: base weights, and the communication log of a small training."""

    base: Path
    log: Path
    folder: Path

    def checkpoint(self, number: int) -> Path:
        """Return a new checkpoint that no other has: the base weights with one weight changed."""
        tensors = load_file(self.base / "model.safetensors")
        name = min(tensors)
        changed = np.array(tensors[name])
        changed.flat[0] = 1 + number * 2.0**-10
        path = self.folder / f"{number}.safetensors"
        save_file({**tensors, name: changed}, path)
        return path


class Traffic:
    """The submissions of one scenario, each with a title that begins with `name`."""

    _numbers = count(1)

    def __init__(self, site: Site, material: Material, tokens: Sequence[str], name: str) -> None:
        self.site = site
        self.name = name
        self._material = material
        self._tokens = tokens
        self._pool = ThreadPoolExecutor(8)
        self._submitting: list[Future[object]] = []
        self._stopped = False

    def submit(self, submissions: int, pause_s: float = 0.0) -> None:
        """Let participants submit so many, in the background, a pause apart."""
        for number in range(len(self._submitting), len(self._submitting) + submissions):
            token = self._tokens[number % len(self._tokens)]
            self._submitting.append(self._pool.submit(self._submit_one, token, f"{self.name} {number}"))
            time.sleep(pause_s)

    def wait_until_submitted(self) -> None:
        """Wait until the site has confirmed every submission; an unexpected answer of the site fails the test."""
        for submitting in self._submitting:
            submitting.result(PATIENCE_S + FINISH_S)

    def finish(self) -> Counts:
        """Wait for the end of all evaluations, and count."""
        self.wait_until_submitted()

        def is_over() -> bool:
            self.site.restart_ended()
            return self.site.back_ends.unfinished() == 0

        wait_until(is_over, "runs are still queued or running", FINISH_S)
        wait_until(lambda: self._counts().has_all_mails, "mails are missing", 120)
        return self._counts()

    def stop(self) -> None:
        """Let nobody try again."""
        self._stopped = True
        self._pool.shutdown(cancel_futures=True)

    @property
    def is_submitted(self) -> bool:
        """Whether every participant is through."""
        return all(submitting.done() for submitting in self._submitting)

    def submit_with(self, submit: Callable[[str], object]) -> None:
        """Let a participant submit in the background in a way of their own; `submit` is given the title."""
        title = f"{self.name} {len(self._submitting)}"
        self._submitting.append(self._pool.submit(submit, title))

    def _counts(self) -> Counts:
        return count_runs(len(self._submitting), read_runs(self.site, self.name))

    def _submit_one(self, token: str, title: str) -> None:
        client = SiteClient(self.site.proxy.url, token)
        checkpoint = self._material.checkpoint(next(self._numbers))
        files = {ArtifactKind.CHECKPOINT: checkpoint, ArtifactKind.COMMUNICATION_LOG: self._material.log}
        plan = SubmissionPlan(TRACK, [PlannedRun(None, files)], None)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if not _is_submitted(client, title):
                    send(client, plan, title, "", lambda *_: None)
                break
            except ProblemError as error:
                if self._stopped or time.monotonic() > deadline or not _passes(error):
                    raise
                time.sleep(1)
        checkpoint.unlink()


def make_participants(site: Site, teams: int) -> list[str]:
    """Make teams of one verified user each; return their API tokens."""
    printed = site.manage(*("shell", "--no-imports", "-v", "0", "-c"), MAKE_PARTICIPANTS.format(teams=teams))
    tokens: list[str] = json.loads(printed.splitlines()[-1])
    return tokens


def _is_submitted(client: SiteClient, title: str) -> bool:
    """Return whether an earlier try got through after all, as a person would look up."""
    return any(
        submission.title == title and submission.state is not SubmissionState.DRAFT
        for submission in client.submissions()
    )


def _passes(error: ProblemError) -> bool:
    return all(problem.code in PASSING or problem.code.name in PASSING_NAMES for problem in error.problems)
