"""`pfl conformance`."""

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from starter_kit.console import EXIT_REJECTED, console, log, print_lines, print_problems

if TYPE_CHECKING:
    from evaluator.messages.examinations import ConformanceTest
    from starter_kit.conformance.results import Result

EXIT_FAILED = 1


def conformance(
    method: Annotated[
        str,
        typer.Argument(help="A settings file, or the name of one of the kit's configs; see `pfl methods`."),
    ],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The seed of the synthetic data; random by default.")
    ] = None,
    timeout_s: Annotated[float, typer.Option(min=1, help="Limit in seconds of computing time.")] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Test on synthetic data whether a private method behaves as its ε calculation assumes."""
    from starter_kit.conformance.processes import examine_apart
    from starter_kit.conformance.results import Inputs
    from starter_kit.settings.config_files import find_config

    find_config(method)
    inputs = Inputs(method=method, changes=changes or [], seed=secrets.randbits(32) if seed is None else seed)
    result = examine_apart(inputs, timeout_s=timeout_s)
    if as_json:
        print_lines(result.model_dump_json(indent=1, exclude={"sample"}))
    else:
        _print(result)
    if result.problems:
        raise typer.Exit(EXIT_REJECTED if not result.tests else EXIT_FAILED)
    if not result.passed:
        raise typer.Exit(EXIT_FAILED)


def _print(result: "Result") -> None:
    from rich.table import Table

    if result.tests:
        table = Table("test", "measurement", "statistic", "limit", "p-value", "verdict")
        for test in result.tests:
            table.add_row(*_cells(test))
        console.print(table)
    print_problems(result.problems)
    log(f"seed {result.seed}, {result.seconds:.1f} s")
    print_lines(verdict(result))


def _cells(test: "ConformanceTest") -> list[str]:
    measured = f"{test.measures} ({test.note})" if test.note else test.measures
    numbers = (test.statistic, test.limit, test.p_value)
    limit = f"p ≥ {test.limit:g}" if test.p_value is not None else None
    statistic, _, p_value = ("–" if number is None else f"{number:.4g}" for number in numbers)
    plain = "–" if test.limit is None else f"≤ {test.limit:g}"
    return [test.id, measured, statistic, limit or plain, p_value, test.verdict.replace("_", " ")]


def verdict(result: "Result") -> str:
    """Return the last line that is printed."""
    if result.passed:
        blind = ", ".join(test.id for test in result.without_power)
        return (
            f"{result.method} conforms to its claim for one {result.unit}"
            + (f", except that these tests had no power: {blind}. " if blind else ". ")
            + "This tests the code, not a run: it doesn't show that this code produced a checkpoint."
        )
    failed = ", ".join(test.id for test in result.failed)
    return f"{result.method} doesn't conform: {failed or 'see the problem above'}."
