"""docs/conformance.md: its text is page.md; its tables are of counts."""

from pathlib import Path

from starter_kit.conformance.counting import Counts, Found, Honest

TEMPLATE = Path(__file__).with_name("page.md")


def page(counts: Counts) -> str:
    """Return the page in Markdown."""
    return TEMPLATE.read_text(encoding="utf-8").format(
        mutants=len(counts.mutants),
        caught=sum(bool(found.caught_by) for found in counts.mutants),
        table="\n".join(_mutant(found) for found in counts.mutants),
        examinations=sum(honest.examinations for honest in counts.honest),
        alarms=sum(len(honest.failed) for honest in counts.honest),
        honest="\n".join(_honest(honest) for honest in counts.honest),
    )


def renewed(counts: Path) -> str:
    """Return the page of the counts in a file."""
    return page(Counts.model_validate_json(counts.read_bytes()))


def _mutant(found: Found) -> str:
    caught = ", ".join(f"`{test}`" for test in found.caught_by) or "**not found**"
    return f"| {found.mutant} | {found.fault} | {caught} |"


def _honest(honest: Honest) -> str:
    failed = ", ".join(f"`{test}`" for test in honest.failed) or "none"
    return f"| {honest.config} | {honest.examinations} | {failed} |"
