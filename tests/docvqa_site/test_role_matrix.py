"""Who gets what at every address of the site: compared with the table in role_matrix.txt.

Addresses come from the URL configuration, with the arguments of a site where everyone has been at work. Every request
is undone before the next. What a method isn't allowed for has no row, and what a visitor may
read is everybody's. PFL_RENEW_ROLES=1 rewrites the table; read the difference before you commit it.

The outcomes: `ok` is a page or a file, `to` another page, `login` that of the login, `factor` that of second factors,
`again` that where the password is asked for, `form` what was wrong with the (empty) form, `no` forbidden, `none` not
found, `state` impossible now; of the API, `token`, `scope` and `team` are what the request lacks.
"""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import caches
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from pytest_django import Settings

from docvqa_site.accounts.models import ApiToken, Scope, User
from docvqa_site.accounts.services import create_token
from docvqa_site.api.urls import api
from docvqa_site.challenge.models import StaffInvitation, TeamRegistration
from docvqa_site.evaluation.models import Examination
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.models import Artifact, RunToken, Submission
from docvqa_site.teams.models import Invitation, Membership, TeamKey
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_organizer, owner_of
from tests.docvqa_site.ui.world import World, make_world

pytestmark = pytest.mark.django_db

TABLE = Path(__file__).with_name("role_matrix.txt")
PERMISSIONS = (
    "organize",
    "change_track",
    "view_submission",
    "change_submission",
    "change_evaluation",
    "add_examination",
)
ROLES = ("visitor", "newcomer", "member", "rival", "reviewer", "organizer", "superuser")
# All but those who may least and most. The administration makes no difference between those who aren't staff.
OTHERS = ROLES[1:-1]
STAFF = ("reviewer", "organizer")
CALLERS = ("no token", "newcomer", "rival", *(f"{scope} token" for scope in Scope))
WORDS = {
    200: "ok",
    201: "ok",
    204: "ok",
    304: "ok",
    400: "form",
    403: "no",
    404: "none",
    409: "state",
    422: "form",
}
REDIRECTS = {
    "account_login": "login",
    "mfa_index": "factor",
    "account_reauthenticate": "again",
    "mfa_reauthenticate": "again",
}
CODES = {"E_REQUEST_SIGN_IN": "token", "E_REQUEST_SCOPE": "scope", "E_REQUEST_TEAM": "team"}
# Which track, team or other object an address with a slug is about.
SLUGS = {
    "teams": "receipts",
    "results": "final",
    "news": "open",
    "downloads": "nothing",
    "organizers:setup": "next",
    "challenge:register": "registered",
}
NOT_ALLOWED = 405


@pytest.fixture
def world(settings: Settings, tmp_path: Path) -> World:
    settings.STORE_FOLDER = tmp_path / "store"
    world = make_world()
    # What a page shows is tested elsewhere, and takes most of the time.
    settings.TEMPLATES = [{"BACKEND": "tests.docvqa_site.blank_templates.BlankTemplates"}]
    return world


def test_everyone_gets_at_every_address_what_the_table_says(
    world: World, request: pytest.FixtureRequest
) -> None:
    # Each of what is forbidden would be logged with its traceback.
    logging.disable()
    request.addfinalizer(lambda: logging.disable(logging.NOTSET))
    people = people_of(world)
    arguments = arguments_of(world, people)
    lines = [*site_rows(people, arguments), "", *api_rows(people, arguments)]
    found = "\n".join(line.rstrip() for line in lines) + "\n"
    if os.environ.get("PFL_RENEW_ROLES"):
        TABLE.write_text(found)
    assert found.splitlines() == TABLE.read_text().splitlines()


def people_of(world: World) -> dict[str, User]:
    return {
        "newcomer": world.people["newcomer"],
        "member": world.people["participant"],
        "rival": owner_of(Submission.objects.get(pk=world.ids["foreign"]).team),
        "reviewer": world.people["reviewer"],
        "organizer": make_organizer(*PERMISSIONS),
        "superuser": world.people["organizer"],
    }


def arguments_of(world: World, people: dict[str, User]) -> dict[str, object]:
    """The arguments of addresses by name: things of the member's team, as far as there are any."""
    own = Submission.objects.get(pk=world.ids["private"])
    team, run = own.team, own.runs.get()
    return {
        "slug": "track-2",
        "api_token_id": ApiToken.objects.get(user=people["member"]).pk,
        "notification_id": Notification.objects.filter(user=people["member"]).latest("pk").pk,
        "team_id": team.pk,
        "submission_id": own.pk,
        "run_id": run.pk,
        "artifact_id": Artifact.objects.filter(submission=own, kind=ArtifactKind.PRIVACY_PROOF)
        .latest("pk")
        .pk,
        "token_id": RunToken.objects.filter(team=team).latest("pk").pk,
        "membership_id": Membership.objects.get(team=team).pk,
        "invitation_id": Invitation.objects.get(team=team).pk,
        "staff_invitation_id": StaffInvitation.objects.latest("pk").pk,
        "key_id": TeamKey.objects.get(team=team).pk,
        "public_key": TeamKey.objects.get(team=team).public_key,
        "secret": world.ids["secret"],
        "terms_id": world.ids["terms"],
        "outage_id": world.ids["outage"],
        "phase_id": world.ids["phase"],
        "user_id": people["organizer"].pk,
        "registration_id": TeamRegistration.objects.get().pk,
        "examination_id": Examination.objects.latest("pk").pk,
        "name": world.ids["test_set"],
        "kind": "csv",
        "code": "E_CHECKPOINT_NOT_FINITE",
        "address": "privacy",
        "path": "columns.json",
        "number": 1,
        "sha256": "0" * 64,
        "app_label": "teams",
        "content_type_id": 1,
    }


def site_rows(people: dict[str, User], arguments: dict[str, object]) -> Iterator[str]:
    sessions = {role: session_of(user) for role, user in people.items()}
    yield row("", "", ROLES)
    for name, address in addresses(get_resolver(), arguments):
        for method in ("GET", "POST"):
            # Whoever may do everything finds out whether the method is allowed at all.
            most = outcome(method, address, session=sessions["superuser"])
            if most == str(NOT_ALLOWED):
                continue
            least = outcome(method, address)
            if (method, least) == ("GET", "ok"):
                yield row(method, name, ["public"])
                continue
            asked = STAFF if name.startswith("admin:") else OTHERS
            found = {role: outcome(method, address, session=sessions[role]) for role in asked}
            yield row(method, name, [least, *(found.get(role, "") for role in OTHERS), most])


def api_rows(people: dict[str, User], arguments: dict[str, object]) -> Iterator[str]:
    secrets = {
        role: create_token(people[role], role, scope=Scope.MANAGE)[1] for role in ("newcomer", "rival")
    }
    secrets |= {f"{scope} token": create_token(people["member"], scope, scope=scope)[1] for scope in Scope}
    yield row("", "", CALLERS)
    for path, operations in sorted(api.get_openapi_schema()["paths"].items()):
        address = filled_in(path, arguments)
        for method in sorted(operations):
            outcomes = [outcome(method.upper(), address, secret=secrets.get(one)) for one in CALLERS]
            yield row(method.upper(), path, outcomes)


def row(method: str, name: str, outcomes: Any) -> str:
    return f"{method:<7}{name:<74}" + "".join(f" {one:<12}" for one in outcomes)


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return str(client.session.session_key)


def outcome(method: str, address: str, *, session: str | None = None, secret: str | None = None) -> str:
    """Return what answers the request, which then never happened."""
    client = Client(raise_request_exception=False)
    if session:
        client.cookies["sessionid"] = session
    options: dict[str, Any] = {"headers": {"Authorization": f"Bearer {secret}"}} if secret else {}
    if address.startswith("/api/"):
        options |= {"data": "{}", "content_type": "application/json"}
    elif method == "POST":
        options |= {"data": "", "content_type": "application/x-www-form-urlencoded"}
    for cache in caches.all(initialized_only=True):
        cache.clear()
    with transaction.atomic():
        response = client.generic(method, address, **options)
        # A page that is sent bit by bit may ask the database.
        response.getvalue()
        transaction.set_rollback(True)
    return word_for(response)


def word_for(response: Any) -> str:
    status = response.status_code
    if (
        response["Content-Type"] == "application/problem+json"
        if response.has_header("Content-Type")
        else False
    ):
        return CODES.get(response.json()["problems"][0]["code"], WORDS.get(status, str(status)))
    if status in (301, 302):
        path = response["Location"].partition("?")[0]
        return next((word for name, word in REDIRECTS.items() if path == reverse(name)), "to")
    return WORDS.get(status, str(status))


def addresses(
    resolver: URLResolver, arguments: dict[str, object], before: str = "/", namespace: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of every page, but those of the API's operations."""
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "api":
                inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
                yield from addresses(pattern, arguments, route, inner)
        elif pattern.name or not namespace:
            # Those without a name in the administration are old addresses that lead to the others.
            name = f"{namespace}{pattern.name}" if pattern.name else route
            yield name, filled_in(route, arguments_for(name, pattern, arguments))


def arguments_for(name: str, pattern: URLPattern, arguments: dict[str, object]) -> dict[str, object]:
    """Return the arguments, with those whose meaning depends on the address."""
    slug = next((slug for start, slug in SLUGS.items() if name.startswith(start)), "track-2")
    chosen = {**arguments, "slug": slug, "object_id": object_of(pattern)}
    if name.startswith("accounts:"):
        chosen["token_id"] = arguments["api_token_id"]
    if name == "organizers:setup_step":
        chosen["name"] = "texts"
    if name == "organizers:export":
        chosen["name"] = "submissions"
    return chosen


def object_of(pattern: URLPattern) -> object:
    """Return the key of an object that a page of the administration shows."""
    app, _, rest = (pattern.name or "").partition("_")
    model = rest.rpartition("_")[0]
    try:
        found = apps.get_model(app, model)._default_manager.first()
    except (LookupError, ValueError):
        return 1
    return found.pk if found else 1


def filled_in(route: str, arguments: dict[str, object]) -> str:
    """Return the address of a route; an argument that nothing has a value for is "1"."""

    def value(found: re.Match[str]) -> str:
        return str(arguments.get(next(filter(None, found.groups())), "1"))

    return re.sub(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>|\{(\w+)\}", value, route)
