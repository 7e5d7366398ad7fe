"""Markdown in emails and notifications, which format nothing."""

import pytest
from pytest_django import Settings

from docvqa_site.ui.plain_text import plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("A **new** `pfl` is _out_.", "A new pfl is out."),
        ("# Dates\n\nMay 1\nMay 2", "Dates\n\nMay 1\nMay 2"),
        ("[The rules](https://example.org/rules)", "The rules (https://example.org/rules)"),
        ("[The track](/tracks/a/)", "The track (https://site.example/tracks/a/)"),
        ("<https://example.org> or https://example.org/a", "https://example.org or https://example.org/a"),
        ("[https://a.example](https://b.example)", "https://b.example"),
        ("<a@example.org>", "a@example.org"),
        ("![A plot](https://example.org/a.png)", "A plot (https://example.org/a.png)"),
        ("- one\n- two\n  1. first\n  2. second", "- one\n- two\n  1. first\n  2. second"),
        ("3. three\n\n4. four", "3. three\n\n4. four"),
        ("> quoted\n> twice", "> quoted\n> twice"),
        ("```\npfl train\n  --track a\n```", "    pfl train\n      --track a"),
        ("| Team | ANLS |\n| --- | --- |\n| A | *0.9* |", "Team | ANLS\nA | 0.9"),
        ("It costs $\\varepsilon_1 * x_2 * y$.", "It costs $\\varepsilon_1 * x_2 * y$."),
        ("See[^1].\n\n[^1]: The *note*.", "See[1].\n\n[1] The note."),
        ("<b>bold</b> & 5 < 6", "<b>bold</b> & 5 < 6"),
        ("%EF%B7%900%EF%B7%91", "%EF%B7%900%EF%B7%91"),
        ("", ""),
    ],
)
def test_markup_becomes_what_it_says(settings: Settings, markdown: str, text: str) -> None:
    settings.SITE_URL = "https://site.example"
    assert plain_text(markdown) == text
