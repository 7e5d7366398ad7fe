"""Where the documents are that messages name: on the site, or in the source code."""

import os
import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
# A document, as messages name it; none that is part of another path or an address.
DOCUMENT = re.compile(r"(?<![\w/.])docs/([a-z0-9/-]+)\.md\b")


def with_addresses(text: str) -> str:
    """Return a text with the address of each document that it names.

    On the site of PFL_SITE every document is a page. Without a site, a checkout has the file; where the kit was
    installed, the file is in its source code, or on any site of the benchmark.
    """
    return DOCUMENT.sub(lambda found: _address(found[1]), text)


def _address(name: str) -> str:
    if site := os.environ.get("PFL_SITE", "").rstrip("/"):
        return f"{site}/docs/{name}/"
    if (CHECKOUT / "docs" / f"{name}.md").is_file():
        return f"docs/{name}.md"
    if source := _documentation():
        return f"{source}/{name}.md"
    return f"/docs/{name}/ on the benchmark's site"


def _documentation() -> str:
    """Return the address of the documents in the source code; empty where the kit's metadata has none."""
    from starter_kit.extras import PACKAGE

    try:
        addresses = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((one.partition(", ")[2] for one in addresses if one.startswith("Documentation, ")), "")
