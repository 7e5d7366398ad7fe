"""Which documents there are, in which order they are offered, and where they are on the disk.

An installed package has them beside this module; in a checkout they are in `docs/` at its top.
"""

import re
from collections.abc import Mapping
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
    """Documents for one purpose: the name of each, its path below the documentation's folder without `.md`, and a line.

    The line says what the document is for, where its title alone doesn't.
    """

    title: str
    lines: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The names of the documents, in their order."""
        return list(self.lines)


GROUPS = (
    Group(
        "Begin here",
        {
            "faq": "What people ask first: who may take part, what it takes, what is published.",
            "starter-kit": "Install `pfl`, train, check and submit, and write plug-ins.",
            "tracks": "When a track takes submissions, and who sees them and their scores.",
            "leaderboards": "How to read the boards, their plots and intervals, and how to cite a result.",
        },
    ),
    Group(
        "Notebooks",
        {
            "notebooks/first-submission": "From the data to a submission that passes its checks.",
            "notebooks/own-method": "A method as one file, and its tests.",
            "notebooks/private-training": "What noise, clipping and sampling do to ε and to the score.",
            "notebooks/reading-evidence": "What a page of a method shows, number by number.",
            "notebooks/attacking-a-model": "Whether a model reveals whose invoices it was trained on.",
        },
    ),
    Group(
        "Train",
        {
            "data": "The format of a data set, and how to import the official files or your own receipts.",
            "methods": "Every method of the papers, with its config.",
            "settings": "Every setting of a run, with its default.",
            "full-size": "The real model and the competition's data: what it takes, and how long.",
            "distributed": "One process for each client, on several machines.",
            "secure-aggregation": "The server sees the sum of all updates, and no single one.",
            "reports": "The numbers and plots that a run leaves in its folder.",
            "reproduction": "How the papers' methods compare on a task that a small model learns.",
            "ablations": "What epochs, clients and quantization each do to the method that won track 1.",
            "published-settings": "The papers' settings, accounted by both rules.",
        },
    ),
    Group(
        "Submit",
        {
            "formats": "Checkpoint, communication log, training record and annex, field by field.",
            "columns": "The columns of the CSV and JSON exports.",
            "api": "Submit and read results from a program.",
            "errors": "Each code with its meaning and the next step.",
        },
    ),
    Group(
        "How results are verified",
        {
            "privacy": "What ε is promised for, how it is computed, and what the checks know.",
            "checks": "What each check compares, and what it can't detect.",
            "reviews": "Who reads a privacy proof, by which checklist, and how to appeal.",
            "trust-levels": "What each level means, and how a run earns one.",
            "replay": "One round, drawn after the training, is computed again.",
            "conformance": "Tests of a method's code against what its record promises.",
            "leakage": "Membership attacks on submitted models.",
            "auditing": "Measuring a run's privacy with made-up providers.",
            "genuine-runs": "Counts of honest runs of the kit.",
            "false-alarms": "Counts of honest noise with signals as strong as allowed.",
        },
    ),
    Group(
        "Privacy proofs of the kit's methods",
        {
            "proofs/README": "What a proof covers, and how it is kept up to date.",
            "proofs/fl-provider-dp": "",
            "proofs/client-dp": "",
            "proofs/dp-clgecl": "",
            "proofs/centralized-dp": "",
            "proofs/laplace-fedavg": "",
            "proofs/laplace-iadmm": "",
            "proofs/adaptive-clipping": "",
        },
    ),
    Group(
        "Run and extend a site",
        {
            "operations": "Set up a public site, watch it, and what to do when an alert fires.",
            "workers": "The machines that evaluate, and their accounts.",
            "storage": "A folder or a bucket for files, and when they are removed.",
            "reliability": "What becomes of submissions while parts of the site fail.",
            "performance": "How long pages, uploads and evaluations take.",
            "architecture": "Where to find things in the code, and the path of a checkpoint through it.",
            "glossary": "One meaning for each word.",
            "decisions/README": "What was chosen, instead of what, and why.",
        },
    ),
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
