"""A worker on a kernel without Landlock: the process is rejected its calls, as by a kernel from before 5.13."""

import ctypes
import errno
import struct

from celery.__main__ import main as celery

LANDLOCK_CREATE_RULESET = 444
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38


def main() -> None:
    """Reject the call for good, then be Celery."""
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in [
            (0x20, 0, 0, 0),
            (0x15, 0, 1, LANDLOCK_CREATE_RULESET),
            (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
            (0x06, 0, 0, 0x7FFF0000),
        ]
    )
    buffer = ctypes.create_string_buffer(program)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    assert libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0) == 0
    celery()
