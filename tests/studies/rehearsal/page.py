"""The measured table, in a section of docs/full-size.md between two marks."""

from collections.abc import Sequence

from tests.studies.rehearsal.inputs import SLICE
from tests.studies.rehearsal.results import Results, StageResult
from tests.studies.rehearsal.stages import Measured

BEGIN, END = "<!-- rehearsal: begin -->", "<!-- rehearsal: end -->"


def with_table(page: str, results: Results, stages: Sequence[str]) -> str:
    """Return `page` with the table of `results` between its marks.

    Args:
        stages: The names of all stages; those without a result are named.

    Raises:
        ValueError: It has no marks.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no section between {BEGIN} and {END}")
    return "".join([head, BEGIN, "\n", _section(results, stages), END, tail])


def _section(results: Results, stages: Sequence[str]) -> str:
    lines = [
        _introduction(results, stages),
        "",
        "| what | seconds | CPU seconds | a step, seconds | peak memory, GB | planned, GB | other work |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_line(result, row) for result in results.stages for row in result.rows),
    ]
    return "\n".join([*lines, ""])


def _introduction(results: Results, stages: Sequence[str]) -> str:
    shape, batch_size = results.conditions.shape, results.conditions.batch_size
    machines = "; ".join(sorted({result.machine for result in results.stages}))
    batches = f", with batches of {batch_size} at most" if batch_size else ""
    changed = "".join(f", `{change}`" for change in results.conditions.changes)
    sentences = [
        f"Synthetic data of {shape.clients} clients, {shape.providers:,} providers, {shape.pages:,} pages and "
        f"{shape.questions:,} questions; random weights.",
        f"Steps use these data; the rounds use {SLICE.providers} providers with {SLICE.pages} pages, and a "
        "quarter of these providers takes part.",
        f"Measured on {machines}{batches}{changed}.",
        "“Other work” is the share of the machine that other processes used in the meantime, so seconds are upper "
        "bounds; CPU seconds hardly depend on this share.",
    ]
    measured = {result.stage for result in results.stages}
    if missing := [stage for stage in stages if stage not in measured]:
        sentences.append(f"Not measured yet: {', '.join(f'`{stage}`' for stage in missing)}.")
    return " ".join(sentences)


def _line(result: StageResult, row: Measured) -> str:
    step = "" if row.step_s is None else f"{row.step_s:.1f}"
    planned = "" if row.planned_bytes is None else f"{row.planned_bytes / 1e9:.1f}"
    return (
        f"| {row.stage} | {row.seconds:.0f} | {row.cpu_s:.0f} | {step} | {row.peak_bytes / 1e9:.1f} | {planned} "
        f"| {result.other_work:.0%} |"
    )
