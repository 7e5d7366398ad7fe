"""`pfl key`: the Ed25519 key with which a team signs its training records.

The private half stays in one file of its owner's; the site and the records have the public half only.
"""

from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.commands.options import ApiToken, KeyFile, Site, connect, key_path
from starter_kit.console import print_lines

app = new_app("Create, show and register the key that signs your training records.")

KeyName = Annotated[str, typer.Option(help="Name of the key on the site.")]


@app.command()
def create(
    out: Annotated[
        Path | None,
        typer.Option(
            envvar="PFL_KEY", help="File to write; by default the one in your configuration folder."
        ),
    ] = None,
) -> None:
    """Create a new key. Existing files are never overwritten."""
    from evaluator.records import signing

    path = key_path(out)
    key = signing.create_key(path)
    print_lines(f"{path}: new key (keep it private). Public key:", signing.public_key_of(key))


@app.command()
def show(key: KeyFile = None) -> None:
    """Print the public key, which isn't secret."""
    print_lines(_public_key(key))


@app.command()
def register(
    key: KeyFile = None, name: KeyName = "starter kit", site: Site = "", token: ApiToken = ""
) -> None:
    """Register the public key with the site. The site then accepts records signed with this key for your team."""
    public_key = _public_key(key)
    connect(site, token).register_key(public_key, name)
    print_lines(f"{public_key}: registered")


def _public_key(key: Path | None) -> str:
    from evaluator.records import signing

    path = key_path(key)
    if not path.exists():
        raise ProblemError.of(
            ErrorCode.SIGNING_KEY,
            message="You have no signing key yet.",
            where=str(path),
            expected="the key that signs your training records",
            found="no such file",
            next_step="Create one with `pfl key create`; `pfl train` also creates one for a private run. "
            "If your key is in another file, name it with --key or PFL_KEY.",
        )
    return signing.public_key_of(signing.load_key(path))
