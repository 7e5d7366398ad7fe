"""A form with errors begins with a summary, takes the focus, and changes the page's title."""

import re

import pytest
from django.test import Client

from tests.docvqa_site.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("address", "link"),
    [("/account/signup/", '<a href="#id_email">'), ("/team/create/", '<a href="#id_name">')],
)
def test_a_form_with_errors_lists_what_to_correct(client: Client, address: str, link: str) -> None:
    if address == "/team/create/":
        client.force_login(make_user())
    before, after = client.get(address).text, client.post(address, {"name": ""}).text
    assert "<title>Error: " not in before
    assert "<title>Error: " in after
    summary = after.partition('role="alert" tabindex="-1" autofocus')[2].partition("</div>")[0]
    assert "Please correct:" in summary
    # What is wrong as well, which otherwise only the field itself says.
    assert re.search(f"{link}[^<]+</a>: This field is required.", summary)
    assert "form-errors" not in before


def test_what_no_field_is_to_blame_for_is_in_the_summary_alone(client: Client) -> None:
    text = client.post("/account/login/", {"login": "ada@example.org", "password": "wrong"}).text
    summary = text.partition('role="alert" tabindex="-1" autofocus')[2].partition("</div>")[0]
    assert "errorlist" in summary
    assert "Please correct:" not in summary
    for name in ("login", "password"):
        assert re.search(f'<input[^>]* name="{name}"[^>]* aria-invalid="true"', text)


def test_no_link_is_between_a_password_and_its_field(client: Client) -> None:
    user = make_user(password="rose-hill-42-x", second_factor=False)
    log_in = client.get("/account/login/").text
    client.force_login(user)
    for page in (log_in, client.get("/account/reauthenticate/").text):
        label, field, link = (
            page.index(text) for text in ('for="id_password"', 'id="id_password"', "Forgot your password?")
        )
        assert label < field < link
    assert re.search(r'<input[^>]* autofocus[^>]* id="id_password"', page)
