"""The credentials of a private run's record: the team's signing key and the run token that the site issued."""

from dataclasses import dataclass
from pathlib import Path

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records import signing
from evaluator.records.lines import RunToken
from starter_kit.console import console
from starter_kit.site.client import SiteClient

_RUN_TOKEN: TypeAdapter[str] = TypeAdapter(RunToken)


@dataclass(frozen=True)
class Credentials:
    """What a training record is signed with. A run whose `run_token` is None can be checked but not submitted."""

    key: Ed25519PrivateKey
    run_token: str | None


def obtain(
    key_file: Path, run_token: str | None, track: str, site: SiteClient | None, *, resumed: bool = False
) -> Credentials:
    """Return the key in `key_file`, created at first use, and the given run token or one that the site issues.

    Prints a message when it creates a key, and when the run has no token.

    Args:
        track: The track that the site issues the token for.
        resumed: Whether an interrupted run is resumed. Its record has a token already, so none is requested.

    Raises:
        ProblemError: The token or the key is invalid, or the site issues no token.
    """
    if run_token is not None:
        _check(run_token)
    if key_file.exists():
        key = signing.load_key(key_file)
    else:
        key = signing.create_key(key_file)
        console.print(
            f"{key_file}: a new key, which signs your records. Keep it safe and private.",
            soft_wrap=True,
        )
    if resumed:
        return Credentials(key, run_token)
    if run_token is None and site:
        run_token = site.issue_run_token(track).token
    if run_token is None:
        console.print(
            "No run token: this run can be checked but not submitted. "
            "To train for the benchmark, set PFL_SITE and PFL_TOKEN, or pass a token from `pfl token`.",
            soft_wrap=True,
        )
    return Credentials(key, run_token)


def key_path(key_file: Path | None) -> Path:
    """Return `key_file`, or by default the file of the signing key in the user's configuration folder."""
    return key_file or Path(typer.get_app_dir("pfl")) / "team_key.pem"


def _check(run_token: str) -> None:
    try:
        _RUN_TOKEN.validate_python(run_token)
    except ValidationError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, where="--run-token", expected="a token from `pfl token`", found=run_token
        ) from error
