"""Questions of the checklist lead to the sections of a proof that are about them."""

from pathlib import Path

import pytest

from docvqa_site.proofs.outline import Section
from docvqa_site.proofs.rendering import render_proof
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.sections import WORDS, sections_by_question

PROOFS = Path(__file__).parents[3] / "docs" / "proofs"


@pytest.mark.parametrize("name", ["fl-provider-dp", "client-dp"])
def test_every_question_but_that_on_code_has_a_section_in_the_kits_proofs(name: str) -> None:
    rendered = render_proof((PROOFS / f"{name}.md").read_bytes(), f"{name}.md")
    found = sections_by_question(rendered.sections)
    assert WORDS.keys() == {item.key for item in CHECKLIST}
    assert WORDS.keys() - found.keys() == {"code"}
    assert (found["noise"].anchor, found["conversion"].title) == ("proof-noise", "Composition")
    assert all(f'id="{section.anchor}"' in rendered.html for section in found.values())


def test_of_several_headings_the_shortest_is_meant_and_no_part_of_a_word() -> None:
    titles = ["Proof of a method with sampling & noise", "Subsampling", "2. Sampling of providers", "Lemma"]
    sections = [Section(f"proof-{number}", title) for number, title in enumerate(titles)]
    found = sections_by_question(sections)
    assert found["sampling"].anchor == "proof-2"
    assert found["noise"].anchor == "proof-0"
    assert "unit" not in found


def test_a_title_is_text() -> None:
    rendered = render_proof(b"# A\n\n## Noise & *clipping* of $x_1$", "proof.md")
    assert rendered.sections[1].title.startswith("Noise & clipping of x")
