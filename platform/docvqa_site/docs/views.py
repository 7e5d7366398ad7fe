"""The pages of the documentation, and the files that they show."""

from dataclasses import dataclass

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from docvqa_site.docs import library
from docvqa_site.docs.rendering import document
from docvqa_site.ui.front_matter import split_front_matter


@dataclass(frozen=True)
class DocumentEntry:
    """A document in the list: its address below `/docs/`, its title, and a line about it."""

    address: str
    title: str
    line: str = ""


@require_safe
def contents(request: HttpRequest) -> HttpResponse:
    sections = {
        title: [_entry(name, line) for name, line in lines.items()] for title, lines in library.GROUPS.items()
    }
    return render(request, "docs/contents.html", {"sections": sections})


@require_safe
def show_document(request: HttpRequest, address: str) -> HttpResponse:
    """Show one document. An address without its last slash leads to the one with it."""
    name = library.name_at(address)
    if name is None:
        raise Http404
    if address != library.address(name):
        return redirect("docs:document", library.address(name), permanent=True)
    context = {
        "name": name,
        "document": document(name),
        "below": [_entry(one) for one in library.below(name)],
    }
    return render(request, "docs/document.html", context)


@require_safe
@cache_control(public=True, max_age=3600)
def send_file(_request: HttpRequest, path: str) -> HttpResponseBase:
    """Send a picture or a table of numbers, which a browser opens by itself only within a sandbox."""
    if path not in library.files():
        raise Http404
    file = library.folder() / path
    response = FileResponse(file.open("rb"), content_type=library.FILE_TYPES[file.suffix])
    # The pictures have their styles within them.
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return response


@require_safe
@cache_control(public=True, max_age=3600)
def send_source(_request: HttpRequest, name: str) -> HttpResponse:
    """Send the Markdown of a document, without its front matter, to save and to write a proof from."""
    if name not in library.names():
        raise Http404
    _, text = split_front_matter(library.read(name))
    filename = f"{name.rpartition('/')[2]}.md"
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return HttpResponse(text.lstrip(), content_type="text/markdown; charset=utf-8", headers=headers)


def _entry(name: str, line: str = "") -> DocumentEntry:
    return DocumentEntry(library.address(name), library.title(name), line)
