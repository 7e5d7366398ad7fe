"""Setting up, using and losing a second factor, and what staff may do without one."""

import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.models import AuditEntry
from tests.docvqa_site.accounts.codes import code_of, log_in
from tests.docvqa_site.factories import make_organizer, make_user

pytestmark = pytest.mark.django_db

PASSWORD = "rose-hill-42-x"


@pytest.fixture(autouse=True)
def no_earlier_attempts() -> None:
    """The limits on attempts are counted in the cache, which outlives a test."""
    cache.clear()


@pytest.fixture
def organizer() -> User:
    user = make_user(password=PASSWORD, is_staff=True, is_superuser=True, second_factor=False)
    vouch_for_address(user)
    return user


DIGITS = r'<input [^>]*name="code"[^>]*inputmode="numeric"'


def set_up_app(client: Client) -> str:
    """Go through the pages that set up an authenticator app; returns its secret."""
    address = f"{reverse('account_reauthenticate')}?next={reverse('mfa_activate_totp')}"
    page = client.post(address, {"password": PASSWORD}, follow=True)
    found = re.search(r'id="totp-secret">([A-Z2-7]+)<', page.content.decode())
    assert found is not None
    assert re.search(DIGITS, page.text)
    client.post(reverse("mfa_activate_totp"), {"code": code_of(found[1])})
    return found[1]


@pytest.mark.django_db(transaction=True)
def test_an_organizer_sets_up_an_app_and_the_administration_opens(organizer: User) -> None:
    here, elsewhere = Client(), Client()
    log_in(here, organizer, PASSWORD)
    log_in(elsewhere, organizer, PASSWORD)
    secret = set_up_app(here)
    assert here.get("/admin/").status_code == 200
    assert User.objects.get(pk=organizer.pk).has_perm("submissions.view_submission")
    # Sessions that began without it end.
    assert elsewhere.get("/account/").status_code == 302
    assert "Authenticator app activated" in mail.outbox[-1].subject
    entries = AuditEntry.objects.filter(action="user.second_factor_added")
    assert {entry.details["type"] for entry in entries} == {"totp", "recovery_codes"}
    for stored in Authenticator.objects.all():
        assert secret not in str(stored.data)
        assert not re.search("'(seed|secret)': '[0-9a-f]+'", str(stored.data))


@pytest.mark.django_db(transaction=True)
def test_recovery_codes_come_with_the_app_and_work_once(client: Client, organizer: User) -> None:
    log_in(client, organizer, PASSWORD)
    set_up_app(client)
    page = client.get(reverse("mfa_view_recovery_codes")).content.decode()
    codes = re.findall(r"^(?:.*>)?(\d{8})$", page, re.MULTILINE)
    assert len(codes) == 10
    assert "Done: open the organizers' desk" in page
    for is_in in (True, False):
        other = Client()
        other.post(reverse("account_login"), {"login": organizer.email, "password": PASSWORD})
        other.post(reverse("mfa_authenticate"), {"code": codes[0]})
        assert ("_auth_user_id" in other.session) == is_in


class TestStaffWithout:
    def test_the_administration_leads_to_the_set_up(self, client: Client, organizer: User) -> None:
        assert log_in(client, organizer, PASSWORD) == reverse("mfa_index")
        for path in ("/admin/", "/admin/submissions/submission/", "/admin/reviews/proofreview/"):
            response = client.get(path, follow=True)
            assert response.redirect_chain == [(reverse("mfa_index"), 302)]
            assert "Organizers log in with a second factor." in response.content.decode()

    def test_it_has_no_permission_anywhere(self, organizer: User) -> None:
        assert not organizer.has_perm("submissions.view_submission")
        assert not organizer.has_module_perms("submissions")
        reviewer = make_user(is_staff=True, second_factor=False)
        reviewer.user_permissions.set(Permission.objects.filter(codename="review_proofs"))
        assert not reviewer.has_perm("reviews.review_proofs")

    def test_nor_has_one_who_is_no_longer_staff_and_of_others_none_is_looked_up(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        former = make_organizer("review_proofs", "view_submission")
        assert former.has_perm("reviews.review_proofs")
        User.objects.filter(pk=former.pk).update(is_staff=False)
        former = User.objects.get(pk=former.pk)
        with django_assert_num_queries(0):
            assert not former.has_perm("reviews.review_proofs")
            assert not former.has_module_perms("submissions")
        assert not is_reviewer(former)

    def test_participants_need_none(self, client: Client) -> None:
        user = make_user(password=PASSWORD)
        vouch_for_address(user)
        assert log_in(client, user, PASSWORD) == "/"
        assert not user.lacks_second_factor


class TestApp:
    def test_logging_in_needs_a_code(self, client: Client) -> None:
        user = make_user(password=PASSWORD, second_factor=True)
        vouch_for_address(user)
        credentials = {"login": user.email, "password": PASSWORD}
        page = client.post(reverse("account_login"), credentials, follow=True)
        assert "Second factor" in page.content.decode()
        assert re.search(DIGITS, page.text)
        (field,) = re.findall(r'<input [^>]*name="code"[^>]*>', page.text)
        assert " autofocus" in field
        for code, is_in in (("000000", False), (code_of(), True)):
            client.post(reverse("mfa_authenticate"), {"code": code})
            assert ("_auth_user_id" in client.session) == is_in

    def test_a_code_works_once_for_as_long_as_it_is_valid(self) -> None:
        user = make_user(password=PASSWORD, second_factor=True)
        vouch_for_address(user)
        code = code_of()
        for is_in in (True, False):
            client = Client()
            # After 30 seconds, allauth has forgotten it; the tolerance makes it valid for longer.
            cache.delete(f"allauth.mfa.totp.used?user={user.pk}&code={code}")
            client.post(reverse("account_login"), {"login": user.email, "password": PASSWORD})
            client.post(reverse("mfa_authenticate"), {"code": code})
            assert ("_auth_user_id" in client.session) == is_in

    def test_a_phone_may_be_half_a_minute_off(self) -> None:
        app = Authenticator.objects.get(user=make_user(second_factor=True)).wrap()
        now = time.time()
        assert app.validate_code(code_of(moment=now - 29))
        assert not app.validate_code(code_of(moment=now - 120))

    def test_a_renewed_key_of_the_site_reads_what_the_earlier_one_encrypted(self, settings: Settings) -> None:
        user = make_user(second_factor=True)
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = "another key of this site"
        assert Authenticator.objects.get(user=user).wrap().validate_code(code_of())

    def test_encrypted_again_it_needs_no_earlier_key(self, settings: Settings) -> None:
        user = make_user(second_factor=True)
        recovery_codes = RecoveryCodes.activate(user).generate_codes()
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = "another key of this site"
        call_command("reencrypt_second_factors")
        settings.SECRET_KEY_FALLBACKS = []
        assert Authenticator.objects.get(user=user, type="totp").wrap().validate_code(code_of())
        assert RecoveryCodes.activate(user).generate_codes() == recovery_codes

    def test_under_an_unknown_key_nothing_is_encrypted_again(self, settings: Settings) -> None:
        user = make_user(second_factor=True)
        before = Authenticator.objects.get(user=user).data
        settings.SECRET_KEY = "another key of this site"
        with pytest.raises(CommandError, match="Nothing was changed"):
            call_command("reencrypt_second_factors")
        assert Authenticator.objects.get(user=user).data == before


class TestPages:
    @pytest.mark.parametrize(
        "view",
        [
            "mfa_activate_totp",
            "mfa_add_webauthn",
            "mfa_generate_recovery_codes",
            "mfa_view_recovery_codes",
            "mfa_deactivate_totp",
        ],
    )
    def test_every_change_needs_the_password_once_more(self, client: Client, view: str) -> None:
        user = make_user(password=PASSWORD, second_factor=view == "mfa_deactivate_totp")
        if view == "mfa_view_recovery_codes":
            Authenticator.objects.create(user=user, type="recovery_codes", data={})
        vouch_for_address(user)
        client.force_login(user)
        assert client.get(reverse(view))["Location"].startswith(reverse("account_reauthenticate"))

    def test_nobody_removes_the_passkey_of_another(self, client: Client) -> None:
        theirs = Authenticator.objects.create(user=make_user(), type="webauthn", data={"name": "Theirs"})
        client.force_login(make_user())
        for view in ("mfa_remove_webauthn", "mfa_edit_webauthn"):
            assert client.post(reverse(view, args=[theirs.pk])).status_code == 404
        assert Authenticator.objects.filter(pk=theirs.pk).exists()

    def test_the_administration_shows_neither_secrets_nor_addresses_to_edit(self, client: Client) -> None:
        client.force_login(make_user(is_staff=True, is_superuser=True))
        assert client.get("/admin/mfa/authenticator/").status_code == 404
        assert client.get("/admin/account/emailaddress/").status_code == 404
