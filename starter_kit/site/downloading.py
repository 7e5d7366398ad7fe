"""Downloads that resume: an interrupted one is continued, and what arrived is compared with the site's SHA-256."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_api import DownloadInfo
from starter_kit.site.client import CONNECTION_ERRORS, SiteClient

CHUNK_BYTES = 1024 * 1024
TRIES = 6
PARTIAL_CONTENT = 206

OnBytes = Callable[[int, int], object]
"""Called with the bytes that have arrived, and with the size of the file."""


def fetch(client: SiteClient, download: DownloadInfo, folder: Path, on_bytes: OnBytes) -> Path:
    """Fetch a download into a folder, and return its path there.

    What an interrupted call has left is continued.

    Raises:
        ProblemError: The site or the connection fails, or (`E_ARTIFACT_HASH`) the file isn't the one that the site
            names, which is then removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{Path(download.filename).name}.part"
    for attempt in range(TRIES):
        try:
            _continue(client, download, part, on_bytes)
            break
        except CONNECTION_ERRORS as error:
            if attempt == TRIES - 1:
                raise ProblemError.of(
                    ErrorCode.SITE_UNREACHABLE,
                    where=download.url,
                    expected=f"{download.size_bytes:,} bytes",
                    found=f"{part.stat().st_size:,} bytes, then {type(error).__name__}",
                    next_step="Run the same command again; it continues where it stopped.",
                ) from error
    _compare(download, part)
    return part.rename(part.with_suffix(""))


def _continue(client: SiteClient, download: DownloadInfo, part: Path, on_bytes: OnBytes) -> None:
    """Fetch what is missing of the file."""
    present = part.stat().st_size if part.exists() else 0
    if download.size_bytes and present == download.size_bytes:
        return
    with client.open_download(download, present) as response:
        is_rest = response.status_code == PARTIAL_CONTENT
        done = present if is_rest else 0
        with part.open("ab" if is_rest else "wb") as file:
            for chunk in response.iter_content(CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                on_bytes(done, download.size_bytes)


def _compare(download: DownloadInfo, path: Path) -> None:
    """Check the file's SHA-256, where the site names one; a wrong file is removed, since continuing it is no use."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if download.sha256 in ("", found):
        return
    path.unlink()
    raise ProblemError.of(
        ErrorCode.ARTIFACT_HASH,
        where=download.filename,
        expected=download.sha256,
        found=found,
        next_step="Run the same command again. If it fails again, tell the organizers.",
    )
