"""How many threads compute with a model on a CPU.

The operations of a tiny model take microseconds. Shared between threads they take longer, because the threads wait for
each other: where other programs used the cores as well, a training round of the tiny VT5 took five times the processor
time of one thread.
"""

import os

import torch

# The tiny VT5 has 0.4 million, the published one 311 million.
FEW_PARAMETERS = 10_000_000
NAMED_BY_USER = "OMP_NUM_THREADS"


class _Threads:
    """The number of threads of this process for models that aren't small."""

    usual: int | None = None


def set_threads_for(parameters: int) -> None:
    """Let this process compute in one thread from now on if its model has few parameters, else in its usual number.

    Where the variable `OMP_NUM_THREADS` names a number, it stays.
    """
    if NAMED_BY_USER in os.environ:
        return
    if parameters < FEW_PARAMETERS:
        _Threads.usual = _Threads.usual or torch.get_num_threads()
        torch.set_num_threads(1)
    elif _Threads.usual is not None:
        torch.set_num_threads(_Threads.usual)
        _Threads.usual = None
