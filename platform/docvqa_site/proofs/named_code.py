"""The code that a proof's front matter names: a commit, and files with their hashes, as the kit's proofs have them."""

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
    """The files that a proof names, compared with the kit of this site."""

    commit: str
    files: Sequence[NamedFile]

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
    cached, key = caches["pages"], f"proof-front:{upload.pk}"
    parsed = cached.get(key)
    if parsed is None:
        try:
            parsed = _parsed(split_front_matter(decoded(read_proof(upload), upload.filename))[0])
        except (FileNotFoundError, ProblemError):
            # The proof's own page says so.
            return None
        cached.set(key, parsed, CACHED_SECONDS)
    commit, files = parsed
    known = _kit_files()
    named = [
        NamedFile(path, known[path] == sha256 if path in known else None, _url(commit, path))
        for path, sha256 in files.items()
    ]
    return NamedCode(commit, named) if named else None


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
