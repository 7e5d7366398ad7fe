"""How much a sandboxed process may use."""

import resource
from dataclasses import dataclass

MIB = 1024**2


@dataclass(frozen=True)
class Limits:
    """How much a sandboxed process may use; the kernel enforces what isn't said to be watched.

    Attributes:
        wall_s: Seconds until it is killed; watched.
        cpu_s: Seconds of CPU time.
        memory_bytes: Resident memory of it and its children; watched, twice a second.
        address_space_bytes: Virtual memory. None for CUDA, which reserves more than any machine has.
        processes: How many processes it may start; with 0 it has threads only, whoever's account it runs under. A
            larger number counts all processes of the account, and doesn't bind root.
        file_bytes: The size of a file that it writes.
        open_files: File descriptors.
        result_bytes: The size of what it returns, and of each message before.
    """

    wall_s: float = 3600
    cpu_s: int = 3600
    memory_bytes: int = 8192 * MIB
    address_space_bytes: int | None = None
    processes: int = 0
    file_bytes: int = 1024 * MIB
    open_files: int = 256
    result_bytes: int = 32 * MIB

    def apply(self) -> None:
        """Limit this process, for good."""
        limits = {
            resource.RLIMIT_CPU: self.cpu_s,
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CORE: 0,
        }
        if self.address_space_bytes is not None:
            limits[resource.RLIMIT_AS] = self.address_space_bytes
        if self.processes:
            limits[resource.RLIMIT_NPROC] = self.processes
        for kind, wanted in limits.items():
            _, hard = resource.getrlimit(kind)
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            # The kernel ends a process at the first limit of CPU time with a signal of its own.
            later = value + 1 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else value
            resource.setrlimit(kind, (value, later))
