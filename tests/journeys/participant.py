"""A participant: from the home page to ranked results, by the commands that pages show and by the browser alone."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, expect
from safetensors.numpy import load_file, save_file

from tests.journeys.hands import Hands
from tests.journeys.people import PASSWORD, Person, log_in
from tests.journeys.sites import Site
from tests.journeys.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "starter-kit.md"
# The first command of each block of the guide that needs nothing but what the blocks before it leave.
FIRST_COMMANDS = (
    "pfl data forms",
    "export PFL_SITE",
    "pfl submit save/mine",
    "pfl sweep",
    "pfl new clever_idea",
    "pfl new my_codec",
    "pfl export hf",
    "pfl privacy noise",
)
CODE = "https://code.example.org/noise/commit/0123456789abcdef0123456789abcdef01234567"
# What a draft leaves to the team.
GAP = re.compile(r"\[FILL IN: [^\]]+\]")
UPLOAD_MS = 60_000
SCORED_MS = 120_000


@dataclass(frozen=True)
class Newcomer(Person):
    """Somebody who has no account yet, and the team that is to be made."""

    team: str = ""


def sign_up(site: Site, hands: Hands, newcomer: Newcomer) -> None:
    """Make an account, confirm its address by the mail that comes, and make a team."""
    hands.open(site.url)
    hands.menu("Sign up")
    confirm_address(site, hands, newcomer)
    make_team(hands, newcomer.team)


def confirm_address(site: Site, hands: Hands, newcomer: Newcomer) -> None:
    """Fill in the page of a new account, and follow the mail that comes."""
    page = hands.page
    hands.fill(page.get_by_label("Your name"), newcomer.name)
    hands.fill(page.get_by_label(re.compile("e-?mail", re.I)).first, newcomer.email)
    for field in page.locator("input[type=password]").all():
        hands.fill(field, newcomer.password)
    hands.press(page.get_by_role("button", name="Sign up"))
    hands.open(site.link_in_mail(newcomer.email, rf"{re.escape(site.url)}/account/confirm-email/[^\s]+"))
    hands.press(page.get_by_role("button", name=re.compile("confirm", re.I)))
    page.wait_for_load_state()
    if page.url.endswith("/login/"):
        log_in(hands, site.url, newcomer)


def make_team(hands: Hands, name: str) -> None:
    hands.menu("Team")
    hands.press(hands.page.get_by_role("link", name=re.compile("create", re.I)).first)
    hands.fill(hands.page.get_by_label("Name"), name)
    hands.press(hands.page.get_by_role("button", name=re.compile("create", re.I)))


def create_token(site: Site, hands: Hands) -> str:
    """Return the commands that the site shows with a new API token."""
    page = hands.page
    hands.menu("API tokens")
    hands.fill(page.get_by_label("Label"), "laptop")
    hands.press(page.get_by_role("button", name="Create token"))
    shown = page.locator("pre", has_text="export PFL_TOKEN")
    confirm_password_until(hands, shown)
    return shown.inner_text()


def confirm_password_until(hands: Hands, done: Locator) -> None:
    """Wait until `done` is shown, and give the password if the site asks for it once more before."""
    password = hands.page.locator("input[type=password]")
    expect(done.or_(password)).to_be_visible()
    if password.is_visible():
        hands.fill(password, PASSWORD)
        hands.press(hands.page.get_by_role("button", name="Confirm"))
        expect(done).to_be_visible()


def follow_the_home_page(site: Site, hands: Hands, terminal: Terminal) -> str:
    """Run the commands that the home page shows, and return what they printed."""
    hands.open(site.url)
    section = hands.page.locator("section", has=hands.page.locator("#take-part"))
    return run_all(terminal, section.locator("pre").all_inner_texts())


def follow_the_readme(terminal: Terminal) -> str:
    """Run the commands that README's section *Take part* shows, and return what they printed."""
    section = README.read_text().partition("## Take part")[2].partition("\n## ")[0]
    return terminal.run("\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)))


def open_track(site: Site, hands: Hands, track: str) -> None:
    """Go to a track's page from the list of tracks."""
    hands.open(site.url)
    hands.menu("Tracks")
    hands.press(hands.page.get_by_role("main").get_by_role("link", name=track, exact=True).first)


def follow_the_track_page(site: Site, hands: Hands, terminal: Terminal, track: str) -> str:
    """Run the commands that a track's page shows, and return what they printed."""
    open_track(site, hands, track)
    section = hands.page.locator("section", has=hands.page.locator("#submit"))
    # Those in a list are for other budgets.
    return run_all(terminal, section.locator("pre:not(li pre)").all_inner_texts())


def run_all(terminal: Terminal, blocks: Iterable[str]) -> str:
    """Run blocks of commands, fill in after each the gaps in what it has drafted, and return what they printed."""
    printed = []
    for block in blocks:
        printed.append(terminal.run(block))
        for draft in terminal.folder.glob("*.md"):
            draft.write_text(GAP.sub(f"We used made-up data alone. Code: {CODE}", draft.read_text()))
    return "\n".join(printed)


def accept_terms(hands: Hands, title: str) -> None:
    """Accept the terms of a download, as its card on the data page asks."""
    page = hands.page
    hands.menu("Data")
    card = page.locator("article.card", has=page.get_by_role("heading", name=title, exact=True))
    hands.press(card.get_by_role("link", name=f"Terms of {title}"))
    hands.press(page.get_by_role("button", name="Accept"))
    hands.sees(f"You have accepted Terms of {title}")


def follow_submissions(terminal: Terminal, title: str) -> None:
    """List the team's submissions in the terminal, look at one, follow it, and read it as JSON."""
    listed = terminal.run("pfl submissions")
    line = next(line for line in listed.splitlines() if title in line)
    first_digits = line.split()[0]
    for command in (f"pfl submissions {first_digits}", f"pfl submissions {first_digits} --watch"):
        assert re.search(r"#\d+ of \d+.* · http", terminal.run(command)), command
    printed = terminal.output(f"pfl submissions {first_digits} --json")
    assert json.loads(printed)["title"] == title
    everything = json.loads(terminal.output("pfl submissions --json"))
    assert title in {one["title"] for one in everything}


def practise(site: Site, hands: Hands, terminal: Terminal, track: str, run: Path) -> None:
    """Submit a run for practice, also one that was submitted before: it is scored and never on the board."""
    printed = terminal.run(f'pfl submit {run} --track {track} --title "A rehearsal" --practice --wait')
    assert "scored" in printed
    expect(row_of(site, hands, track, "A rehearsal")).to_have_count(0)
    hands.menu("Submissions")
    expect(hands.page.get_by_role("row").filter(has_text="A rehearsal")).to_contain_text("practice")


def appeal(site: Site, hands: Hands, member: Newcomer, reason: str, words: str) -> None:
    """Read of a disqualification in the mail, and appeal on the page that it leads to."""
    page = hands.page
    hands.open(mailed_link(site, member, reason))
    hands.sees(reason)
    hands.fill(page.get_by_role("textbox"), words)
    hands.press(page.get_by_role("button", name="Appeal", exact=True))
    hands.sees("Not answered yet.")


def read_answer(site: Site, hands: Hands, member: Newcomer, answer: str) -> None:
    """Read the organizers' answer to an appeal, in the mail and on the page that it leads to."""
    hands.open(mailed_link(site, member, "The organizers' answer:"))
    hands.sees(answer)


def mailed_link(site: Site, member: Newcomer, words: str) -> str:
    """Return the first link of the mail that says this, after the words."""
    mail = site.link_in_mail(member.email, rf"{re.escape(words)}[\s\S]*?({re.escape(site.url)}/\S+)")
    return mail.rpartition("\n")[2].strip()


def follow_the_guide(terminal: Terminal) -> str:
    """Run the commands of the starter kit's guide, and return what the block printed that submits a run."""
    blocks = re.findall(r"(?:^    .+\n)+", GUIDE.read_text(), re.MULTILINE)
    printed = {}
    for command in FIRST_COMMANDS:
        (block,) = (block for block in blocks if block.strip().startswith(command))
        if command == "pfl export hf":
            terminal.run("pfl train lora --data data/public --base base --out save/lora")
        printed[command] = run_all(terminal, [block])
    return printed["pfl submit save/mine"]


def follow_the_data_page(hands: Hands, terminal: Terminal) -> None:
    """Run the command that fetches a track's data and base weights."""
    hands.menu("Data")
    section = hands.page.locator("section", has=hands.page.locator("#command-line"))
    terminal.run(section.locator("pre").inner_text())


def expect_ranked(site: Site, hands: Hands, track: str, title: str) -> None:
    row = row_of(site, hands, track, title)
    expect(row.get_by_role("cell").first).to_have_text(re.compile(r"^\s*\d+\s*$"))


def row_of(site: Site, hands: Hands, track: str, title: str) -> Locator:
    hands.open(f"{site.url}/leaderboard/{track}/")
    return hands.page.locator("table.board tbody tr").filter(has_text=title)


def make_draft(hands: Hands, track: str, title: str, description: str = "") -> None:
    """Start a submission to the track of this name; one with a description has a link to its code too."""
    page = hands.page
    hands.menu("Submissions")
    hands.press(page.get_by_role("link", name="New submission").first)
    hands.choose(page.get_by_label("Track", exact=True), re.escape(track))
    hands.fill(page.get_by_label("Title"), title)
    if description:
        hands.fill(page.get_by_label("Description"), description)
        hands.fill(page.get_by_label("Link to the code"), CODE)
    hands.press(page.get_by_role("button", name="Start the submission"))
    expect(page.locator("#submit")).to_be_visible()


def attach(hands: Hands, kind: str, file: Path) -> Locator:
    """Choose a file for the place of its kind, and return that place."""
    place = hands.page.locator(f"[data-kind={kind}]")
    # Before that the page takes no file.
    expect(place.locator(".dropzone")).to_be_visible()
    hands.attach(place.locator("input[type=file]"), file)
    return place


def upload(hands: Hands, files: dict[str, Path]) -> None:
    """Put each file into the place of its kind, and wait until it is there."""
    for kind, file in files.items():
        expect(attach(hands, kind, file).get_by_text(f"{file.name} is uploaded.")).to_be_visible(
            timeout=UPLOAD_MS
        )


def submit_and_wait(hands: Hands) -> None:
    page = hands.page
    # The text above the button is replaced as files arrive, which moves the button.
    expect(page.locator("#submit")).to_contain_text("The draft is complete.")
    hands.press(page.get_by_role("button", name=re.compile("^submit", re.I)))
    # Among the steps, which are folded once nothing is left to wait for.
    expect(page.locator(".badge", has_text=re.compile("^scored$")).first).to_be_attached(timeout=SCORED_MS)


def be_corrected(hands: Hands, run: Path, folder: Path) -> None:
    """Choose files that are wrong in several ways, read all of it at once, and choose the right ones."""
    page = hands.page
    weights = load_file(run / "model.safetensors")
    renamed, flattened = list(weights)[:2]
    wrong = {**weights, "renamed": weights.pop(renamed), flattened: weights[flattened].reshape(-1)}
    del wrong[renamed]
    save_file(wrong, folder / "model.safetensors")
    (folder / "log.csv").write_text("round,from,to,bytes\n1,-1,0,5\n")
    attach(hands, "checkpoint", folder / "model.safetensors")
    attach(hands, "communication_log", folder / "log.csv")
    problems = page.locator(".problem")
    expect(problems).to_have_count(4)
    for found in (renamed, "renamed", flattened, "federated_round,sender,receiver,amount_of_bytes"):
        expect(problems.filter(has_text=found).first).to_be_visible()
    expect(page.locator("#submit")).to_contain_text("The checkpoint is missing.")
    upload(
        hands, {"checkpoint": run / "model.safetensors", "communication_log": run / "communication_log.csv"}
    )
    expect(problems).to_have_count(0)
    expect(page.locator("#submit")).to_contain_text("the run will be listed without a rank")
    upload(hands, {"transcript": run / "transcript.jsonl", "messages": run / "messages.bin"})
    expect(page.locator("#submit")).not_to_contain_text("without a rank")


def register_key(hands: Hands, key: str) -> None:
    """Give the site the public key that `pfl key show` prints."""
    page = hands.page
    hands.menu("Team")
    hands.fill(page.get_by_label(re.compile("public key", re.I)), key)
    hands.press(page.get_by_role("button", name="Add the key"))
    confirm_password_until(hands, page.get_by_text("can now sign your team's training records"))


def attach_private_run(hands: Hands, terminal: Terminal, run: Path, proof: Path, budget: int) -> None:
    """Upload a private run: its annex answers the challenge that the page shows once the record is there."""
    page = hands.page
    hands.press(page.get_by_role("button", name=f"Add a run at ε = {budget}"))
    upload(
        hands,
        {
            "checkpoint": run / "model.safetensors",
            "communication_log": run / "communication_log.csv",
            "training_record": run / "training_record.jsonl",
        },
    )
    command = page.locator("code", has_text="pfl privacy annex . --challenge")
    expect(command).to_be_visible(timeout=UPLOAD_MS)
    terminal.run(command.inner_text().replace(" . ", f" {run} "))
    upload(hands, {"training_annex": run / "training_annex.jsonl", "privacy_proof": proof})
