"""The site's REST API, as `pfl` uses it: keys, run tokens, drafts, resumable uploads, submission, status.

An upload continues where it stopped: the site knows which parts it has, and announcing the same file for the same
place again returns the upload that is under way.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from pydantic import TypeAdapter, ValidationError

from evaluator.checkpoints.contents import sha256_of
from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, Problem, ProblemError

TIMEOUT_S = (10, 120)
TRIES = 6
PAUSE_S = 0.5  # before the second try; doubled before each further one
PARALLEL_PARTS = 3
FINAL_STATES = {"scored", "rejected", "failed"}

_PROBLEMS = TypeAdapter(list[Problem])

OnBytes = Callable[[int], None]  # bytes that are newly stored


@dataclass(frozen=True)
class Part:
    """A slice of a file: its number from 1, place, size and SHA-256."""

    number: int
    offset: int
    size_bytes: int
    sha256: str


class SiteClient:
    """One user's access to one site.

    Args:
        site: The site's address, such as ``https://benchmark.example``.
        token: An API token from the account page.

    Every method raises `ProblemError` with what the site rejected, or with `E_SITE_UNREACHABLE` when it didn't answer
    in several tries.
    """

    def __init__(self, site: str, token: str) -> None:
        self.site = site.rstrip("/")
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"

    def tracks(self) -> list[dict[str, Any]]:
        """The tracks with their rules."""
        listed: list[dict[str, Any]] = self._call("GET", "/tracks")
        return listed

    def run_token(self, track: str) -> str:
        """A new token for one training run in this track, which its record carries."""
        return str(self._call("POST", "/run-tokens", {"track": track})["token"])

    def signing_keys(self) -> list[dict[str, Any]]:
        """The team's signing keys."""
        listed: list[dict[str, Any]] = self._call("GET", "/keys")
        return listed

    def register_key(self, public_key: str, name: str) -> None:
        """Make `public_key`, in hexadecimal, one of the team's signing keys; nothing changes where it is one."""
        self._call("POST", "/keys", {"public_key": public_key, "name": name})

    def drafts(self, track: str, title: str) -> list[dict[str, Any]]:
        """The team's unsubmitted submissions of this track and title, newest first."""
        listed: list[dict[str, Any]] = self._call("GET", "/submissions")
        return [
            row for row in listed if (row["state"], row["track"], row["title"]) == ("draft", track, title)
        ]

    def create_submission(self, track: str, title: str, description: str = "") -> dict[str, Any]:
        body = {"track": track, "title": title, "description": description}
        created: dict[str, Any] = self._call("POST", "/submissions", body)
        return created

    def add_run(self, submission: str, budget: float | None) -> str:
        """The id of the submission's run at `budget`, which is made if it isn't there."""
        return str(self._call("POST", f"/submissions/{submission}/runs", {"budget": budget})["id"])

    def submission(self, submission: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", f"/submissions/{submission}")
        return found

    def submit(self, submission: str) -> dict[str, Any]:
        try:
            submitted: dict[str, Any] = self._call("POST", f"/submissions/{submission}/submit")
        except ProblemError:
            # Where an answer was lost on its way, the call before this one may have done it.
            submitted = self.submission(submission)
            if submitted["state"] != "submitted":
                raise
        return submitted

    def upload(
        self, submission: str, run: str | None, kind: ArtifactKind, path: Path, on_bytes: OnBytes
    ) -> None:
        """Put `path` into its place in a draft; parts that the site already has are not sent again."""
        upload = self._call(
            "POST",
            "/uploads",
            {
                "submission": submission,
                "run": run,
                "kind": kind,
                "filename": path.name,
                "size_bytes": path.stat().st_size,
                "sha256": sha256_of(path),
            },
        )
        stored = {
            part["number"]: part["sha256"]
            for part in self._call("GET", f"/uploads/{upload['id']}/parts")["parts"]
        }
        with ThreadPoolExecutor(PARALLEL_PARTS) as pool:
            sent = []
            for part in parts_of(path, upload["part_size_bytes"]):
                if stored.get(part.number) == part.sha256:
                    on_bytes(part.size_bytes)
                else:
                    sent.append(pool.submit(self._send_part, upload["id"], path, part, on_bytes))
            for future in sent:
                future.result()
        self._call("POST", f"/uploads/{upload['id']}/complete")

    def follow(self, submission: str, pause_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """The submission again and again, until every run of it is final."""
        while True:
            current = self.submission(submission)
            yield current
            if all(run["state"] in FINAL_STATES for run in current["runs"]):
                return
            time.sleep(pause_s)

    def _send_part(self, upload: str, path: Path, part: Part, on_bytes: OnBytes) -> None:
        body = {"parts": [{"number": part.number, "size_bytes": part.size_bytes, "sha256": part.sha256}]}
        url = self._call("POST", f"/uploads/{upload}/part-urls", body)["urls"][0]
        with path.open("rb") as file:
            file.seek(part.offset)
            content = file.read(part.size_bytes)
        # Without the session: the address itself is the permission, and another host must not see the token.
        _answered(lambda: requests.put(url["url"], data=content, headers=url["headers"], timeout=TIMEOUT_S))
        on_bytes(part.size_bytes)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        url = f"{self.site}/api/v1{path}"
        response = _answered(lambda: self._session.request(method, url, json=body, timeout=TIMEOUT_S))
        return response.json() if response.content else None


def parts_of(path: Path, part_size_bytes: int) -> Iterator[Part]:
    """The parts of a file, read one at a time."""
    with path.open("rb") as file:
        number, offset = 1, 0
        while content := file.read(part_size_bytes):
            yield Part(number, offset, len(content), hashlib.sha256(content).hexdigest())
            number, offset = number + 1, offset + len(content)


def _answered(ask: Callable[[], requests.Response]) -> requests.Response:
    """The site's answer, asked for again while the connection fails or the site is in trouble."""
    found = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S * 2 ** (attempt - 1))
        try:
            response = ask()
        except (requests.ConnectionError, requests.Timeout) as error:
            found = type(error).__name__
            continue
        if response.status_code < 400:
            return response
        if response.status_code < 500:
            raise ProblemError(*_rejections(response))
        found = f"status {response.status_code}"
    raise ProblemError.of(ErrorCode.SITE_UNREACHABLE, expected="an answer", found=found)


def _rejections(response: requests.Response) -> list[Problem]:
    try:
        return _PROBLEMS.validate_python(response.json()["problems"])
    except (ValueError, KeyError, TypeError, ValidationError):
        return [
            Problem.of(
                ErrorCode.SITE_UNREACHABLE,
                message="The answer isn't one of this benchmark's.",
                expected="a list of coded problems",
                found=f"status {response.status_code}",
                next_step="Check the site's address.",
            )
        ]
