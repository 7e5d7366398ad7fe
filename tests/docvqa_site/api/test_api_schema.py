"""Every operation of the OpenAPI schema, called with what the schema allows and with what it doesn't.

Whatever is sent, and whoever sends it, the response has a status and a form that the schema names, and no request fails
on the site's side. The choice of requests is the same in every run. Each is undone, so that none depends on another.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from docvqa_site.accounts.models import Scope
from docvqa_site.accounts.services import create_token
from docvqa_site.api import throttling
from docvqa_site.api.urls import api
from docvqa_site.limits import Limit
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams.models import Membership, Team
from docvqa_site.teams.services import invite
from docvqa_site.wsgi import application
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_key,
    make_run,
    make_submission,
    make_team,
    make_user,
    owner_of,
)
from tests.docvqa_site.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db

# Of each operation, each person and each kind of request: those that the schema allows, and others.
EXAMPLES = 3
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for throttle in (*throttling.CREATION_LIMITS, *throttling.UPLOAD_LIMITS, *throttling.PUBLIC_LIMITS):
        monkeypatch.setattr(throttle, "limit", Limit("schema", 10**9))
    monkeypatch.setattr(throttling, "_UNKNOWN", Limit("schema-unknown", 10**9))


@pytest.fixture(autouse=True)
def same_examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hypothesis takes constants of all modules that are loaded by then, which depend on the tests before this one."""
    monkeypatch.setattr(providers, "_get_local_constants", Constants)
    providers.CONSTANTS_CACHE.cache.clear()
    yield
    providers.CONSTANTS_CACHE.cache.clear()


@pytest.fixture(autouse=True)
def open_connection() -> Iterator[None]:
    """The end of a request closes the connection, except in a test, as Django's own client has it."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def team() -> Team:
    """A team that has one of everything that an address can name."""
    team = make_team()
    owner = owner_of(team)
    Membership.objects.create(team=team, user=make_user())
    invite(team, "guest@example.org", by=owner)
    make_key(team)
    Notification.objects.create(user=owner, kind=Kind.RESULTS, subject="Scored", page="/submissions/")
    submission = make_submission(team, make_private_track(), state=SubmissionState.DRAFT)
    make_artifact(make_run(submission, budget=1.0), ArtifactKind.COMMUNICATION_LOG)
    return team


def named(team: Team) -> dict[str, Any]:
    """What the parameters of addresses, and the fields of bodies, name of the team's things."""
    submission = team.submissions.get()
    artifact = submission.artifacts.get()
    return {
        "submission_id": str(submission.pk),
        "submission": str(submission.pk),
        "run_id": str(submission.runs.get().pk),
        "run": str(submission.runs.get().pk),
        "artifact_id": str(artifact.pk),
        "upload_id": str(artifact.upload_id),
        "membership_id": team.memberships.get(role="member").pk,
        "invitation_id": team.invitations.get().pk,
        "public_key": team.keys.get().public_key,
        "slug": submission.track.slug,
        "track": submission.track.slug,
    }


def schema_of(team: Team) -> Any:
    """The API's schema, narrowed so that most requests are about things that exist."""
    schema = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    names = named(team)
    for operations in schema["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in names:
                    parameter["schema"] = {
                        "anyOf": [{"const": names[parameter["name"]]}, parameter["schema"]]
                    }
    for name, component in schema["components"]["schemas"].items():
        if name.startswith(("New", "Changed")):
            for field in component["properties"].keys() & names.keys():
                allowed = component["properties"][field]
                component["properties"][field] = {"anyOf": [{"const": names[field]}, allowed]}
    loaded = schemathesis.openapi.from_dict(schema)
    loaded.app = visited
    return loaded


def visited(environ: dict[str, Any], start_response: Any) -> Any:
    """The site, as a visitor of this machine reaches it."""
    response: Any = application(
        {**environ, "HTTP_HOST": "testserver", "REMOTE_ADDR": "127.0.0.1"}, start_response
    )
    try:
        return [b"".join(response)]
    finally:
        # As a server does, and the caller doesn't: until then the request is one of its network's.
        response.close()


def call(operation: Any, mode: GenerationMode, callers: dict[str, dict[str, str]]) -> list[str]:
    """Send the same requests with the headers of each caller; return what is wrong with the responses."""
    found = []

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode, feedback=NO_FEEDBACK))
    def check(case: Case) -> None:
        for name, headers in callers.items():
            with transaction.atomic():
                response = case.call(headers=headers)
                transaction.set_rollback(True)
            try:
                case.validate_response(response, checks=CHECKS)
            except FailureGroup as group:
                found.append(f"{operation.label}, {mode.value}, by {name}: {group}")

    check()
    return found


def failures_of(operation: Any, callers: dict[str, dict[str, str]]) -> Iterator[str]:
    for mode in GenerationMode:
        if mode is GenerationMode.POSITIVE or operation.body or operation.query or operation.path_parameters:
            yield from call(operation, mode, callers)


def authorized(team: Team) -> dict[str, str]:
    """The headers of the team's owner."""
    return {"Authorization": f"Bearer {create_token(owner_of(team), 'test', scope=Scope.MANAGE)[1]}"}


def test_whatever_is_sent_the_response_is_one_that_the_schema_names(team: Team) -> None:
    callers = {"nobody": {}, "the owner": authorized(team), "another team": authorized(make_team())}
    operations = [found.ok() for found in schema_of(team).get_all_operations()]
    assert len(operations) > 40
    found = [failure for operation in operations for failure in failures_of(operation, callers)]
    assert not found, "\n\n".join(found)
