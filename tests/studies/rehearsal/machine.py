"""The machine that a rehearsal runs on, and the other work that it does meanwhile."""

import os
import resource
import time
from pathlib import Path

import torch

# The columns of /proc/stat in which processors do no work for this machine: idle, waiting, and taken by others.
NO_WORK = (3, 4, 7, 8, 9)


def machine_name() -> str:
    """Return what a stage runs on, in words."""
    return f"{torch.get_num_threads()} of {os.cpu_count() or 1} cores, torch {torch.__version__}"


class OtherWork:
    """The work of other processes on the machine, from now on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy_s = _busy_s()
        self._own_s = _own_s()

    @property
    def share(self) -> float:
        """The share of all cores' time that it has taken so far."""
        others_s = (_busy_s() - self._busy_s) - (_own_s() - self._own_s)
        return max(0.0, others_s / ((os.cpu_count() or 1) * (time.monotonic() - self._began)))


def _busy_s() -> float:
    """Return the seconds that all cores have worked since the machine was started."""
    ticks = [int(column) for column in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return sum(count for place, count in enumerate(ticks) if place not in NO_WORK) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
