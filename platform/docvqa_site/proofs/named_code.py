"""The code that a proof's front matter names: a commit, and files with their hashes, as the kit's proofs have them.

If it names the method of a proof of the kit, too, the texts are compared.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import PurePath
from uuid import UUID

from django.conf import settings

from docvqa_site.docs import library
from docvqa_site.proofs.installed_kit import PATH, file_digest, installed_file
from docvqa_site.proofs.models import CitedCode
from docvqa_site.proofs.reading import decoded, read_proof
from docvqa_site.ui.front_matter import split_front_matter
from docvqa_site.uploads.models import Upload
from evaluator.errors import ProblemError

COMMIT = re.compile(r"^commit:[ \t]*([0-9a-f]{40})[ \t\r]*$", re.M)
METHOD = re.compile(r"^method:[ \t]*([\w-]{1,100})[ \t\r]*$", re.M | re.A)
STALE = re.compile(r"^status:[ \t]*stale[ \t\r]*$", re.M)
FILE = re.compile(rf"^[ \t]+({PATH.pattern}):[ \t]*([0-9a-f]{{64}})[ \t\r]*$", re.M | re.A)
MAX_FILES = 500


@dataclass(frozen=True)
class NamedFile:
    """A file that a proof names.

    Attributes:
        cited: Its hash in the proof.
        pinned: The hashes to which current proofs of this site's kit are pinned; none if they don't name the file.
        is_installed: Whether the site has the kit's file of this path.
        is_same: Whether it is the kit's file; None where the site can't say.
    """

    path: str
    cited: str
    pinned: Sequence[str]
    is_installed: bool
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
    def different(self) -> list[NamedFile]:
        """The files that aren't the kit's, though they have the path of one."""
        return [file for file in self.files if file.is_same is False]

    @property
    def unknown(self) -> list[NamedFile]:
        """The files that the site can't compare."""
        return [file for file in self.files if file.is_same is None]

    @property
    def warning(self) -> str:
        """Which files aren't the kit's; empty if all are, or can't be compared."""
        if not (different := self.different):
            return ""
        verb = "differs" if len(different) == 1 else "differ"
        count = file_count(different)
        return f"{count} cited in the proof {verb} from this site's copy of the kit: {_listed(different)}"

    @property
    def summary(self) -> str:
        """How many files are identical to the kit's, and which aren't."""
        same = sum(file.is_same is True for file in self.files)
        text = f"{same} of {len(self.files)} files are identical to this site's copy of the kit"
        groups = {
            "different": self.different,
            "not covered by the kit's proofs": [file for file in self.unknown if file.is_installed],
            "not among the kit's files": [file for file in self.unknown if not file.is_installed],
        }
        for words, found in groups.items():
            if found:
                text += f"; {words}: {_listed(found)}"
        return text


def file_count(files: Sequence[NamedFile]) -> str:
    """Return how many files there are, in words."""
    return f"{len(files)} file{'' if len(files) == 1 else 's'}"


def named_code(upload: Upload) -> NamedCode | None:
    """Return the code that the front matter of a Markdown file names; None if it names no files with hashes."""
    return named_codes([upload]).get(upload.pk)


def named_codes(uploads: Iterable[Upload]) -> dict[UUID, NamedCode]:
    """Return the code that each of the files names, by the upload's key, in one query if all have been read before."""
    texts = {one.pk: one for one in uploads if PurePath(one.filename).suffix.lower() == ".md"}
    read = {one.upload_id: one for one in CitedCode.objects.filter(upload__in=texts)}
    for pk, upload in texts.items():
        if pk not in read and (found := _read(upload)):
            read[pk] = found
    return {pk: _compared(found) for pk, found in read.items() if found.files}


def forget_cited_code(*, upload: Upload, **_: object) -> None:
    """Remove what was read from a removed file; receives `uploads.signals.file_deleted`."""
    CitedCode.objects.filter(upload=upload).delete()


def _read(upload: Upload) -> CitedCode | None:
    try:
        front, text = split_front_matter(decoded(read_proof(upload), upload.filename))
    except (FileNotFoundError, ProblemError):
        # The proof's own page says so.
        return None
    commit, method = COMMIT.search(front), METHOD.search(front)
    values = {
        "commit": commit[1] if commit else "",
        "method": method[1] if method else "",
        "text_sha256": _digest(text),
        "files": list(_files(front).items()),
    }
    return CitedCode.objects.get_or_create(upload=upload, defaults=values)[0]


def _compared(found: CitedCode) -> NamedCode:
    named = [_file(path, cited, found.commit) for path, cited in found.files]
    kit_proof = library.name_at(f"proofs/{found.method}") if found.method else None
    is_kit_proof = kit_proof is not None and _kit_digest(kit_proof) == found.text_sha256
    return NamedCode(found.commit, named, kit_proof, is_kit_proof)


def _file(path: str, cited: str, commit: str) -> NamedFile:
    pinned, installed = _pinned().get(path, ()), installed_file(path)
    # Of the file as it is, or of what it executes, as the kit's proofs have it.
    is_same = cited in pinned or (installed is not None and file_digest(installed) == cited)
    return NamedFile(
        path,
        cited,
        pinned,
        is_installed=installed is not None,
        is_same=is_same if is_same or pinned else None,
        url=_url(commit, path),
    )


@cache
def _kit_digest(name: str) -> str:
    return _digest(split_front_matter(library.read(name))[1])


def _digest(text: str) -> str:
    """Return the hash of a text without comments, whatever ends its lines."""
    lines = library.COMMENT.sub("", text.replace("\r\n", "\n")).strip()
    return hashlib.sha256(lines.encode()).hexdigest()


@cache
def _pinned() -> Mapping[str, Sequence[str]]:
    """Return the hashes of the kit's files to which its current proofs, among this site's documents, are pinned.

    A proof that is behind the code then can't make the file of another proof look changed.
    """
    fronts = [split_front_matter(library.read(name))[0] for name in library.names() if "proofs/" in name]
    found: dict[str, set[str]] = defaultdict(set)
    for front in fronts:
        for path, sha256 in () if STALE.search(front) else _files(front).items():
            found[path].add(sha256)
    return {path: sorted(hashes) for path, hashes in found.items()}


def _files(front: str) -> dict[str, str]:
    return {file[1]: file[2] for file in islice(FILE.finditer(front), MAX_FILES)}


def _url(commit: str, path: str) -> str:
    source = settings.SOURCE_URL.rstrip("/")
    return f"{source}/blob/{commit or 'HEAD'}/{path}" if source else ""


def _listed(files: Sequence[NamedFile]) -> str:
    return ", ".join(file.path for file in files)
