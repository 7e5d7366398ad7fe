"""Takes from this process, for good, what it doesn't need: network, files, other processes, new processes.

Each protection is independent of the others, needs no privilege, and is reported as on or off:

- a user and network namespace of its own, without any interface (many container runtimes forbid it);
- a mount namespace with a `/dev/shm` of its own, of limited size, which ends with it (where the former is allowed);
- a seccomp filter that rejects sockets, tracing and, if wanted, new processes and signals to others (Linux 3.17);
- Landlock rules that leave it the named files only, no TCP, and no signals to others (since Linux 5.13, 6.7 and 6.12).

References: unshare(2), seccomp(2), landlock(7), capset(2).
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET, CLONE_THREAD = 0x08000000, 0x10000000, 0x40000000, 0x00010000
CLONE_NEWNS, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x00020000, 2, 4, 0x4000, 0x40000

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  (nothing is left there)
# Of what is in memory there no limit of the process takes account.
SHARED_MEMORY_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class Protection:
    """What the kernel enforces around a sandboxed process, beside its limits."""

    namespaces: bool
    seccomp: bool
    landlock: int
    shared_memory: bool = False

    @property
    def missing(self) -> list[str]:
        """What isn't enforced, in words."""
        lacks = {
            "no network": not (self.namespaces or self.seccomp),
            "no new processes": not self.seccomp,
            "no files but its own": not self.landlock,
            "no shared memory but its own": not (self.shared_memory or self.landlock),
        }
        return [name for name, is_missing in lacks.items() if is_missing]

    def __str__(self) -> str:
        landlock = f"landlock {self.landlock}" if self.landlock else ""
        parts = [
            "namespaces" if self.namespaces else "",
            "shared memory" if self.shared_memory else "",
            "seccomp" if self.seccomp else "",
            landlock,
        ]
        return ", ".join(filter(None, parts)) or "none"


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, whose id is `parent`."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_from_others() -> None:
    """Keep processes of the same account from reading this one's memory and environment."""
    _libc.prctl(PR_SET_DUMPABLE, 0)


def confine(*, readable: Iterable[Path], writable: Iterable[Path], processes: bool) -> Protection:
    """Leave this process the files below these paths, and nothing else; it must have one thread.

    Args:
        readable: What it may read and execute.
        writable: What it may change as well.
        processes: Whether it may start processes.
    """
    namespaces = _enter_namespaces()
    shared_memory = _have_own_shared_memory()
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _drop_capabilities()
    landlock = _apply_landlock(readable, [*writable, *([SHARED_MEMORY] if shared_memory else [])])
    return Protection(namespaces, _filter_calls(processes), landlock, shared_memory)


def _enter_namespaces() -> bool:
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0:
        # Without a user namespace it takes a privilege, which containers that run as root may have.
        return bool(_libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _have_own_shared_memory() -> bool:
    """Put an empty file system of limited size over the one that all processes share; return whether it is there."""
    if not SHARED_MEMORY.is_dir() or _libc.unshare(CLONE_NEWNS) != 0:
        return False
    # What is mounted from here on stays in this namespace.
    if _libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return False
    options = f"size={SHARED_MEMORY_BYTES},nr_inodes=1024,mode=1777".encode()
    target = os.fsencode(SHARED_MEMORY)
    return bool(_libc.mount(b"tmpfs", target, b"tmpfs", MS_NOSUID | MS_NODEV, options) == 0)


def _drop_capabilities() -> None:
    """Give up every capability, those over namespaces of its own included."""
    header = struct.pack("=Ii", 0x20080522, 0)
    _libc.capset(header, bytes(24))


# How the kernel numbers each architecture. Those of the calls of 64-bit ARM are those of every newer architecture.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# The numbers of the system calls that are rejected, on each architecture in this order.
_REJECTED = {
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
}
# What a process without children needs for itself only: starting others, and signals in their uncommon forms (tkill,
# rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal).
_FORKS = ((57, 58), ())
_SIGNALS = ((200, 129, 297, 424), (130, 138, 240, 424))
_KILLS = ((62, 234), (129, 131))
_CLONE = (56, 220)
_CLONE3 = 435

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_ARGUMENT_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000


def _filter_calls(processes: bool) -> bool:
    """Install the filter; return whether it holds."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(machine, processes))
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    return bool(_libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0) == 0)


def _program(machine: str, processes: bool) -> list[tuple[int, int, int, int]]:
    """Return the filter as instructions (operation, jump if true, jump if false, constant)."""
    place = list(_ARCHITECTURES).index(machine)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        # The calls of the 32-bit pointer interface have other numbers.
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    alone = () if processes else (*_FORKS[place], *_SIGNALS[place])
    numbers = [*(rejected[place] for rejected in _REJECTED.values()), *alone]
    for number in numbers:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    if not processes:
        for number in _KILLS[place]:
            program += [
                (_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, _FIRST_ARGUMENT_OFFSET),
                (_EQUAL, 0, 1, os.getpid()),
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, _ERROR | errno.EPERM),
            ]
        program += [
            # Its arguments are in memory, where a filter can't see them; the C library then uses the older call.
            (_EQUAL, 0, 1, _CLONE3),
            (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
            (_EQUAL, 0, 3, _CLONE[place]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT_OFFSET),
            (_ANY_BIT, 1, 0, CLONE_THREAD),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
        ]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR


def _apply_landlock(readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Leave this process these files; return the version of the kernel's rules, 0 if it has none."""
    version = int(_libc.syscall(_CREATE_RULESET, None, 0, 1))
    if version < 1:
        return 0
    # Later versions know moving between folders (2) and truncating (3).
    every = (1 << {1: 13, 2: 14}.get(version, 15)) - 1
    no_tcp, no_signals = 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0
    attributes = struct.pack("=QQQ", every, no_tcp, no_signals)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        return 0
    try:
        for path, rights in [*((path, _READ) for path in readable), *((path, every) for path in writable)]:
            _allow(ruleset, path, rights & every)
        return version if _libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = rights if path.is_dir() else rights & _OF_FILES
        _libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, below), 0)
    finally:
        os.close(below)
