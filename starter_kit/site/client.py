"""`SiteClient` is the site's REST API in Python: one method for each step of submitting, messages in and messages out.

Example::

    client = SiteClient("https://benchmark.example", token)
    for track in client.tracks():
        print(track.slug, track.closed_because or "open")

The messages are those of `evaluator.messages.api`, which the site itself answers with.
"""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote
from uuid import UUID

import requests
from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.api import (
    ChangedText,
    CheckpointStatus,
    ExplainedChallenge,
    IssuedRunToken,
    NewRun,
    NewRunToken,
    NewSigningKey,
    NewSubmission,
    Problems,
    QuotaStatus,
    Request,
    RunSummary,
    RunTokenPage,
    SigningKey,
    SubmissionPage,
    SubmissionStatus,
    SubmissionSummary,
    Submitting,
    TrackInfo,
)
from evaluator.messages.file_api import (
    DownloadInfo,
    NewFile,
    NewUpload,
    PartUrl,
    PartUrls,
    StoredArtifact,
    StoredParts,
    TermsInfo,
    UploadPart,
    UploadStatus,
    WantedParts,
)
from evaluator.messages.states import SubmissionState

TIMEOUT_S = (10, 120)
TRIES = 6
PAGE_LENGTH = 200
TOO_MANY_REQUESTS = 429
# The longest pause that the site may ask for.
MAX_PAUSE_S = 120.0
# The pause before the second try; it doubles before each further one.
FIRST_PAUSE_S = 0.5

# The connection failed, or broke before the whole response had arrived: the next try may succeed.
# What the site says of these is for programs that call the API.
SIGN_IN = {ErrorCode.REQUEST_SIGN_IN, ErrorCode.REQUEST_TOKEN_EXPIRED}
CONNECTION_ERRORS = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)

# The site is out of storage: the next try won't succeed.
INSUFFICIENT_STORAGE = 507
# What a store that isn't the site answers to a part, in XML of its own.
STORE_STATUS = {
    400: ErrorCode.UPLOAD_PART,
    403: ErrorCode.UPLOAD_URL,
    404: ErrorCode.UPLOAD_STATE,
}

T = TypeVar("T")
P = TypeVar("P", RunTokenPage, SubmissionPage)


class SiteClient:
    """One user's access to one site.

    Args:
        site: The site's address, such as ``https://benchmark.example``.
        token: An API token from the profile; empty for what needs no account.
        first_pause_s: The pause in seconds after the first try that failed.

    Every method raises `ProblemError` with the problems that the site found, or with `E_SITE_UNREACHABLE` when the
    site didn't answer in several tries or its answer isn't one of this API.
    """

    def __init__(self, site: str, token: str = "", *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self.site = site.rstrip("/")
        self.has_token = bool(token)
        self._first_pause_s = first_pause_s
        self._session = requests.Session()
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def tracks(self) -> list[TrackInfo]:
        """Return the tracks with their rules; with a token also the hash of each track's data."""
        return self._call(list[TrackInfo], "GET", "/tracks" if self.has_token else "/leaderboards")

    def track(self, slug: str) -> TrackInfo:
        """Return the track of this name in its address, or raise `E_CONFIGURATION` with those that there are."""
        tracks = self.tracks()
        for track in tracks:
            if track.slug == slug:
                return track
        names = ", ".join(track.slug for track in tracks)
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="--track",
            expected=f"one of {names}" if tracks else "a track of the site, which has none yet",
            found=slug,
            next_step=f"The tracks of {self.site} are on its page “Tracks”.",
        )

    def checkpoint_problems(self, track: str, sha256: str) -> list[Problem]:
        """Return what would keep the team from submitting the checkpoint of this SHA-256 to the track for a rank."""
        return self._call(CheckpointStatus, "GET", f"/tracks/{track}/checkpoints/{sha256}").problems

    def quota(self, track: str, *, practice: bool = False) -> QuotaStatus:
        """Return the team's slots in the track: those for a rank, or those for practice."""
        return self._call(QuotaStatus, "GET", f"/tracks/{track}/quota?practice={str(practice).lower()}")

    def downloads(self, track: str) -> list[DownloadInfo]:
        """Return what the organizers offer for a track; of terms, whether the account has accepted them."""
        return self._call(list[DownloadInfo], "GET", f"/downloads?track={quote(track)}")

    def accept_terms(self, terms: int) -> TermsInfo:
        """Accept the terms of a download, in this version."""
        return self._call(TermsInfo, "POST", f"/downloads/terms/{terms}/accept")

    def open_download(self, download: DownloadInfo, start: int = 0) -> requests.Response:
        """Begin to fetch a download from byte `start` on; the status is 200 where all of it follows."""
        # Another host, where the store is one, doesn't see the API token: `requests` leaves it out.
        headers = {"Range": f"bytes={start}-"} if start else {}
        return self._respond(
            lambda: self._session.get(download.url, headers=headers, stream=True, timeout=TIMEOUT_S)
        )

    def issue_run_token(self, track: str, training: str = "") -> IssuedRunToken:
        """Request a token for one training run in this track; the run's record carries it.

        Args:
            training: A name of the training, 32 hexadecimal digits, under which it gets the same token again as long as
                that is unused; at first the user's newest unused one that no training has, or a new one. Empty: always
                a new one.
        """
        return self._call(IssuedRunToken, "POST", "/run-tokens", NewRunToken(track=track, training=training))

    def run_tokens(self) -> list[IssuedRunToken]:
        """Return the team's run tokens in all tracks, newest first."""
        return self._all("/run-tokens", RunTokenPage, lambda page: page.items)

    def explain_challenge(self, token: str, explanation: str) -> IssuedRunToken:
        """Explain the unresolved challenge with this token to the reviewers."""
        return self._call(
            IssuedRunToken, "PATCH", f"/run-tokens/{token}", ExplainedChallenge(explanation=explanation)
        )

    def signing_keys(self) -> list[SigningKey]:
        """Return the team's signing keys."""
        return self._call(list[SigningKey], "GET", "/keys")

    def register_key(self, public_key: str, name: str) -> SigningKey:
        """Make `public_key`, in hexadecimal, one of the team's signing keys; a registered one stays as it is."""
        return self._call(SigningKey, "POST", "/keys", NewSigningKey(public_key=public_key, name=name))

    def submissions(self) -> list[SubmissionSummary]:
        """Return the team's submissions, newest first."""
        return self._all("/submissions", SubmissionPage, lambda page: page.items)

    def create_submission(
        self, track: str, title: str, description: str = "", *, practice: bool = False
    ) -> SubmissionStatus:
        """Open a draft."""
        draft = NewSubmission(track=track, title=title, description=description, practice=practice)
        return self._call(SubmissionStatus, "POST", "/submissions", draft)

    def change_draft(self, submission: UUID, changes: ChangedText) -> SubmissionStatus:
        """Change the text of a draft, or whether it is private or anonymous; what is None stays."""
        return self._call(SubmissionStatus, "PATCH", f"/submissions/{submission}", changes)

    def submission(self, submission: UUID) -> SubmissionStatus:
        """Return a submission and the status of its runs."""
        return self._call(SubmissionStatus, "GET", f"/submissions/{submission}")

    def add_run(self, submission: UUID, budget: float | None) -> RunSummary:
        """Return the draft's run at `budget`, which the site creates unless it exists."""
        return self._call(RunSummary, "POST", f"/submissions/{submission}/runs", NewRun(budget=budget))

    def submit(self, submission: UUID, accepted_license: str = "") -> SubmissionStatus:
        """Submit a draft; the team accepts the track's license of submissions, if it states one."""
        body = Submitting(license=accepted_license)
        try:
            return self._call(SubmissionStatus, "POST", f"/submissions/{submission}/submit", body)
        except ProblemError:
            # If the response to an earlier try was lost, that try may have submitted the draft.
            submitted = self.submission(submission)
            if submitted.state is not SubmissionState.SUBMITTED:
                raise
            return submitted

    def check_head(self, file: NewFile) -> None:
        """Have the site check a file's place and beginning, before it is read and sent."""
        self._request("POST", "/uploads/check", file)

    def start_upload(self, upload: NewUpload) -> UploadStatus:
        """Announce a file; if it is being uploaded to the same place already, return that unfinished upload."""
        return self._call(UploadStatus, "POST", "/uploads", upload)

    def stored_parts(self, upload: UUID) -> list[UploadPart]:
        """Return the parts of an upload that the site has stored."""
        return self._call(StoredParts, "GET", f"/uploads/{upload}/parts").parts

    def part_urls(self, upload: UUID, parts: list[UploadPart]) -> list[PartUrl]:
        """Request the addresses to send these parts to."""
        return self._call(PartUrls, "POST", f"/uploads/{upload}/part-urls", WantedParts(parts=parts)).urls

    def send_part(self, url: PartUrl, content: bytes) -> None:
        """Send a part to its address, which may belong to another host.

        Raises `ProblemError`, of that host as well: `E_UPLOAD_URL` when the address has expired, `E_UPLOAD_PART` when
        the bytes aren't those that were announced, `E_UPLOAD_STATE` when the upload has ended.
        """
        # Without the session: the address itself is the permission, and another host must not see the API token.
        self._respond(
            lambda: requests.put(url.url, data=content, headers=url.headers, timeout=TIMEOUT_S),
            STORE_STATUS,
        )

    def complete_upload(self, upload: UUID) -> StoredArtifact:
        """Assemble the file from its parts and put it into its place in the draft."""
        return self._call(StoredArtifact, "POST", f"/uploads/{upload}/complete")

    def _all(self, path: str, message: type[P], items: Callable[[P], list[T]]) -> list[T]:
        """Return the items of a list that the site sends in parts."""
        found: list[T] = []
        while True:
            page = self._call(message, "GET", f"{path}?limit={PAGE_LENGTH}&offset={len(found)}")
            found += items(page)
            if not items(page) or len(found) >= page.count:
                return found

    def _call(self, message: type[T], method: str, path: str, body: Request | None = None) -> T:
        """Call one operation of the API and return its response as a `message`."""
        response = self._request(method, path, body)
        try:
            return TypeAdapter(message).validate_json(response.content)
        except ValidationError as error:
            raise ProblemError(_foreign(response)) from error

    def _request(self, method: str, path: str, body: Request | None = None) -> requests.Response:
        url = f"{self.site}/api/v1{path}"
        content = None if body is None else body.model_dump(mode="json")
        return self._respond(lambda: self._session.request(method, url, json=content, timeout=TIMEOUT_S))

    def _respond(
        self, send: Callable[[], requests.Response], statuses: Mapping[int, ErrorCode] = MappingProxyType({})
    ) -> requests.Response:
        """Return the response to a request, which is sent again while the connection or the site fails.

        `statuses` says what a status means in a response without coded problems.
        """
        problem, pause_s = Problem.of(ErrorCode.SITE_UNREACHABLE), 0.0
        for attempt in range(TRIES):
            if attempt:
                time.sleep(max(pause_s, self._first_pause_s * 2 ** (attempt - 1)))
                pause_s = 0.0
            try:
                response = send()
            except CONNECTION_ERRORS as error:
                problem = self._unreachable(_in_words(error))
                continue
            except requests.RequestException as error:
                raise ProblemError.of(
                    ErrorCode.SITE_UNREACHABLE,
                    where=self.site,
                    expected="an address such as https://benchmark.example",
                    found=type(error).__name__,
                ) from error
            if response.status_code < 400:
                return response
            if response.status_code == TOO_MANY_REQUESTS and attempt < TRIES - 1:
                pause_s = _retry_after_s(response)
                continue
            problems = _problems_in(response, self.site)
            if response.status_code < 500 or response.status_code == INSUFFICIENT_STORAGE:
                code = statuses.get(response.status_code)
                raise ProblemError(*(problems or [Problem.of(code) if code else _foreign(response)]))
            problem = problems[0] if problems else self._unreachable(f"status {response.status_code}")
        raise ProblemError(problem)

    def _unreachable(self, found: str) -> Problem:
        return Problem.of(ErrorCode.SITE_UNREACHABLE, where=self.site, expected="a response", found=found)


def _in_words(error: requests.RequestException) -> str:
    """Return why there was no response, as the system says."""
    if isinstance(error, requests.Timeout):
        return "no response in time"
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            return below.strerror
        below = below.__cause__ or below.__context__
    return "a connection that was cut"


def _retry_after_s(response: requests.Response) -> float:
    """Return the seconds after which the site answers again, as it says."""
    named = response.headers.get("Retry-After", "")
    return min(float(named), MAX_PAUSE_S) if named.isdecimal() else 0.0


def creating_token(site: str) -> str:
    """Return what to do without an API token that the site accepts."""
    return f"Create a token at {site.rstrip('/')}/account/tokens/ and set PFL_TOKEN to it."


def _problems_in(response: requests.Response, site: str) -> list[Problem]:
    """Return the coded problems in a response with an error status; none if it isn't one of the site's."""
    try:
        problems = Problems.model_validate_json(response.content).problems
    except ValidationError:
        return []
    return [
        problem.model_copy(update={"next_step": creating_token(site)}) if problem.code in SIGN_IN else problem
        for problem in problems
    ]


def _foreign(response: requests.Response) -> Problem:
    """Return the problem of a response that this API doesn't send."""
    return Problem.of(
        ErrorCode.SITE_UNREACHABLE,
        message="The response doesn't come from this benchmark's API.",
        where=response.url,
        expected="a message of the API",
        found=f"status {response.status_code}, {response.headers.get('Content-Type', 'no content type')}",
        next_step="Check the site's address.",
    )
