"""The journeys on an empty public site, one after another: what one person leaves, the next one finds.

An organizer sets up a track of bytes and a private one, a team is ranked in both, and the phase of the first ends with
published results: once with the keys at the width of a phone, and once with a mouse.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.demo.kit import build_kit
from tests.journeys import organizer, participant, reviewer, sites, visitor
from tests.journeys.crawling import crawl_as
from tests.journeys.downloaded_kit import FOLDER, download_kit, main
from tests.journeys.hands import Hands, Keys, Mouse
from tests.journeys.organizer import NewTrack, Offer
from tests.journeys.participant import Newcomer
from tests.journeys.sites import ORGANIZER, REVIEWERS, Site
from tests.journeys.terminal import Terminal
from tests.services import rabbitmq

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("public site"),
    pytest.mark.skipif(rabbitmq.binary() is None, reason="RabbitMQ is not installed"),
]

GRACE = Newcomer("grace@people.example", "Grace Hopper", team="Compilers")
ROSA = Newcomer("rosa@people.example", "Rosa Reviewer")
BYTES, PRIVATE = "Fewest bytes", "Private forms"
BY_HAND = "By hand"
REASON, APPEAL = "The log leaves out a round.", "All rounds are in the log; please count again."
ANSWER = "We have counted again, and one is missing."
SHORTENED = {"train": ("--set", "rounds=1", "--set", "local.max_steps=1")}


@pytest.fixture(scope="module", params=[Keys, Mouse])
def hands(request: pytest.FixtureRequest) -> type[Hands]:
    hands: type[Hands] = request.param
    return hands


@pytest.fixture(scope="module")
def site(browser: Browser, hands: type[Hands], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sites.public_site(tmp_path_factory.mktemp("public") / "site", browser) as site:
        yield site


@dataclass
class Participant:
    """A newcomer with a team, an open window and a terminal that has their token."""

    hands: Hands
    terminal: Terminal


@pytest.fixture(scope="module")
def newcomer(
    site: Site, hands: type[Hands], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Participant]:
    folder = tmp_path_factory.mktemp("newcomer")
    with site.window(hands) as window:
        participant.sign_up(site, window, GRACE)
        kit = download_kit(window, folder)
        participant.accept_terms(window, "Forms")
        variables = {**site.variables, "PFL_KEY": str(folder / "key.pem"), FOLDER: str(kit)}
        terminal = Terminal(folder / "work", variables, SHORTENED, program=main)
        terminal.run(participant.create_token(site, window))
        yield Participant(window, terminal)


def expect_sound_pages(site: Site, name: str) -> None:
    faults = crawl_as(site, name, each=2)
    assert not faults, "\n".join(["", *map(str, faults)])


@pytest.mark.parametrize("name", ["", REVIEWERS[0], ORGANIZER])
def test_every_address_that_a_page_of_the_empty_site_links_to_is_sound(site: Site, name: str) -> None:
    expect_sound_pages(site, name)


def test_an_organizer_sets_up_a_track_of_bytes_from_what_a_worker_reports(
    site: Site, hands: type[Hands], tmp_path: Path
) -> None:
    home = site.stack.home
    archives = {
        name: Path(shutil.make_archive(str(tmp_path / name), "zip", folder))
        for name, folder in (("forms", home / "data" / "public"), ("base", home / "base"))
    }
    offers = [
        Offer("Forms", "data", archives["forms"], terms="Don't try to find out whose forms these are."),
        Offer("Base weights of the tiny VT5", "weights", archives["base"]),
        Offer("Starter kit", "kit", build_kit(tmp_path / "built")),
    ]
    track = NewTrack(
        BYTES, "bytes", "fewest bytes at an ANLS threshold", rules={"ANLS threshold": "0.2"}, offers=offers
    )
    with site.window(hands, ORGANIZER) as window:
        organizer.set_up(site, window, track)


def test_an_organizer_sets_up_a_private_track_and_invites_a_reviewer_who_joins(
    site: Site, hands: type[Hands]
) -> None:
    public = site.stack.home / "data" / "public"
    clients = json.loads((public / "dataset.json").read_text())["clients"]
    rules = {"Privacy budgets ε": "[8]"}
    data = {
        "Providers per client": str([len(clients[name]) for name in sorted(clients, key=int)]),
        "Data manifest": Terminal(site.stack.home, {}).output("pfl data manifest data/public").strip(),
    }
    track = NewTrack(
        *(PRIVATE, "private", "best ANLS at each privacy budget"),
        rules=rules,
        data=data,
        requires_code=True,
        reviewer=ROSA.email,
    )
    with site.window(hands, ORGANIZER) as window:
        organizer.set_up(site, window, track)
    with site.window(hands) as window:
        site.welcome("rosa", reviewer.join(site, window, ROSA), window)


def test_a_newcomer_follows_the_page_of_the_track_to_a_rank(site: Site, newcomer: Participant) -> None:
    printed = participant.follow_the_track_page(site, newcomer.hands, newcomer.terminal, BYTES)
    assert "scored" in printed
    participant.expect_ranked(site, newcomer.hands, "bytes", GRACE.team)
    participant.follow_submissions(newcomer.terminal, "My method")
    participant.practise(site, newcomer.hands, newcomer.terminal, "bytes", Path("save/bytes"))


def test_a_newcomer_is_ranked_by_the_browser_alone(site: Site, newcomer: Participant, tmp_path: Path) -> None:
    hands, terminal = newcomer.hands, newcomer.terminal
    terminal.run("pfl train fedavg --data data/public --base base --out save/by-hand --track bytes")
    participant.make_draft(hands, BYTES, BY_HAND)
    participant.be_corrected(hands, terminal.folder / "save" / "by-hand", tmp_path)
    participant.submit_and_wait(hands)
    participant.expect_ranked(site, hands, "bytes", BY_HAND)


def test_a_private_run_follows_the_page_of_its_track_and_waits_for_its_review(
    site: Site, newcomer: Participant
) -> None:
    hands, terminal = newcomer.hands, newcomer.terminal.in_folder("private")
    terminal.run("pfl key create")
    participant.register_key(hands, terminal.output("pfl key show").strip())
    printed = participant.follow_the_track_page(site, hands, terminal, PRIVATE)
    assert "scored" in printed
    row = participant.row_of(site, hands, "private", GRACE.team)
    expect(row).to_contain_text("under review")


def test_reviewers_decline_ask_for_changes_and_accept_the_revised_proof(
    site: Site, hands: type[Hands], newcomer: Participant, tmp_path: Path
) -> None:
    method = "My method"
    declining, accepting = REVIEWERS
    with site.window(hands, declining) as window:
        reviewer.step_aside(site, window, method, "conflict of interest", "We share an office.")
    with site.window(hands, "rosa") as window:
        reviewer.open_desk(site, window, method)
        reviewer.answer(window, doubted="noise", note=reviewer.REQUEST)
        reviewer.decide(window, "Request changes", reviewer.REQUEST)
    reviewer.revise(site, newcomer.hands, tmp_path, method)
    for name in ("rosa", accepting):
        with site.window(hands, name) as window:
            reviewer.open_desk(site, window, method)
            reviewer.read_the_proof(window, "bounded by the clip norm")
            reviewer.answer(window, settled="noise")
            reviewer.decide(window, "Accept")
    with site.window(hands) as window:
        row = participant.row_of(site, window, "private", method).first
        expect(row).to_contain_text("proof accepted")


def test_a_visitor_finds_who_leads_and_why_and_takes_every_file(
    site: Site, hands: type[Hands], tmp_path: Path
) -> None:
    with site.window(hands) as window:
        visitor.visit(site, window, tmp_path)


def test_a_disqualified_team_reads_of_it_in_a_mail_and_appeals(
    site: Site, hands: type[Hands], newcomer: Participant
) -> None:
    with site.window(hands, ORGANIZER) as window:
        organizer.disqualify(site, window, "bytes", BY_HAND, REASON)
    participant.appeal(site, newcomer.hands, GRACE, REASON, APPEAL)
    with site.window(hands, ORGANIZER) as window:
        organizer.answer_appeal(site, window, BY_HAND, APPEAL, ANSWER)
    participant.read_answer(site, newcomer.hands, GRACE, ANSWER)


def test_the_phase_is_closed_and_its_final_results_can_be_verified(
    site: Site, hands: type[Hands], newcomer: Participant, tmp_path: Path
) -> None:
    with site.window(hands, ORGANIZER) as window:
        organizer.close_phase(site, window, "bytes")
    with site.window(hands) as window:
        visitor.read_final_results(site, window, tmp_path)
    assert "1 rank of 2 rows; all match" in newcomer.terminal.run(f"pfl verify {site.url} --track bytes")


@pytest.mark.parametrize("name", ["", "grace", REVIEWERS[1], ORGANIZER])
def test_every_address_that_a_page_of_the_used_site_links_to_is_sound(
    site: Site, newcomer: Participant, name: str
) -> None:
    if name == "grace":
        site.welcome(name, GRACE, newcomer.hands)
    expect_sound_pages(site, name)
