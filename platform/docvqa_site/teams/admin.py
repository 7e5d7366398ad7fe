"""Teams in the administration, for what their owners can't do themselves, under the same rules."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, URLField
from django.forms import ModelForm, URLInput
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from typing_extensions import override

from docvqa_site.accounts.selectors import organizer_of
from docvqa_site.audit.admin import AuditedAdmin, ModelT, ReadOnlyAdmin, ReadOnlyInline
from docvqa_site.audit.mass_actions import mass_action
from docvqa_site.audit.versions import boards_changed
from docvqa_site.teams import keys, services
from docvqa_site.teams.forms import InvitationForm
from docvqa_site.teams.models import Invitation, Membership, Team, TeamKey
from evaluator.errors import ProblemError


class MembershipInline(ReadOnlyInline[Membership, Team]):
    """The members. Memberships have a page of their own, where owners are made and members removed."""

    model = Membership
    fields = readonly_fields = ("user", "role", "joined_at")


@admin.register(Team)
class TeamAdmin(AuditedAdmin[Team]):
    list_display = ["name", "affiliation", "created_at"]
    search_fields = ["name", "affiliation", "memberships__user__email"]
    # Addresses that are out in the world stay valid.
    readonly_fields = ["slug", "created_at"]
    # A team begins with an owner: on its page, or by `manage.py create_team`. Its uploads and results depend on it.
    may_add = may_delete = False
    inlines = [MembershipInline]
    # Without the widget's link: nobody should follow what a team gives from here.
    formfield_overrides = {URLField: {"assume_scheme": "https", "widget": URLInput}}
    change_form_template = "admin/teams/team.html"

    @override
    def get_urls(self) -> list[URLPattern]:
        invite = self.admin_site.admin_view(self.invite_view)
        return [path("<int:team_id>/invite/", invite, name="team_invite"), *super().get_urls()]

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        # The boards show the name.
        boards_changed()

    def invite_view(self, request: HttpRequest, team_id: int) -> HttpResponse:
        """Invite a person into a team whose owner can't."""
        if not request.user.has_perm("teams.add_invitation"):
            raise PermissionDenied
        team = get_object_or_404(Team, pk=team_id)
        form = InvitationForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            email = form.cleaned_data["email"]
            if _done(self, request, [team], lambda team: _invite(team, email, request)):
                return redirect("admin:teams_team_change", team.pk)
        title = f"Invite a person to {team}"
        context = {**self.admin_site.each_context(request), "title": title, "team": team, "form": form}
        return render(request, "admin/teams/invite.html", context)


class TeamPartAdmin(ReadOnlyAdmin[ModelT]):
    """What belongs to teams, which organizers change through the teams' own services."""

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"teams.change_{self.opts.model_name}")


@admin.register(Membership)
class MembershipAdmin(TeamPartAdmin[Membership]):
    list_display = ["team", "user", "role", "joined_at"]
    list_filter = ["role"]
    list_select_related = ["team", "user"]
    search_fields = ["team__name", "user__email", "user__name"]
    actions = ["make_owner", "remove"]

    @mass_action(
        "Make the owner",
        effect="Each becomes the owner of the team in place of the present one, and the team is notified.",
        permissions=["manage"],
    )
    def make_owner(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        by = organizer_of(request)
        _done(self, request, queryset, lambda one: services.appoint_owner(one.team, one.pk, by=by))

    @mass_action(
        "Remove from the team",
        effect="They can no longer read the team's drafts or submit for it, and the team is notified. A team that "
        "loses its last member loses its keys and open invitations too.",
        permissions=["manage"],
    )
    def remove(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        by = organizer_of(request)
        _done(
            self,
            request,
            queryset,
            lambda one: services.remove_member(one.team, one.pk, by=by, organizes=True),
        )


@admin.register(Invitation)
class InvitationAdmin(TeamPartAdmin[Invitation]):
    list_display = ["email", "team", "invited_by", "created_at", "expires_at", "accepted_at", "revoked_at"]
    list_select_related = ["team", "invited_by"]
    search_fields = ["email", "team__name"]
    fields = ("email", "team", "invited_by", "created_at", "expires_at", "accepted_at", "revoked_at")
    actions = ["revoke"]

    @mass_action("Revoke", effect="Their links stop working. Nobody is notified.", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        by = organizer_of(request)
        _done(self, request, queryset, lambda one: services.revoke_invitation(one, by=by, organizes=True))


@admin.register(TeamKey)
class TeamKeyAdmin(TeamPartAdmin[TeamKey]):
    """What may sign the teams' training records; they register and revoke it themselves."""

    list_display = ["public_key", "team", "name", "added_by", "created_at", "revoked_at"]
    list_filter = ["created_at", "revoked_at"]
    list_select_related = ["team", "added_by"]
    search_fields = ["public_key", "name", "team__name"]
    actions = ["revoke"]

    @mass_action(
        "Revoke",
        effect="New records signed with these keys are rejected, and the teams are notified. Submitted runs stay "
        "valid.",
        permissions=["manage"],
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[TeamKey]) -> None:
        by = organizer_of(request)
        _done(self, request, queryset, lambda one: keys.revoke_key(one, by=by, organizes=True))


def _invite(team: Team, email: str, request: HttpRequest) -> object:
    return services.invite(team, email, by=organizer_of(request), organizes=True)


def _done(
    model_admin: Any, request: HttpRequest, objects: Iterable[ModelT], change: Callable[[ModelT], object]
) -> int:
    """Change each of the objects, and say which couldn't be; returns how many were."""
    done = 0
    for one in objects:
        try:
            change(one)
        except ProblemError as error:
            text = f"{one}: {error.problem.message} {error.problem.next_step}"
            model_admin.message_user(request, text, messages.ERROR)
        else:
            model_admin.message_user(request, f"{one}: done.", messages.SUCCESS)
            done += 1
    return done
