"""Entries of BibTeX."""

import re
from collections.abc import Mapping

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "{}%&#_$"},
}


def entry(key: str, fields: Mapping[str, str], kind: str = "misc") -> str:
    """Return an entry, of the kind for what isn't an article unless another is named; the values are LaTeX."""
    lines = [f"  {name:<12} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def in_latex(text: str) -> str:
    """Return plain text as LaTeX, on one line."""
    return re.sub(r"[\\{}%&#_$~^]", lambda sign: LATEX[sign.group()], " ".join(text.split()))
