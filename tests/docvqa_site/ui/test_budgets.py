"""Equations with ε stay in one piece: no line breaks between ε, = and the number."""

import re
from pathlib import Path

import docvqa_site
from docvqa_site.ui.budgets import budget_text, unbroken
from docvqa_site.ui.templatetags.ui import budget, markdown

TEMPLATES = [path for folder in docvqa_site.__path__ for path in Path(folder).rglob("*.html")]


def test_a_budget_has_no_space_at_which_a_line_breaks() -> None:
    assert budget_text(8.0) == budget("8") == unbroken("ε = 8") == "ε\xa0=\xa08"
    assert budget_text(0.5) == "ε\xa0=\xa00.5"


def test_equations_in_texts_stay_in_one_piece_and_code_stays_as_it_is() -> None:
    html = markdown("Runs at ε = 1 and `ε = 4`.")
    assert "Runs at ε&nbsp;=&nbsp;1 and <code>ε = 4</code>." in html


def test_no_template_writes_an_equation_that_breaks() -> None:
    assert TEMPLATES
    broken = [path.name for path in TEMPLATES if re.search(r"[εδσ] = ?\{", path.read_text())]
    assert not broken
