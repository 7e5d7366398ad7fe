"""Text files that people hand in: proofs, lists and settings, whatever editor wrote them."""

import codecs


def decode(content: bytes) -> str:
    """Return the text of a file, its lines ended by line feeds alone.

    It is UTF-8, or UTF-16 if a byte order mark says so, as some shells and editors write it. No mark is returned.

    Raises `UnicodeDecodeError`.
    """
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
    return text.replace("\r\n", "\n").replace("\r", "\n")
