"""The people of a site, and how they log in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser

from tests.demo.stack import Stack
from tests.docvqa_site.accounts.codes import code_of
from tests.journeys.hands import Hands, Mouse

PASSWORD = "correct-horse-battery-staple"


@dataclass(frozen=True)
class Person:
    """Somebody with an account.

    Attributes:
        secret: Of the authenticator app; empty where there is none.
    """

    email: str
    name: str
    password: str = PASSWORD
    secret: str = ""


def account_command(name: str, options: Sequence[str]) -> list[str]:
    """Return the command that makes an account with the rights that the options of `create_user` give."""
    return [
        *("create_user", f"{name}@people.example", "--name", f"{name.capitalize()} Person"),
        *("--password-env", "PASSWORD", *options),
        *(["--second-factor"] if options else []),
    ]


def organizing_command(name: str, track: str) -> list[str]:
    """Return the command that makes somebody an organizer of this track, and of no other."""
    return [
        *("shell", "--verbosity", "0", "--command"),
        "from docvqa_site.accounts.models import User\n"
        "from docvqa_site.accounts.services import make_track_organizer\n"
        "from docvqa_site.challenge.models import Track\n"
        f"person = User.objects.get(email='{name}@people.example')\n"
        "make_track_organizer(person)\n"
        f"Track.objects.get(slug={track!r}).organizers.add(person)",
    ]


def make_people(stack: Stack, rights: Mapping[str, Sequence[str]], *more: Sequence[str]) -> dict[str, Person]:
    """Make an account for each name, with the options of `create_user` that give its rights.

    Commands in `more` follow in the same process.
    """
    commands = [account_command(name, options) for name, options in rights.items()]
    printed = stack.manage_all([*commands, *more], PASSWORD=PASSWORD)
    people = {}
    for name, text in zip(rights, printed, strict=False):
        secret = re.search(r"Authenticator secret: (\S+)", text)
        people[name] = Person(
            f"{name}@people.example", f"{name.capitalize()} Person", secret=secret[1] if secret else ""
        )
    return people


def log_in(hands: Hands, url: str, person: Person) -> None:
    """Log in by the form, with the code of an app where the site asks for one."""
    page = hands.page
    hands.open(f"{url}/account/login/")
    hands.fill(page.get_by_label(re.compile("e-?mail", re.I)).first, person.email)
    hands.fill(page.locator("input[type=password]"), person.password)
    hands.press(page.get_by_role("button", name="Log in", exact=True))
    if person.secret:
        hands.fill(page.get_by_label(re.compile("code", re.I)), code_of(person.secret))
        hands.press(page.get_by_role("button", name=re.compile("^(log|sign) in", re.I)).first)
    page.wait_for_url(lambda address: "/login/" not in address and "authenticate" not in address)


class Sessions:
    """Who is logged in: each person once, as an app's code is taken once in half a minute."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._states: dict[str, Any] = {}

    def keep(self, person: Person, hands: Hands) -> None:
        """Note that somebody is logged in already, in the window of `hands`."""
        self._states[person.email] = hands.page.context.storage_state()

    def of(self, person: Person) -> Any:
        """Return the cookies of somebody who is logged in, as Playwright has them."""
        if person.email not in self._states:
            with Mouse.window(self._browser) as hands:
                log_in(hands, self._url, person)
                self._states[person.email] = hands.page.context.storage_state()
        return self._states[person.email]
