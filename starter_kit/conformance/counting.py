"""Counts of the harness itself: which mutants an examination finds, and how often it fails an honest method."""

from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from starter_kit.conformance.examination import examine
from starter_kit.conformance.mutants.catalog import CATALOG, SETTINGS, Mutant
from starter_kit.conformance.processes import examine_apart
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.settings.configuration import EXAMPLES
from starter_kit.settings.method_list import kit_configs


class Found(BaseModel):
    """What an examination found in a mutant: the tests that failed, or the codes of the problems."""

    model_config = ConfigDict(frozen=True)

    mutant: str
    fault: str
    caught_by: list[str]


class Honest(BaseModel):
    """How often one of the kit's configs was examined, and which tests failed, over all examinations."""

    model_config = ConfigDict(frozen=True)

    config: str
    examinations: int
    failed: list[str]
    seconds: float


class Counts(BaseModel):
    """All counts: docs/conformance.json."""

    model_config = ConfigDict(frozen=True)

    mutants: list[Found]
    honest: list[Honest]


def examine_mutant(mutant: Mutant, seed: int) -> Result:
    """Examine a mutant by the group of tests that should find it."""
    changes = [f"mutant={mutant.name}", *mutant.changes]
    if mutant.group is None:
        return examine_apart(
            Inputs(method=str(SETTINGS), changes=changes, seed=seed, only=[Group.CONFIGURED])
        )
    return examine(
        Inputs(method=str(SETTINGS), changes=changes, seed=seed, only=[mutant.group], with_sample=False)
    )


def found_in(result: Result) -> list[str]:
    """Return the ids of failed tests and the codes of problems."""
    return [test.id for test in result.failed] + [problem.code for problem in result.problems]


def count_mutants(seed: int, say: Callable[[str], None]) -> Iterator[Found]:
    """Examine every mutant."""
    for number, mutant in enumerate(CATALOG):
        found = found_in(examine_mutant(mutant, seed + number))
        say(f"{mutant.name}: {', '.join(found) or 'not found'}")
        yield Found(mutant=mutant.name, fault=mutant.fault, caught_by=found)


def count_honest(
    examinations: int, seed: int, say: Callable[[str], None], configs: Sequence[str] = ()
) -> Iterator[Honest]:
    """Examine every private config of the kit, or `configs`, as often as asked."""
    for name in configs or private_configs():
        failed, seconds = [], 0.0
        for number in range(examinations):
            result = examine(Inputs(method=name, seed=seed + number))
            failed += found_in(result)
            seconds += result.seconds
        say(f"{name}: {examinations} examinations, {len(failed)} failed tests")
        yield Honest(config=name, examinations=examinations, failed=failed, seconds=seconds)


def private_configs() -> list[str]:
    """Return the names of the kit's private configs, without the examples of plug-ins."""
    return [
        config.name for config in kit_configs() if config.unit and not config.name.startswith(f"{EXAMPLES}/")
    ]
