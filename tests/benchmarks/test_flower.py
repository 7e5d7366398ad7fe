"""Federations over Flower, compared with the same run in one process: many clients, large messages and a straggler.

All processes of a federation share this machine, so a round's time is that of computing and of moving messages through
a SuperLink together. What a node's SuperNode and the SuperLink take of memory is what the operators of both need beside
the kit.
"""

import os
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from starter_kit.engines.flower.address import free_port
from starter_kit.engines.flower.child_process import entry_point
from starter_kit.reporting.metrics import METRICS, read_metrics
from tests.starter_kit.commands.pfl import run_pfl
from tests.starter_kit.engines.parties import PATIENCE_S, Parties, Party, changes
from tests.studies.rehearsal.inputs import Shape, make_base, make_data

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

CLIENTS, NODES = 100, 10
ROUNDS = 4
TIMEOUT_S = 60
LOST = re.compile(r"round (\d+): client \d+ is lost \((.*)\)")
FEW_STEPS = ["local.batch_size=2", "local.max_steps=1", "evaluate_every=0"]


class Peaks:
    """The most memory that a process of each kind took, in megabytes."""

    def __init__(self, parties: Parties) -> None:
        self.parties = parties
        self.of: dict[str, float] = {}

    def look(self) -> None:
        """Note what every process of the federation takes at this moment."""
        named = [("the server" if n == 0 else "a node", p.pid) for n, p in enumerate(self.parties.started)]
        named += [(self._flower(child), child.pid) for child in self.parties.look()]
        for name, pid in named:
            with suppress(psutil.Error):
                megabytes = psutil.Process(pid).memory_info().rss / 1e6
                self.of[name] = max(megabytes, self.of.get(name, 0.0))

    def print(self) -> None:
        """Print a line for each kind."""
        for name, megabytes in sorted(self.of.items()):
            print(f"    memory of {name:<14}{megabytes:8.0f} MB at most")

    @staticmethod
    def _flower(child: psutil.Process) -> str:
        with suppress(psutil.Error):
            if entry_point("flower-supernode") in child.cmdline():
                return "a SuperNode"
        return "the SuperLink"


@pytest.fixture
def parties(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parties]:
    federation = Parties(tmp_path, tmp_path_factory.mktemp("logs"), tmp_path / "data", tmp_path / "base")
    try:
        yield federation
    finally:
        federation.end()


def federate(parties: Parties, given: Sequence[str], clients: Sequence[Sequence[int]], *more: str) -> None:
    """Start a server, whose run folder is `run`, and a node for each of these groups of clients."""
    same, port = ["fedavg", *changes(given), "--wait", str(PATIENCE_S)], str(free_port())
    parties.start("server", *same, "--port", port, "--out", "run", *more)
    for group in clients:
        own = [word for client in group for word in ("--client", str(client))]
        parties.start("node", *same, "--server", f"127.0.0.1:{port}", *own)


def follow(parties: Parties, peaks: Peaks, until: str = "") -> None:
    """Wait for the server's end, or until it has printed a text; meanwhile, look at memory."""
    server, printed = parties.started[0], parties.logs / "0.log"
    while server.poll() is None:
        if until and until in printed.read_text():
            return
        peaks.look()
        time.sleep(0.2)
    status, text = server.ended()
    assert status == 0, text
    assert not until, text


def in_one_process(parties: Parties, given: Sequence[str]) -> list[float]:
    """Train without Flower; return the seconds of each round."""
    given = [*changes(given), "--data", str(parties.data), "--base", str(parties.base), "--out", "together"]
    ended = run_pfl(
        "train", "fedavg", *given, environment=os.environ | {"OMP_NUM_THREADS": "1"}, folder=parties.folder
    )
    assert ended.returncode == 0, ended.stderr
    return seconds(parties.folder / "together")


def seconds(run: Path) -> list[float]:
    return [found.seconds or 0.0 for found in read_metrics(run / METRICS)]


def lost_clients(parties: Parties) -> dict[int, Counter[str]]:
    """Return how many clients each round went on without, by the reason that the server prints."""
    lost: dict[int, Counter[str]] = defaultdict(Counter)
    for number, why in LOST.findall(parties.started[0].ended()[1]):
        lost[int(number)][why] += 1
    return lost


def stop(node: Party) -> None:
    """Stop a node and its SuperNode, as if their machine were busy with something else."""
    for process in (*psutil.Process(node.pid).children(recursive=True), psutil.Process(node.pid)):
        process.send_signal(signal.SIGSTOP)


def test_a_hundred_clients_and_a_node_that_stops(parties: Parties) -> None:
    make_data(parties.data, Shape(CLIENTS, CLIENTS, CLIENTS, 2 * CLIENTS))
    make_base(parties.base, tiny=True)
    given = [*FEW_STEPS, f"rounds={ROUNDS}", f"clients_per_round={CLIENTS}"]
    alone = in_one_process(parties, given)
    groups = [range(CLIENTS)[number::NODES] for number in range(NODES)]
    peaks = Peaks(parties)
    federate(parties, given, groups, "--timeout", str(TIMEOUT_S))
    follow(parties, peaks, until=f": round 1/{ROUNDS}: ")
    stop(parties.started[-1])
    try:
        follow(parties, peaks)
    finally:
        for process in parties.look():
            process.send_signal(signal.SIGCONT)
        parties.started[-1].send_signal(signal.SIGCONT)
    rounds, lost = seconds(parties.folder / "run"), lost_clients(parties)
    print(f"\n{CLIENTS} clients at {NODES} nodes, a step of 2 questions each; one node stops")
    print(f"in one process, a round             {sorted(alone)[ROUNDS // 2]:6.1f} s")
    for number, took in enumerate(rounds, start=1):
        missing = "".join(f", {count} clients lost: {why}" for why, count in lost[number].items())
        print(f"over Flower, round {number}                {took:6.1f} s{missing}")
    print(f"a client's reply is awaited for       {TIMEOUT_S:4} s")
    peaks.print()
    assert len(rounds) == ROUNDS
    assert sum(sum(each.values()) for each in lost.values()) >= CLIENTS // NODES
    assert rounds[-1] < TIMEOUT_S, "a node that didn't answer isn't waited for again"


def test_messages_of_a_gigabyte(parties: Parties) -> None:
    make_data(parties.data, Shape(2, 2, 2, 4))
    make_base(parties.base, tiny=False)
    given = [*FEW_STEPS, "rounds=2", "clients_per_round=1"]
    alone = in_one_process(parties, given)
    peaks = Peaks(parties)
    federate(parties, given, [[0, 1]], "--timeout", str(PATIENCE_S))
    follow(parties, peaks)
    rounds = seconds(parties.folder / "run")
    sent = (parties.folder / "run" / "communication_log.csv").read_text().splitlines()
    print(f"\nfull size, one client a round, a step of 2 questions; messages both ways: {sent[1]}")
    for name, found in (("in one process", alone), ("over Flower", rounds)):
        print(f"{name:<20}" + "".join(f"{took:8.1f} s" for took in found))
    print(f"over Flower / in one process, second round: {rounds[1] / alone[1]:.2f}")
    peaks.print()
    assert len(rounds) == len(alone)
