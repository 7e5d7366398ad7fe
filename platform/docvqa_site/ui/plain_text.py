"""Markdown as plain text, for emails and other places that show no formatting."""

import re
from collections.abc import Iterable

from django.conf import settings
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.footnote import footnote_plugin

from docvqa_site.ui.delimiters import MARK, extract
from docvqa_site.ui.markdown import ESCAPED_MARK

CODE_INDENT = " " * 4
RULE = "* * *"

_reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
footnote_plugin(_reader, inline=False)


def plain_text(text: str) -> str:
    """Return Markdown as it reads without markup: links with their addresses, and formulas as they were written.

    Addresses within the site become complete, for those who read the text elsewhere.
    """
    found = extract(text)
    sources = {str(number): formula.source for number, formula in enumerate(found.formulas)}
    plain = _blocks(SyntaxTreeNode(_reader.parse(found.text)).children)
    for mark in (MARK, ESCAPED_MARK):
        plain = mark.sub(lambda match: sources.get(match[1], match[0]), plain)
    return plain.strip("\n")


def _blocks(nodes: Iterable[SyntaxTreeNode], between: str = "\n\n") -> str:
    return between.join(filter(None, map(_block, nodes)))


def _block(node: SyntaxTreeNode) -> str:
    """Return a block as lines of text."""
    match node.type:
        case "inline":
            return "".join(map(_inline, node.children))
        case "bullet_list" | "ordered_list" | "footnote_block":
            return _list(node)
        case "blockquote":
            return _indented(_blocks(node.children), "> ", "> ")
        case "fence" | "code_block":
            return _indented(node.content.rstrip("\n"), CODE_INDENT, CODE_INDENT)
        case "hr":
            return RULE
        case "table" | "thead" | "tbody":
            return _blocks(node.children, "\n")
        case "tr":
            return " | ".join(map(_block, node.children))
        case _:
            return _blocks(node.children)


def _list(node: SyntaxTreeNode) -> str:
    """Return the items of a list, each behind its dash or number; those of a loose list with lines between them."""
    is_loose = any(
        part.type == "paragraph" and not part.hidden for item in node.children for part in item.children
    )
    between = "\n\n" if is_loose and node.type != "footnote_block" else "\n"
    first = int(node.attrs.get("start", 1))
    items = []
    for number, item in enumerate(node.children, first):
        marker = {"bullet_list": "- ", "ordered_list": f"{number}. "}.get(node.type, f"[{number}] ")
        items.append(_indented(_blocks(item.children, between), marker, " " * len(marker)))
    return between.join(items)


def _indented(text: str, first: str, others: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        (others if at else first) + line if line or not at else "" for at, line in enumerate(lines)
    )


def _inline(node: SyntaxTreeNode) -> str:
    """Return a part of a line."""
    match node.type:
        case "text" | "code_inline":
            return node.content
        case "softbreak" | "hardbreak":
            return "\n"
        case "link":
            return _link("".join(map(_inline, node.children)), str(node.attrs.get("href", "")))
        case "image":
            return _link(node.content, str(node.attrs.get("src", "")))
        case "footnote_ref":
            return f"[{int(node.meta['id']) + 1}]"
        case "footnote_anchor":
            return ""
        case _:
            return "".join(map(_inline, node.children))


def _link(text: str, address: str) -> str:
    """Return a link as its text with its address, which is said once where the text is the address."""
    if address.startswith("/"):
        address = settings.SITE_URL + address
    if text in ("", address) or address == f"mailto:{text}" or re.fullmatch(r"https?://\S+", text):
        return address.removeprefix("mailto:")
    return f"{text} ({address})"
