"""Pictures in a proof: attachments, outputs, and those that a text brings in its own address.

They are shown by `img` with their content as the address, so a browser runs no script and loads nothing for them, not
for SVG either; the policy of the page forbids both as well. What isn't of the stated kind isn't shown.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from django.utils.html import format_html
from django.utils.safestring import SafeString

MAX_IMAGE_BYTES = 2 * 1024 * 1024
MAX_SIDE_PIXELS = 20_000
SVG = "image/svg+xml"
SVG_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*>\s*)*+<svg[\s>/]", re.DOTALL
)
# Start of a frame in a JPEG, which has the size, and markers in its range that are something else.
JPEG_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
EMBEDDED = re.compile(
    r"!\[([^\[\]]{0,1000})\]\(\s*data:(image/[a-z+.-]{1,20});base64,([A-Za-z0-9+/=\s]+)\)", re.IGNORECASE
)
ATTACHMENT = "attachment:"
MARK = re.compile("\ufdd2([0-9]+)\ufdd3")


def _is_svg(content: bytes) -> bool:
    # Entities could make a small picture a large one.
    return bool(SVG_START.match(content)) and b"<!ENTITY" not in content


KINDS: dict[str, Callable[[bytes], bool]] = {
    SVG: _is_svg,
    "image/png": lambda content: content.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda content: content.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda content: content.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda content: content[:4] == b"RIFF" and content[8:12] == b"WEBP",
}


class UnshownError(Exception):
    """A picture that isn't shown; the message says why."""


def picture(kind: str, encoded: str, description: str) -> SafeString:
    """Return a picture, in base64 unless it is SVG, as an element. Raises `UnshownError`."""
    content = encoded.encode("utf-8", "replace") if kind == SVG and "<" in encoded else _decoded(encoded)
    if len(content) > MAX_IMAGE_BYTES:
        raise UnshownError(f"it has {len(content):,} bytes, more than {MAX_IMAGE_BYTES:,}")
    if kind not in KINDS or not KINDS[kind](content):
        raise UnshownError(f"it is not a picture of the type {kind}")
    return format_html(
        '<img src="data:{};base64,{}" alt="{}"{}>',
        kind,
        base64.b64encode(content).decode(),
        description,
        _size(kind, content),
    )


def detached(text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return a Markdown text with the pictures that are in it as attachments, and these.

    They would be most of the text, whose length is limited.
    """
    attachments: dict[str, dict[str, str]] = {}

    def address(found: re.Match[str]) -> str:
        name = f"picture-{len(attachments) + 1} in the text"
        attachments[name] = {found[2].lower(): found[3]}
        return f"![{found[1]}](<{ATTACHMENT}{name}>)"

    return EMBEDDED.sub(address, text), attachments


@dataclass
class Pictures:
    """Pictures of one text, each with a mark in its place, since the cleaner of texts lets no picture through."""

    shown: list[SafeString] = field(default_factory=list)

    def mark(self, html: SafeString) -> str:
        """Return the mark of a picture, which no text can contain otherwise."""
        self.shown.append(html)
        return f"\ufdd2{len(self.shown) - 1}\ufdd3"

    def put(self, html: str) -> str:
        """Return the HTML of the text with the pictures in the places of their marks."""
        return MARK.sub(lambda found: self.shown[int(found[1])], html)


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnshownError("its content is not base64") from error


def _size(kind: str, content: bytes) -> SafeString:
    """Return the attributes with the size of a picture, as its header states it; a browser keeps room for it."""
    width, height = {"image/png": _png_size, "image/jpeg": _jpeg_size}.get(kind, lambda _: (0, 0))(content)
    known = 0 < width <= MAX_SIDE_PIXELS and 0 < height <= MAX_SIDE_PIXELS
    return format_html(' width="{}" height="{}"', width, height) if known else SafeString("")


def _png_size(content: bytes) -> tuple[int, int]:
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _jpeg_size(content: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 < len(content) and content[position] == 0xFF:
        if content[position + 1] in JPEG_FRAMES:
            height, width = content[position + 5 : position + 7], content[position + 7 : position + 9]
            return int.from_bytes(width), int.from_bytes(height)
        position += 2 + max(2, int.from_bytes(content[position + 2 : position + 4]))
    return 0, 0
