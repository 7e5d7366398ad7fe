"""Bodies that are received straight from gunicorn's socket."""

import socket
import threading

import pytest
from django.test import RequestFactory
from gunicorn.http.body import Body, LengthReader
from gunicorn.http.unreader import SocketUnreader

from portal.uploads.request_body import chunks_of
from portal.uploads.unfinished_file import CHUNK_BYTES

CONTENT = bytes(range(251)) * 3000
NEXT = b"GET / HTTP/1.1\r\n"


@pytest.fixture
def ends():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def request_with(end, early=b""):
    """A request whose body comes from the socket, after what came along with the headers."""
    unreader, length = SocketUnreader(end), len(CONTENT)
    unreader.unread(early)
    body = Body(LengthReader(unreader, length))
    request = RequestFactory().generic("PUT", "/", **{"wsgi.input": body, "CONTENT_LENGTH": str(length)})
    return request, body


def sending(end, content, *, close=False):
    def send():
        end.sendall(content)
        if close:
            end.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("early", [0, 1, 5000])
def test_all_of_it_is_received_in_chunks_and_the_next_request_stays_on_the_connection(ends, early):
    sender, receiver = ends
    request, body = request_with(receiver, CONTENT[:early])
    thread = sending(sender, CONTENT[early:] + NEXT)
    chunks = [bytes(chunk) for chunk in chunks_of(request)]
    thread.join()
    assert b"".join(chunks) == CONTENT
    assert max(map(len, chunks)) <= CHUNK_BYTES
    assert body.read() == b""
    assert body.reader.unreader.read(len(NEXT)) == NEXT


def test_a_body_that_came_with_its_headers_leaves_the_next_request_there(ends):
    request, body = request_with(ends[1], CONTENT + NEXT)
    assert b"".join(map(bytes, chunks_of(request))) == CONTENT
    assert body.read() == b""
    assert body.reader.unreader.read(len(NEXT)) == NEXT


def test_it_ends_where_the_sender_is_gone(ends):
    sender, receiver = ends
    request, _ = request_with(receiver)
    thread = sending(sender, CONTENT[:1000], close=True)
    assert b"".join(map(bytes, chunks_of(request))) == CONTENT[:1000]
    thread.join()


def test_a_body_of_which_something_was_read_is_read_on_as_gunicorn_does(ends):
    sender, receiver = ends
    request, body = request_with(receiver)
    thread = sending(sender, CONTENT)
    first = body.readline()
    request._stream.limit -= len(first)
    assert first + b"".join(map(bytes, chunks_of(request))) == CONTENT
    thread.join()
