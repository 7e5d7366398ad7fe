"""Options that several verbs have: where data, base weights, runs, the site and the key are, and how a run is made."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import log

if TYPE_CHECKING:
    from starter_kit.site.client import SiteClient

DATASET = "dataset.json"


def _data_folder(data: Path) -> Path:
    """Return the folder as it was named. Reject what is no data folder before anything is loaded that takes seconds."""
    if not data.is_dir():
        raise _no_folder(ErrorCode.DATASET_FORMAT, f"--data {data}", "a data folder")
    return one_data_folder(data, "--data ")


def _no_folder(code: ErrorCode, option: str, expected: str) -> ProblemError:
    """Return the error of a folder that isn't there, which `pfl data download` fetches where the site is known."""
    download = (
        "Check the path, or download the track's data and base weights: `pfl data download --track TRACK`."
    )
    next_step = download if os.environ.get("PFL_SITE") else ""
    return ProblemError.of(code, option, expected, "no such folder", next_step=next_step)


def one_data_folder(data: Path, option: str = "") -> Path:
    """Return the folder as it was named. Reject the one above it, which `pfl data` writes: it is easily mistaken.

    Args:
        option: How it was named, before its path.
    """
    if not (data / DATASET).exists() and (data / "public" / DATASET).is_file():
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{option}{data}",
            expected=f"a data folder, with {DATASET}",
            found=f"a folder that contains it in {data / 'public'}",
            next_step=f"Use {option}{data / 'public'}",
        )
    return data


def _base_folder(base: Path) -> Path:
    """Return the folder as it was named, with its weights as safetensors: a pickle is converted once. Reject one that
    isn't there."""
    if not base.is_dir():
        raise _no_folder(ErrorCode.REFERENCE_FORMAT, f"--base {base}", "a folder of base weights")
    if not (base / "model.safetensors").exists() and (base / "pytorch_model.bin").is_file():
        from starter_kit.weights.converting import convert

        log(f"{base} contains pickled weights; converting them once to model.safetensors in the same folder")
        convert(base / "pytorch_model.bin", base, base=None, allow_network=False, report=log)
    return base


DataFolder = Annotated[
    Path, typer.Option("--data", help="Data folder, such as data/public.", callback=_data_folder)
]
BaseFolder = Annotated[
    Path, typer.Option("--base", help="Folder of the track's base weights.", callback=_base_folder)
]
RunDirectory = Annotated[Path, typer.Argument(help="A run folder written by `pfl train`.")]
NewRun = Annotated[Path, typer.Option("--out", help="Folder to write.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting, such as rounds=5; can be repeated.")
]
Loggers = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        help="Send each round to tensorboard=FOLDER or wandb=PROJECT; can be repeated.",
    ),
]
RecordTrack = Annotated[
    str | None,
    typer.Option(
        "--track",
        help="The track that the run is for. Its rules are read from the site, and the record contains its "
        "run token. Default: track-2 for a run with a record, otherwise the site's first track without "
        "records.",
    ),
]
RunToken = Annotated[
    str | None,
    typer.Option(
        "--run-token",
        envvar="PFL_RUN_TOKEN",
        help="A token from `pfl token`; requested from the site by default, if --site and --token are set.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run with the same settings.")]

Site = Annotated[str, typer.Option("--site", envvar="PFL_SITE", help="The site's address.")]
ApiToken = Annotated[str, typer.Option("--token", envvar="PFL_TOKEN", help="API token from your profile.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        envvar="PFL_KEY",
        help="The team's signing key; by default the one in your configuration folder.",
    ),
]


def key_path(key_file: Path | None) -> Path:
    """Return the file of the team's signing key: the one that was named, or the user's own."""
    return key_file or Path(typer.get_app_dir("pfl")) / "team_key.pem"


def connect_if_known(site: str, token: str) -> "SiteClient | None":
    """Return access to the site, for a verb that works without it as well; None if address or token is missing."""
    return connect(site, token) if site and token else None


def connect(site: str, token: str, *, needs_token: bool = True) -> "SiteClient":
    """Return access to the site.

    Args:
        needs_token: Whether a missing API token is an error.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The address or the API token is missing.
    """
    from starter_kit.site.client import SiteClient, creating_token

    if not site:
        raise wrong_option(
            "--site or PFL_SITE",
            "the site's address",
            "nothing",
            next_step="Copy it from your browser: https://… without a path.",
        )
    if not _is_address(site):
        raise wrong_option(
            "--site or PFL_SITE",
            "an address such as https://benchmark.example",
            site,
            next_step="Copy it from your browser: https://… without a path.",
        )
    if needs_token and not token:
        raise wrong_option("--token or PFL_TOKEN", "an API token", "nothing", next_step=creating_token(site))
    # It travels in a header, and is never shown.
    if not (token.isascii() and token.isprintable()):
        raise wrong_option(
            "--token or PFL_TOKEN",
            "an API token: pfl_ and then letters, digits, - and _",
            "other characters",
            next_step=f"Copy it again. {creating_token(site)}",
        )
    return SiteClient(site, token)


def wrong_option(
    option: str, expected: object, found: object, next_step: str = "", message: str = ""
) -> ProblemError:
    """Return the error (`E_CONFIGURATION`) of an option of the command line."""
    return ProblemError.of(
        ErrorCode.CONFIGURATION, option, expected, found, message=message, next_step=next_step
    )


def require_number(option: str, value: float | None, *, below: float = math.inf) -> None:
    """Check the number of an option, where it is given: NaN is in the range of every option.

    Raises:
        ProblemError: (`E_CONFIGURATION`) It isn't above 0 and below `below`.
    """
    if value is not None and not 0 < value < below:
        raise wrong_option(
            option,
            "a number above 0" + (f" and below {below:g}" if below < math.inf else ""),
            value,
            next_step="Correct the option, or leave it out.",
        )


def _is_address(site: str) -> bool:
    """Whether something can be sent there: to a host by HTTP, and at a port that exists."""
    try:
        parts = urlsplit(site)
        host, _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:
        return False
    if parts.query or parts.fragment:
        return False
    return parts.scheme in {"http", "https"} and bool(host) and site.isprintable() and " " not in site


def require_at_sign(description: str) -> None:
    """Raise `ProblemError` (`E_CONFIGURATION`) for a description that is the name of a file, without its @."""
    is_name = 0 < len(description) <= 255 and not description.startswith("@") and "\n" not in description
    if is_name and Path(description).is_file():
        raise wrong_option(
            "--description",
            "the text, or @ and the name of its file",
            description,
            next_step=f"Use --description @{description}",
        )
