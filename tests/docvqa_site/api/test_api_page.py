"""The commands of docs/api.md, in their order, against the API."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from docvqa_site.accounts.models import Scope
from docvqa_site.accounts.services import create_token
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Terms
from docvqa_site.submissions.models import Artifact, RunState, SubmissionState
from docvqa_site.submissions.proof_versions import stage
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_key,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_upload,
    make_user,
    owner_of,
)
from tests.docvqa_site.submissions.drafts import make_complete_draft

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
# After the owner has handed the team over.
REJECTED = {"keys/$KEY": 403}


def commands() -> Iterator[list[str]]:
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        yield from (shlex.split(line) for line in block.replace("\\\n", " ").splitlines())


def sent(client: Client, arguments: list[str], values: dict[str, str]) -> int:
    """The status of the response to a command of curl, of those options that the page uses."""
    curl, *rest = arguments
    assert curl == "curl"
    options = {"-X": "", "-H": "", "--json": ""}
    addresses = []
    while rest:
        word = rest.pop(0)
        if word in options:
            options[word] = rest.pop(0)
        else:
            addresses.append(word)
    (address,) = addresses
    filled = re.sub(r"\$([A-Z_]+)", lambda name: values[name[1]], f"{address}\n{options['-H']}")
    path, header = filled.split("\n")
    name, _, value = header.partition(": ")
    body = options["--json"]
    method = options["-X"] or ("POST" if body else "GET")
    if body:
        json.loads(body)
    response = client.generic(method, path, body, content_type="application/json", headers={name: value})
    return response.status_code


def test_every_command_works_as_the_page_says(client: Client) -> None:
    team = make_team()
    owner = owner_of(team)
    make_track("anls", slug="track-2")
    draft = make_complete_draft(team)
    track = draft.track
    rejected = make_run(
        make_submission(team, track, state=SubmissionState.SUBMITTED), state=RunState.REJECTED
    )
    make_track(slug="track-1")
    reviewed = make_submission(team, Track.objects.get(slug="track-2"), state=SubmissionState.SUBMITTED)
    make_artifact(reviewed, ArtifactKind.PRIVACY_PROOF)
    revised = Artifact.pending.create(
        submission=reviewed, kind=ArtifactKind.PRIVACY_PROOF, upload=make_upload(team, b"better")
    )
    stage(revised, owner)
    values = {
        "PFL_SITE": "",
        "PFL_TOKEN": create_token(owner, "page", scope=Scope.MANAGE)[1],
        "TRACK": track.slug,
        "DRAFT": str(draft.pk),
        "REJECTED": str(rejected.submission_id),
        "REVIEWED": str(reviewed.pk),
        "ARTIFACT": str(make_artifact(rejected, ArtifactKind.COMMUNICATION_LOG).pk),
        "MEMBER": str(Membership.objects.create(team=team, user=make_user()).pk),
        "CHECKPOINT": "0" * 64,
        "KEY": make_key(team).public_key,
        "TERMS": str(Terms.objects.create(title="Data agreement", version="1", text="No redistribution.").pk),
    }
    found = list(commands())
    assert len(found) > 20
    for command in found:
        status = sent(client, command, values)
        expected = next(
            (code for part, code in REJECTED.items() if any(part in word for word in command)), None
        )
        assert status == expected if expected else status < 300, (command, status)
