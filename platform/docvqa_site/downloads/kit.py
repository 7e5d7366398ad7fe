"""How to install the starter kit."""

from collections.abc import Iterable

from django.conf import settings

from docvqa_site.downloads.models import Download, DownloadKind

PACKAGE = "pfl-docvqa-benchmark"


def find_wheel(downloads: Iterable[Download]) -> Download | None:
    """Return the wheel of the starter kit that the site offers; None if it offers none."""
    kit = (file for file in downloads if file.kind == DownloadKind.KIT)
    return next((file for file in kit if file.filename.endswith(".whl")), None)


def install_command(downloads: Iterable[Download], extra: str = "kit") -> str:
    """Return how to install the starter kit: the wheel that the site offers, else from the source code.

    The extra `verify` is the part of the kit that `pfl verify` needs.
    """
    offered = list(downloads)
    if wheel := find_wheel(offered):
        pins = next((file for file in offered if file.filename == "constraints.txt"), None)
        constraints = f"-c {settings.SITE_URL}{pins.get_absolute_url()} " if pins else ""
        return (
            f'pip install {constraints}"{PACKAGE}[{extra}] @ {settings.SITE_URL}{wheel.get_absolute_url()}"'
        )
    if settings.SOURCE_URL:
        return f'pip install "{PACKAGE}[{extra}] @ git+{settings.SOURCE_URL}"'
    return f"pip install -c constraints.txt -e '.[{extra}]'   # in a clone of the repository"
