"""What the guide to a submission's proof says, against what reviewers ask."""

from pathlib import Path

from docvqa_site.reviews.checklist import CHECKLIST

GUIDE = Path(__file__).parents[3] / "docs" / "proofs" / "README.md"


def test_the_guide_lists_the_questions_of_the_reviewers() -> None:
    guide = " ".join(GUIDE.read_text().split())
    assert [item.question for item in CHECKLIST if f"- {item.question}" not in guide] == []
