"""The code that a proof's front matter names: a commit, and files with their hashes, as the kit's proofs have them.

If it names the method of a proof of the kit, too, the texts are compared.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import PurePath

from django.conf import settings
from django.core.cache import caches

from docvqa_site.docs import library
from docvqa_site.proofs.reading import decoded, read_proof
from docvqa_site.ui.front_matter import split_front_matter
from docvqa_site.uploads.models import Upload
from evaluator.errors import ProblemError

COMMIT = re.compile(r"^commit:[ \t]*([0-9a-f]{40})[ \t\r]*$", re.M)
METHOD = re.compile(r"^method:[ \t]*([\w-]+)[ \t\r]*$", re.M | re.A)
FILE = re.compile(r"^[ \t]+((?:\w[\w.-]*/)*\w[\w.-]*):[ \t]*([0-9a-f]{64})[ \t\r]*$", re.M | re.A)
MAX_FILES = 500
CACHED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class NamedFile:
    """A file that a proof names. `is_same` is None where no proof of this site's kit names the file."""

    path: str
    is_same: bool | None
    url: str


@dataclass(frozen=True)
class NamedCode:
    """The files that a proof names, compared with the kit of this site.

    Attributes:
        kit_proof: The document that is the kit's proof of the same method; None without one.
        is_kit_proof: Whether the text below the front matter is that document's.
    """

    commit: str
    files: Sequence[NamedFile]
    kit_proof: str | None = None
    is_kit_proof: bool = False

    @property
    def kit_proof_address(self) -> str:
        """The part of the address of the kit's proof that follows `/docs/`."""
        return library.address(self.kit_proof) if self.kit_proof else ""

    @property
    def kit_proof_title(self) -> str:
        return library.title(self.kit_proof) if self.kit_proof else ""

    @property
    def summary(self) -> str:
        """How many files are identical to the kit's, and which aren't."""
        same = sum(file.is_same is True for file in self.files)
        text = f"{same} of {len(self.files)} files are identical to this site's copy of the kit"
        for words, is_same in (("different", False), ("not among the kit's files", None)):
            if paths := [file.path for file in self.files if file.is_same is is_same]:
                text += f"; {words}: {', '.join(paths)}"
        return text


def named_code(upload: Upload) -> NamedCode | None:
    """Return the code that the front matter of a Markdown file names; None if it names no files with hashes."""
    if PurePath(upload.filename).suffix.lower() != ".md":
        return None
    cached, key = caches["pages"], f"proof-code:{upload.pk}"
    parsed = cached.get(key)
    if parsed is None:
        try:
            front, text = split_front_matter(decoded(read_proof(upload), upload.filename))
        except (FileNotFoundError, ProblemError):
            # The proof's own page says so.
            return None
        method = METHOD.search(front)
        parsed = (*_parsed(front), method[1] if method else "", _digest(text))
        cached.set(key, parsed, CACHED_SECONDS)
    commit, files, method_name, digest = parsed
    known = _kit_files()
    named = [
        NamedFile(path, known[path] == sha256 if path in known else None, _url(commit, path))
        for path, sha256 in files.items()
    ]
    kit_proof = library.name_at(f"proofs/{method_name}") if method_name else None
    is_kit_proof = kit_proof is not None and _kit_digest(kit_proof) == digest
    return NamedCode(commit, named, kit_proof, is_kit_proof) if named else None


@cache
def _kit_digest(name: str) -> str:
    return _digest(split_front_matter(library.read(name))[1])


def _digest(text: str) -> str:
    """Return the hash of a text without comments, whatever ends its lines."""
    lines = library.COMMENT.sub("", text.replace("\r\n", "\n")).strip()
    return hashlib.sha256(lines.encode()).hexdigest()


@cache
def _kit_files() -> Mapping[str, str]:
    """Return the hashes of the kit's files, which the proofs among this site's documents are pinned to."""
    fronts = (split_front_matter(library.read(name))[0] for name in library.names() if "proofs/" in name)
    return {path: sha256 for front in fronts for path, sha256 in _parsed(front)[1].items()}


def _parsed(front: str) -> tuple[str, dict[str, str]]:
    found = COMMIT.search(front)
    files = {file[1]: file[2] for file in islice(FILE.finditer(front), MAX_FILES)}
    return found[1] if found else "", files


def _url(commit: str, path: str) -> str:
    source = settings.SOURCE_URL.rstrip("/")
    return f"{source}/blob/{commit or 'HEAD'}/{path}" if source else ""
