"""The journeys on what `make demo` leaves.

`make test` has a participant's by the command line, with the keys at the width of a phone, and the crawl, which opens
what a visitor would; `make slow` and `make journeys` add all others, and the mouse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.journeys import organizer, participant, reviewer, visitor
from tests.journeys.crawling import crawl_as
from tests.journeys.downloaded_kit import FOLDER, download_kit, main
from tests.journeys.hands import Hands, Keys, Mouse
from tests.journeys.participant import Newcomer
from tests.journeys.sites import ORGANIZER, REVIEWERS, TRACK_ORGANIZER, Site
from tests.journeys.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("site")]

# Each of the two takes part, reviews and organizes what the other leaves alone.
BOTH = [Keys, pytest.param(Mouse, marks=pytest.mark.slow)]
GRACE = {
    Keys: Newcomer("grace@people.example", "Grace Hopper", team="Compilers"),
    Mouse: Newcomer("jean@people.example", "Jean Bartik", team="Computers"),
}
# A method whose proof waits, and the team that revises it.
REVIEWED = {Keys: ("DP-LoRA", "adapters"), Mouse: ("FL-PROVIDER-DP", "baselines")}
THRESHOLD = {Keys: "0.25", Mouse: "0.2"}
# What the commands of a page would otherwise take minutes for.
SHORTENED = {
    "data forms": ("--providers", "80", "--valid-forms", "10", "--test-forms", "20"),
    "train": ("--set", "rounds=1", "--set", "local.max_steps=1"),
    "sweep": ("--set", "local.max_steps=1"),
}


@pytest.fixture(scope="module", params=BOTH)
def hands(request: pytest.FixtureRequest) -> type[Hands]:
    hands: type[Hands] = request.param
    return hands


@dataclass
class Participant:
    """A newcomer with a team, an open window and a terminal that has their token."""

    hands: Hands
    terminal: Terminal
    team: str


@pytest.fixture(scope="module")
def newcomer(
    demonstration: Site, hands: type[Hands], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Participant]:
    who = GRACE[hands]
    folder = tmp_path_factory.mktemp("newcomer")
    with demonstration.window(hands) as window:
        participant.sign_up(demonstration, window, who)
        kit = download_kit(window, folder)
        variables = {"PFL_KEY": str(folder / "key.pem"), FOLDER: str(kit)}
        terminal = Terminal(folder / "work", variables, SHORTENED, program=main)
        terminal.run(participant.create_token(demonstration, window))
        yield Participant(window, terminal, who.team)


@pytest.mark.slow
def test_a_visitor_finds_who_leads_and_why_and_takes_every_file(
    demonstration: Site, hands: type[Hands], tmp_path: Path
) -> None:
    with demonstration.window(hands) as window:
        visitor.visit(demonstration, window, tmp_path)


def test_a_newcomer_follows_the_home_page_to_a_rank(demonstration: Site, newcomer: Participant) -> None:
    printed = participant.follow_the_home_page(demonstration, newcomer.hands, newcomer.terminal)
    assert "scored" in printed
    participant.expect_ranked(demonstration, newcomer.hands, "track-1", newcomer.team)


@pytest.mark.slow
def test_a_newcomer_follows_the_readme_to_a_rank(demonstration: Site, newcomer: Participant) -> None:
    terminal = newcomer.terminal.in_folder("readme")
    assert "scored" in participant.follow_the_readme(terminal)
    participant.expect_ranked(demonstration, newcomer.hands, "track-1", newcomer.team)
    participant.follow_submissions(terminal, "My method")
    participant.practise(demonstration, newcomer.hands, terminal, "track-1", Path("save/first"))


@pytest.mark.slow
def test_a_newcomer_is_ranked_by_the_browser_alone(
    demonstration: Site, newcomer: Participant, tmp_path: Path
) -> None:
    hands, terminal = newcomer.hands, newcomer.terminal
    title = f"By hand of {newcomer.team}"
    where = "--data data/public --base base"
    terminal.run(f"pfl train fedavg {where} --out save/by-hand")
    participant.make_draft(hands, "Communication-efficient FL", title)
    participant.be_corrected(hands, terminal.folder / "save" / "by-hand", tmp_path)
    participant.submit_and_wait(hands)
    participant.expect_ranked(demonstration, hands, "track-1", title)


@pytest.mark.slow
def test_a_private_run_is_uploaded_with_its_proof_and_waits_for_its_review(
    demonstration: Site, newcomer: Participant, tmp_path: Path
) -> None:
    hands, terminal = newcomer.hands, newcomer.terminal.in_folder("private")
    title = f"Noise of {newcomer.team}"
    participant.follow_the_data_page(hands, terminal)
    terminal.run("pfl train fl-provider-dp --data data/public --base base --out save/private")
    participant.register_key(hands, terminal.run("pfl key show").strip())
    (tmp_path / "proof.md").write_text("Because the noise is large enough.")
    participant.make_draft(hands, "Provider-level differential privacy", title, "Noise on every update.")
    participant.attach_private_run(
        hands, terminal, terminal.folder / "save" / "private", tmp_path / "proof.md", budget=8
    )
    participant.submit_and_wait(hands)
    row = participant.row_of(demonstration, hands, "track-2", title)
    expect(row).to_contain_text(newcomer.team)
    expect(row).to_contain_text("under review")


@pytest.mark.slow
def test_a_newcomer_follows_the_guide_from_data_to_a_submission(
    demonstration: Site, hands: type[Hands], newcomer: Participant
) -> None:
    if hands is Mouse:
        pytest.skip("the terminal is the same")
    terminal = newcomer.terminal.in_folder("guide")
    assert "scored" in participant.follow_the_guide(terminal)


@pytest.mark.slow
def test_a_reviewer_without_time_declines_a_proof(
    demonstration: Site, hands: type[Hands], newcomer: Participant
) -> None:
    with demonstration.window(hands, REVIEWERS[0]) as window:
        reviewer.step_aside(demonstration, window, f"Noise of {newcomer.team}", "don't have the time", "")


@pytest.mark.slow
def test_a_disqualified_team_reads_of_it_in_a_mail_and_appeals(
    demonstration: Site, hands: type[Hands], newcomer: Participant
) -> None:
    method = f"By hand of {newcomer.team}"
    reason, appeal = f"The log of {method} leaves out a round.", "All rounds are in it; please count again."
    answer = f"We have counted the rounds of {method} again."
    with demonstration.window(hands, ORGANIZER) as window:
        organizer.disqualify(demonstration, window, "track-1", method, reason)
    participant.appeal(demonstration, newcomer.hands, GRACE[hands], reason, appeal)
    with demonstration.window(hands, ORGANIZER) as window:
        organizer.answer_appeal(demonstration, window, method, appeal, answer)
    participant.read_answer(demonstration, newcomer.hands, GRACE[hands], answer)


@pytest.mark.slow
def test_reviewers_ask_for_changes_and_accept_the_revised_proof(
    demonstration: Site, hands: type[Hands], tmp_path: Path
) -> None:
    method, team = REVIEWED[hands]
    first, second = REVIEWERS
    with demonstration.window(hands, first) as window:
        reviewer.open_desk(demonstration, window, method)
        reviewer.answer(window, doubted="noise", note=reviewer.REQUEST)
        reviewer.decide(window, "Request changes", reviewer.REQUEST)
    with demonstration.window(hands, team) as window:
        reviewer.revise(demonstration, window, tmp_path, method)
    for name in (first, second):
        with demonstration.window(hands, name) as window:
            reviewer.open_desk(demonstration, window, method)
            reviewer.read_the_proof(window, "bounded by the clip norm")
            reviewer.answer(window, settled="noise")
            reviewer.decide(window, "Accept")
    with demonstration.window(hands) as window:
        row = participant.row_of(demonstration, window, "track-2", method).first
        expect(row).to_contain_text("proof accepted")


@pytest.mark.slow
def test_an_organizer_changes_a_rule_and_announces_it(demonstration: Site, hands: type[Hands]) -> None:
    with demonstration.window(hands, ORGANIZER) as window:
        organizer.change_the_threshold(demonstration, window, "track-1", THRESHOLD[hands])
        reader = demonstration.people["adapters"].email
        organizer.announce(demonstration, window, f"A new threshold of {THRESHOLD[hands]}", reader)


# After the others, as nothing can be submitted to the track any more.
@pytest.mark.slow
def test_an_organizer_closes_a_phase_and_a_visitor_verifies_the_final_results(
    demonstration: Site, tmp_path: Path
) -> None:
    with demonstration.window(Keys, ORGANIZER) as window:
        organizer.close_phase(demonstration, window, "track-1")
    with demonstration.window(Keys) as window:
        visitor.read_final_results(demonstration, window, tmp_path)


# Last: it finds what the others leave. Organizers see all that reviewers and organizers of one track do.
@pytest.mark.parametrize(
    "name",
    [
        "",
        "adapters",
        ORGANIZER,
        pytest.param(REVIEWERS[0], marks=pytest.mark.slow),
        pytest.param(TRACK_ORGANIZER, marks=pytest.mark.slow),
    ],
)
def test_every_address_that_a_page_links_to_is_sound(demonstration: Site, name: str) -> None:
    faults = crawl_as(demonstration, name, each=1)
    assert not faults, "\n".join(["", *map(str, faults)])
