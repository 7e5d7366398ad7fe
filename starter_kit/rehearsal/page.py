"""The measured table, in a section of docs/full-size.md between two marks."""

from collections.abc import Sequence

from starter_kit.rehearsal.inputs import Shape
from starter_kit.rehearsal.stages import Measured

BEGIN, END = "<!-- rehearsal: begin -->", "<!-- rehearsal: end -->"


def with_table(page: str, shape: Shape, conditions: str, rows: Sequence[Measured]) -> str:
    """Return `page` with the table of `rows` between its marks.

    Args:
        conditions: Sentences about the machine, and what differs from the configs.

    Raises:
        ValueError: It has none.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no section between {BEGIN} and {END}")
    return "".join([head, BEGIN, "\n", _section(shape, conditions, rows), END, tail])


def _section(shape: Shape, conditions: str, rows: Sequence[Measured]) -> str:
    lines = [
        f"Made-up data of {shape.clients} clients, {shape.providers:,} providers, {shape.pages:,} pages and "
        f"{shape.questions:,} questions; random weights. {conditions}",
        "",
        "| what | seconds | CPU seconds | a step, seconds | peak memory, GB | planned, GB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        step = "" if row.step_s is None else f"{row.step_s:.1f}"
        planned = "" if row.planned_bytes is None else f"{row.planned_bytes / 1e9:.1f}"
        lines.append(
            f"| {row.stage} | {row.seconds:.0f} | {row.cpu_s:.0f} | {step} | {row.peak_bytes / 1e9:.1f} | {planned} |"
        )
    return "\n".join([*lines, ""])
