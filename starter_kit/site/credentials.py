"""What a private run needs for its record: the team's signing key, and the run token that the site issued."""

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records import signing
from evaluator.records.lines import RunToken
from starter_kit.site.client import SiteClient

TRACK = re.compile(r"[A-Za-z0-9_-]{1,50}")
TRAINING = re.compile(r"[0-9a-f]{32}")
_RUN_TOKEN: TypeAdapter[str] = TypeAdapter(RunToken)


@dataclass(frozen=True)
class Credentials:
    """The key that signs a run's record, and the token that the record carries.

    Attributes:
        run_token: None for a run that can be checked but not submitted.
        new_key: Whether the key was created for this run.
    """

    key: Ed25519PrivateKey
    run_token: str | None
    new_key: bool = False


def obtain_credentials(
    key_file: Path,
    run_token: str | None,
    track: str,
    site: SiteClient | None,
    *,
    training: Path | None = None,
    resumed: bool = False,
) -> Credentials:
    """Return the key in `key_file`, created at first use, and the given run token or one that the site issues.

    Args:
        track: The track for which the site issues a token.
        site: None where no site is known; the run then has the given token or none.
        training: A file that names the training to the site, created at first use. As long as it exists, the training
            gets the same token again, however often it is started over.
        resumed: Whether an interrupted run is resumed. Its record has its token already, so none is requested.

    Raises:
        ProblemError: The token or the key is invalid, or the site issues none.
    """
    if run_token is not None:
        _check(run_token)
    new_key = not key_file.exists()
    key = signing.create_key(key_file) if new_key else signing.load_key(key_file)
    if run_token is None and site and not resumed:
        run_token = site.issue_run_token(track, _name_of(training)).token
    return Credentials(key, run_token, new_key)


def _name_of(training: Path | None) -> str:
    """Return the name of a training that the file has; a new one, which is written there, unless it has one."""
    if training is None:
        return ""
    try:
        name = training.read_text(encoding="ascii").strip() if training.exists() else ""
        if not TRAINING.fullmatch(name):
            name = secrets.token_hex(16)
            training.write_text(name, encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The number of the training can't be written into the run folder.",
            where=str(training),
            expected="a file to write",
            found=error,
            next_step="Make room, or name a folder that you can write into.",
        ) from error
    return name


def check_credentials(
    key_file: Path,
    run_token: str | None,
    track: str,
    site: SiteClient | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Check what of the credentials is there already, and that the site would issue the rest, long before a run needs
    them. No token is issued. The arguments are those of `obtain_credentials`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The run token is none, or the track has no such tokens;
            (`E_SIGNING_KEY`) the key's file can't be read; (`E_REQUEST_SIGN_IN`) the site doesn't accept the account's
            token; (`E_SITE_UNREACHABLE`) it doesn't answer.
    """
    if run_token is not None:
        _check(run_token)
    if not TRACK.fullmatch(track):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, "--track", "the name of a track, such as track-2", track
        )
    if key_file.exists():
        signing.load_key(key_file)
    if run_token is None and site and not resumed:
        site.signing_keys()
        if site.track(track).budgets == [None]:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="--track",
                expected="a track with privacy budgets, which issues run tokens",
                found=track,
            )


def _check(run_token: str) -> None:
    try:
        _RUN_TOKEN.validate_python(run_token)
    except ValidationError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, "--run-token", "a token from `pfl token`", run_token
        ) from error
