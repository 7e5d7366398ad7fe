"""The system calls of a sandboxed process: a list of those that it may make, compiled for seccomp.

Whatever isn't listed is rejected: sockets, tracing, keys, mounts, namespaces, and whatever a later kernel adds. Of
some calls the arguments decide.

References: seccomp(2), arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux.
"""

import errno
import os
import struct
from typing import NamedTuple

# How the kernel numbers each architecture. Those of the calls of 64-bit ARM are those of every newer architecture.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Name and number on each architecture, in this order; "-" where it has no such call.
ALWAYS = """
read 0 63; write 1 64; readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; preadv 295 69;
pwritev 296 70; preadv2 327 286; pwritev2 328 287; lseek 8 62; sendfile 40 71; copy_file_range 326 285;
open 2 -; openat 257 56; openat2 437 437; creat 85 -; close 3 57; close_range 436 436; stat 4 -;
fstat 5 80; lstat 6 -; newfstatat 262 79; statx 332 291; access 21 -; faccessat 269 48; faccessat2 439 439;
readlink 89 -; readlinkat 267 78; statfs 137 43; fstatfs 138 44; getdents 78 -; getdents64 217 61;
getcwd 79 17; chdir 80 49; fchdir 81 50; umask 95 166; mkdir 83 -; mkdirat 258 34; rmdir 84 -; rename 82 -;
renameat 264 38; renameat2 316 276; link 86 -; linkat 265 37; symlink 88 -; symlinkat 266 36; unlink 87 -;
unlinkat 263 35; chmod 90 -; fchmod 91 52; fchmodat 268 53; chown 92 -; fchown 93 55; lchown 94 -;
fchownat 260 54; truncate 76 45; ftruncate 77 46; fallocate 285 47; fsync 74 82; fdatasync 75 83;
sync_file_range 277 84; readahead 187 213; fadvise64 221 223; flock 73 32; utime 132 -; utimes 235 -;
futimesat 261 -; utimensat 280 88; getxattr 191 8; lgetxattr 192 9; fgetxattr 193 10; listxattr 194 11;
llistxattr 195 12; flistxattr 196 13; dup 32 23; dup2 33 -; dup3 292 24; pipe 22 -; pipe2 293 59;
fcntl 72 25; poll 7 -; ppoll 271 73; select 23 -; pselect6 270 72; epoll_create 213 -;
epoll_create1 291 20; epoll_ctl 233 21; epoll_wait 232 -; epoll_pwait 281 22; epoll_pwait2 441 441;
eventfd 284 -; eventfd2 290 19; signalfd 282 -; signalfd4 289 74; timerfd_create 283 85;
timerfd_settime 286 86; timerfd_gettime 287 87; timer_create 222 107; timer_settime 223 110;
timer_gettime 224 108; timer_getoverrun 225 109; timer_delete 226 111; mmap 9 222; mprotect 10 226;
munmap 11 215; mremap 25 216; msync 26 227; mincore 27 232; madvise 28 233; brk 12 214; mlock 149 228;
mlock2 325 284; munlock 150 229; mlockall 151 230; munlockall 152 231; mbind 237 235;
set_mempolicy 238 237; get_mempolicy 239 236; membarrier 324 283; futex 202 98; futex_waitv 449 449;
set_robust_list 273 99; get_robust_list 274 100; set_tid_address 218 96; rseq 334 293; gettid 186 178;
getpid 39 172; getppid 110 173; getpgrp 111 -; getpgid 121 155; getsid 124 156; exit 60 93;
exit_group 231 94; wait4 61 260; waitid 247 95; restart_syscall 219 128; rt_sigaction 13 134;
rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136; rt_sigtimedwait 128 137;
rt_sigsuspend 130 133; sigaltstack 131 132; pause 34 -; alarm 37 -; getitimer 36 102; setitimer 38 103;
nanosleep 35 101; clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115;
gettimeofday 96 169; time 201 -; times 100 153; getrandom 318 278; uname 63 160; sysinfo 99 179;
getcpu 309 168; arch_prctl 158 -; getrlimit 97 163; setrlimit 160 164; getrusage 98 165;
getpriority 140 141; setpriority 141 140; sched_yield 24 124; sched_getaffinity 204 123;
sched_setaffinity 203 122; sched_getparam 143 121; sched_getscheduler 145 120;
sched_get_priority_max 146 125; sched_get_priority_min 147 126; sched_rr_get_interval 148 127;
getuid 102 174; geteuid 107 175; getgid 104 176; getegid 108 177; getgroups 115 158; getresuid 118 148;
getresgid 120 150; capget 125 90; sendto 44 206; recvfrom 45 207; sendmsg 46 211; recvmsg 47 212;
shutdown 48 210; getsockopt 55 209; setsockopt 54 208; getsockname 51 204; getpeername 52 205
"""
# What only a process with children needs, as one that computes on several GPUs.
WITH_PROCESSES = """
fork 57 -; vfork 58 -; execve 59 221; kill 62 129; tkill 200 130; setpgid 109 154; setsid 112 157;
memfd_create 319 279; move_pages 279 239; sched_setscheduler 144 119; sched_setparam 142 118;
pidfd_open 434 434; tgkill 234 131; prctl 157 167
"""
# Those of which an argument decides.
BY_ARGUMENT = """
clone 56 220; clone3 435 435; kill 62 129; tgkill 234 131; ioctl 16 29; prctl 157 167; prlimit64 302 261;
socketpair 53 199
"""
# Of every kind (mounts, cgroups, names, IPC, users, processes, network): a namespace of its own has all privileges.
CLONE_NAMESPACES, CLONE_THREAD = 0x7E020000, 0x00010000
# Typing into the terminal of another program.
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
PR_SET_PDEATHSIG, AF_UNIX = 1, 1
# A call that the C library does without where the kernel is older than the call.
FIRST_OPTIONAL_CALL = 424

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000
_REJECT = (_RETURN, 0, 0, _ERROR | errno.EPERM)


class Instruction(NamedTuple):
    """An instruction of the filter: its operation, how far to jump if it holds and if not, and its constant."""

    operation: int
    if_true: int
    if_false: int
    constant: int


def numbers(table: str, machine: str) -> dict[str, int]:
    """Return the numbers of a table's calls on an architecture."""
    place = list(ARCHITECTURES).index(machine)
    rows = (row.split() for row in table.replace("\n", " ").split(";"))
    return {name: int(found[place]) for name, *found in rows if found[place] != "-"}


def compiled(machine: str, *, processes: bool) -> bytes:
    """Return the filter for this process on an architecture, as the kernel reads it.

    Args:
        machine: One of `ARCHITECTURES`.
        processes: Whether the process may start others.
    """
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(machine, processes))


def _program(machine: str, processes: bool) -> list[Instruction]:
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        # The calls of the 32-bit pointer interface have other numbers.
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    allowed = numbers(ALWAYS, machine) | (numbers(WITH_PROCESSES, machine) if processes else {})
    for name, number in numbers(BY_ARGUMENT, machine).items():
        if name not in allowed:
            rules = _rules(name, processes)
            program += [(_EQUAL, 0, len(rules), number), *rules]
    for number in allowed.values():
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    program += [(_AT_LEAST, 0, 1, FIRST_OPTIONAL_CALL), (_RETURN, 0, 0, _ERROR | errno.ENOSYS), _REJECT]
    return [Instruction(*instruction) for instruction in program]


def _rules(name: str, processes: bool) -> list[tuple[int, int, int, int]]:
    """Return what decides on a call by its arguments; it ends in every case."""
    match name:
        case "clone3":
            # Its arguments are in memory, where a filter can't see them; the C library then uses the older call.
            return [(_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
        case "clone" if processes:
            return [_argument(0), (_ANY_BIT, 1, 0, CLONE_NAMESPACES), (_RETURN, 0, 0, _ALLOW), _REJECT]
        case "clone":
            return [
                _argument(0),
                (_ANY_BIT, 2, 0, CLONE_NAMESPACES),
                (_ANY_BIT, 0, 1, CLONE_THREAD),
                (_RETURN, 0, 0, _ALLOW),
                _REJECT,
            ]
        case "ioctl":
            return [
                _argument(1),
                (_EQUAL, 2, 0, TIOCSTI),
                (_EQUAL, 1, 0, TIOCLINUX),
                (_RETURN, 0, 0, _ALLOW),
                _REJECT,
            ]
        case "prctl":
            # It would outlive whoever started it. (Processes that it starts may ask for that signal themselves.)
            return _unless(PR_SET_PDEATHSIG)
        case "socketpair":
            return _only(AF_UNIX)
        case "prlimit64":
            return _only(0, os.getpid())
        case _:
            # kill and tgkill.
            return _only(os.getpid())


def _argument(place: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument; both architectures store it first."""
    return (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * place)


def _only(*values: int) -> list[tuple[int, int, int, int]]:
    checks = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(0), *checks, _REJECT, (_RETURN, 0, 0, _ALLOW)]


def _unless(value: int) -> list[tuple[int, int, int, int]]:
    return [_argument(0), (_EQUAL, 1, 0, value), (_RETURN, 0, 0, _ALLOW), _REJECT]
