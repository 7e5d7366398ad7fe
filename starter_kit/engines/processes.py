"""The engine that runs clients in several processes of this machine, each with its own model.

On a CPU with the same number of threads per process, results equal those of the local engine to the bit: what a client
does follows from the request, its state and its own stream, and replies are passed on in the order of the requests, so
that they are added in the same order.

Processes are spawned, never forked: a forked process would draw the coins and the noise of its parent again.
"""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from evaluator.errors import ErrorCode, Problem, ProblemError
from starter_kit.engines.devices import use_device
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.local_engine import MachineEngine
from starter_kit.federation.rounds import Engine, Reply, Request
from starter_kit.own_files import errors_reported, run_own_file
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import OpenEngine
from starter_kit.settings.configuration import settings_class
from starter_kit.settings.own_methods import check_returns, own_file, own_files

# How long a process has to end by itself, before it is killed.
STOPPING_S = 5.0


def in_processes(count: int, *, data: Path, base: Path, devices: Sequence[torch.device] = ()) -> OpenEngine:
    """Return an engine that runs clients in `count` processes, or in one per client if there are fewer clients.

    With `device: cuda` each process takes the next GPU; on the CPU they share the threads that this process has.

    Args:
        data, base: The folders that the run's setup was read from; each process reads all of its pages.
        devices: The devices that processes take in place of these, in turn.
    """

    @contextmanager
    def opened(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
        clients = [client.id for client in setup.clients]
        workers = min(count, len(clients))
        settings, file = setup.settings, own_file(type(setup.settings))
        plan = _SetupInputs(
            method=str(file.path) if file else settings.method,
            files={own.path: own.sha256 for own in own_files(settings)},
            values=settings.model_dump(),
            data=data,
            base=base,
            threads=max(1, torch.get_num_threads() // workers),
            devices=devices,
        )
        with ExitStack() as stack:
            started = [stack.enter_context(_started(number, plan)) for number in range(workers)]
            _await_pages(started, watcher)
            yield ProcessEngine(started, clients)

    return opened


@dataclass(frozen=True)
class _SetupInputs:
    """What a process needs to set up its run.

    Attributes:
        method: The name or the file of the method to which the settings in `values` belong.
        files: The participant's own files, of the method and of plug-ins, with the SHA-256 of each as this process runs
            it.
        devices: Those that processes take in turn; none for the next GPU, or the CPU.
    """

    method: str
    files: Mapping[Path, str]
    values: Mapping[str, Any]
    data: Path
    base: Path
    threads: int
    devices: Sequence[torch.device]

    def setup(self) -> RunSetup:
        """Return the setup of the run.

        Raises:
            ProblemError: (`E_CONFIGURATION`) One of the files has changed since the engine was started.
        """
        known = settings_class(self.method, Path())
        # Plug-ins in the settings are found by the hashes of the files that were run.
        for path, sha256 in self.files.items():
            file = own_file(known) if path == Path(self.method) else run_own_file(path)
            if file is None or file.sha256 != sha256:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where=str(path),
                    expected="the file as it was when the run was started",
                    found="another file",
                    next_step="Start the run again.",
                )
        return RunSetup(known.model_validate(self.values), data=self.data, base=self.base)


@dataclass(frozen=True)
class _Pages:
    """How many pages a process has read so far."""

    done: int
    total: int


@dataclass(frozen=True)
class _Ready:
    """A process waits for its first job."""


@dataclass(frozen=True)
class _Job:
    request: Request
    state: bytes


@dataclass(frozen=True)
class _Answer:
    reply: Reply
    state: bytes


@dataclass(frozen=True)
class _Rejected:
    problems: Sequence[Problem]


@dataclass(frozen=True, eq=False)
class Worker:
    """One process, seen from the engine."""

    number: int
    process: SpawnProcess
    pipe: "Connection[Any, Any]"

    def send(self, job: _Job) -> None:
        with self._report_exit():
            self.pipe.send(job)

    def receive(self) -> Any:
        """Return the next message of the process. Raises `ProblemError` where it rejected something, or has ended."""
        with self._report_exit():
            message = self.pipe.recv()
        if isinstance(message, _Rejected):
            raise ProblemError(*message.problems)
        return message

    @contextmanager
    def _report_exit(self) -> Iterator[None]:
        """Report a process that has ended as a problem of the run."""
        try:
            yield
        except (EOFError, OSError) as error:
            self.process.join(STOPPING_S)
            raise ProblemError.of(
                ErrorCode.CLIENTS_LOST,
                where=f"process {self.number} of the engine",
                expected="an answer",
                found=f"it ended with status {self.process.exitcode}",
                next_step="Check whether memory ran out, then resume with --resume, with fewer processes if it did.",
            ) from error


class ProcessEngine(MachineEngine):
    """Runs clients in the processes of `workers`, each in the first process that is free.

    A client's state travels with each request, and back.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) A process ended; or a client rejected something.
    """

    def __init__(self, workers: Sequence[Worker], clients: Sequence[int]) -> None:
        super().__init__(clients)
        self._workers = list(workers)

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the clients' replies in the order of the requests."""
        waiting = deque(enumerate(requests))
        free, busy = list(self._workers), dict[object, tuple[int, Worker]]()
        done: dict[int, Reply] = {}
        for position in range(len(requests)):
            while position not in done:
                while waiting and free:
                    index, request = waiting.popleft()
                    worker = free.pop(0)
                    worker.send(_Job(request, self.states[request.client].to_bytes()))
                    busy[worker.pipe] = index, worker
                for pipe in wait([worker.pipe for _, worker in busy.values()]):
                    index, worker = busy.pop(pipe)
                    done[index] = self._reply(worker)
                    free.append(worker)
            yield done.pop(position)

    def _reply(self, worker: Worker) -> Reply:
        answer: _Answer = worker.receive()
        self.states[answer.reply.client] = LocalState.from_bytes(answer.state)
        return answer.reply


@contextmanager
def _started(number: int, plan: _SetupInputs) -> Iterator[Worker]:
    """Inside the block, run a process of this engine; it has ended when the block is left."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, plan, number), daemon=True)
    process.start()
    # Otherwise the end of the process would not end the pipe.
    theirs.close()
    try:
        yield Worker(number, process, ours)
    finally:
        ours.close()
        process.join(STOPPING_S if sys.exc_info()[0] is None else 0)
        process.kill()
        process.join()
        process.close()


def _await_pages(workers: Sequence[Worker], watcher: Watcher) -> None:
    """Wait until all processes are ready, and report to the watcher how many pages they have read."""
    read = dict[Worker, _Pages]()
    reading: dict[object, Worker] = {worker.pipe: worker for worker in workers}
    while reading:
        for pipe in wait([worker.pipe for worker in reading.values()]):
            worker = reading[pipe]
            match worker.receive():
                case _Pages() as pages:
                    read[worker] = pages
                    watcher.pages(
                        sum(part.done for part in read.values()), sum(part.total for part in read.values())
                    )
                case _Ready():
                    del reading[worker.pipe]


def _serve(pipe: "Connection[Any, Any]", plan: _SetupInputs, number: int) -> None:
    """Run a process: set up, then answer requests until the pipe is closed or something is rejected."""
    # An interrupted engine ends its processes by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(plan.threads)
    if plan.values["device"] == "cuda":
        use_device(plan.devices, number)
    # Either error means that the engine is gone.
    with suppress(EOFError, BrokenPipeError):
        try:
            setup = plan.setup()
            check_returns(setup.method)
            participant = setup.participant(lambda done, total: pipe.send(_Pages(done, total)))
            pipe.send(_Ready())
            while True:
                job: _Job = pipe.recv()
                kept = LocalState.from_bytes(job.state)
                with errors_reported():
                    reply = participant.answer(job.request, kept)
                pipe.send(_Answer(reply, kept.to_bytes()))
        except ProblemError as error:
            pipe.send(_Rejected(error.problems))
