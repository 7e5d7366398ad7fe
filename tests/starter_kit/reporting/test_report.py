"""The report: what it says and never says, that its markup is all its own, and how a browser shows it."""

import base64
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.metrics import METRICS, SUMMARY, RoundMetrics
from starter_kit.reporting.plots import Drawn, draw_plots
from starter_kit.reporting.report import report, write_report
from starter_kit.settings.configuration import load_settings, snapshot
from tests.services.chromium import Chromium
from tests.starter_kit.reporting.runs import (
    SETTINGS,
    open_round,
    open_rounds,
    open_summary,
    private_rounds,
    private_summary,
    run_folder,
)

VOID = {"meta", "img", "source"}
HOSTILE = '</pre><script>alert(1)</script><img src=x onerror=alert(2)> & "quotes" \' \x00\x1b \u202e ]]>'


class Document(HTMLParser):
    """A page's elements in order, each with its attributes, and the text in them; unbalanced tags fail."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._indexes: list[int] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.texts.append("")
        if tag not in VOID:
            self._open.append(tag)
            self._indexes.append(len(self.texts) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._indexes.pop()

    def handle_data(self, data: str) -> None:
        for index in self._indexes:
            self.texts[index] += data

    def all(self, tag: str) -> list[str]:
        return [text for (name, _), text in zip(self.elements, self.texts, strict=True) if name == tag]

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def pairs(self) -> dict[str, str]:
        """The rows of the summary table."""
        names = [
            text
            for (tag, at), text in zip(self.elements, self.texts, strict=True)
            if at.get("scope") == "row"
        ]
        return dict(zip(names, self.all("td"), strict=False))

    def columns(self) -> list[str]:
        """The heads of the table of rounds."""
        return [
            text for (_, at), text in zip(self.elements, self.texts, strict=True) if at.get("scope") == "col"
        ]


@cache
def document(settings: str = SETTINGS, **changes: object) -> Document:
    return Document(report(settings, open_rounds(4), open_summary(**changes), drawn(private=False)))


@cache
def private_document(**changes: object) -> Document:
    return Document(report(SETTINGS, private_rounds(4), private_summary(**changes), drawn(private=True)))


@cache
def drawn(*, private: bool) -> list[Drawn]:
    """The plots of four rounds, drawn once for all tests."""
    if private:
        return draw_plots(private_rounds(4), private_summary())
    return draw_plots(open_rounds(4), open_summary())


def test_a_report_has_one_heading_and_a_section_for_everything() -> None:
    page = document()
    assert page.all("h1") == page.all("title")[0].split(": training run")[:1] == ["mine"]
    assert page.all("h2") == ["Summary", "Privacy", "Plots", "Rounds", "Settings"]
    assert page.all("pre") == [SETTINGS]


def test_the_summary_gives_truncated_scores_and_exact_bytes() -> None:
    pairs = document().pairs()
    assert pairs["ANLS"] == "0.7123, on the split valid"
    assert pairs["accuracy"] == "0.6123, on the split valid"
    assert pairs["bytes sent, both ways"] == "120 MB (120,000,000 bytes)"
    assert pairs["numbers in a message"] == "7,500,000, as float32"
    assert pairs["time"] == "51 s"
    assert pairs["SHA-256 of the checkpoint"] == "b" * 64
    assert "interrupted and resumed" not in pairs
    assert document(resumed=2).pairs()["interrupted and resumed"] == "2 times"


def test_a_run_that_was_not_evaluated_says_how_to() -> None:
    pairs = document(anls=None, accuracy=None, split=None).pairs()
    assert pairs["ANLS"] == "not evaluated yet: run pfl evaluate"
    assert "accuracy" not in pairs


def test_one_thread_is_not_several() -> None:
    for threads in ("1 thread", "11 threads"):
        recorded = f"cpu, x86_64, {threads.removesuffix('s')}s"
        assert document(device=recorded).pairs()["trained on"] == f"cpu, x86_64, {threads}"


def test_a_run_without_privacy_says_so() -> None:
    assert "This run is not private" in document().all("section")[1]


def test_epsilon_is_shown_with_unit_delta_and_whose_claim_it_is() -> None:
    section = private_document().all("section")[1]
    assert "What is protected is whether any one provider, with all its documents, took part:" in section
    assert "ε = 2.0000 at δ = 1e-05" in section
    assert (
        "as the trainer's own accountant claims; the workers recompute it from the training record" in section
    )


@pytest.mark.parametrize(
    ("unit", "who"),
    [("client", "any one client, with all its data,"), ("record", "what any one record holds")],
)
def test_another_unit_is_not_passed_off_as_the_provider(unit: str, who: str) -> None:
    section = private_document(unit=unit).all("section")[1]
    assert who in section
    assert "the leaderboard's ε protects each provider, and this ε doesn't" in section
    assert "recompute" not in section


@pytest.mark.parametrize(("epsilon", "verdict"), [(1.99, "kept"), (2.0, "kept"), (2.01, "exceeded")])
def test_the_budget_is_kept_or_exceeded(epsilon: float, verdict: str) -> None:
    assert private_document(epsilon=epsilon).pairs()["budget"] == f"ε = 2, {verdict}"


def test_the_table_of_rounds_has_a_column_for_every_number_there_is() -> None:
    page = document()
    assert page.columns() == [
        "round", "clients", "providers", "bytes down", "bytes up", "training loss", "ANLS", "accuracy", "seconds",
    ]  # fmt: skip
    rows = page.all("tr")[-5:]
    assert rows[0].split() == ["0", "–", "–", "0", "0", "–", "0.2000", "0.1000", "–"]
    assert rows[2].split() == ["2", "2", "37", "24,000,000", "6,000,000", "1.00", "0.5000", "0.2500", "12.5"]


def test_a_private_report_has_no_loss_no_time_and_no_number_of_providers() -> None:
    page = private_document()
    assert page.columns() == ["round", "clients", "bytes down", "bytes up", "ε so far"]
    assert "time" not in page.pairs()
    assert [image["alt"].split(".")[0] for image in page.attributes("img")] == [
        "Bytes sent",
        "ε spent, for each provider",
    ]


@pytest.mark.parametrize("name", ["loss", "providers", "seconds"])
def test_no_report_is_written_of_a_private_run_whose_files_reveal_what_it_hides(
    tmp_path: Path, name: str
) -> None:
    revealing = RoundMetrics.model_validate({"round": 5, "bytes_down": 1, "bytes_up": 1, name: 4242})
    folder = run_folder(tmp_path / "run", [*private_rounds(4), revealing], private_summary())
    with pytest.raises(ProblemError) as error:
        write_report(folder)
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
    assert "4242" not in str(error.value)
    assert not (folder / "report.html").exists()


def test_no_report_is_written_of_a_private_summary_that_reveals_its_time(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", private_rounds(4), private_summary())
    (folder / SUMMARY).write_text((folder / SUMMARY).read_text().replace("{", '{"seconds": 4242.0, ', 1))
    with pytest.raises(ProblemError):
        write_report(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("missing", ["settings.yaml", METRICS, SUMMARY])
def test_a_folder_that_lacks_a_file_is_rejected_by_its_name(tmp_path: Path, missing: str) -> None:
    folder = run_folder(tmp_path / "run", open_rounds(1), open_summary())
    (folder / missing).unlink()
    with pytest.raises(ProblemError) as error:
        write_report(folder)
    assert error.value.problem.where == str(folder / missing)


def test_what_files_hold_is_text() -> None:
    page = document(settings=HOSTILE, experiment=HOSTILE, method=HOSTILE, codec=HOSTILE, split=HOSTILE)
    tags = {tag for tag, _ in page.elements}
    assert "script" not in tags
    assert len(page.attributes("img")) == 3
    shown = HOSTILE.replace("\x00", "�").replace("\x1b", "�").replace("\u202e", "�")
    assert page.all("h1") == page.all("pre") == [shown]
    assert page.pairs()["method"] == shown


@pytest.mark.parametrize("optimizer", ["adamw", "shampoo"])
def test_settings_of_shampoo_are_shown_where_it_trained(optimizer: str) -> None:
    settings = snapshot(load_settings("fedavg", [f"local.optimizer={optimizer}"]))
    (shown,) = document(settings=settings).all("pre")
    assert ("element_clip" in shown) == (optimizer == "shampoo")
    assert f"optimizer: {optimizer}" in shown
    rest = settings.partition("  shampoo:\n")
    assert shown.startswith(rest[0])
    assert shown.endswith(rest[2].partition("  hook:")[2])


def test_settings_that_are_not_utf8_are_shown_as_far_as_they_are(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", open_rounds(1), open_summary())
    (folder / "settings.yaml").write_bytes(b"method: \xff\r\nrounds: 1\r\n")
    assert Document(write_report(folder).read_text()).all("pre") == ["method: �\nrounds: 1\n"]


def test_nothing_outside_the_file_is_named() -> None:
    page = document()
    sources = [at["src"] for at in page.attributes("img")] + [
        at["srcset"] for at in page.attributes("source")
    ]
    assert len(sources) == 6
    for source in sources:
        Image.open(BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))).verify()
    named = {name for _, attributes in page.elements for name in attributes}
    assert named.isdisjoint({"href", "style", "onclick", "onerror"})
    assert "url(" not in page.all("style")[0]
    assert "@import" not in page.all("style")[0]


def test_ids_are_unique_and_regions_named_by_one() -> None:
    page = document()
    ids = [at["id"] for _, at in page.elements if "id" in at]
    assert len(set(ids)) == len(ids)
    assert {at["aria-labelledby"] for at in page.attributes("div") if "role" in at} <= set(ids)


def test_every_plot_is_described_in_words() -> None:
    assert (
        document()
        .attributes("img")[0]["alt"]
        .startswith(
            "ANLS and accuracy on the validation split. ANLS: from 0.2000 after round 0 to 0.5000 after round 4;"
        )
    )


def test_one_round_is_enough() -> None:
    metrics, summary = [open_round(1)], open_summary(rounds=1)
    page = Document(report(SETTINGS, metrics, summary, draw_plots(metrics, summary)))
    assert "fedavg, 1 round ·" in page.all("header")[0]
    assert len(page.attributes("img")) == 2


def test_a_run_of_no_round_has_neither_plots_nor_rounds() -> None:
    page = Document(report(SETTINGS, [], open_summary(rounds=0, bytes_total=0), []))
    assert page.all("h2") == ["Summary", "Privacy", "Settings"]


def test_a_thousand_rounds_stay_below_a_megabyte(tmp_path: Path) -> None:
    path = write_report(run_folder(tmp_path / "run", open_rounds(1000), open_summary(rounds=1000)))
    assert path.stat().st_size < 1_000_000
    assert len(Document(path.read_text()).all("tr")) > 1000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Chromium() as browser:
        yield browser


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A report as a phone shows it at night; any complaint of the browser, or request, fails the test."""
    settings = f"{SETTINGS}trainable: {'x' * 500}\n{HOSTILE}"
    path = write_report(run_folder(tmp_path / "run", open_rounds(40), open_summary(), settings))
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None
    )
    page.goto(path.as_uri())
    yield page
    context.close()
    assert complaints == []


def test_a_browser_shows_it_on_a_phone_without_sideways_scrolling(shown: Page) -> None:
    assert shown.evaluate("document.documentElement.scrollWidth") == 390
    rounds = shown.locator("div.rounds")
    assert rounds.evaluate("box => box.scrollWidth > box.clientWidth && box.scrollHeight > box.clientHeight")


def test_a_browser_shows_the_dark_plots_in_the_dark_and_the_light_ones_in_the_light(shown: Page) -> None:
    image = shown.locator("img").first
    light, dark = image.get_attribute("src"), shown.locator("source").first.get_attribute("srcset")
    assert light != dark
    assert image.evaluate("image => image.currentSrc") == dark
    assert image.evaluate("image => image.naturalWidth > 0")
    shown.emulate_media(color_scheme="light")
    shown.reload()
    assert image.evaluate("image => image.currentSrc") == light


def test_the_style_is_applied_under_the_policy_of_the_page(shown: Page) -> None:
    policy = shown.locator("meta[http-equiv]").get_attribute("content") or ""
    assert re.fullmatch(
        r"default-src 'none'; img-src data:; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'",
        policy,
    )
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 26)"
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.getAttribute('role')") == "region"
