"""Names and addresses in audit entries move to a table of their own, where they can be erased."""

from importlib import import_module
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

append_only = import_module("docvqa_site.audit.migrations.0002_append_only")

# What says who somebody is, by action.
FIELDS: dict[str, list[str]] = {
    "team.created": ["name"],
    "team.name_released": ["name"],
    "team.invited": ["email"],
    "team.invitation_revoked": ["email"],
    "staff.invited": ["email"],
    "user.email_changed": ["before", "after"],
    "user.profile_changed": ["name", "orcid"],
    "user.sign_in_linked": ["uid"],
    "user.sign_in_unlinked": ["uid"],
    "token.created": ["label"],
    "token.revoked": ["label"],
    "user.added": ["changes"],
    "user.changed": ["changes"],
}
# Of the changes of an account.
CHANGED = ["email", "name", "orcid"]
OF_THE_ACTOR = {"team.created", "team.name_released"}


def move_names_and_addresses(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Replace them in the entries by keys. The triggers are away for as long as that takes."""
    append_only.remove_triggers(apps, schema_editor)
    Entry = apps.get_model("audit", "AuditEntry")
    Detail = apps.get_model("audit", "PersonalDetail")
    people = set(apps.get_model("accounts", "User").objects.values_list("pk", flat=True))
    owners = dict(apps.get_model("accounts", "ApiToken").objects.values_list("pk", "user_id"))
    for entry in Entry.objects.filter(action__in=FIELDS).order_by("pk").iterator(500):
        person = _person(entry, owners)
        person = person if person in people else None

        def keyed(text: Any, person: int | None = person) -> Any:
            is_text = isinstance(text, str) and text
            return Detail.objects.create(person_id=person, text=text).key if is_text else text

        for name in FIELDS[entry.action]:
            value = entry.details.get(name)
            if name == "changes" and isinstance(value, dict):
                moved = {field: [keyed(text) for text in value[field]] for field in CHANGED if field in value}
                entry.details[name] = {**value, **moved}
            elif name in entry.details:
                entry.details[name] = keyed(value)
        Entry.objects.filter(pk=entry.pk).update(details=entry.details)
    append_only.make_triggers(apps, schema_editor)


def _person(entry: Any, owners: dict[int, int]) -> int | None:
    """Return the account that the names and addresses of an entry belong to, if it is known."""
    if entry.action in OF_THE_ACTOR:
        key: int | None = entry.actor_id
        return key
    if entry.object_type == "accounts.apitoken":
        return owners.get(int(entry.object_id))
    return int(entry.object_id) if entry.object_type == "accounts.user" else None


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_personaldetail")]

    operations = [migrations.RunPython(move_names_and_addresses, migrations.RunPython.noop)]
