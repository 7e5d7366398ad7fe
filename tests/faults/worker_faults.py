"""Workers that die: in each step, and at random."""

import os
import random
import time
from collections.abc import Callable
from uuid import uuid4

from tests.e2e.conftest import pfl, train_privately
from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

STEPS = ("validate", "communication", "accounting", "scoring")
CHAOS_SUBMISSIONS = int(os.environ.get("PFL_FAULTS_SUBMISSIONS", "200"))
CHAOS_TEAMS = 20
CHAOS_KILLS = 60


def kill_worker_in_each_step(trial: Trial) -> None:
    """Kill the worker, with all that it started, as soon as it begins a step."""

    def kill(worker: str) -> bool:
        trial.kill(worker)
        return True

    hit_each_step(trial, kill)


def kill_child_in_each_step(trial: Trial) -> None:
    """Kill the process that runs a step, and not the worker that started it."""
    hit_each_step(trial, trial.kill_step)


def kill_worker_alone_in_each_step(trial: Trial) -> None:
    """Kill the worker, and not the process that runs the step for it."""

    def kill(worker: str) -> bool:
        trial.site.kill_process(worker)
        trial.faults += 1
        trial.site.start_process(worker)
        return True

    hit_each_step(trial, kill)


def hit_each_step(trial: Trial, hit: Callable[[str], bool]) -> None:
    """Hit a worker once in each step of a private run; another run is submitted if the last one got through."""
    trial.watch_steps()
    for step in STEPS:
        worker = None
        while worker is None or not hit(worker):
            if trial.is_over:
                submit_private_run(trial)
            worker = trial.wait_for_step(step)


def kill_each_worker_of_a_run(trial: Trial) -> None:
    """Kill every worker that takes a certain run, as a file would that no worker survives."""
    trial.watch_steps()
    trial.traffic.submit(1)
    while not trial.is_over:
        if begun := trial.begun_step():
            trial.kill(begun[0])
        time.sleep(0.02)
    trial.traffic.submit(3)


def chaos(trial: Trial) -> None:
    """Kill a worker, or a process that it has started, every few seconds.

    No more often on a slow machine, where all attempts at one run would be killed in the end.
    """
    chance = random.Random(trial.seed)
    trial.traffic.submit(CHAOS_SUBMISSIONS)
    while trial.faults < CHAOS_KILLS:
        if trial.is_over:
            trial.traffic.submit(10)
        time.sleep(chance.uniform(2, 8))
        worker = chance.choice(WORKERS)
        trial.site.restart_ended()
        if chance.random() < 0.5 or not trial.kill_any_child(worker, chance):
            trial.kill(worker)


def submit_private_run(trial: Trial) -> None:
    """Train a private run, which has every step, and let `pfl` submit it."""
    access = {
        "PFL_SITE": trial.site.proxy.url,
        "PFL_TOKEN": trial.token,
        "PFL_KEY": str(trial.folder / "key.pem"),
    }
    run = train_privately(trial.trained, trial.folder / f"run-{uuid4().hex}", access)
    proof = trial.folder / "proof.md"
    proof.write_text("Because the noise is large enough.")
    command = ["submit", run, "--track", "track-2", "--description", "Noise.", "--proof", proof, "--title"]
    # In the background: its first step may begin before the command ends.
    trial.traffic.submit_with(lambda title: pfl(*command, title, environment=access))
