"""Every page of the administration that can write leaves an audit entry; every action on several objects asks first."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django import Settings

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download, DownloadKind, Terms
from docvqa_site.evaluation.models import TestSet as StoredTestSet
from docvqa_site.news.models import NewsItem
from docvqa_site.teams.models import Team
from tests.docvqa_site.accounts.codes import confirm_again
from tests.docvqa_site.admin_actions import choose
from tests.docvqa_site.factories import make_download, make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

PASSWORD = "rose-hill-42-x"
# One object of each model that the administration writes.
MAKERS: dict[type[Model], Callable[[], Model]] = {
    User: make_user,
    Group: lambda: Group.objects.create(name="Helpers"),
    Team: make_team,
    Track: make_track,
    Download: lambda: make_download(DownloadKind.DATA),
    Terms: lambda: Terms.objects.create(title="Agreement", version="1", text="No redistribution."),
    NewsItem: lambda: NewsItem.objects.create(title="Open", slug="open", text="Now."),
    FinalResults: lambda: FinalResults.objects.create(
        title="Final", slug="final", phase=make_track().phases.get()
    ),
    StoredTestSet: lambda: StoredTestSet.objects.create(name="synthetic", sha256="0" * 64),
}


@pytest.fixture
def organizer(client: Client, settings: Settings) -> User:
    """A superuser who has just confirmed who they are."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    user = make_user("root@example.org", PASSWORD, is_staff=True, is_superuser=True)
    vouch_for_address(user)
    client.force_login(user)
    confirm_again(client, PASSWORD)
    return user


def writable(organizer: User) -> Iterator[tuple[type[Model], set[str]]]:
    """Every model of the administration that a superuser may write there, and how."""
    request = RequestFactory().get("/")
    request.user = organizer
    for model, model_admin in admin.site._registry.items():
        possible = {
            "add": model_admin.has_add_permission(request),
            "change": model_admin.has_change_permission(request, MAKERS[model]())
            if model in MAKERS
            else model_admin.has_change_permission(request, model()),
            "delete": model_admin.has_delete_permission(request),
        }
        if verbs := {verb for verb, is_possible in possible.items() if is_possible}:
            yield model, verbs


def test_every_page_that_can_write_leaves_an_entry(client: Client, organizer: User) -> None:
    found = dict(writable(organizer))
    assert found.keys() == MAKERS.keys()
    for model, verbs in found.items():
        one = model._default_manager.exclude(pk=organizer.pk if model is User else None).first()
        assert one is not None
        for verb, write in WAYS.items():
            if verb in verbs:
                response = write(client, one)
                action = f"{model._meta.model_name}.{verb.removesuffix('e')}ed"
                assert response.status_code == 302, (action, response.context["errors"])
                assert AuditEntry.objects.filter(actor=organizer, action=action).exists(), action


def add(client: Client, one: Model) -> Any:
    """Add another object like this one."""
    form = {
        **filled_in(client, address_of(one, "add"), one),
        "slug": "another",
        "email": "new@example.org",
        "version": "2",
    }
    passwords = {"password1": "new-hill-43-y", "password2": "new-hill-43-y", "usable_password": "true"}
    return client.post(address_of(one, "add"), {**form, **passwords})


def change(client: Client, one: Model) -> Any:
    address = address_of(one, "change", one.pk)
    return client.post(address, filled_in(client, address, one))


def delete(client: Client, one: Model) -> Any:
    return client.post(address_of(one, "delete", one.pk), {"post": "yes"})


WAYS = {"change": change, "add": add, "delete": delete}


def filled_in(client: Client, address: str, one: Model) -> dict[str, Any]:
    """The form of a page: another name or title, and otherwise its own values or those of `one`."""
    context = client.get(address).context
    form = context["adminform"].form
    columns = {field.name for field in one._meta.fields}
    values = {
        name: form[name].value() or (getattr(one, name) if name in columns else None) for name in form.fields
    }
    inlines = [inline.formset.prefix for inline in context["inline_admin_formsets"]]
    return {
        **{name: value for name, value in values.items() if value is not None and value is not False},
        **{name: f"Another {name}" for name in ("name", "title", "doi") if name in form.fields},
        # A moment is entered as day and time.
        **{f"{name}_0": f"{value:%Y-%m-%d}" for name, value in values.items() if isinstance(value, datetime)},
        **{f"{name}_1": f"{value:%H:%M:%S}" for name, value in values.items() if isinstance(value, datetime)},
        **{f"{prefix}-{count}_FORMS": 0 for prefix in inlines for count in ("TOTAL", "INITIAL")},
    }


def address_of(one: Model, page: str, *arguments: object) -> str:
    return reverse(f"admin:{one._meta.app_label}_{one._meta.model_name}_{page}", args=arguments)


def test_every_action_on_several_objects_asks_first(client: Client, organizer: User) -> None:
    request = RequestFactory().get("/")
    request.user = organizer
    for model, model_admin in admin.site._registry.items():
        for name, action in model_admin.get_actions(request).items():
            assert hasattr(action and action[0], "effect"), (
                f"the action {name} of {model.__name__} doesn't ask"
            )
            one = MAKERS[model]() if model in MAKERS else None
            if one is not None:
                page = choose(client, address_of(one, "changelist"), name, one.pk)
                assert page.status_code == 200
                assert f"1 {model._meta.verbose_name} selected" in page.text


def test_entries_are_found_by_the_title_of_the_submission_that_they_show(
    client: Client, organizer: User
) -> None:
    submission, other = make_submission(title="DP-LoRA"), make_submission(title="Other")
    record(organizer, "submission.refunded", submission)
    record(organizer, "proof_review.assigned", organizer, submission=str(submission.pk))
    record(organizer, "submission.refunded", other)
    page = client.get(reverse("admin:audit_auditentry_changelist") + "?q=dp-lora").text
    assert "2 audit entries" in page
