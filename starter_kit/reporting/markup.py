"""HTML elements that escape what they hold: text and attributes are data, never markup."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

REPLACED = "\N{REPLACEMENT CHARACTER}"


def element(tag: str, *content: Element | str, **attributes: str) -> Element:
    """Return an element with text and elements in it. Attributes have `_` for a hyphen; `class_` is `class`."""
    made = Element(
        tag, {name.rstrip("_").replace("_", "-"): clean(text) for name, text in attributes.items()}
    )
    for part in content:
        if isinstance(part, Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + clean(part)
        else:
            made.text = (made.text or "") + clean(part)
    return made


def page(root: Element) -> str:
    """Return the HTML document of a root element."""
    ElementTree.indent(root, space="")
    return "<!DOCTYPE html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def clean(text: str) -> str:
    """Return `text` without the characters that HTML forbids or that change how the text around them reads."""
    return "".join(c if c.isprintable() or c in "\n\t" else REPLACED for c in text)
