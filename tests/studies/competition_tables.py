"""docs/competition-tables.md: the tables of the competition's paper beside ours. Nothing in them is set by hand."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from starter_kit.published import Source, Table, published
from tests.studies.markdown import fill, table_row
from tests.studies.published_bytes import TOTALS, Total
from tests.studies.reproduction import curves as figures
from tests.studies.reproduction.ablations.claims import CLAIMS as ABLATION_CLAIMS
from tests.studies.reproduction.ablations.rows import STAGED_RUNS, Stage
from tests.studies.reproduction.claims import PRIVACY_CLAIMS, TRACK_1, TRACK_1_CLAIMS, TRACK_2, TRACK_2_CLAIMS
from tests.studies.reproduction.curves import Curves
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import EPSILONS, Outcome
from tests.studies.reproduction.verdicts import (
    Outcomes,
    by_row,
    claims_table,
    seeds_of,
    spread,
    summary,
)

PAPER = Source.COMPETITION
BASELINE = "baseline"
TOTAL_OF = {total.config: total for total in TOTALS}
# The last models of Table A5 are those of these rows of Table A2.
STAGED = {"Tuned HPs": "float32", "Quantization": "nf4"}

# Who achieved the rows of Tables 2 and 3, by their order there: the headings of sections 4.3, 4.4, 5.3 and 5.4.
TEAMS = {
    "2": ("Muhamed, Kuo, and Smith", "Niwa, Ishii, Yamasaki, Fukami, Tyou, and Yokota"),
    "3": ("Ragul N and Kutum", "Fukami, Yamasaki, Niwa, and Tyou"),
}


def page(reproduced: Results, ablated: Results, curves: Curves) -> str:
    """Return the page in Markdown."""
    rows, cells = by_row(reproduced.outcomes), by_row(ablated.outcomes)
    seeds = seeds_of(reproduced)
    claims = [*PRIVACY_CLAIMS, *TRACK_1_CLAIMS, *TRACK_2_CLAIMS]
    compared = [claim for claim in claims if rows[claim.lower] and rows[claim.upper]]
    return fill(
        Path(__file__).with_suffix(".md"),
        published_1=_published("2"),
        smallest=_smallest(),
        published_2=_published("3"),
        seeds=seeds,
        track_1=_track_1(rows),
        track_1_claims=claims_table(TRACK_1_CLAIMS, rows),
        reductions=_reductions(),
        steps=_steps(rows, cells),
        track_2=_track_2(rows),
        track_2_summary=summary(TRACK_2_CLAIMS, rows),
        track_2_claims=claims_table(TRACK_2_CLAIMS, rows),
        ablations=summary(ABLATION_CLAIMS, cells)[0],
        convergence=_convergence(curves),
        all_claims=len(compared),
        possible=2**seeds,
        by_chance=f"{len(compared) / 2**seeds:.1f}",
        holding=summary(compared, rows)[0].split(", ")[1],
    )


def _published(name: str) -> list[str]:
    """The rows of a table of winners; the last is the organizers' baseline, which has no rank."""
    table = published().table(PAPER, name)
    ranked = [(str(rank), team) for rank, team in enumerate(TEAMS[name], 1)]
    return [
        table_row(rank, team, row, *_results(table, row))
        for row, (rank, team) in zip(table.rows, [*ranked, ("–", "the organizers")], strict=True)
    ]


def _results(table: Table, row: str) -> list[str]:
    """The results by which a track ranks a row, as printed."""
    if "communication" in table.columns:
        return [f"{table.number(row, 'communication').value:g} GB", f"{table.number(row, 'anls').value:.4f}"]
    return [f"{table.number(row, f'epsilon_{epsilon}').value:.4f}" for epsilon in EPSILONS]


def _smallest() -> str:
    """What the winner of track 1 reached beyond the solution that won."""
    table = published().table(PAPER, "A2")
    tuned, quantized = (
        f"{table.number(row, 'communication').value:g} MB with an ANLS of {table.number(row, 'anls').value:.4f}"
        for row in STAGED
    )
    return (
        "The winning solution is LoRA alone. The same team also reports LoRA with tuned hyperparameters "
        f"({tuned}), and with NF4 quantization on top ({quantized})."
    )


def _convergence(curves: Curves) -> list[str]:
    """The figures' pictures, and which row is above the other; or how to make them."""
    if not curves.curves:
        return [
            "**Not run.** `python -m tests.studies competition-tables` trains their rows, and scores every round."
        ]
    seeds = len({curve.seed for curve in curves.curves})
    lines = [
        f"These runs repeat rows as published, with {seeds} {'seeds' if seeds > 1 else 'seed'}, and score the "
        "validation split after every round. Thin lines are single seeds. The paper prints no numbers for its "
        "figures; in each plot, its text places the second row of the legend above the first. Half of the validation "
        "documents are of training providers, so ε doesn't cover these scores.",
        "",
    ]
    for figure in figures.pictures(curves):
        lines += [f"![{figures.in_words(curves, figure)}]({figures.file_of(figure)})", ""]
    return [
        *lines,
        table_row("figure", "claim", "margin after the last round of both", "margin at the end of each"),
        table_row(*["---"] * 4),
        *figures.comparisons(curves),
    ]


def _ours(outcomes: Sequence[Outcome]) -> str:
    return spread([outcome.anls for outcome in outcomes])


def _track_1(rows: Outcomes) -> list[str]:
    table = published().table(PAPER, "2")
    printed = {row: table.number(row, "anls").value for row in table.rows}
    found = {row: mean(outcome.anls for outcome in rows[TRACK_1[row]]) for row in table.rows}
    return [
        table_row(
            f"{row}, `{table.configs[row]}`",
            f"{printed[row]:.4f}",
            _percent_above(printed[row], printed[BASELINE]),
            _ours(rows[TRACK_1[row]]),
            _percent_above(found[row], found[BASELINE]),
            f"{table.number(row, 'communication').value:g} GB",
            f"{TOTAL_OF[table.configs[row]].counted_bytes:,}",
        )
        for row in table.rows
    ]


def _percent_above(anls: float, baseline: float) -> str:
    return f"{anls / baseline - 1:+.1%}"


def _reductions() -> list[str]:
    """The bytes of each row, relative to the baseline's, as printed and of the kit's configs."""
    baseline, *others = TOTALS
    return [
        table_row(
            total.source,
            f"{_times(baseline.printed.bytes, total.printed.bytes)}",
            f"{_times(_gib(baseline), total.printed.bytes)}",
            f"{_times(baseline.counted_bytes, total.counted_bytes)}",
            "holds" if total.counted_bytes < baseline.counted_bytes else "**doesn't hold**",
        )
        for total in others
    ]


def _gib(total: Total) -> float:
    return total.published_bytes or total.printed.bytes


def _times(more: float, less: float) -> str:
    ratio = more / less
    return f"{ratio:,.0f}" if ratio > 20 else f"{ratio:.2f}"


def _steps(rows: Outcomes, cells: Outcomes) -> list[str]:
    table = published().table(PAPER, "A2")
    lines = []
    for row in table.rows:
        total = TOTAL_OF[table.configs[row]]
        if row in STAGED:
            run = next(run for run in STAGED_RUNS if (run.codec, run.clients) == (STAGED[row], 1))
            found = cells[run.row(2, Stage.AGGREGATION).name]
        else:
            found = rows[TRACK_1[row]]
        lines.append(
            table_row(
                row,
                f"{table.number(row, 'anls').value:.4f}",
                _ours(found),
                f"{table.number(row, 'communication').value:g}",
                f"{total.counted_bytes / 1e6:.3f}",
                f"{mean(outcome.bytes_total for outcome in found) / 1e6:.3f}",
            )
        )
    return lines


def _track_2(rows: Outcomes) -> list[str]:
    table = published().table(PAPER, "3")
    lines = []
    for row in table.rows:
        printed = [f"{table.number(row, f'epsilon_{epsilon}').value:.4f}" for epsilon in EPSILONS]
        ours = [_ours(rows[f"{TRACK_2[row]}-{epsilon}"]) for epsilon in EPSILONS]
        lines += [table_row(row, "paper", *printed), table_row(row, "here", *ours)]
    return lines
