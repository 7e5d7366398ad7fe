"""`pfl key`: the Ed25519 key with which a team signs its training records.

The private half stays in one file of its owner's; the site and the records know the public half only.
"""

from pathlib import Path
from typing import Annotated

import typer

from evaluator.records import signing
from starter_kit.console import console, rejections
from starter_kit.site.credentials import key_path
from starter_kit.site.options import ApiToken, KeyFile, Site, connect

key_app = typer.Typer(help="The key that signs your training records.", no_args_is_help=True)

KeyName = Annotated[str, typer.Option(help="By which your team recognizes the key on the site.")]


@key_app.command()
def create(
    out: Annotated[
        Path | None, typer.Option(envvar="PFL_KEY", help="File to write; else in your configuration folder.")
    ] = None,
) -> None:
    """Make a new key. A file that exists is never overwritten."""
    path = key_path(out)
    with rejections():
        key = signing.create_key(path)
    console.print(f"{path}: a new key, for your eyes only. Its public half:", soft_wrap=True)
    console.print(signing.public_key_of(key), highlight=False, soft_wrap=True)


@key_app.command()
def show(key: KeyFile = None) -> None:
    """Print the key's public half, which may be known to all."""
    with rejections():
        public_key = signing.public_key_of(signing.load_key(key_path(key)))
    console.print(public_key, highlight=False, soft_wrap=True)


@key_app.command()
def register(
    key: KeyFile = None, name: KeyName = "starter kit", site: Site = "", token: ApiToken = ""
) -> None:
    """Tell the site the key's public half, so that it accepts records that the key signed for your team."""
    with rejections():
        public_key = signing.public_key_of(signing.load_key(key_path(key)))
        connect(site, token).register_key(public_key, name)
    console.print(f"{public_key}: registered", highlight=False, soft_wrap=True)
