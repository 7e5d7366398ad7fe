"""The files that a proof names, beside those of the kit: reviewers see which are the same, and open them."""

import re
from hashlib import sha256
from pathlib import Path

import pytest
from django.urls import reverse

from docvqa_site.docs import library
from docvqa_site.proofs.named_code import _pinned, named_code
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.evidence import FILES_OF
from docvqa_site.submissions.models import Artifact
from docvqa_site.submissions.proof_versions import stage
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_team,
    make_upload,
    make_user,
    revise_proof,
    scored_submission,
)

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.django_db

PROOF = library.read("proofs/client-dp")
COMMIT = PROOF.partition("commit: ")[2][:40]
COUNT = len(re.findall(r": [0-9a-f]{64}$", PROOF, re.M))
CHANGED = re.sub(r"(starter_kit/dp/clipping.py: )\w{64}", rf"\g<1>{'0' * 64}", PROOF)


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


def test_the_hash_of_a_whole_file_names_the_kits_file_too():
    file = ROOT / "starter_kit" / "dp" / "noise.py"
    changed = re.sub(
        r"(starter_kit/dp/noise.py: )\w{64}", rf"\g<1>{sha256(file.read_bytes()).hexdigest()}", PROOF
    )
    assert changed != PROOF
    assert not named(changed).different


def test_a_proof_of_the_kit_that_is_behind_makes_no_file_differ(monkeypatch):
    behind = CHANGED.replace("method: client-dp", "method: other")
    texts = {"proofs/client-dp": PROOF, "proofs/other": behind}
    monkeypatch.setattr(library, "names", lambda: frozenset(texts))
    monkeypatch.setattr(library, "read", texts.__getitem__)
    for status, is_named in (("current", False), ("stale", True)):
        texts["proofs/other"] = behind.replace("status: current", f"status: {status}")
        _pinned.cache_clear()
        assert not named(PROOF).different
        # What is current is a copy of the kit; what is stale isn't one.
        assert bool(named(CHANGED).different) == is_named
    _pinned.cache_clear()


@pytest.fixture
def changed(client):
    """A submission whose proof cites another file for clipping, read by a reviewer."""
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, CHANGED.encode() + b"And more.", "proof.md")
    client.force_login(make_reviewer())
    return submission


def kit_file(submission, path):
    return f"{reverse('reviews:kit_file', args=[path])}?submission={submission.pk}"


def desk_of(client, submission):
    return client.get(reverse("reviews:desk", args=[submission.pk])).text


def test_the_desk_compares_and_links_the_files(client, settings):
    settings.SOURCE_URL = "https://code.example/kit"
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, PROOF.encode(), "proof.md")
    client.force_login(make_reviewer())
    page = desk_of(client, submission)
    question = page[page.index('id="item-code"') :]
    assert 'href="#fact-named_code"' in question
    assert 'is identical to the kit\'s proof <a href="/docs/proofs/client-dp/">' in page
    assert page.count(f"{COUNT} of {COUNT} files are identical") >= 2
    assert f'href="https://code.example/kit/blob/{COMMIT}/starter_kit/dp/noise.py"' in page
    assert "not the kit's" not in page
    settings.SOURCE_URL = ""
    place = kit_file(submission, "starter_kit/dp/noise.py")
    assert f'<a href="{place}">starter_kit/dp/noise.py</a>' in desk_of(client, submission)


def test_names_of_code_in_the_proof_lead_to_the_cited_code(client):
    submission = scored_submission()
    text = (
        "\n`Keystream`, `keystream.Keystream`, `starter_kit/dp/noise.py`, `nothing`, [`Keystream`](#x), `<b>`,"
        " `Keystream.coin`, `json.Keystream`.\n"
        "\n```\nKeystream\n```\n"
    )
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, (PROOF + text).encode(), "proof.md")
    client.force_login(make_reviewer())
    address = reverse("reviews:proof", args=[submission.pk])
    path = "starter_kit/dp/keystream.py"
    line = (ROOT / path).read_text().partition("class Keystream")[0].count("\n") + 1
    place = f"{kit_file(submission, path)}#L{line}"
    page = client.get(address).text
    for name in ("Keystream", "keystream.Keystream", "Keystream.coin"):
        assert f'<a href="{place}"><code>{name}</code></a>' in page
        assert (
            f'<a href="{place}" target="_blank"><code>{name}</code></a>'
            in client.get(f"{address}?framed").text
        )
    assert f'<a href="{kit_file(submission, "starter_kit/dp/noise.py")}"><code>starter_kit' in page
    assert page.count(f'href="{place}"') == PROOF.count("`Keystream`") + 3
    assert ", <code>nothing</code>," in page
    assert ", <code>json.Keystream</code>." in page
    assert "<b>" not in page
    # The code that the team ran is another one.
    changed = re.sub(rf"({path}: )\w{{64}}", rf"\g<1>{'0' * 64}", PROOF) + text
    revise_proof(
        submission, make_upload(submission.team, changed.encode(), "proof.md"), submission.created_by
    )
    assert place not in client.get(address).text
    assert "<code>Keystream</code>" in client.get(address).text


def test_a_file_that_differs_is_in_view_wherever_a_reviewer_decides(client, changed):
    desk = desk_of(client, changed)
    badge = "Code cited in the proof: 1 file not the kit&#x27;s"
    for key, bears in (("sensitivity", True), ("code", True), ("noise", False)):
        question = desk[desk.index(f'id="item-{key}"') :]
        assert (badge in question[: question.index("</summary>")]) == bears
        assert ('href="#fact-named_code"' in question[: question.index("</fieldset>")]) == bears
    facts = desk[desk.index('class="card recorded"') :]
    assert badge in facts[: facts.index("</summary>")]
    warning = (
        "1 file cited in the proof differs from this site&#x27;s copy of the kit: starter_kit/dp/clipping.py"
    )
    assert warning in desk[desk.index('id="decision"') :]
    assert warning in client.get(reverse("admin:reviews_proof_change", args=[changed.pk])).text
    assert (
        '<span class="badge badge-flagged">1 file not the kit&#x27;s</span>'
        in client.get(reverse("reviews:queue")).text
    )


def test_both_hashes_and_the_kits_file_are_beside_a_file_that_differs(client, changed):
    place = kit_file(changed, "starter_kit/dp/clipping.py")
    entry = desk_of(client, changed)
    entry = entry[entry.index(f'<a href="{place}">') :]
    entry = entry[: entry.index("</li>")]
    assert "0" * 64 in entry
    assert re.findall(r"starter_kit/dp/clipping.py: (\w{64})", PROOF)[0] in entry
    page = client.get(place).text
    assert "<h1>starter_kit/dp/clipping.py</h1>" in page
    assert f'href="{reverse("reviews:desk", args=[changed.pk])}">Back to the review</a>' in page
    client.force_login(make_user())
    assert "Back to the review" not in client.get(place).text
    file = client.get(place + "&plain")
    assert file.content == (ROOT / "starter_kit" / "dp" / "clipping.py").read_bytes()
    assert file["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["starter_kit/../manage.py", "tests/proofs.py", "starter_kit/none.py", "starter_kit"]
)
def test_nothing_but_the_kits_source_is_shown(client, path):
    client.force_login(make_reviewer())
    assert client.get(f"/reviews/kit/{path}").status_code == 404


def test_what_the_text_changes_in_the_kits_proof_is_shown(client, changed):
    place = reverse("reviews:proof_changes", args=[changed.pk]) + "?from=kit&amp;to=1"
    assert f'<a href="{place}">differs from</a>' in desk_of(client, changed)
    page = client.get(place.replace("&amp;", "&")).text
    assert re.findall(r"<ins>(.*)</ins>", page) == ["And more."]
    assert "Kit&#x27;s proof" in page


def test_a_team_sees_it_before_reviewers_do(client, changed):
    client.force_login(changed.created_by)
    revised = make_upload(changed.team, CHANGED.encode(), "better.md")
    stage(
        Artifact.pending.create(submission=changed, kind=ArtifactKind.PRIVACY_PROOF, upload=revised),
        changed.created_by,
    )
    for page in (reverse("reviews:revision", args=[changed.pk]), changed.get_absolute_url()):
        assert "starter_kit/dp/clipping.py" in client.get(page).text
    assert "0" * 64 in client.get(reverse("reviews:revision", args=[changed.pk])).text


def test_it_names_questions_and_files_that_exist():
    assert FILES_OF.keys() <= {item.key for item in CHECKLIST}
    for start in (start for starts in FILES_OF.values() for start in starts):
        assert list(ROOT.glob(f"{start}*")), start
