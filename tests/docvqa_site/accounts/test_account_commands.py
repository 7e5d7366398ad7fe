import io
import re
import sys

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client

from docvqa_site.accounts.groups import GROUPS
from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.accounts.services import authenticate_token
from docvqa_site.audit.models import AuditEntry
from tests.docvqa_site.accounts.codes import code_of
from tests.docvqa_site.factories import make_user

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue().strip()


def test_it_makes_an_account_that_can_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "rose-hill-42-x")
    run("create_user", "Ada@Example.org", "--name", "Ada", "--password-env", "SECRET")
    user = User.objects.get(email="ada@example.org")
    assert user.check_password("rose-hill-42-x")
    assert owns_verified_address(user, "ada@example.org")
    assert (user.name, user.is_staff, user.is_superuser) == ("Ada", False, False)


def test_it_makes_a_reviewer() -> None:
    for _ in range(2):
        run("create_user", "ada@example.org", "--name", "Ada", "--reviewer", "--second-factor")
    user = User.objects.get()
    assert user.has_perm("reviews.review_proofs")
    assert [group.name for group in user.groups.all()] == ["Reviewers"]


def test_the_groups_exist_from_the_start() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == {
        "Organizers",
        "Reviewers",
        "Track organizers",
    }
    for name, permissions in GROUPS.items():
        expected = {(app, codename) for app, names in permissions.items() for codename in names}
        found = Group.objects.get(name=name).permissions.values_list("content_type__app_label", "codename")
        assert set(found) == expected, name


def test_it_makes_an_organizer_of_all_tracks(client: Client) -> None:
    run("create_user", "olga@example.org", "--name", "Olga", "--organizer", "--second-factor")
    user = User.objects.get()
    assert (user.is_staff, user.is_superuser, user.organizes_single_tracks) == (True, False, False)
    client.force_login(user)
    for page in (
        "/organize/",
        "/organize/tracks/new/",
        "/organize/outages/",
        "/organize/announcement/",
        "/admin/",
        "/admin/teams/membership/",
        "/admin/evaluation/stepqueue/",
        "/admin/mail/outgoingmail/",
        "/admin/news/newsitem/add/",
        "/admin/downloads/terms/add/",
    ):
        assert client.get(page).status_code == 200, page


def test_it_reads_the_password_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("rose-hill-42-x\n"))
    run("create_user", "ada@example.org", "--name", "Ada", "--password-stdin", "--superuser")
    user = User.objects.get()
    assert user.check_password("rose-hill-42-x")
    assert user.is_staff
    assert user.is_superuser


def test_running_it_again_changes_the_name_and_keeps_password_and_rights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "rose-hill-42-x")
    run("create_user", "ada@example.org", "--name", "Ada", "--password-env", "SECRET", "--staff")
    output = run("create_user", "ada@example.org", "--name", "Countess")
    assert output.startswith("Updated the account of ada@example.org.")
    assert output.endswith("/account/2fa/")
    user = User.objects.get()
    assert (user.name, user.is_staff) == ("Countess", True)
    assert user.check_password("rose-hill-42-x")
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "user.created",
        "user.updated",
    ]


def test_an_account_without_a_password_says_how_to_get_one() -> None:
    assert "Forgot your password?" in run("create_user", "ada@example.org", "--name", "Ada")
    assert not User.objects.get().has_usable_password()


@pytest.mark.parametrize(
    ("email", "password", "complaint"),
    [
        ("ada", "rose-hill-42-x", "valid email"),
        ("ada@example.org", "12345", "too short"),
    ],
)
def test_it_rejects_bad_addresses_and_weak_passwords(
    monkeypatch: pytest.MonkeyPatch, email: str, password: str, complaint: str
) -> None:
    monkeypatch.setenv("SECRET", password)
    with pytest.raises(CommandError, match=complaint):
        run("create_user", email, "--name", "Ada", "--password-env", "SECRET")
    assert not User.objects.exists()


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(CommandError, match="NOT_SET_AT_ALL"):
        run("create_user", "ada@example.org", "--name", "Ada", "--password-env", "NOT_SET_AT_ALL")


def test_a_token_command_prints_the_secret_and_nothing_else() -> None:
    run("create_user", "ada@example.org", "--name", "Ada")
    token = authenticate_token(run("create_token", "Ada@example.org", "--label", "cluster"))
    assert token is not None
    assert token.user == User.objects.get()


def test_a_token_command_sets_scope_and_days() -> None:
    run("create_user", "ada@example.org", "--name", "Ada")
    secret = run("create_token", "ada@example.org", "--label", "x", "--scope", "read", "--days", "7")
    token = authenticate_token(secret)
    assert token is not None
    assert token.scope == "read"
    assert (token.expires_at - token.created_at).days == 7


def test_an_organizer_is_told_where_to_set_up_a_second_factor() -> None:
    output = run("create_user", "olga@example.org", "--name", "Olga", "--staff")
    assert "http://127.0.0.1:8000/account/2fa/" in output


def test_a_second_factor_can_be_made_with_the_account() -> None:
    output = run("create_user", "olga@example.org", "--name", "Olga", "--staff", "--second-factor")
    secret, codes = re.findall(r": ([A-Z2-7]+|[\d ]+)$", output, re.MULTILINE)
    user = User.objects.get()
    assert user.has_second_factor
    app, recovery = Authenticator.objects.filter(user=user).order_by("-type")
    assert secret not in str(app.data)
    assert app.wrap().validate_code(code_of(secret))
    assert recovery.wrap().validate_code(codes.split()[0])


def test_a_lost_second_factor_is_reset(client: Client) -> None:
    user = make_user(is_staff=True)
    client.force_login(user)
    assert "Removed 1" in run("reset_second_factor", user.email)
    assert User.objects.get().lacks_second_factor
    assert client.get("/account/").status_code == 302
    with pytest.raises(CommandError, match="No account"):
        run("reset_second_factor", "nobody@example.org")


def test_a_name_that_can_not_be_seen_is_rejected() -> None:
    with pytest.raises(CommandError, match=r"U\+202E"):
        run("create_user", "ada@example.org", "--name", "Ada\u202e")


def test_a_token_is_made_for_existing_accounts_only() -> None:
    with pytest.raises(CommandError, match=r"nobody@example\.org"):
        run("create_token", "nobody@example.org", "--label", "cluster")
