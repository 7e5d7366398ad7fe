"""The body of a request in chunks, each moved through memory as little as possible.

gunicorn copies what it receives three times on the way to a view. Where the body comes straight from gunicorn's socket,
it is received into one buffer instead, a chunk at a time, by one call of the system. gunicorn's own reader is kept
informed of what is left, so that it finds the next request on the connection.
"""

import socket
from collections.abc import Iterator

from django.http import HttpRequest
from gunicorn.http.body import Body, LengthReader

from portal.uploads.unfinished_file import CHUNK_BYTES, Chunk


def chunks_of(request: HttpRequest) -> Iterator[Chunk]:
    """Yield the body; a chunk is valid until the next one is taken. Ends early where the sender is gone."""
    body = request.META.get("wsgi.input")
    try:
        if isinstance(body, Body) and _is_plain(body):
            yield from _received(body.reader)
        else:
            while chunk := request.read(CHUNK_BYTES):
                yield chunk
    # The sender is gone; the part is too short and is rejected.
    except OSError:
        return


def _is_plain(body: Body) -> bool:
    """Return whether nothing of the body was read, its length is known, and its socket isn't encrypted."""
    reader = body.reader
    return (
        isinstance(reader, LengthReader)
        and not body.buf.tell()
        and type(getattr(reader.unreader, "sock", None)) is socket.socket
    )


def _received(reader: LengthReader) -> Iterator[Chunk]:
    # What came along with the headers, and perhaps with it the beginning of another request.
    early = reader.unreader.take_buffered()
    if rest := early[reader.length :]:
        reader.unreader.unread(rest)
    if early := early[: reader.length]:
        reader.length -= len(early)
        yield early
    buffer = memoryview(bytearray(min(CHUNK_BYTES, reader.length)))
    while reader.length:
        chunk = buffer[: reader.length]
        count = reader.unreader.sock.recv_into(chunk, len(chunk), socket.MSG_WAITALL)
        if not count:
            return
        reader.length -= count
        yield chunk[:count]
