"""A site that fits in a pocket: the API that `pfl` speaks, over real HTTP, with faults on demand.

The real site behind the same calls is tested end to end in tests/e2e.
"""

import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TOKEN = "pocket-token"
TRACKS = [
    {
        "slug": "track-1",
        "run_artifacts": ["checkpoint", "communication_log"],
        "submission_artifacts": [],
        "budgets": [],
        "max_rounds": 100,
    },
    {
        "slug": "track-2",
        "run_artifacts": ["checkpoint", "communication_log", "training_record", "training_annex"],
        "submission_artifacts": ["privacy_proof"],
        "budgets": [1.0, 4.0, 8.0],
        "max_rounds": 100,
    },
]


class StateError(Exception):
    """The submission is no draft any more."""


class PocketSite:
    """Runs in a thread.

    Attributes:
        part_size_bytes: Of every part of an upload but its last.
        faults: How often calls that begin with "METHOD /path" still answer 503 and do nothing.
        lost_answers: How often such calls do their work, and answer 503 all the same.
        submissions: By id, as the API shows them.
        uploads: By id: what was announced, and `parts` (number -> bytes).
        run_tokens: Those issued, as the API shows them.
        keys: Those registered, likewise.
        calls: How often each "METHOD /path" came.
        outcome: The state in which runs end.
        underway: What is told of the runs before they have ended, one a question.
    """

    def __init__(self, part_size_bytes: int) -> None:
        self.part_size_bytes = part_size_bytes
        self.submissions: dict[str, dict[str, Any]] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.run_tokens: list[dict[str, Any]] = []
        self.keys: list[dict[str, Any]] = []
        self.calls: Counter[str] = Counter()
        self.tokens_seen_by_store: list[str | None] = []
        self.faults: dict[str, int] = {}
        self.lost_answers: dict[str, int] = {}
        self.outcome = "scored"
        self.underway: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def files(self) -> dict[tuple[str | None, str], bytes]:
        """The completed uploads' content, by run and kind."""
        return {
            (upload["run"], upload["kind"]): b"".join(upload["parts"][n] for n in sorted(upload["parts"]))
            for upload in self.uploads.values()
            if upload["complete"]
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Any) -> Any:
        """The API: the value to answer with. Raises KeyError for what doesn't exist."""
        match method, path.strip("/").split("/"):
            case "GET", ["tracks"]:
                return TRACKS
            case "POST", ["run-tokens"]:
                self.run_tokens.append({"token": f"run-token-number-{len(self.run_tokens) + 1}", **body})
                return self.run_tokens[-1]
            case "GET", ["keys"]:
                return self.keys
            case "POST", ["keys"]:
                if body["public_key"] not in [key["public_key"] for key in self.keys]:
                    self.keys.append(body)
                return body
            case "GET", ["submissions"]:
                return list(reversed(self.submissions.values()))
            case "POST", ["submissions"]:
                key = f"s{len(self.submissions) + 1}"
                self.submissions[key] = {
                    **body,
                    "id": key,
                    "state": "draft",
                    "runs": [],
                    "url": f"{self.url}/{key}",
                }
                return self.submissions[key]
            case "GET", ["submissions", key]:
                submission = self.submissions[key]
                if submission["state"] == "draft" or not self.underway:
                    return submission
                state = self.underway.pop(0)
                return {**submission, "runs": [{**run, **state} for run in submission["runs"]]}
            case "POST", ["submissions", key, "runs"]:
                runs = self.submissions[key]["runs"]
                for run in runs:
                    if run["budget"] == body["budget"]:
                        return run
                runs.append(
                    {
                        "id": f"{key}r{len(runs) + 1}",
                        "budget": body["budget"],
                        "state": "draft",
                        "step": "",
                        "remaining_s": None,
                        "queue_position": None,
                        "problems": [],
                        "results": {"anls": 0.25, "bytes_total": 1234, "epsilon": body["budget"]},
                    }
                )
                return runs[-1]
            case "POST", ["submissions", key, "submit"]:
                if self.submissions[key]["state"] != "draft":
                    raise StateError
                self.submissions[key]["state"] = "submitted"
                for run in self.submissions[key]["runs"]:
                    run["state"] = self.outcome
                    if self.outcome == "rejected":
                        run["problems"] = [{"code": "E_CHECKPOINT_NOT_FINITE", "message": "NaN."}]
                return self.submissions[key]
            case "POST", ["uploads"]:
                for key, upload in self.uploads.items():
                    if {name: upload[name] for name in body} == body and not upload["complete"]:
                        return {"id": key, "part_size_bytes": self.part_size_bytes}
                key = f"u{len(self.uploads) + 1}"
                self.uploads[key] = {**body, "parts": {}, "complete": False}
                return {"id": key, "part_size_bytes": self.part_size_bytes}
            case "GET", ["uploads", key, "parts"]:
                parts = self.uploads[key]["parts"]
                return {
                    "parts": [
                        {"number": n, "size_bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
                        for n, part in parts.items()
                    ]
                }
            case "POST", ["uploads", key, "part-urls"]:
                return {
                    "urls": [
                        {"number": p["number"], "url": f"{self.url}/store/{key}/{p['number']}", "headers": {}}
                        for p in body["parts"]
                    ]
                }
            case "POST", ["uploads", key, "complete"]:
                upload = self.uploads[key]
                content = b"".join(upload["parts"][n] for n in sorted(upload["parts"]))
                assert hashlib.sha256(content).hexdigest() == upload["sha256"], (
                    "parts are missing or mixed up"
                )
                upload["complete"] = True
                return {}
        raise KeyError(path)


def due(faults: dict[str, int], call: str) -> bool:
    """Whether a fault is left for this call; uses it up."""
    for prefix, left in faults.items():
        if call.startswith(prefix) and left:
            faults[prefix] = left - 1
            return True
    return False


def _handler(site: PocketSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            call = f"{self.command} {self.path}"
            site.calls[call] += 1
            if due(site.faults, call):
                return self.reply(503, {})
            if self.path.startswith("/store/"):
                _, _, upload, number = self.path.split("/")
                site.tokens_seen_by_store.append(self.headers.get("Authorization"))
                site.uploads[upload]["parts"][int(number)] = body
                return self.reply(200, {})
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                problem = {"code": "E_SUBMISSION_STATE", "message": "No such token."}
                return self.reply(401, {"problems": [problem]})
            try:
                value = site.answer(
                    self.command, self.path.removeprefix("/api/v1"), json.loads(body) if body else None
                )
            except KeyError:
                return self.reply(404, {"detail": "not found"})
            except StateError:
                problem = {"code": "E_SUBMISSION_STATE", "message": "Not a draft."}
                return self.reply(409, {"problems": [problem]})
            return self.reply(503, {}) if due(site.lost_answers, call) else self.reply(200, value)

        do_GET = do_POST = do_PUT = handle_any  # noqa: N815  (the names that http.server calls)

        def reply(self, status: int, value: object) -> None:
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing on the console."""

    return Handler
