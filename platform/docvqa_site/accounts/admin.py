"""People and their API tokens in the administration."""

from typing import Any

import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from typing_extensions import override

from docvqa_site.accounts.confirming import ask_again
from docvqa_site.accounts.forms import ChangedUserForm, NewUserForm
from docvqa_site.accounts.models import ApiToken, User
from docvqa_site.accounts.rights import may_change
from docvqa_site.accounts.selectors import organizer_of
from docvqa_site.accounts.services import (
    end_access,
    note_password_set,
    reset_second_factor,
    revoke_token,
    vouch_for_address,
)
from docvqa_site.audit.admin import AuditedAdmin, ReadOnlyAdmin
from docvqa_site.audit.mass_actions import mass_action

# With these, how a person logs in would change without an audit entry. The site's own keys for providers are settings.
admin.site.unregister([EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken])
# It has a page without audit entries.
admin.site.unregister(Group)

RIGHTS = ["is_staff", "is_superuser", "groups", "user_permissions"]


@admin.register(User)
class UserAdmin(AuditedAdmin[User], DjangoUserAdmin[User]):
    """People. Only superusers change rights, and nobody changes an account with more rights than their own."""

    form = ChangedUserForm
    add_form = NewUserForm
    list_display = ["email", "name", "is_active", "is_staff", "date_joined", "last_login"]
    list_filter = ["is_active", "is_staff", "is_superuser", "groups"]
    search_fields = ["email", "name"]
    ordering = ["email"]
    readonly_fields = ["last_login", "date_joined", "erasure_due_at", "erased_at", "second_factor", "emails"]
    # People change their own address, because only they can verify the new one.
    set_once = ["email"]
    personal = ["email", "name", "orcid"]
    actions = ["reset_second_factors"]
    # The audit trail names people, so they are deactivated instead.
    may_delete = False
    fieldsets = [
        (None, {"fields": ["email", "emails", "name", "password"]}),
        ("Rights", {"fields": ["is_active", *RIGHTS]}),
        ("Times", {"fields": ["last_login", "date_joined", "erasure_due_at", "erased_at", "second_factor"]}),
    ]
    add_fieldsets = [
        (
            None,
            {
                "description": "The address counts as verified: add only people whose address you know.",
                "fields": ["email", "name", "usable_password", "password1", "password2"],
            },
        )
    ]

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        # An erased account is a key, which nobody can log in with again.
        return allowed and (obj is None or (not obj.erased_at and may_change(organizer_of(request), obj)))

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [
            *super().get_readonly_fields(request, obj),
            *([] if organizer_of(request).is_superuser else RIGHTS),
        ]

    @override
    def changeform_view(self, request: HttpRequest, object_id: Any = None, *args: Any, **kwargs: Any) -> Any:
        changes = request.method == "POST" and object_id and self.has_change_permission(request)
        if changes and (asked := ask_again(request)):
            return asked
        return super().changeform_view(request, object_id, *args, **kwargs)

    @override
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out what would lead to a page that the reader may not open."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        may_read = {
            "password": self.has_change_permission(request, obj),
            "emails": request.user.has_perm("mail.view_outgoingmail"),
        }
        closed = {name for name, may in may_read.items() if not may}
        return [
            (name, {**options, "fields": [field for field in options["fields"] if field not in closed]})
            for name, options in fieldsets
        ]

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            vouch_for_address(obj)
        elif "is_active" in form.changed_data and not obj.is_active:
            end_access(obj, because="account deactivated")

    @override
    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        if self.has_change_permission(request) and (asked := ask_again(request, keeps_form=False)):
            return asked
        before = self.get_object(request, unquote(id))
        response = super().user_change_password(request, id, form_url)
        after = self.get_object(request, unquote(id))
        if before and after and before.password != after.password:
            note_password_set(after, actor=organizer_of(request))
        return response

    @admin.display(description="Has a second factor", boolean=True)
    def second_factor(self, user: User) -> bool:
        return user.has_second_factor

    @admin.display(description="emails")
    def emails(self, user: User) -> SafeString:
        """Return a link to the emails to the person, for those who say that none has arrived."""
        address = reverse("admin:mail_outgoingmail_changelist", query={"q": user.email})
        return format_html('<a href="{}">What was sent to this address</a>', address)

    @mass_action(
        "Reset the second factor, which was lost",
        effect="Their second factors are removed, and they are logged out everywhere and notified.",
        permissions=["change"],
    )
    def reset_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        actor = organizer_of(request)
        if beyond := [user for user in queryset if not may_change(actor, user)]:
            names = ", ".join(map(str, beyond))
            text = f"Nothing was reset: {names} has more rights than you. Ask a superuser."
            self.message_user(request, text, messages.ERROR)
            return None
        if asked := ask_again(request):
            return asked
        for user in queryset:
            reset_second_factor(user, actor=actor)
        self.message_user(request, "Their second factors are removed, and they are logged out.")
        return None


@admin.register(Group)
class GroupAdmin(AuditedAdmin[Group], DjangoGroupAdmin):
    """Groups give rights to people, so only superusers change them, and none that has members is deleted."""

    # The site finds those of `docvqa_site.accounts.groups` by their names.
    set_once = ["name"]

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return organizer_of(request).is_superuser and super().has_add_permission(request)

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return organizer_of(request).is_superuser and super().has_change_permission(request, obj)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = organizer_of(request).is_superuser and super().has_delete_permission(request, obj)
        return allowed and (obj is None or not obj.user_set.exists())

    @override
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asked(request) or super().changeform_view(request, *args, **kwargs)

    @override
    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asked(request) or super().delete_view(request, *args, **kwargs)

    def _asked(self, request: HttpRequest) -> HttpResponse | None:
        changes = request.method == "POST" and self.has_change_permission(request)
        return ask_again(request) if changes else None


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin[ApiToken]):
    """Tokens can be revoked here, for a leak; only their owners make them."""

    list_display = ["label", "user", "scope", "created_at", "expires_at", "last_used_at", "revoked_at"]
    list_select_related = ["user"]
    search_fields = ["label", "user__email"]
    fields = (
        "user",
        "label",
        "scope",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    actions = ["revoke"]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apitoken")

    @mass_action(
        "Revoke the selected tokens",
        effect="Requests with them are rejected from now on. Their owners have to create new ones.",
        permissions=["revoke"],
    )
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            revoke_token(token, actor=organizer_of(request))
        self.message_user(request, "The tokens are revoked.")
