"""Reading an imdb file within a bound on memory.

One wrong byte of such a file can ask the unpickler for a table of many gigabytes, and a system that grants them ends
the process, or another one, when they are written.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.docvqa.imdb import Imdb, read_imdb

# How much reading a file may allocate: so many bytes for each of its own, and these.
BYTES_FOR_EACH, SPARE_BYTES = 32, 1 << 30


def read_bounded(path: Path) -> Imdb:
    """Read an imdb file as `read_imdb` does, and reject one that asks for more memory than its size explains.

    Raises:
        ProblemError: `E_DATASET_FORMAT`.
    """
    size = path.stat().st_size if path.exists() else 0
    with _memory_limited(BYTES_FOR_EACH * size + SPARE_BYTES):
        return read_imdb(path)


@contextmanager
def _memory_limited(extra: int) -> Iterator[None]:
    """Let this process allocate at most so many bytes more, where the system can limit that."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = [limit for limit in (used + extra, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
