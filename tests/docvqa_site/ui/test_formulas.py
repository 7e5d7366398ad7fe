"""Formulas that would take forever, wherever a participant or an organizer can write one."""

import json
import os
import signal
import time
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from docvqa_site.news.models import NewsItem
from docvqa_site.proofs.rendering import render_proof
from docvqa_site.ui import converter as conversions
from docvqa_site.ui.converter import Converted, Converter
from docvqa_site.ui.delimiters import extract
from docvqa_site.ui.markdown import Allowance, render_markdown, render_within
from docvqa_site.ui.math import Formulas, is_within_limits
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_submission, make_team, make_track, owner_of

# The first takes ten seconds where nothing stops it, the second would never end.
BRACKETS = ["x " + "[" * 30, "x " + "[" * 40]
# Within the limits: math-core reads each of these commands as a bracket that opens.
MACROS = r"\newcommand{\a}{(}" + r"\a" * 60
DISGUISED = r"\mathclose (" * 60
# What a text may take, with what the process takes that converts its formulas.
MAX_CPU_SECONDS = 4.0

COMMANDS = r"""
    \{ \} \\ \[ \( \langle \rangle \lvert \rvert \left( \left. \right) \right. \middle| \bigl( \bigr)
    \frac \frac{ \sqrt \sqrt[ \sqrt{ \text{ \hat \overset \substack{ \genfrac \mathopen \mathclose
    \begin{matrix} \end{matrix} \begin{aligned} \end{aligned} \begin{cases} \end{cases}
    \newcommand{\a}{ \a \sum_ \int^ \operatorname{ \color{red} \unknown
"""
MARKUP = ["$$", "**", "__", "> ", "- ", "1. ", "![", "](", "[a]: b\n", "|-|\n", "```\n", "[a](b)", "\n\n"]
PIECES = [*"[](){}|^_&'$<>#*`~!a1 \n", *COMMANDS.split(), *MARKUP]
REPEATED = st.builds(
    lambda pieces, times: "".join(pieces) * times,
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6),
    st.integers(1, 300),
)
FORMULAS = st.one_of(
    REPEATED.map(lambda text: f"a ${text.replace('$', '')}$ b"),
    REPEATED.map(lambda text: f"$$\n{text.replace('$', '')}\n$$\n\nb"),
    REPEATED,
    st.lists(st.sampled_from(PIECES), max_size=300).map("".join),
)


X = Converted("<math><mi>x</mi></math>")


def converted(converter: Converter, *formulas: str) -> list[Converted]:
    """What the converter makes of a document with these formulas."""
    return converter.convert([(formula, False) for formula in formulas], characters=10_000)


def drawn(text: str) -> str:
    """The one formula of a text as HTML."""
    (formula,) = Formulas().draw(extract(text).formulas, characters=200_000)
    return formula.html


def cpu_seconds() -> float:
    """What this process and those that it has waited for have taken."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.fixture
def cheap() -> Callable[[], None]:
    """Fail if more CPU time has gone by than a text may take."""
    start = cpu_seconds()

    def check() -> None:
        assert cpu_seconds() - start < MAX_CPU_SECONDS

    return check


@pytest.mark.django_db
@pytest.mark.parametrize("formula", BRACKETS)
def test_no_page_hangs_because_of_brackets_that_are_not_closed(client: Client, formula: str, cheap) -> None:
    text = f"Before ${formula}$ after"
    shown = f"Before <code>${formula}$</code> after"
    submission = make_submission(track=make_track(), description=text)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, text.encode(), "proof.md")
    item = NewsItem.objects.create(title="News", slug="news", text=text)
    client.force_login(owner_of(submission.team))
    render_markdown("$a$")
    fields = {"title": "After", "description": text, "preview": "1"}
    edited = reverse("submissions:edit", args=[submission.pk])
    for page in (
        client.get(reverse("submissions:detail", args=[submission.pk])),
        client.post(edited, fields),
        client.get(item.get_absolute_url()),
        client.get("/news/feed.atom"),
        client.get(reverse("reviews:proof", args=[submission.pk])),
    ):
        assert page.status_code == 200
        assert shown in page.text.replace("&lt;", "<").replace("&gt;", ">")
    cheap()


@pytest.mark.parametrize("formula", [MACROS, DISGUISED], ids=["macros", "disguised"])
def test_a_formula_within_the_limits_that_takes_too_long_is_shown_as_it_was_written(
    formula: str, cheap
) -> None:
    assert is_within_limits(formula)
    html = render_within(f"a ${formula}$ b", Allowance())
    assert html == f"<p>a <code>${formula}$</code> b</p>\n"
    cheap()


def test_a_text_full_of_such_formulas_takes_no_longer_than_one(cheap) -> None:
    allowance = Allowance()
    html = render_within(f"${MACROS}$ $x$\n\n" * 200, allowance)
    assert allowance.formulas.is_stopped
    assert "<math" not in html
    cheap()


def test_the_list_of_contents_of_a_proof_converts_none_of_them_again(cheap) -> None:
    html = render_proof(f"# ${MACROS}$ one\n\n# two\n\n# three\n\n".encode() * 3, "proof.md").html
    assert html.count('<li class="level-') == 9
    cheap()


def test_the_formulas_of_the_next_text_are_converted() -> None:
    render_within(f"${MACROS}$", Allowance())
    assert "<math><mi>x</mi></math>" in render_within("$x$", Allowance())


def test_the_cells_of_a_notebook_are_one_text(cheap) -> None:
    cell = {"cell_type": "markdown", "source": f"# ${MACROS}$"}
    render_proof(json.dumps({"nbformat": 4, "cells": [cell] * 200}).encode(), "proof.ipynb")
    cheap()


class TestLimits:
    @pytest.mark.parametrize(
        "formula",
        [
            r"\hat\sigma^2 = \frac{1}{n}\sum_{i=1}^n \left(x_i - \bar{x}\right)^2",
            r"\Pr\bigl[M(D) \in S\bigr] \le e^{\varepsilon}\Pr\bigl[M(D') \in S\bigr] + \delta",
            r"\begin{cases} [0, 1) & \text{if } a \\ (0, 1] & \text{if } b \end{cases}",
            r"\left\{ x \in \mathbb{R} \,\middle|\, x > 0 \right.",
            "(a)" * 300,
        ],
    )
    def test_what_people_write_is_within_them(self, formula: str) -> None:
        assert is_within_limits(formula)
        assert "<math" in drawn(f"$${formula}$$")

    @pytest.mark.parametrize(
        "formula", ["x" * 1_001, " x" * 1_001, "{" * 17 + "}" * 17, r"\langle" * 17, r"\left(" * 9, *BRACKETS]
    )
    def test_more_tokens_or_deeper_nesting_is_not(self, formula: str) -> None:
        assert not is_within_limits(formula)
        assert "<code>" in drawn(f"$${formula}$$")


class TestConverter:
    def test_one_that_was_stopped_starts_again(self) -> None:
        converter = Converter()
        assert converted(converter, "x", DISGUISED, "y") == [X]
        assert converted(converter, "x") == [X]
        converter.close()

    def test_a_process_that_was_killed_between_two_formulas_is_replaced(self) -> None:
        converter = Converter()
        converted(converter, "x")
        assert converter._process is not None
        os.kill(converter._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, converter._process.pid, os.WEXITED | os.WNOWAIT)
        assert converted(converter, "x") == [X]
        converter.close()

    def test_a_process_that_gets_no_time_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        converter = Converter()
        converted(converter, "x")
        assert converter._process is not None
        os.kill(converter._process.pid, signal.SIGSTOP)
        monkeypatch.setattr(conversions, "MAX_WAIT_S", 0.1)
        assert converted(converter, "x") == []
        converter.close()

    def test_where_no_process_can_be_started_formulas_are_shown_as_they_were_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversions.converter.close()
        monkeypatch.setattr("sys.executable", "/nowhere/python")
        assert render_within("$x$", Allowance()) == "<p><code>$x$</code></p>\n"

    def test_a_forked_process_has_one_of_its_own(self) -> None:
        render_within("$x$", Allowance())
        parent = os.getpid()
        if (child := os.fork()) == 0:
            is_right = conversions.converter._process is None and "<mi>y</mi>" in drawn("$y$")
            conversions.converter.close()
            os._exit(0 if is_right and os.getpid() != parent else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert "<mi>z</mi>" in drawn("$z$")

    def test_it_knows_none_of_the_secrets_of_the_site(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PFL_SECRET_KEY", "hidden")
        converter = Converter()
        converted(converter, "x")
        assert converter._process is not None
        with open(f"/proc/{converter._process.pid}/environ", "rb") as environment:
            assert b"hidden" not in environment.read()
        converter.close()


def test_a_text_whose_formula_was_stopped_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"Once: ${MACROS}$"
    shown = render_markdown(text)
    monkeypatch.setattr("docvqa_site.ui.markdown.render_within", None)
    assert render_markdown(text) == shown


@settings(max_examples=75)
@given(FORMULAS)
def test_whatever_is_nested_or_left_open_is_shown_in_time(text: str) -> None:
    notebook = {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": text}]}
    start = cpu_seconds()
    render_markdown(text)
    render_proof(text.encode(), "proof.md")
    render_proof(json.dumps(notebook).encode(), "proof.ipynb")
    assert cpu_seconds() - start < MAX_CPU_SECONDS


@pytest.mark.django_db
@settings(max_examples=25)
@given(text=FORMULAS)
def test_a_preview_of_it_is_a_page(text: str) -> None:
    team = make_team()
    client = Client()
    client.force_login(owner_of(team))
    fields = {"track": make_track().pk, "title": "Title", "description": text[:10_000], "preview": "1"}
    start = time.process_time()
    page = client.post(reverse("submissions:create"), fields)
    assert page.status_code == 200
    assert time.process_time() - start < MAX_CPU_SECONDS
