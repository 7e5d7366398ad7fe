"""The client's side of an upload: cutting a file into parts and sending them."""

from hashlib import sha256

from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.services import create_upload, part_urls


def sha(content):
    return sha256(content).hexdigest()


def cut(content, size=10):
    """The parts of `content`, each with its bytes."""
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    return [(Part(number, len(piece), sha(piece)), piece) for number, piece in enumerate(pieces, 1)]


def start(team, content, filename="model.safetensors"):
    user = team.memberships.get().user
    return create_upload(team, user, filename=filename, size_bytes=len(content), sha256=sha(content))


def put(client, url, piece):
    return client.put(url, data=piece, content_type="application/octet-stream")


def send(client, upload, parts):
    """PUT these (part, bytes) pairs; the statuses of the answers."""
    urls = part_urls(upload, [part for part, _ in parts])
    return [put(client, url.url, piece).status_code for url, (_, piece) in zip(urls, parts, strict=True)]
