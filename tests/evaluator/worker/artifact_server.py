"""A store's download side on the loopback interface, which can interrupt, reject or lie."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ArtifactServer:
    """Serves `content` at any address, once `released` is set.

    `cuts` connections break after `cut_bytes`; `status` replaces 200; without `knows_ranges` everything is sent.
    """

    def __init__(self, content: bytes, *, says_length: bool = True) -> None:
        self.content = content
        self.says_length = says_length
        self.cuts = 0
        self.cut_bytes = 1000
        self.status = 0
        self.knows_ranges = True
        self.ranges: list[str] = []
        self.released = threading.Event()
        self.released.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/artifact?signature=secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.released.wait()
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        if not self.knows_ranges:
            asked = ""
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        body = self.content[start:]
        request.send_response(self.status or (206 if asked else 200))
        if self.says_length:
            request.send_header("Content-Length", str(len(body)))
        if asked:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        request.end_headers()
        if self.cuts:
            self.cuts -= 1
            body = body[: self.cut_bytes]
            request.close_connection = True
        request.wfile.write(body)
