"""Entries of BibTeX."""

import re
from collections.abc import Mapping

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "{}%&#_$"},
}


def entry(key: str, fields: Mapping[str, str]) -> str:
    """Return an entry for what isn't an article; the values are LaTeX."""
    lines = [f"  {name:<12} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def in_latex(text: str) -> str:
    """Return plain text as LaTeX, on one line."""
    return re.sub(r"[\\{}%&#_$~^]", lambda sign: LATEX[sign.group()], " ".join(text.split()))
