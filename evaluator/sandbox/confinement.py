"""Takes from this process, for good, what it doesn't need: network, files, other processes, new processes.

Each protection is independent of the others, needs no privilege, and is reported as on or off:

- a process namespace, in which nothing outlives the server of sandboxed processes, with a `/proc` that shows no others
  (many container runtimes forbid namespaces);
- a user and network namespace of its own, without any interface;
- a mount namespace with a `/dev/shm` of its own, of limited size, which ends with it (where the former is allowed);
- a seccomp filter that allows a list of calls: see `calls` (Linux 3.17);
- Landlock rules that leave it the named files only, no TCP, and no signals to others (since Linux 5.13, 6.7 and 6.12).

Started by root, it takes an account without rights, and keeps of root's only that it may read the named files.

References: unshare(2), pid_namespaces(7), seccomp(2), landlock(7), capabilities(7).
"""

import contextlib
import ctypes
import os
import platform
import signal
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.sandbox import calls

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP = 1, 4, 8, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 36, 38, 47, 2
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
CLONE_NEWNS, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x00020000, 2, 4, 8, 0x4000, 0x40000
CAP_DAC_READ_SEARCH = 2

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  (nothing is left there)
# Of what is in memory there no limit of the process takes account.
SHARED_MEMORY_BYTES = 64 * 1024**2
# The account "nobody" of every distribution: in place of root's.
UNPRIVILEGED = 65534


@dataclass(frozen=True)
class Protection:
    """What the kernel enforces around a sandboxed process, beside its limits."""

    namespaces: bool
    seccomp: bool
    landlock: int
    shared_memory: bool = False
    own_processes: bool = False
    is_root: bool = False

    @property
    def missing(self) -> list[str]:
        """What isn't enforced, in words, for a process that reads untrusted files."""
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
            "own processes" if self.own_processes else "",
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


def enter_process_namespace() -> bool:
    """Have the next child, and all of its children, in a process namespace of their own; return whether that works.

    When the first of them ends, the kernel ends all. Root's account and all others keep their ids there.
    """
    user, group = os.geteuid(), os.getegid()
    wanted = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS
    with _mapping_of_all_accounts() if user == 0 else contextlib.nullcontext():
        if _libc.unshare(wanted) != 0:
            return False
    if user != 0:
        _map_account(user, group)
    return True


@contextlib.contextmanager
def _mapping_of_all_accounts() -> Iterator[None]:
    """Map every account to itself in the user namespace that this process enters; only root outside of it may."""
    reader, writer = os.pipe()
    entering, helper = os.getpid(), os.fork()
    if helper == 0:
        os.close(writer)
        os.read(reader, 1)
        for name in ("uid_map", "gid_map"):
            with contextlib.suppress(OSError):
                Path(f"/proc/{entering}/{name}").write_text("0 0 4294967295")
        os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.close(writer)
        os.waitpid(helper, 0)


def have_own_proc() -> bool:
    """Mount a `/proc` that shows the processes of this namespace only; return whether that works."""
    # What is mounted from here on stays in this namespace.
    if _libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return False
    return bool(_libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None) == 0)


def adopt_orphans() -> None:
    """Become the parent of all processes below this one whose own parents end."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def confine(
    *,
    readable: Iterable[Path],
    listable: Iterable[Path],
    writable: Iterable[Path],
    devices: Iterable[Path],
    processes: bool,
    server: int,
    own_processes: bool,
) -> Protection:
    """Leave this process the files below these paths, and nothing else; it must have one thread.

    Args:
        readable: What it may read and execute.
        listable: Folders below which it may see the names of files.
        writable: What it may change as well.
        devices: What it may read and write.
        processes: Whether it may start processes.
        server: Its parent's process id: it ends with it.
        own_processes: Whether it is in a process namespace of the server's.
    """
    writable = list(writable)
    namespaces = _enter_namespaces()
    shared_memory = _have_own_shared_memory()
    _leave_root(writable)
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    shared = [SHARED_MEMORY] if shared_memory else []
    landlock = _apply_landlock(readable, listable, [*writable, *devices, *shared])
    if not landlock:
        _keep_capabilities()
    # A change of accounts or capabilities forgets it, and the filter rejects a change of it.
    die_with_parent(server)
    return Protection(
        namespaces, _filter_calls(processes), landlock, shared_memory, own_processes, os.geteuid() == 0
    )


def _enter_namespaces() -> bool:
    user, group = os.geteuid(), os.getegid()
    # In the user namespace of its server, or started by a root that has the privilege, it takes no other one.
    if _libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0:
        return True
    if _libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0:
        return False
    _map_account(user, group)
    return True


def _map_account(user: int, group: int) -> None:
    """Keep one account's ids in the user namespace that this process has entered."""
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


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


def _leave_root(writable: Iterable[Path]) -> None:
    """Give up every capability and, if this is root's process, root's account, except for reading root's files."""
    if os.geteuid() != 0:
        _keep_capabilities()
        return
    try:
        for given in writable:
            for folder, _, _ in os.walk(given):
                os.chown(folder, UNPRIVILEGED, UNPRIVILEGED, follow_symlinks=False)
        os.setgroups([])
        os.setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
        _libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
    except OSError:
        # A container may forbid it: it is reported.
        _keep_capabilities()
        return
    _keep_capabilities(1 << CAP_DAC_READ_SEARCH)
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)


def _keep_capabilities(kept: int = 0) -> None:
    """Give up every capability but these, those over namespaces of its own included."""
    header = struct.pack("=Ii", 0x20080522, 0)
    _libc.capset(header, struct.pack("=6I", kept, kept, kept, 0, 0, 0))


def _filter_calls(processes: bool) -> bool:
    """Install the filter; return whether it holds."""
    machine = platform.machine()
    if machine not in calls.ARCHITECTURES:
        return False
    program = calls.compiled(machine, processes=processes)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    return bool(_libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0) == 0)


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR


def _apply_landlock(readable: Iterable[Path], listable: Iterable[Path], writable: Iterable[Path]) -> int:
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
        for paths, rights in ((readable, _READ), (listable, _READ_DIR), (writable, every)):
            for path in paths:
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
