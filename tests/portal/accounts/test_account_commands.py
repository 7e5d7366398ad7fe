import io
import sys

import pytest
from django.core.management import CommandError, call_command

from portal.accounts.models import User
from portal.accounts.selectors import owns_verified_address
from portal.accounts.services import authenticate_token
from portal.audit.models import AuditEntry

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
    assert output == "Updated the account of ada@example.org."
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
    assert (
        authenticate_token(run("create_token", "Ada@example.org", "--label", "cluster")) == User.objects.get()
    )


def test_a_token_is_made_for_existing_accounts_only() -> None:
    with pytest.raises(CommandError, match=r"nobody@example\.org"):
        run("create_token", "nobody@example.org", "--label", "cluster")
