"""Archives of the organizers, unpacked into a folder that remembers which ones it has."""

import json
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError

UNPACKED = ".unpacked.json"


def unpacked_in(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each archive that was unpacked into the folder, by the archive's name."""
    path = folder / UNPACKED
    found: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def require_unpackable(folder: Path) -> None:
    """Check that a folder is free for archives before they are downloaded.

    Raises:
        ProblemError: (`E_DATASET_FOLDER`) Its files come from elsewhere.
    """
    present = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if present and UNPACKED not in present:
        raise ProblemError.of(
            ErrorCode.DATASET_FOLDER,
            str(folder),
            "an empty folder, or files that `pfl data download` wrote",
            f"other files, such as {present[0]}",
            message="The folder contains other data or base weights.",
            next_step="Add --out FOLDER to download to another folder, or --force to replace files of the same names.",
        )


def unpack(archive: Path, folder: Path, *, name: str, sha256: str, replace: bool = False) -> None:
    """Unpack a ZIP or tar archive into a folder; a file of another kind is put there as it is.

    An archive with a single folder at its top is unpacked without that folder. Nothing is written outside of `folder`.

    Args:
        name: What the folder remembers it by, with its SHA-256.
        replace: Whether what is in the folder under the same name is replaced.

    Raises:
        ProblemError: (`E_DATASET_FOLDER`) Something of this name is in the folder already, or the archive is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as temporary:
        fresh = Path(temporary)
        _extract(archive, fresh)
        entries = list(fresh.iterdir())
        if len(entries) == 1 and entries[0].is_dir():
            entries = list(entries[0].iterdir())
        present = [entry.name for entry in entries if (folder / entry.name).exists()]
        if present and not replace:
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER,
                str(folder / present[0]),
                "a folder without it",
                "a file or folder of this name",
                next_step="Choose another --out, or replace it with --force.",
            )
        for entry in entries:
            _remove(folder / entry.name)
            entry.rename(folder / entry.name)
    (folder / UNPACKED).write_text(json.dumps({**unpacked_in(folder), name: sha256}))


def _extract(archive: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(folder)  # noqa: S202  (names that lead out of the folder are changed)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as opened_tar:
                opened_tar.extractall(folder, filter="data")
        else:
            shutil.copyfile(archive, folder / archive.name)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise ProblemError.of(
            ErrorCode.DATASET_FOLDER, str(archive), "a ZIP or tar archive that is complete", str(error)
        ) from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
