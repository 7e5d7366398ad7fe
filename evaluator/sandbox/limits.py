"""How much a sandboxed process may use."""

import resource
from dataclasses import dataclass, replace
from pathlib import Path

MIB = 1024**2
CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Of its container's memory: whoever started it, and the libraries that are loaded once, need the rest.
SHARE_OF_CONTAINER = 0.8


@dataclass(frozen=True)
class Limits:
    """How much a sandboxed process may use; the kernel enforces what isn't said to be watched.

    Attributes:
        wall_s: Seconds until it is killed; watched.
        cpu_s: Seconds of CPU time.
        memory_bytes: Resident memory of it and all that it started; watched, twice a second.
        address_space_bytes: Virtual memory. None for CUDA, which reserves more than any machine has.
        processes: How many processes it may start; with 0 it has threads only, whoever's account it runs under. A
            larger number counts all processes of the account, and doesn't bind root.
        file_bytes: The size of a file that it writes.
        disk_bytes: What it and all that it started write, in all files; watched, twice a second.
        open_files: File descriptors.
        result_bytes: The size of what it returns, and of each message before.
    """

    wall_s: float = 3600
    cpu_s: int = 3600
    memory_bytes: int = 8192 * MIB
    address_space_bytes: int | None = None
    processes: int = 0
    file_bytes: int = 1024 * MIB
    disk_bytes: int = 16 * 1024 * MIB
    open_files: int = 256
    result_bytes: int = 32 * MIB

    def within(self, container_bytes: int | None) -> "Limits":
        """Return the limits of a process in a container with so much memory, if that is limited."""
        if container_bytes is None:
            return self
        return replace(self, memory_bytes=min(self.memory_bytes, int(SHARE_OF_CONTAINER * container_bytes)))

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


def container_memory_bytes(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> int | None:
    """Return how much memory this process's container may use; None without a limit."""
    found = []
    for line in own.read_text().splitlines() if own.is_file() else []:
        _, controllers, group = line.split(":", 2)
        if controllers not in {"", "memory"}:
            continue
        root, name = (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
        folder = root / group.lstrip("/")
        # Inside of a container, the group may have the name that it has outside.
        places = [place / name for place in (folder, *folder.parents) if place.is_relative_to(root)]
        found += [place.read_text().strip() for place in places if place.is_file()]
    # Version 1 states the largest number that it can for "none".
    numbers = [int(text) for text in found if text.isdigit() and int(text) < 1 << 62]
    return min(numbers, default=None)
