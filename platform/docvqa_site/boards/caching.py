"""What was rendered from one version of the boards is cached, and isn't sent to a visitor who has it."""

import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, TypeVar

from django.conf import settings
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag

from docvqa_site.liveness.notices import notices_version
from evaluator.messages.jobs import evaluator_version

CACHED_SECONDS = 24 * 3600

Response = TypeVar("Response", bound=HttpResponseBase)
# One for each page of a board: many visitors who ask for the CSV file after a change make a process compute it once.
_rendering: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def cached(version: str, name: str, render: Callable[[], str]) -> str:
    """Return what `render` returned for this version of the boards, which a process computes once."""
    return cached_together(version, [name], lambda _: {name: render()})[name]


def cached_together(
    version: str, names: Collection[str], render: Callable[[Collection[str]], Mapping[str, str]]
) -> dict[str, str]:
    """Return the same for several names, of which those that aren't cached are rendered together."""
    keys = {name: f"boards:{_digest(version, name)}" for name in names}
    found = _known(keys)
    if missing := sorted(keys.keys() - found.keys()):
        with ExitStack() as locks:
            # In one order, so that no two threads wait for each other.
            for name in missing:
                locks.enter_context(_rendering[name])
            # Another thread may have rendered some while this one waited.
            found = _known(keys)
            if missing := sorted(keys.keys() - found.keys()):
                rendered = render(missing)
                found |= {name: rendered[name] for name in missing}
                caches["pages"].set_many({keys[name]: found[name] for name in missing}, CACHED_SECONDS)
    return found


def _known(keys: Mapping[str, str]) -> dict[str, str]:
    """Return what is cached under these keys, by the name of each."""
    cached = caches["pages"].get_many(keys.values())
    return {name: cached[key] for name, key in keys.items() if key in cached}


def kept_file(version: str, name: str, parts: Callable[[], Iterable[str]]) -> BinaryIO:
    """Return an open file of what `parts` yielded for this version of the boards; a process writes one at a time."""
    folder = Path(settings.HOME) / "exports"
    path = folder / f"{name}-{_digest(version, name)}"
    with _rendering["files"]:
        if not path.exists():
            folder.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=folder, prefix=".") as temporary:
                with Path(temporary, "new").open("w", encoding="utf-8", newline="") as file:
                    file.writelines(parts())
                # Those of other versions; who reads one keeps it open.
                for earlier in folder.glob(f"{name}-*"):
                    earlier.unlink(missing_ok=True)
                Path(file.name).rename(path)
        return path.open("rb")


def unless_unchanged(
    request: HttpRequest, version: str, respond: Callable[[], Response]
) -> Response | HttpResponse:
    """Return the response with its ETag, or status 304 where the visitor has this version of it."""
    etag = quote_etag(_digest(version, request.get_full_path()))
    response = get_conditional_response(request, etag=etag) or respond()
    response["ETag"] = etag
    # It may be kept, and is asked for again before each use.
    response["Cache-Control"] = "no-cache"
    return response


def page_unless_unchanged(
    request: HttpRequest, version: str, respond: Callable[[], HttpResponse]
) -> HttpResponse:
    """Do the same for a page with its notices, where navigation and messages are those of whoever has logged in."""
    if request.user.is_authenticated or "messages" in request.COOKIES:
        return respond()
    return unless_unchanged(request, f"{version} {notices_version(request)}", respond)


def _digest(version: str, name: str) -> str:
    parts = (version, name, evaluator_version(), settings.SITE_URL)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
