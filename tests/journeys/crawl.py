"""Opens what the pages of a site link to, as one person sees them, and notes what is broken.

A page is a response in HTML. Its links are the addresses in `href`, `src` and `hx-get`, and those of its GET forms,
with the values that they have when the page is opened and with each choice of a list. Of addresses that differ in a
number, a name or the value of a query alone, some are opened, as the same code shows them.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, unquote, urldefrag, urlencode, urljoin, urlsplit

import psutil
import requests
from django.urls import Resolver404, resolve
from typing_extensions import override

LINKING = ("href", "src", "hx-get")
# A page of each: they differ in their text, which links too.
EVERY = {"docs:document", "about:contact"}
CPU_S = 1.0


@dataclass
class Form:
    """A GET form: where it leads, what it sends as the page is opened, and the other choices of its lists."""

    action: str
    values: dict[str, str] = field(default_factory=dict)
    choices: list[tuple[str, str]] = field(default_factory=list)

    def addresses(self) -> Iterator[str]:
        path, _, fragment = self.action.partition("#")
        for changed in [{}, *({name: value} for name, value in self.choices)]:
            yield f"{path.partition('?')[0]}?{urlencode({**self.values, **changed})}#{fragment}"


class Document(HTMLParser):
    """What a page links to, and the ids that a link can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: Counter[str] = Counter()
        self._form: Form | None = None
        self._list = ""
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update([given["id"]] if given.get("id") else [])
        self.links += [given[name] for name in LINKING if given.get(name)]
        if tag == "form":
            self._form = (
                Form(given.get("action", "")) if given.get("method", "get").lower() == "get" else None
            )
        elif self._form:
            self._take_field(self._form, tag, given)

    def _take_field(self, form: Form, tag: str, given: dict[str, str]) -> None:
        if tag == "select":
            self._list = given.get("name", "")
            form.values[self._list] = ""
        elif tag == "option":
            form.choices.append((self._list, given.get("value", "")))
            if "selected" in given or not form.values[self._list]:
                form.values[self._list] = given.get("value", "")
        elif (
            tag == "input"
            and given.get("name")
            and (given.get("type") not in ("checkbox", "radio") or "checked" in given)
        ):
            form.values[given["name"]] = given.get("value", "")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form:
            self.links += self._form.addresses()
            self._form = None


@dataclass(frozen=True)
class Fault:
    """Something broken at an address, and the page that links there."""

    what: str
    address: str
    linked_from: str

    def __str__(self) -> str:
        return f"{self.what}: {self.address}   linked from {self.linked_from or 'nowhere'}"


class Crawl:
    """The pages of one site as one person sees them.

    Args:
        url: The site's address.
        session: Logged in as that person.
        each: How many addresses of one kind are opened.
        cpu_s: Returns the seconds of processor that the site's web server has used so far.
        known: The ids of pages of kinds in `EVERY` that another crawl of this site has opened. Of these kinds, too,
            only `each` are opened once more, as they look the same to everybody but for the menu.
    """

    def __init__(
        self,
        url: str,
        session: requests.Session,
        *,
        each: int,
        cpu_s: Callable[[], float],
        known: dict[str, Counter[str]] | None = None,
    ) -> None:
        self.url = url
        self.session = session
        self.each = each
        self.cpu_s = cpu_s
        self.known = {} if known is None else known
        self.faults: list[Fault] = []
        self.routes: Counter[str] = Counter()
        self.costs: dict[str, float] = {}
        self._kinds: Counter[tuple[str, ...]] = Counter()
        self._ids: dict[str, Counter[str]] = {}
        self._fragments: set[tuple[str, str, str]] = set()

    def run(self, *starts: str) -> list[Fault]:
        """Open `starts`, and all that they lead to. Returns what is broken."""
        queue = deque((start, "") for start in starts)
        seen = set(starts)
        while queue:
            address, linked_from = queue.popleft()
            for goal in self._open(address, linked_from):
                if goal not in seen and self._is_wanted(goal):
                    seen.add(goal)
                    queue.append((goal, address))
        self._look_for_fragments()
        return self.faults

    def _open(self, address: str, linked_from: str) -> list[str]:
        """Return the addresses on this site that a page links to."""
        before = self.cpu_s()
        answer = self.session.get(self.url + address, timeout=60, allow_redirects=False)
        cost = self.costs[address] = self.cpu_s() - before
        if cost > CPU_S:
            self.faults.append(Fault(f"{cost:.1f} s of processor", address, linked_from))
        if answer.status_code >= 400:
            self.faults.append(Fault(str(answer.status_code), address, linked_from))
        elif answer.is_redirect:
            return self._goals(address, [answer.headers["Location"]])
        elif answer.headers.get("Content-Type", "").startswith("text/html"):
            page = Document(answer.text)
            self._ids[address] = page.ids
            if kind_of(address)[0] in EVERY:
                self.known[address] = page.ids
            self.faults += [
                Fault(f"id {name} twice", address, linked_from)
                for name, count in page.ids.items()
                if count > 1
            ]
            return self._goals(address, page.links)
        return []

    def _goals(self, address: str, links: list[str]) -> list[str]:
        goals = []
        for link in links:
            goal, fragment = urldefrag(urljoin(self.url + address, link))
            if not goal.startswith(f"{self.url}/"):
                continue
            goals.append(goal.removeprefix(self.url))
            if fragment:
                self._fragments.add((goals[-1], unquote(fragment), address))
        return goals

    def _is_wanted(self, address: str) -> bool:
        kind = kind_of(address)
        self.routes[kind[0]] += 1
        self._kinds[kind] += 1
        is_new = kind[0] in EVERY and address not in self.known
        return is_new or self._kinds[kind] <= self.each

    def _look_for_fragments(self) -> None:
        ids = self.known | self._ids
        for goal, fragment, address in sorted(self._fragments):
            if goal in ids and fragment not in ids[goal]:
                self.faults.append(Fault(f"no #{fragment}", goal, address))


def kind_of(address: str) -> tuple[str, ...]:
    """Return the view that shows an address, and what is asked of it.

    The lists of Django's administration add each filter to all others, without end: several count as one.
    """
    parts = urlsplit(address)
    try:
        view = resolve(parts.path).view_name
    except Resolver404:
        view = parts.path
    asked = sorted(name for name, value in parse_qsl(parts.query) if value)
    return view, *(["several"] if view.startswith("admin:") and len(asked) > 1 else asked)


def processor_time(pid: int) -> Callable[[], float]:
    """Return what tells the seconds of processor that a web server and its processes have used so far."""
    server = psutil.Process(pid)
    processes = [server, *server.children(recursive=True)]

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    return used
