"""With what a private run answers for its record: the team's signing key, and the token that the site gave it."""

from dataclasses import dataclass
from pathlib import Path

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records import signing
from evaluator.records.lines import RunToken
from starter_kit.console import console
from starter_kit.site.api import SiteClient

_RUN_TOKEN: TypeAdapter[str] = TypeAdapter(RunToken)


@dataclass(frozen=True)
class Credentials:
    """`run_token` is None for a run that can be checked and not submitted."""

    key: Ed25519PrivateKey
    run_token: str | None


def obtain(
    key_file: Path, run_token: str | None, track: str, site: SiteClient | None, *, resumed: bool = False
) -> Credentials:
    """The key in `key_file`, made at first use, and the given run token or else one that the site issues for `track`.

    Says on the console what it made, and what a run without a token is good for.

    Args:
        resumed: Whether the run goes on after a break. Its record has its token already, so none is asked for.

    Raises:
        ProblemError: The token or the key is no good, or the site issues none.
    """
    if run_token is not None:
        _check(run_token)
    if key_file.exists():
        key = signing.load_key(key_file)
    else:
        key = signing.create_key(key_file)
        console.print(
            f"{key_file}: a new key, which signs your records. Keep it, and keep it to yourself.",
            soft_wrap=True,
        )
    if resumed:
        return Credentials(key, run_token)
    if run_token is None and site:
        run_token = site.run_token(track)
    if run_token is None:
        console.print(
            "No run token: this run can be checked and not submitted. "
            "Set PFL_SITE and PFL_TOKEN, or give a token of `pfl token`, to train for the benchmark.",
            soft_wrap=True,
        )
    return Credentials(key, run_token)


def key_path(key_file: Path | None) -> Path:
    """The file of the team's signing key: the one that is named, or the user's own."""
    return key_file or Path(typer.get_app_dir("pfl")) / "team_key.pem"


def _check(run_token: str) -> None:
    try:
        _RUN_TOKEN.validate_python(run_token)
    except ValidationError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, where="--run-token", expected="a token of `pfl token`", found=run_token
        ) from error
