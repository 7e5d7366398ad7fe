"""How gunicorn serves a public site: `gunicorn -c python:docvqa_site.web_server docvqa_site.wsgi`.

A request that takes minutes, such as a part that a slow uploader sends or a file that no proxy sends in the site's
place, holds one thread of many, and no process is killed for it: the time limit is that of a process that hangs as a
whole. A client that sends next to nothing loses its connection, parts of uploads take three quarters of the threads at
most (`uploads.views`), and a network seven of eight (`docvqa_site.in_flight`). Options on the command line and in
GUNICORN_CMD_ARGS win over those here.
"""

import gc
import os
import select
import socket
import struct
import time

from django.urls import get_resolver
from gunicorn.http.unreader import SocketUnreader

from docvqa_site.uploads.unfinished_file import CHUNK_BYTES

bind = os.environ.get("PFL_WEB_BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
worker_class = "gthread"
threads = int(os.environ.get("PFL_WEB_THREADS", "16"))
timeout = 60
# What is on its way when a process is stopped may end; an upload or download that doesn't is resumed by its client.
graceful_timeout = 30
# Longer than the proxy keeps a connection, so that it never sends a request into one that is being closed.
keepalive = 75
# gunicorn's own would be in the account's home folder, the same for every site of the account, and nobody uses it.
control_socket_disable = True
# On disk, a busy disk makes a process look as if it hung.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  (no file is left there)
# What is received at once is as much as a part of an upload is written at once: a megabyte, as gunicorn's own, is moved
# through memory several times on its way.
SocketUnreader.max_body_chunk = CHUNK_BYTES
# When garbage collections are due. Each page leaves thousands of objects in cycles, such as a submission with its runs:
# they are collected while there are few of them. By default, a collection of all of them takes a tenth of a second.
COLLECT_AFTER = (20_000, 1, 20)

# How long a client may send or take nothing, and how much it must send each second once it has been waited for so long.
SILENCE_S, PATIENCE_S, LEAST_BYTES_PER_S = 10, 30, 16 * 1024

_received = SocketUnreader.chunk


def _receive_in_time(self: SocketUnreader, size_hint: int | None = None) -> bytes:
    """Return the next bytes of a request. Raises `TimeoutError` for a client that is too slow for a thread to wait."""
    began = time.monotonic()
    if not hasattr(self, "waited_s"):
        self.waited_s, self.received_bytes = 0.0, 0
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(PATIENCE_S), 0))
    poll = select.poll()
    poll.register(self.sock, select.POLLIN)
    if not poll.poll(1000 * SILENCE_S):
        raise TimeoutError(f"the client sent nothing for {SILENCE_S} s")
    data: bytes = _received(self, size_hint)
    self.waited_s += time.monotonic() - began
    self.received_bytes += len(data)
    if self.waited_s > PATIENCE_S and self.received_bytes < LEAST_BYTES_PER_S * self.waited_s:
        raise TimeoutError(f"the client sent {self.received_bytes} bytes in {self.waited_s:.0f} s")
    return data


SocketUnreader.chunk = _receive_in_time


def post_worker_init(_worker: object) -> None:
    """Leave what a process has loaded out of its garbage collections, and have them when `COLLECT_AFTER` says.

    It stays to the end, and to look through it takes a request in every few dozen a tenth of a second.
    """
    # The first request would load the rest of it.
    get_resolver().url_patterns  # noqa: B018
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
