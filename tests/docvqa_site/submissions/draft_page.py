"""Actions on a draft's page in a browser; the fixtures are in conftest.py."""

from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.stores import current_store

MEGABYTE = 2**20
PARTS = "**/uploads/parts/**"


def draft_file(page, kind):
    return page.locator(f"[data-kind={kind}]")


def choose(page, kind, path):
    draft_file(page, kind).locator("input[type=file]").set_input_files(path)


def stored_content(kind):
    upload = Artifact.objects.get(kind=kind).upload
    with current_store().open(upload.store_key) as file:
        return file.read()
