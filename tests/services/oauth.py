"""A provider of OAuth 2.0 on the loopback interface, which speaks as GitHub and ORCID document it."""

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

CLIENT, SECRET = "site", "site's secret"


class OAuthServer:
    """Knows one person. `authorize` is what their browser does at the provider: it returns the address to go back to.

    Codes work once, for the client that has the secret; tokens open the person's profile.
    """

    def __init__(self) -> None:
        self.github: dict[str, Any] = {
            "id": 583231,
            "login": "ada",
            "name": "Ada Lovelace",
            "company": "Engines",
        }
        self.emails: list[dict[str, Any]] = []
        self.orcid = "0000-0002-1825-0097"
        self.orcid_name = ("Ada", "Lovelace")
        self._codes: set[str] = set()
        self._tokens: set[str] = set()

    def __enter__(self) -> Self:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = {key: values[0] for key, values in parse_qs(self.rfile.read(length).decode()).items()}
                self.respond(*provider.exchange(form))

            def do_GET(self) -> None:
                self.respond(*provider.show(urlsplit(self.path).path, self.headers.get("Authorization", "")))

            def respond(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def authorize(self, address: str, **changes: str) -> str:
        """Return where the provider sends the browser that came to `address`, once the person has agreed."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        code = secrets.token_hex(8)
        self._codes.add(code)
        answer = {"code": code, "state": query["state"], **changes}
        path = urlsplit(query["redirect_uri"]).path
        return f"{path}?" + "&".join(f"{key}={value}" for key, value in answer.items())

    def exchange(self, form: dict[str, str]) -> tuple[int, Any]:
        """Return the response to a code: a token, and from ORCID the iD with it."""
        is_client = (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        if not is_client or form.get("code") not in self._codes:
            return 400, {"error": "invalid_grant"}
        self._codes.remove(form["code"])
        token = secrets.token_hex(8)
        self._tokens.add(token)
        return 200, {"access_token": token, "token_type": "bearer", "orcid": self.orcid}

    def show(self, path: str, authorization: str) -> tuple[int, Any]:
        """Return the person's profile: ORCID's is public, GitHub's needs the token."""
        if path == f"/v3.0/{self.orcid}/record":
            given, family = self.orcid_name
            name = {"given-names": {"value": given}, "family-name": {"value": family}}
            return 200, {"orcid-identifier": {"path": self.orcid}, "person": {"name": name}}
        if authorization.rpartition(" ")[2] not in self._tokens:
            return 401, {"message": "Bad credentials"}
        return 200, {"/user": self.github, "/user/emails": self.emails}[path]
