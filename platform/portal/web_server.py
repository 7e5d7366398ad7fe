"""How gunicorn serves a public site: `gunicorn -c python:portal.web_server portal.wsgi`.

A request that takes minutes, such as a part that a slow uploader sends or a file that no proxy sends in the site's
place, holds one thread of many, and no process is killed for it: the time limit is that of a process that hangs as a
whole. Options on the command line and in GUNICORN_CMD_ARGS win over those here.
"""

import os

from gunicorn.http.unreader import SocketUnreader

from portal.uploads.unfinished_file import CHUNK_BYTES

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
# Nobody here uses it, and all sites of one account would share its file.
control_socket_disable = True
# What is received at once is as much as a part of an upload is written at once: a megabyte, as gunicorn's own, is moved
# through memory several times on its way.
SocketUnreader.max_body_chunk = CHUNK_BYTES
