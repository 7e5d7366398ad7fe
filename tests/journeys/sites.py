"""The sites that the journeys go through: the one that `make demo` leaves, and an empty public one."""

import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from pathlib import Path

from playwright.sync_api import Browser
from typing_extensions import override

from starter_kit.commands.main import main as pfl
from tests.demo.demo import ADA, BEN, Demo, Participant, Scale
from tests.demo.parallel import Command, Process
from tests.demo.stack import Stack
from tests.journeys.hands import Hands
from tests.journeys.people import Person, Sessions, make_people, organizing_command
from tests.services.all import all_services
from tests.services.forked import Forked
from tests.services.mail import MailServer
from tests.services.tls_proxy import TlsProxy
from tests.starter_kit.commands.pfl import run_pfl

MAIL_S = 30
PUBLIC = {
    "PFL_SECRET_KEY": secrets.token_urlsafe(64),
    "PFL_FROM_EMAIL": "Benchmark <site@benchmark.example>",
    "PFL_CONTACT": "mailto:organizers@benchmark.example",
    "PFL_ORGANIZERS": "the organizers of the journeys",
    "PFL_CONTROLLER": "The Example Lab, 1 Example Street",
    "PFL_LEGAL_BASIS": "The participants' consent (Article 6(1)(a) of the GDPR).",
    "PFL_SOURCE_URL": "https://code.example.org/pfl",
    "PFL_DATA_URL": "https://data.example.org/pfl-docvqa",
    # By which this process asks whether the site is ready.
    "PFL_ALLOWED_HOSTS": "127.0.0.1",
}
# Enough for every page to have something to show; quality plays no part.
SMALL = Scale(
    forms=("--providers", "80", "--valid-forms", "10", "--test-forms", "20", "--red-providers", "20"),
    settings=("rounds=1", "local.max_steps=1"),
    threshold=0.3,
    workers=1,
)
ORGANIZER, REVIEWERS = "olga", ("rita", "ruth")
# Who organizes the track of private runs, and no other.
TRACK_ORGANIZER = "tara"
RIGHTS: dict[str, tuple[str, ...]] = {
    ORGANIZER: ("--superuser",),
    **dict.fromkeys(REVIEWERS, ("--reviewer",)),
}


@dataclass
class Site:
    """A running site and its people, whose windows are of `browser`.

    Attributes:
        url: What people type.
        mails: Returns the texts of all mails that the site has sent, oldest first.
        variables: What a terminal needs to reach the site.
        known: The ids of pages that crawls have opened and that are the same for everybody.
    """

    stack: Stack
    url: str
    browser: Browser
    mails: Callable[[], list[str]]
    people: dict[str, Person] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    known: dict[str, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sessions = Sessions(self.browser, self.url)

    def window(self, hands: type[Hands], name: str = "") -> AbstractContextManager[Hands]:
        """A window of a visitor, or of one of the people, who is logged in."""
        return hands.window(self.browser, state=self._sessions.of(self.people[name]) if name else None)

    def welcome(self, name: str, person: Person, hands: Hands) -> None:
        """Add somebody who has joined and is logged in in the window of `hands`."""
        self.people[name] = person
        self._sessions.keep(person, hands)

    def cookies(self, name: str) -> dict[str, str]:
        """Return the cookies of one of the people, or none for a visitor."""
        state = self._sessions.of(self.people[name]) if name else {"cookies": []}
        return {cookie["name"]: cookie["value"] for cookie in state["cookies"]}

    def link_in_mail(self, to: str, pattern: str) -> str:
        """Return what matches in the newest mail to somebody that has it, and wait for one that does."""
        deadline = time.monotonic() + MAIL_S
        while time.monotonic() < deadline:
            for mail in reversed(self.mails()):
                if mail.startswith(to) and (found := re.search(pattern, mail)):
                    return found.group()
            time.sleep(0.2)
        raise AssertionError(f"no mail with {pattern} came to {to}; the mails are {self.mails()}")


def words_of(mail: bytes) -> str:
    """Return whom a mail is to, its subject and its text, as its reader sees them."""
    message = message_from_bytes(mail, policy=default)
    text = message.get_body(("plain",))
    return f"{message['to']}\n{message['subject']}\n\n{text.get_content() if text else ''}"


def written_mails(folder: Path) -> list[str]:
    """Return the mails of an embedded site, which writes them to files: several in one, each with a line below it."""
    files = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime)
    written = b"".join(path.read_bytes() for path in files).split(b"-" * 79 + b"\n")
    return [words_of(mail) for mail in written if mail.strip()]


def start_forked(command: Command, folder: Path, log: Path) -> Process:
    """Start `pfl` from a process that has loaded its libraries."""
    words = ["pfl", *command.arguments[1:]]
    return Forked(pfl, words, environment=command.environment, folder=folder, stdout=log, stderr=log)


def embedded_site(stack: Stack, browser: Browser, people: Mapping[str, Person] = {}) -> Site:
    """A site on this machine, which writes its mails to files."""
    return Site(stack, stack.url, browser, lambda: written_mails(stack.home / "mail"), dict(people))


class ForkedDemo(Demo):
    """A demonstration whose commands come from a process that has loaded their libraries."""

    @override
    def pfl(self, participant: Participant, *arguments: str | Path) -> None:
        ended = run_pfl(*arguments, environment=self.pfl_environment(participant), folder=self.home)
        assert ended.returncode == 0, ended.stdout + ended.stderr


@contextmanager
def demonstration(home: Path, browser: Browser) -> Iterator[Site]:
    """The site that a finished demonstration leaves, of the least size, with people of every role besides."""
    home.mkdir()
    demo = ForkedDemo(home, None, 0, scale=SMALL, start=start_forked)
    try:
        demo.run()
        people = make_people(
            demo.stack,
            {**RIGHTS, TRACK_ORGANIZER: ("--staff",)},
            organizing_command(TRACK_ORGANIZER, "track-2"),
        )
        for who in (ADA, BEN):
            people[who.team.lower()] = Person(who.email, who.name, demo.passwords[who.email])
        yield embedded_site(demo.stack, browser, people)
    finally:
        demo.stack.stop()


@contextmanager
def public_site(home: Path, browser: Browser) -> Iterator[Site]:
    """A public site without a track: on PostgreSQL, Redis, RabbitMQ and S3, behind a proxy that has a certificate.

    Its worker has base weights and a test set, as an operator copies them; its people are the organizer and reviewers.
    """
    home.mkdir(mode=0o700)
    with ExitStack() as running:
        services = running.enter_context(all_services())
        mail = running.enter_context(MailServer())
        stack = Stack(
            home, variables={**PUBLIC, **services, "PFL_SMTP_URL": f"smtp+plain://127.0.0.1:{mail.port}"}
        )
        proxy = running.enter_context(TlsProxy(home, stack.port))
        stack.environment["PFL_SITE_URL"] = proxy.url
        running.callback(stack.stop)
        _copy_what_workers_have(stack)
        stack.manage("collectstatic", "--noinput", "--verbosity", "0")
        stack.start(["createcachetable"], ["configure_store", "--apply", "--check"])
        people = make_people(stack, RIGHTS)
        trust = {"REQUESTS_CA_BUNDLE": str(proxy.certificate), "SSL_CERT_FILE": str(proxy.certificate)}
        yield Site(
            stack,
            proxy.url,
            browser,
            lambda: [words_of(bytes(message)) for message in mail.received],
            people,
            trust,
        )


def _copy_what_workers_have(stack: Stack) -> None:
    """Draw forms, and put the base weights and the secret test set where the worker looks.

    The organizer has the same base weights in the folder `base`, and the public's data in `data/public`.
    """
    drawn = stack.home / "data"
    for words in (["data", "forms", str(drawn), *SMALL.forms], ["base", "create", str(stack.home / "base")]):
        run_pfl(*words)
    for source, place in (
        (stack.home / "base", "references/vt5-tiny"),
        (drawn / "secret", "test_sets/forms"),
    ):
        shutil.copytree(source, stack.evaluator_home / place)
