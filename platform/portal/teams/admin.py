"""Teams in the administration, for what their owners can't do themselves."""

from typing import Any

from django.contrib import admin
from django.db.models import URLField
from django.forms import ModelForm
from django.http import HttpRequest
from typing_extensions import override

from portal.audit.admin import AuditedAdmin, ReadOnlyAdmin
from portal.audit.versions import boards_changed
from portal.teams.models import Membership, Team, TeamKey


class MembershipInline(admin.TabularInline[Membership, Team]):
    model = Membership
    extra = 0
    autocomplete_fields = ["user"]
    readonly_fields = ["joined_at"]


@admin.register(Team)
class TeamAdmin(AuditedAdmin[Team]):
    list_display = ["name", "affiliation", "created_at"]
    search_fields = ["name", "affiliation", "memberships__user__email"]
    readonly_fields = ["created_at"]
    prepopulated_fields = {"slug": ["name"]}
    # Addresses that are out in the world stay valid.
    set_once = ["slug"]
    # Its uploads and results depend on it.
    may_delete = False
    inlines = [MembershipInline]
    formfield_overrides = {URLField: {"assume_scheme": "https"}}

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        # The boards show the name.
        boards_changed()


@admin.register(TeamKey)
class TeamKeyAdmin(ReadOnlyAdmin[TeamKey]):
    """What may sign the teams' training records; they register and revoke it themselves."""

    list_display = ["public_key", "team", "name", "added_by", "created_at", "revoked_at"]
    list_filter = ["created_at", "revoked_at"]
    list_select_related = ["team", "added_by"]
    search_fields = ["public_key", "name", "team__name"]
