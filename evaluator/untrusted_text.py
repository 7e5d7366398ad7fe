"""Text files that people hand in: proofs, lists and settings, whatever editor wrote them."""


def decode(content: bytes) -> str:
    """Return UTF-8 text without the byte order mark that some editors begin it with. Raises `UnicodeDecodeError`."""
    return content.decode("utf-8-sig")
