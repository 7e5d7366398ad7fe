"""Every page of the site by axe: WCAG 2.2 AA for each role, in both color schemes and at both widths.

A page is loaded once, in one browser, which shows it in the dark scheme on a phone; `make slow` adds the other `WAYS`,
and the pages of reviewers and organizers.
No server is started: the browser is handed what the test's client gets. With PFL_SCREENSHOTS=FOLDER a picture of every
page in each of these ways is left there.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from playwright.sync_api import Browser, Page, Route

from docvqa_site.accounts.models import User
from tests.docvqa_site.accounts.codes import log_in
from tests.docvqa_site.ui.world import PASSWORD, World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

SITE = "http://testserver"
# Of pages that say what is missing.
STATUS = {"/nothing-here/": 404, "/submissions/{withdrawn}/": 410, "/account/linked/login/error/": 401}
# Of Django's administration, what is not Django's.
OURS = {"include": ["main, #content"], "exclude": ["#changelist", ".breadcrumbs"]}
WIDTHS = (1280, 390)
# Between the margins of a sheet of A4.
PAPER = 720
NOT_OURS = ("/admin/", "/api/v1/docs")
ALL_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
COLORS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
Ways = dict[tuple[Literal["light", "dark"], int], Any]
# At one width, schemes differ in colors only. The light one is examined by the journeys where it is narrow.
DARK_PHONE: Ways = {("dark", WIDTHS[1]): ALL_RULES}
OFTEN = ("visitor", "newcomer")
WAYS: Ways = {("light", WIDTHS[0]): ALL_RULES, ("dark", WIDTHS[0]): COLORS, **DARK_PHONE}

# The pages that each role opens. What is in braces is found in the `World`.
PAGES = {
    "visitor": [
        "/",
        "/leaderboard/",
        "/leaderboard/track-1/",
        "/leaderboard/track-1/progress/",
        "/leaderboard/track-2/compare/",
        "/leaderboard/track-2/compare/?method={private}&method={public}",
        "/leaderboard/track-2/",
        "/leaderboard/track-2/?epsilon=1",
        "/leaderboard/track-2/?epsilon=1&more=1",
        "/leaderboard/track-2/?epsilon=4",
        "/tracks/",
        "/tracks/track-1/",
        "/tracks/track-2/",
        "/privacy/calculator/",
        "/docs/",
        "/docs/privacy/",
        "/docs/formats/",
        "/search/?q=run+token",
        "/participation/",
        "/about/contact/",
        "/about/cite/",
        "/about/privacy/",
        "/about/conduct/",
        "/news/",
        "/news/open/",
        "/results/",
        "/results/final/",
        "/data/",
        "/data/terms/{terms}/",
        "/teams/{team}/",
        "/submissions/{scored}/",
        "/submissions/{private}/",
        "/submissions/{public}/",
        "/submissions/{public}/runs/{public_run}/",
        "/submissions/{withdrawn}/",
        "/submissions/{public}/proof/",
        "/unsubscribe/{unsubscribe}/",
        "/account/login/",
        "/account/signup/",
        "/account/inactive/",
        "/account/password/reset/",
        "/account/password/reset/done/",
        "/account/password/reset/key/1-nonsense/",
        "/account/password/reset/key/done/",
        "/account/confirm-email/",
        "/account/confirm-email/nonsense/",
        "/account/linked/login/cancelled/",
        "/account/linked/login/error/",
        "/api/v1/docs",
        "/nothing-here/",
    ],
    "newcomer": [
        "/team/",
        "/team/create/",
        "/team/join/{secret}/",
        "/submissions/",
        "/organize/invitations/{staff_secret}/",
    ],
    "invited by organizers": ["/account/password/set/"],
    "participant": [
        "/",
        "/account/",
        "/account/tokens/",
        "/account/data/",
        "/account/email/",
        "/account/password/change/",
        "/account/logout/",
        "/account/linked/",
        "/account/notifications/",
        "/account/reauthenticate/",
        "/account/2fa/",
        "/account/2fa/webauthn/",
        "/team/",
        "/team/edit/",
        "/submissions/",
        "/submissions/create/?track=track-1",
        "/submissions/tokens/",
        "/submissions/{draft}/",
        "/submissions/{draft}/edit/",
        "/submissions/{queued}/",
        "/submissions/{failed}/",
        "/submissions/{scored}/",
        "/submissions/{scored}/edit/",
        "/submissions/{private}/",
        "/reviews/{private}/proof/",
        "/reviews/{private}/team/",
        "/reviews/{private}/team/revision/",
        "/reviews/runs/{disqualified_run}/appeal/",
        "/submissions/{disqualified}/",
        "/tracks/registered/register/",
    ],
    "reviewer": [
        "/reviews/",
        "/reviews/{foreign}/",
        "/reviews/{private}/",
        "/reviews/{private}/proof/",
        "/reviews/{foreign}/proof/changes/?from=1&to=2",
        "/reviews/kit/starter_kit/dp/grid.py?submission={foreign}",
        "/admin/",
        "/admin/reviews/proof/",
        "/admin/reviews/proof/{foreign}/change/",
        "/admin/reviews/proofreview/",
    ],
    "organizer": [
        "/organize/",
        "/organize/tracks/track-1/",
        "/organize/tracks/track-2/",
        "/organize/tracks/track-2/rules/",
        "/organize/tracks/track-2/history/",
        "/organize/tracks/track-2/phases/add/",
        "/organize/tracks/track-2/phases/{phase}/",
        "/organize/tracks/track-2/phases/{phase}/close/",
        "/organize/tracks/track-1/phases/{ended}/close/",
        "/organize/test-sets/{test_set}/",
        "/organize/runs/",
        "/organize/runs/{run}/",
        "/organize/teams/",
        "/organize/teams/{team_id}/",
        "/organize/teams/{team_id}/message/",
        "/organize/people/",
        "/organize/tracks/track-1/setup/data/",
        "/organize/outages/",
        "/organize/outages/{outage}/edit/",
        "/organize/runs/{disqualified_run}/",
        "/organize/exports/",
        "/organize/announcement/",
        "/organize/registrations/",
        "/organize/tracks/new/",
        "/organize/tracks/next/setup/",
        "/organize/tracks/next/setup/kind/",
        "/organize/tracks/next/setup/texts/",
        "/organize/tracks/next/setup/weights/",
        "/organize/tracks/next/setup/data/",
        "/organize/tracks/next/setup/phases/",
        "/organize/tracks/next/setup/people/",
        "/organize/tracks/next/setup/preview/",
        "/account/2fa/",
        "/admin/evaluation/evaluation/",
        "/admin/evaluation/evaluation/failed/",
        "/reviews/{foreign}/assign/",
    ],
}

# The names of addresses that show no page.
NO_PAGE = {
    "people:download", "submissions:own_file",
    "healthz", "readyz", "metrics", "favicon", "sitemap", "robots_txt", "security_txt",
    "leaderboard:feed", "leaderboard:csv", "leaderboard:json", "leaderboard:json_schema", "news:feed",
    "challenge:deadline", "docs:file", "docs:source", "downloads:file", "uploads:part", "uploads:file",
    "results:bibtex", "results:file", "results:archive",
    "submissions:bibtex", "submissions:citation", "submissions:eval_results", "submissions:evidence",
    "submissions:proof_file", "submissions:proof_page", "reviews:proof_file", "reviews:proof_page",
    # The same page as "reviews:kit_file".
    "reviews:code_file",
    "organizers:export", "organizers:check_file", "organizers:file_parts", "organizers:file_part_urls",
    "mfa_download_recovery_codes", "mfa_login_webauthn",
    # Parts of the pages of a submission and of a run.
    "submissions:status", "organizers:examinations",
}  # fmt: skip
# Those that take forms only, and lead to a page.
FORMS = {
    "accounts:revoke", "people:delete", "people:keep",
    "teams:leave", "teams:invite", "teams:revoke", "teams:join", "teams:remove", "teams:hand_over",
    "teams:add_key", "teams:revoke_key",
    "submissions:add_run", "submissions:remove_run", "submissions:remove_file", "submissions:submit",
    "submissions:copy", "submissions:withdraw", "submissions:cancel", "submissions:publish", "submissions:give_name",
    "submissions:publish_proof", "submissions:explain_challenge", "submissions:discard_drafts",
    "submissions:explain_token", "submissions:release_token",
    "reviews:draft", "reviews:message", "reviews:take", "reviews:decline", "reviews:team_message",
    "reviews:team_appeal",
    "notifications:read", "notifications:choose", "notifications:open",
    "organizers:queue_failed", "organizers:evaluate", "organizers:disqualify", "organizers:requalify",
    "organizers:refund", "organizers:mark", "organizers:remove_phase", "organizers:examine",
    "organizers:cancel_examination", "organizers:decide_registration", "organizers:remove_organizer",
    "organizers:setup_test", "organizers:setup_publish", "organizers:setup_discard",
    "organizers:extend", "organizers:withdraw_outage", "organizers:accept_log",
    "organizers:start_file", "organizers:complete_file",
    "organizers:answer_appeal", "organizers:withdraw_invitation", "organizers:resend_invitation", "organizers:end_role",
    "organizers:grant_submissions",
    "organizers:team_admission",
}  # fmt: skip
# Those that take more than an address: a step of logging in, a second factor of late, or a passkey.
STEPS = {
    "mfa_activate_totp",
    "mfa_deactivate_totp",
    "mfa_add_webauthn",
    "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes",
    "account_confirm_login_code",
    "mfa_authenticate",
    "mfa_reauthenticate",
    "mfa_reauthenticate_webauthn",
    "mfa_remove_webauthn",
    "mfa_edit_webauthn",
    "github_login",
    "github_callback",
    "orcid_login",
    "orcid_callback",
    "socialaccount_signup",
}
# Every page of Django's administration of a model looks like the others.
ADMIN_FRAME = {
    "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n", "view_on_site", "app_list",
    "user_permissions", "team_invite", "auth_user_password_change", "accounts_user_password_change",
}  # fmt: skip
ADMIN_OF_DJANGO = ("_changelist", "_add", "_history", "_delete", "_change")


@pytest.fixture
def world(settings: Any, tmp_path: Any) -> World:
    settings.STORE_FOLDER = tmp_path / "store"
    return make_world()


@pytest.mark.parametrize(
    "ways", [DARK_PHONE, pytest.param(WAYS, marks=pytest.mark.slow)], ids=["phone", "all"]
)
@pytest.mark.parametrize(
    "role", [role if role in OFTEN else pytest.param(role, marks=pytest.mark.slow) for role in PAGES]
)
def test_every_page_follows_wcag_2_2_aa(
    browser: Browser, client: Client, world: World, role: str, ways: Ways
) -> None:
    if role != "visitor":
        log_in_as(client, world.people[role])
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900}, reduced_motion="reduce")
    page.route("**/*", answer_nothing_but_static_files)
    try:
        found = [
            problem
            for path in PAGES[role]
            for problem in problems_of(page, client, path.format(**world.ids), ways, STATUS.get(path, 200))
        ]
    finally:
        page.close()
    assert not found, "\n".join(["", *found])


def log_in_as(client: Client, person: User) -> None:
    """Log in by form, since some pages ask for a login of late, unless the person has no password yet."""
    if person.has_usable_password():
        log_in(client, person, PASSWORD)
    else:
        client.force_login(person)


def answer_nothing_but_static_files(route: Route) -> None:
    path = urlsplit(route.request.url).path
    if path.startswith("/static/"):
        route.fulfill(path=finders.find(path.removeprefix("/static/")))
    else:
        route.abort()


@contextmanager
def shown(browser: Browser, response: Any, width: int, height: int) -> Iterator[Page]:
    """A page of the browser that shows the body of a response, which was read before."""
    body = response.getvalue()
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.route("**/*", answer_nothing_but_static_files)
    page.route(
        f"{SITE}/shown/", lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body)
    )
    try:
        page.goto(f"{SITE}/shown/", timeout=20_000)
        yield page
    finally:
        page.close()


def problems_of(page: Page, client: Client, path: str, ways: Ways, status: int) -> Iterator[str]:
    """Yield what is wrong with a page: each violation, and at each width whether it has to be scrolled sideways."""
    response = client.get(path)
    if response.status_code != status:
        yield f"{path}: status {response.status_code} {response.headers.get('Location', '')}"
        return
    # axe is a script, and there are pages whose policy allows none.
    headers = {name: value for name, value in response.items() if name != "Content-Security-Policy"}
    body = response.getvalue()
    # Not by the test's client, which would ask the database from inside the browser's event loop.
    page.route(SITE + path, lambda route: route.fulfill(headers=headers, body=body), times=1)
    page.goto(SITE + path, timeout=20_000)
    # Colors on their way from one scheme to the other belong to neither.
    page.add_style_tag(content="* { transition: none !important; }")
    page.evaluate(AXE_SCRIPT)
    context = OURS if path.startswith("/admin/") else None
    for (scheme, width), rules in ways.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        for violation in page.evaluate(RUN_AXE, [context, rules]):
            yield f"{path} ({scheme}, {width}): {violation}"
        if too_wide := page.evaluate(TOO_WIDE, width):
            yield f"{path} ({width}): is scrolled sideways: {too_wide}"
        take_picture(page, f"{path}-{scheme}-{width}")
    page.emulate_media(color_scheme="light", media="print")
    page.set_viewport_size({"width": PAPER, "height": 900})
    if not path.startswith(NOT_OURS) and (too_wide := page.evaluate(TOO_WIDE, PAPER)):
        yield f"{path} (printed): is cut: {too_wide}"
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def take_picture(page: Page, name: str) -> None:
    """Save the whole page in the folder that PFL_SCREENSHOTS names, to be looked at; without it, do nothing."""
    if folder := os.environ.get("PFL_SCREENSHOTS"):
        file = re.sub(r"[^A-Za-z0-9.=-]+", "_", name).strip("_")
        page.screenshot(path=Path(folder) / f"{file}.png", full_page=True)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_row_that_has_the_focus_is_below_the_head_of_its_board(
    browser: Browser, client: Client, world: World, width: int
) -> None:
    # So low that the rows of a small board don't fit in.
    with shown(browser, client.get("/leaderboard/track-2/"), width, height=240) as page:
        page.locator(".board tbody input").last.focus()
        covered = []
        for _ in range(page.locator(".board tbody :is(a, input)").count() - 1):
            page.keyboard.press("Shift+Tab")
            covered += page.evaluate(BELOW_THE_HEAD)
        is_sticky = page.evaluate("getComputedStyle(document.querySelector('.board thead th')).position")
    assert is_sticky == ("sticky" if width > 390 else "static")
    assert covered == []


def test_the_methods_stay_in_sight_where_a_board_scrolls_sideways(
    browser: Browser, client: Client, world: World
) -> None:
    response = client.get("/leaderboard/track-2/?epsilon=1&more=1")
    with shown(browser, response, width=820, height=900) as page:
        scrolled, *from_edge = page.evaluate(SCROLLED_SIDEWAYS)
    assert scrolled > 50
    assert from_edge == pytest.approx([0, 0], abs=1)


# How far a board was scrolled to its end, and how far from its left edge the head and the first method then are.
SCROLLED_SIDEWAYS = """() => {
    const frame = document.querySelector(".board-wrap"), cells = frame.querySelectorAll(".board-method");
    frame.scrollLeft = frame.scrollWidth;
    const edge = frame.getBoundingClientRect().left + frame.clientLeft;
    return [frame.scrollLeft, ...[...cells].slice(0, 2).map((cell) => cell.getBoundingClientRect().left - edge)];
}"""


# What has the focus, where a head that stays in sight lies above it.
BELOW_THE_HEAD = """() => {
    const focused = document.activeElement, head = document.querySelector(".board thead th");
    const isSticky = getComputedStyle(head).position === "sticky" && focused.closest("tbody");
    const isBelow = focused.getBoundingClientRect().top < head.getBoundingClientRect().bottom;
    return isSticky && isBelow ? [focused.outerHTML] : [];
}"""


RUN_AXE = """async ([context, rules]) => {
    const { violations } = await axe.run(context ?? document, { runOnly: rules, resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
        nodes.slice(0, 3).map(({ target, failureSummary, html }) =>
            `${id} at ${target.join(" ")}: ${failureSummary.split("\\n").slice(1).join(";")} ${html.slice(0, 160)}`));
}"""


# The innermost elements that make the page wider than the window.
TOO_WIDE = """(width) => {
    if (document.documentElement.scrollWidth <= width) return null;
    const isWide = (element) => element.getBoundingClientRect().right > width;
    const wide = [...document.body.querySelectorAll("*")].filter((e) => isWide(e) && ![...e.children].some(isWide));
    return wide.slice(0, 3).map((element) => element.outerHTML.slice(0, 160)).join("; ");
}"""


def test_every_address_is_looked_at_or_named_as_no_page(world: World) -> None:
    looked_at = {
        resolve(path.partition("?")[0].format(**world.ids)).view_name
        for paths in PAGES.values()
        for path in paths
        if path != "/nothing-here/"
    }
    unknown = set(names(get_resolver())) - looked_at - NO_PAGE - FORMS - STEPS
    assert not unknown
    # What is gone is not kept in the lists.
    assert not (NO_PAGE | FORMS | STEPS) - set(names(get_resolver()))
    assert not looked_at & (NO_PAGE | FORMS | STEPS)


def names(resolver: URLResolver, namespace: str = "") -> Iterator[str]:
    """Yield the names of all addresses but the API's, redirections, and the administration of models."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            name = f"{namespace}{pattern.name}"
            if pattern.name and not (namespace == "admin:" and is_of_django(pattern.name)):
                yield name
        elif pattern.namespace != "api":
            yield from names(pattern, f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace)


def is_of_django(name: str) -> bool:
    """Whether an address of the administration shows a page that Django brings."""
    return name.endswith(ADMIN_OF_DJANGO) or name in ADMIN_FRAME
