"""The draft's page on a site with a bucket: the browser sends the parts to the S3 server itself."""

import os
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from docvqa_site.uploads.location import Bucket
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.services import stored_parts
from tests.docvqa_site.submissions.contents import checkpoint as weights
from tests.docvqa_site.submissions.draft_page import MEGABYTE, choose, draft_file, stored_content
from tests.services.seaweedfs import bucket_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

# Every part but the last: S3 takes no smaller one.
PART = 5 * MEGABYTE


@pytest.fixture
def bucket(seaweedfs, settings, live_server) -> Bucket:
    settings.STORE_BUCKET = bucket_of(seaweedfs)
    settings.SITE_URL = live_server.url
    settings.UPLOAD_PART_SIZE_BYTES = PART
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    settings.CONTENT_SECURITY_POLICY = {
        "DIRECTIVES": {**directives, "connect-src": ["'self'", settings.STORE_BUCKET.origin]}
    }
    call_command("configure_store", "--apply")
    return settings.STORE_BUCKET


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.safetensors"
    path.write_bytes(weights(os.urandom(2 * PART + 12345)))
    return path


def test_an_upload_survives_a_lost_connection_and_a_reload(bucket, open_page, checkpoint, complaints):
    page, puts = open_page(), []

    def break_off_after_the_first(route):
        puts.append(route.request.url)
        if len(puts) == 1:
            route.continue_()
        else:
            route.abort("connectionreset")

    page.route(f"{bucket.origin}/**", break_off_after_the_first)
    choose(page, "checkpoint", checkpoint)
    expect(draft_file(page, "checkpoint").get_by_text("The connection is bad")).to_be_visible(timeout=60_000)
    assert len(stored_parts(Upload.objects.get())) == 1

    page.reload()
    page.unroute(f"{bucket.origin}/**")
    puts.clear()
    page.on("request", lambda request: request.method == "PUT" and puts.append(request.url))
    choose(page, "checkpoint", checkpoint)
    expect(draft_file(page, "checkpoint").get_by_text("model.safetensors is uploaded.")).to_be_visible(
        timeout=60_000
    )
    assert len(puts) == 2  # only what was missing
    assert {urlsplit(url).netloc for url in puts} == {urlsplit(bucket.endpoint).netloc}
    assert stored_content("checkpoint") == checkpoint.read_bytes()
    assert complaints == []


def test_an_address_that_has_expired_is_requested_again(bucket, open_page, tmp_path, complaints):
    page, puts = open_page(), []

    def reject_the_first(route):
        puts.append(route.request.url)
        if len(puts) == 1:
            route.fulfill(status=403, body="<Error/>", headers={"Access-Control-Allow-Origin": "*"})
        else:
            route.continue_()

    page.route(f"{bucket.origin}/**", reject_the_first)
    (tmp_path / "model.safetensors").write_bytes(weights(b"small"))
    choose(page, "checkpoint", tmp_path / "model.safetensors")
    expect(draft_file(page, "checkpoint").get_by_text("model.safetensors is uploaded.")).to_be_visible(
        timeout=60_000
    )
    assert len(puts) == 2
    assert complaints == []
