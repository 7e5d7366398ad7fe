"""Which documents there are, in which order they are offered, and where they are on the disk.

An installed package has them beside this module; in a checkout they are in `docs/` at its top.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

INSTALLED = Path(__file__).parent / "pages"
CHECKOUT = Path(__file__).parents[3] / "docs"
# What is at an address that ends in a slash: `proofs/` is `proofs/README.md`.
FOLDER_PAGE = "README"
# Pictures and tables of numbers that documents show or link to.
FILE_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json"}
TITLE = re.compile(r"^# (.+)$", re.M)


@dataclass(frozen=True)
class Group:
    """Documents for one purpose. Their names are paths below the documentation's folder, without `.md`."""

    title: str
    names: tuple[str, ...]


GROUPS = (
    Group(
        "Take part",
        (
            "faq",
            "tracks",
            "starter-kit",
            "notebooks/first-submission",
            "notebooks/own-method",
            "notebooks/private-training",
            "notebooks/reading-evidence",
            "notebooks/attacking-a-model",
            "full-size",
            "data",
            "methods",
            "settings",
            "reports",
            "distributed",
            "secure-aggregation",
            "formats",
            "api",
            "errors",
        ),
    ),
    Group(
        "How results are verified",
        (
            "privacy",
            "checks",
            "trust-levels",
            "genuine-runs",
            "false-alarms",
            "reviews",
            "leaderboards",
            "replay",
            "conformance",
            "leakage",
            "auditing",
            "reproduction",
            "published-settings",
            "proofs/README",
            "proofs/fl-provider-dp",
            "proofs/client-dp",
            "proofs/dp-clgecl",
            "proofs/centralized-dp",
            "proofs/laplace-fedavg",
            "proofs/laplace-iadmm",
            "proofs/adaptive-clipping",
        ),
    ),
    Group("Run a site", ("operations", "workers", "storage", "reliability", "performance")),
    Group("How it is built", ("architecture", "glossary", "decisions/README")),
)


def folder() -> Path:
    """Return the folder that the documents are in."""
    return INSTALLED if INSTALLED.is_dir() else CHECKOUT


@cache
def names() -> frozenset[str]:
    """Return the names of all documents."""
    root = folder()
    return frozenset(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.md"))


@cache
def files() -> frozenset[str]:
    """Return the paths of the files that documents show or link to."""
    root = folder()
    return frozenset(
        path.relative_to(root).as_posix() for path in root.rglob("*") if path.suffix in FILE_TYPES
    )


def address(name: str) -> str:
    """Return the part of the document's address that follows `/docs/`."""
    return name.removesuffix(FOLDER_PAGE) if name.endswith(f"/{FOLDER_PAGE}") else f"{name}/"


def name_at(address_: str) -> str | None:
    """Return the name of the document at an address below `/docs/`; None where there is none."""
    bare = address_.strip("/")
    return next((name for name in (bare, f"{bare}/{FOLDER_PAGE}") if name in names()), None)


@cache
def title(name: str) -> str:
    """Return the first heading of a document, without rendering the rest."""
    heading = TITLE.search(read(name))
    return heading[1].replace("`", "") if heading else name


def below(name: str) -> list[str]:
    """Return the names of the documents in the folder that this document is the page of; none for another one."""
    folder_name, _, page = name.rpartition("/")
    if page != FOLDER_PAGE:
        return []
    return sorted(other for other in names() - {name} if other.rpartition("/")[0] == folder_name)


def read(name: str) -> str:
    """Return the text of a document."""
    return (folder() / f"{name}.md").read_text(encoding="utf-8")
