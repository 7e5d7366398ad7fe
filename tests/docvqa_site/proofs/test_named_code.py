"""The files that a proof names, beside those of the kit: reviewers see which are the same, and open them."""

import re

import pytest
from django.urls import reverse

from docvqa_site.docs import library
from docvqa_site.proofs.named_code import named_code
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_team,
    make_upload,
    scored_submission,
)

pytestmark = pytest.mark.django_db

PROOF = library.read("proofs/client-dp")
COMMIT = PROOF.partition("commit: ")[2][:40]
COUNT = len(re.findall(r": [0-9a-f]{64}$", PROOF, re.M))


def named(text, filename="proof.md"):
    return named_code(make_upload(make_team(), text.encode(), filename))


def test_the_kits_own_proof_names_the_kits_files():
    found = named(PROOF)
    assert found.commit == COMMIT
    assert found.summary == f"{COUNT} of {COUNT} files are identical to this site's copy of the kit"


def test_a_changed_file_and_one_of_the_team_are_named():
    changed = re.sub(r"(starter_kit/dp/noise.py: )\w{64}", rf"\g<1>{'0' * 64}", PROOF)
    changed = changed.replace("covers:\n", f"covers:\n  ours/method.py: {'1' * 64}\n")
    assert named(changed).summary == (
        f"{COUNT - 1} of {COUNT + 1} files are identical to this site's copy of the kit; different: "
        "starter_kit/dp/noise.py; not among the kit's files: ours/method.py"
    )


def test_the_text_is_compared_with_the_kits_proof_of_the_method():
    moved = PROOF.replace(COMMIT, "0" * 40)
    unknown = PROOF.replace("method: client-dp", "method: ours")
    for text, kit_proof, is_same in [
        (PROOF, "proofs/client-dp", True),
        (moved.replace("\n", "\r\n"), "proofs/client-dp", True),
        (PROOF + "And more.", "proofs/client-dp", False),
        (unknown, None, False),
    ]:
        found = named(text)
        assert (found.kit_proof, found.is_kit_proof) == (kit_proof, is_same)


@pytest.mark.parametrize(
    ("text", "filename"), [("# Proof", "proof.md"), (PROOF, "proof.ipynb"), ("---\na: b\n---\n", "p.md")]
)
def test_other_files_name_none(text, filename):
    assert named(text, filename) is None


def test_an_address_in_place_of_a_path_is_no_file():
    for path in ("javascript:alert(1)", "../secret.py", "//other.example/x.py"):
        assert named(f"---\ncovers:\n  {path}: {'0' * 64}\n---\n") is None


def test_the_desk_compares_and_links_the_files(client, settings):
    settings.SOURCE_URL = "https://code.example/kit"
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, PROOF.encode(), "proof.md")
    client.force_login(make_reviewer())
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    question = page[page.index('id="item-code"') :]
    assert 'href="#fact-named_code"' in question
    assert 'is identical to the kit\'s proof <a href="/docs/proofs/client-dp/">' in page
    assert page.count(f"{COUNT} of {COUNT} files are identical") >= 2
    assert f'href="https://code.example/kit/blob/{COMMIT}/starter_kit/dp/noise.py"' in page
    settings.SOURCE_URL = ""
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    assert f'<a href="{reverse("downloads:data")}">install the starter kit</a>' in page
