"""Sphinx's configuration: these documents as a static site, in the order in which a competition's site lists them.

`make docs-site` builds it. See `decisions/0032-static-documentation.md`.
"""

import os
import posixpath
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "platform"))

from docvqa_site.docs import library  # noqa: E402
from docvqa_site.ui.delimiters import Formula  # noqa: E402
from docvqa_site.ui.math import Formulas  # noqa: E402

project = "PFL-DocVQA benchmark"
author = "The PFL-DocVQA benchmark authors"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
# As GitHub and a competition's site name headings, so that links to them work here too.
myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = f"{project} {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_use_index = False
# What a document has between quotes may be part of a command.
smartquotes = False
nitpicky = True

SOURCE_URL = os.environ.get("PFL_SOURCE_URL", "").rstrip("/")
LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def code(line: str) -> str:
    """Return a line of Markdown with code as reStructuredText marks it."""
    return line.replace("`", "``")


def navigation() -> str:
    """Return the first page's lists of documents by their purpose, in reStructuredText."""
    parts = []
    for title, lines in library.GROUPS.items():
        listed = "\n".join(
            f"- :doc:`{library.title(name)} <{name}>`" + (f": {code(line)}" if line else "")
            for name, line in lines.items()
        )
        entries = "\n".join(f"   {name}" for name in lines)
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{listed}\n\n.. toctree::\n   :hidden:\n   :caption: {title}\n\n{entries}\n"
        )
    return "\n".join(parts)


def chapters(name: str) -> str:
    """Return the contents of a folder in Markdown, for the page of the folder, unless the first page lists them."""
    listed = {one for lines in library.GROUPS.values() for one in lines}
    below = [one.rpartition("/")[2] for one in library.below(name) if one not in listed]
    return "\n".join(["", "```{toctree}", ":maxdepth: 1", "", *below, "```", ""]) if below else ""


def linked(text: str, name: str) -> str:
    """Return a document whose links to files outside of the documentation lead to the source code.

    Without `PFL_SOURCE_URL`, the words of such a link remain.
    """

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), link[2]))
        below = path.removeprefix("docs/")
        if path.startswith("docs/") and (
            below in library.files() or below.removesuffix(".md") in library.names()
        ):
            return link[0]
        return f"[{link[1]}]({SOURCE_URL}/blob/HEAD/{path}{link[3] or ''})" if SOURCE_URL else link[1]

    return LINK.sub(target, text)


def prepare(_app: object, name: str, source: list[str]) -> None:
    source[0] = (
        source[0] + "\n" + navigation() if name == "index" else linked(source[0], name) + chapters(name)
    )


def draw(translator: Any, node: Any) -> None:
    """Write a formula as MathML, as a competition's site does."""
    from docutils import nodes

    tex = node.astext()
    drawn = Formulas().draw([Formula(tex, tex, isinstance(node, nodes.math_block))], 100_000)[0]
    if drawn.problem:
        raise ValueError(f"{tex}: {drawn.problem}")
    translator.body.append(drawn.html)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.connect("source-read", prepare)
    app.add_html_math_renderer("mathml", (draw, None), (draw, None))
