"""A newcomer without JavaScript: pages by HTTP, behind the proxy, to an account, a team and a token."""

import re
import time
from collections.abc import Sequence
from email.message import Message
from pathlib import Path

import requests

MAIL_S = 120
PASSWORD = "correct-horse-battery-staple"
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class VisitorError(Exception):
    """A page isn't what it should be."""


class Visitor:
    """Somebody's browser; `certificate` is what it trusts the site by."""

    def __init__(self, url: str, certificate: Path) -> None:
        self.url = url
        self._session = requests.Session()
        # Neither the certificates nor the proxies that the environment of this machine names.
        self._session.trust_env = False
        self._session.verify = str(certificate)

    def get(self, path: str) -> str:
        return self._page(self._session.get(self.url + path, timeout=300))

    def send(self, path: str, **fields: str) -> str:
        """Fill in the form of a page, and return the page that follows."""
        found = CSRF.search(self.get(path))
        if found is None:
            raise VisitorError(f"{path} has no form")
        data = {"csrfmiddlewaretoken": found[1], **fields}
        headers = {"Referer": self.url + path}
        return self._page(self._session.post(self.url + path, data, headers=headers, timeout=300))

    def sign_up(self, email: str, name: str, mails: Sequence[Message]) -> None:
        """Make an account, and confirm its address by the link in the mail that comes."""
        self.send("/account/signup/", email=email, name=name, password1=PASSWORD, password2=PASSWORD)
        self.send(link_in(mails, "/account/confirm-email/"))

    def create_token(self) -> str:
        """Return a new API token."""
        page = self.send("/account/tokens/", label="laptop", scope="submit", days="7")
        if 'name="password"' in page:
            page = self.send("/account/reauthenticate/", password=PASSWORD, next="/account/tokens/")
        found = re.search(r"export PFL_TOKEN=([\w-]+)", page)
        if found is None:
            raise VisitorError(f"no token is shown:\n{page[-2000:]}")
        return found[1]

    def _page(self, answer: requests.Response) -> str:
        if not answer.ok:
            raise VisitorError(f"{answer.url} answered {answer.status_code}:\n{answer.text[-2000:]}")
        return answer.text


def link_in(mails: Sequence[Message], path: str) -> str:
    """Return the path of the first link below `path` in a mail, once there is one."""
    deadline = time.monotonic() + MAIL_S
    while time.monotonic() < deadline:
        for mail in mails:
            for part in mail.walk():
                payload = part.get_payload(decode=True)
                text = payload.decode() if isinstance(payload, bytes) else ""
                if found := re.search(rf"https://[^/\s]+({re.escape(path)}[^\s\"<]+)", text):
                    return found[1]
        time.sleep(0.2)
    raise VisitorError(f"no mail with a link to {path} came within {MAIL_S} s")
