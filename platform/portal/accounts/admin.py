"""People and their API tokens in the administration."""

from typing import Any

import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from typing_extensions import override

from portal.accounts.forms import NewUserForm
from portal.accounts.models import ApiToken, User
from portal.accounts.services import note_password_set, reset_second_factor, revoke_token, vouch_for_address
from portal.audit.admin import AuditedAdmin, ReadOnlyAdmin

# With these, how a person logs in would change without an audit entry. The site's own keys for providers are settings.
admin.site.unregister([EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken])


@admin.register(User)
class UserAdmin(AuditedAdmin[User], DjangoUserAdmin[User]):
    add_form = NewUserForm
    list_display = ["email", "name", "is_active", "is_staff", "date_joined", "last_login"]
    list_filter = ["is_active", "is_staff", "is_superuser", "groups"]
    search_fields = ["email", "name"]
    ordering = ["email"]
    readonly_fields = ["last_login", "date_joined", "second_factor"]
    # People change their own address, because only they can verify the new one.
    set_once = ["email"]
    actions = ["reset_second_factors"]
    # The audit trail names people, so they are deactivated instead.
    may_delete = False
    fieldsets = [
        (None, {"fields": ["email", "name", "password"]}),
        ("Rights", {"fields": ["is_active", "is_staff", "is_superuser", "groups", "user_permissions"]}),
        ("Times", {"fields": ["last_login", "date_joined", "second_factor"]}),
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
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out the password for whoever may only look: its button would lead to a page that they may not open."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (name, {**options, "fields": [field for field in options["fields"] if field != "password"]})
            for name, options in fieldsets
        ]

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            vouch_for_address(obj)

    @override
    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        before = self.get_object(request, unquote(id))
        response = super().user_change_password(request, id, form_url)
        after = self.get_object(request, unquote(id))
        if before and after and before.password != after.password:
            assert isinstance(request.user, User)  # noqa: S101  (the admin lets nobody anonymous in)
            note_password_set(after, actor=request.user)
        return response

    @admin.display(description="Has a second factor", boolean=True)
    def second_factor(self, user: User) -> bool:
        return user.has_second_factor

    @admin.action(description="Reset the second factor, which was lost", permissions=["change"])
    def reset_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        assert isinstance(request.user, User)  # noqa: S101  (the admin lets nobody anonymous in)
        for user in queryset:
            reset_second_factor(user, actor=request.user)
        self.message_user(request, "Their second factors are removed, and they are logged out.")


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

    @admin.action(description="Revoke the selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        assert isinstance(request.user, User)  # noqa: S101  (the admin lets nobody anonymous in)
        for token in queryset:
            revoke_token(token, actor=request.user)
        self.message_user(request, "The tokens are revoked.")
