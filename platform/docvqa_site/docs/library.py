"""Which documents there are, in which order they are offered, and where they are on the disk.

An installed package has them beside this module; in a checkout they are in `docs/` at its top.
"""

import re
from enum import Enum
from functools import cache
from pathlib import Path

INSTALLED = Path(__file__).parent / "pages"
CHECKOUT = Path(__file__).parents[3] / "docs"
# What is at an address that ends in a slash: `proofs/` is `proofs/README.md`.
FOLDER_PAGE = "README"
# Pictures and tables of numbers that documents show or link to.
FILE_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json"}
NOT_IN_SLUG = re.compile(r"[^\w\- ]")
TITLE = re.compile(r"^# (.+)$", re.M)
# By these, `make benchmark` and studies find the parts that they write.
COMMENT = re.compile(r"^<!--.*?-->\n", re.M | re.S)


class Audience(Enum):
    """For whom a document is written: what others search for is hardly ever in it."""

    VISITORS = "visitors"
    PARTICIPANTS = "participants"
    OPERATORS = "operators"
    DEVELOPERS = "developers"


# Documents by their purpose: the name of each, its path below the documentation's folder without `.md`, and a line that
# says what it is for where its title alone doesn't.
GROUPS = {
    "What you want to do": {
        "roles/reader": "How far a number on a leaderboard can be trusted.",
        "roles/participant": "From an empty folder to a submission.",
        "roles/organizer": "A site, its workers and a track.",
        "roles/reviewer": "What to read, check and decide.",
        "roles/method-author": "One file, from an idea to a submission.",
    },
    "Start here": {
        "faq": "Who can take part, what you need, what becomes public.",
        "starter-kit": "Install `pfl`, train, check and submit, and write plug-ins.",
        "tracks": "When tracks are open, and who sees submissions and scores.",
        "leaderboards": "How to read the leaderboards, plots and intervals, and how to cite a result.",
        "glossary": "Definitions of terms.",
    },
    "Notebooks": {
        "notebooks/first-submission": "From the data to a submission that passes all checks.",
        "notebooks/own-method": "Write a method as one file, with tests.",
        "notebooks/private-training": "How noise, clipping and sampling affect ε and the score.",
        "notebooks/reading-evidence": "Read a small run's record as a reviewer does, and see what a forged one shows.",
        "notebooks/attacking-a-model": "Does a model reveal whose invoices it was trained on?",
    },
    "Train": {
        "data": "Data set format, and how to import the official files or your own receipts.",
        "methods": "Every method from the papers, with its configuration.",
        "settings": "Every setting of a run and its default.",
        "full-size": "The real model and the competition's data: requirements and run times.",
        "distributed": "One process per client, on several machines.",
        "secure-aggregation": "The server sees only the sum of all updates.",
        "reports": "The numbers and plots in a run folder.",
        "reproduction": "The papers' methods compared on a task for a small model.",
        "competition-tables": "The competition's tables next to ours, with a verdict on each claim.",
        "ablations": "The effect of epochs, clients and quantization on the method that won track 1.",
        "fewest-bytes": "How few counted bytes reach the threshold of track 1 on a small task.",
        "private-rows": "Changes of DP-LoRA that score higher at the same ε on a small task.",
        "published-settings": "Privacy of the papers' settings under both rules.",
        "random-allocation": "How much less noise random allocation needs than Poisson sampling.",
        "published-epsilon": "What the papers' ε protects against, and what it doesn't.",
    },
    "Submit": {
        "formats": "Checkpoint, communication log, training record and annex, field by field.",
        "columns": "Every column of the leaderboards' CSV and JSON files.",
        "api": "Submit and read results from your own scripts.",
        "errors": "Every error code, with its meaning and the next step.",
    },
    "How results are judged": {
        "privacy": "What ε guarantees, how it is computed, and what the checks can detect.",
        "checks": "What each check covers, and what it doesn't.",
        "reviews": "Who reviews privacy proofs, the checklist, and how to appeal.",
        "bytes": "Which bytes determine a rank, and when they are counted rather than declared.",
        "trust-levels": "Each level's meaning and requirements.",
        "forging": "What could still be false: every forgery in the tests, what it would gain, and what detects it.",
        "replay": "Repeating the last round of a training run and some randomly drawn ones.",
        "conformance": "Testing a method's code against the assumptions behind its ε.",
        "leakage": "Membership attacks on submitted models.",
        "memorization": "What a small model memorizes of providers, and what privacy prevents.",
        "auditing": "Measuring a run's privacy with made-up providers.",
        "genuine-runs": "False alarms of the checks on honest runs of the kit.",
        "false-alarms": "False alarms of the noise checks on simulated runs with the strongest allowed signals.",
        "adaptive-submissions": "Gains from adapting many submissions to the displayed scores.",
    },
    "Privacy proofs of the kit's methods": {
        "proofs/README": "How to write the proof of your submission, and what reviewers ask.",
        "proofs/fl-provider-dp": "",
        "proofs/client-dp": "",
        "proofs/dp-clgecl": "",
        "proofs/centralized-dp": "",
        "proofs/laplace-fedavg": "",
        "proofs/laplace-iadmm": "",
        "proofs/adaptive-clipping": "",
        "proofs/whole-change": "",
    },
    "Run and extend a site": {
        "operations": "Set up and monitor a public site, and respond to alerts.",
        "workers": "Evaluation machines and their accounts.",
        "examinations": "Examine runs, and set up a machine for it.",
        "storage": "File storage in a folder or a bucket, and retention.",
        "reliability": "How submissions survive failures of parts of the site.",
        "images": "The container images: sizes, start times, and a run of each track.",
        "performance": "Speed of pages, uploads and evaluations.",
        "architecture": "Code layout, and the path of a checkpoint through the code.",
        "kit-proofs": "Keep the proofs of the kit's methods up to date with the code.",
        "decisions/README": "Design decisions, alternatives and reasons.",
    },
}
# For whom the documents are whose group isn't for all visitors, and those that are for others than their group.
GROUP_AUDIENCES = {
    "Notebooks": Audience.PARTICIPANTS,
    "Train": Audience.PARTICIPANTS,
    "Submit": Audience.PARTICIPANTS,
    "Run and extend a site": Audience.OPERATORS,
}
AUDIENCES = {
    "roles/organizer": Audience.OPERATORS,
    "performance": Audience.DEVELOPERS,
    "architecture": Audience.DEVELOPERS,
    "kit-proofs": Audience.DEVELOPERS,
}
DECISIONS = "decisions/"


def folder() -> Path:
    return INSTALLED if INSTALLED.is_dir() else CHECKOUT


@cache
def names() -> frozenset[str]:
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


def about(name: str) -> str:
    """Return the line that the list of documents has on this one; empty for one that isn't listed."""
    return next((group[name] for group in GROUPS.values() if name in group), "")


def audience(name: str) -> Audience:
    """Return for whom a document is written."""
    if name.startswith(DECISIONS):
        return Audience.DEVELOPERS
    group = next((title for title, names in GROUPS.items() if name in names), "")
    return AUDIENCES.get(name) or GROUP_AUDIENCES.get(group, Audience.VISITORS)


def slug_of(heading: str) -> str:
    """Return the fragment by which GitHub links to a heading, so that links work there and here."""
    return NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def below(name: str) -> list[str]:
    """Return the names of the documents in the folder that this document is the page of; none for another one."""
    folder_name, _, page = name.rpartition("/")
    if page != FOLDER_PAGE:
        return []
    return sorted(other for other in names() - {name} if other.rpartition("/")[0] == folder_name)


def read(name: str) -> str:
    """Return the text of a document without the comments in it."""
    return COMMENT.sub("", (folder() / f"{name}.md").read_text(encoding="utf-8"))
