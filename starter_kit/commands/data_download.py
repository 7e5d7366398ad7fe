"""`pfl data download`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from starter_kit.commands.options import ApiToken, Site, connect, wrong_option
from starter_kit.console import console, print_lines, transfer

if TYPE_CHECKING:
    from evaluator.messages.file_api import DownloadInfo, TermsInfo
    from starter_kit.site.client import SiteClient

# Where the files of each kind go, as the commands of the guides name these folders.
FOLDERS = {"data": Path("data") / "public", "weights": Path("base")}


def download(
    track: Annotated[str, typer.Option(help="Name of the track, such as track-1.")],
    out: Annotated[Path, typer.Option(help="Folder in which data/public and base are written.")] = Path(),
    accept_terms: Annotated[
        bool,
        typer.Option(
            "--accept-terms", help="Accept the terms of the files without being asked. Read them first."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same names.")] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Download a track's data and base weights from the site, check their SHA-256 and unpack them.

    After an interruption, run the same command again: it continues where it stopped and skips files that are
    already there. Files without terms need no account.
    """
    from starter_kit.data.archives import require_unpackable, unpack, unpacked_in

    client = connect(site, token, needs_token=False)
    found = [one for one in client.downloads(track) if one.kind in FOLDERS]
    if not found:
        print_lines(
            f"The site offers no files for {track}. Its data page may say where they are: {client.site}/data/"
        )
        raise typer.Exit(1)
    for folder in {out / FOLDERS[one.kind] for one in found if not force}:
        require_unpackable(folder)
    for one in found:
        folder = out / FOLDERS[one.kind]
        if one.sha256 and unpacked_in(folder).get(one.filename) == one.sha256:
            print_lines(f"{folder}: has {one.filename} already")
            continue
        if one.terms and not one.terms.accepted:
            _accept(client, one.terms, is_accepted=accept_terms, has_token=bool(token))
        archive = _fetch(client, one, out)
        unpack(archive, folder, name=one.filename, sha256=one.sha256, replace=force)
        archive.unlink()
        print_lines(f"{folder}: {one.title} ({one.license}), SHA-256 as the site states")


def _fetch(client: "SiteClient", download: "DownloadInfo", out: Path) -> Path:
    from starter_kit.site.downloading import fetch

    with transfer() as show:
        return fetch(client, download, out, lambda done, size: show(_line(download, done), done, size))


def _line(download: "DownloadInfo", done_bytes: int) -> str:
    size = f" of {download.size_bytes / 1e6:,.1f}" if download.size_bytes else ""
    return f"{download.filename}: {done_bytes / 1e6:,.1f}{size} MB"


def _accept(client: "SiteClient", terms: "TermsInfo", *, is_accepted: bool, has_token: bool) -> None:
    """Show terms and accept them, by the option or by an answer in the terminal."""
    from starter_kit.site.client import creating_token

    if not has_token:
        raise wrong_option(
            "--token or PFL_TOKEN",
            "an API token, since these files have terms",
            "nothing",
            next_step=creating_token(client.site),
        )
    if not is_accepted:
        print_lines(f"{terms.title}, version {terms.version} ({terms.url})", "", terms.text, "")
        if not (console.is_terminal and typer.confirm("Do you accept these terms?")):
            raise wrong_option(
                "--accept-terms",
                f"your acceptance of “{terms.title}”, version {terms.version}",
                "none",
                message="The terms of the files aren't accepted.",
                next_step="Read them, then run the same command with --accept-terms.",
            )
    client.accept_terms(terms.id)
    print_lines(f"Accepted: {terms.title}, version {terms.version}")
