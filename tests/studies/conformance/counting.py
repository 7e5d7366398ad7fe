"""Counts of the harness itself: which mutants an examination finds, and how often it fails an honest method."""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from starter_kit.conformance.examination import examine
from starter_kit.conformance.processes import examine_apart
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.console import log
from starter_kit.settings.method_list import kit_configs
from tests.studies.covered_code import covered_sha256
from tests.studies.mutants.catalog import LIMITS, MUTANTS, SETTINGS, Mutant
from tests.studies.study import completed
from tests.studies.tallies import Tally, Trial, count, current, started

# The harness, and what runs in its rounds, beside the method.
COVERED = (
    "evaluator/mechanisms/*.py",
    "starter_kit/conformance/*.py",
    "starter_kit/dp/*.py",
    "starter_kit/federation/*.py",
    "starter_kit/learning/local_training.py",
    "starter_kit/learning/pacing.py",
    "starter_kit/learning/tensors.py",
    "starter_kit/secure_aggregation/*.py",
)
MUTANT_FILES = "tests/studies/mutants/*.py"
# Its messages have more than a vector.
UNSUPPORTED = ("plugins/adaptive-clipping",)


class Found(BaseModel):
    """What an examination found in a mutant: the tests that failed, or the codes of the problems.

    Attributes:
        code: The hash of the code that found it.
    """

    model_config = ConfigDict(frozen=True)

    mutant: str
    fault: str
    caught_by: list[str]
    code: str


class Counts(BaseModel):
    """All counts: docs/conformance.json."""

    model_config = ConfigDict(frozen=True)

    mutants: list[Found] = []
    honest: list[Tally] = []


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


def mutant_code() -> str:
    """Return the hash of the code that a count of mutants is of."""
    return covered_sha256([*COVERED, MUTANT_FILES], str(SETTINGS))


def run(earlier: Counts | None, examinations: int, processes: int) -> Iterator[Counts]:
    """Examine the mutants and the private configs, as often as the present code hasn't; yield all counts."""
    counts, codes = earlier or Counts(), honest_codes(private_configs())
    honest = started(counts.honest, codes)
    for mutants in count_mutants(counts.mutants):
        counts = Counts(mutants=mutants, honest=honest)
        yield counts
    for _, tallies in count(honest, codes, examinations, try_config, processes):
        yield Counts(mutants=counts.mutants, honest=tallies)


def faults(counts: Counts) -> list[str]:
    """Return the mutants that were missed and the configs that failed, by the code as it is."""
    honest = current(counts.honest, honest_codes(private_configs()))
    return [
        *(
            f"{found.mutant}: not found"
            for found in counts.mutants
            if not found.caught_by and found.mutant not in LIMITS
        ),
        *(f"{tally.name}: {tally.alarms} false alarms" for tally in honest if tally.alarms),
    ]


def count_mutants(known: Sequence[Found]) -> Iterator[list[Found]]:
    """Yield what was found in the mutants, after each one that the present code hasn't found yet."""
    code = mutant_code()
    kept = {
        found.mutant: found
        for found in known
        if found.code == code and (found.caught_by or found.mutant in LIMITS)
    }
    return completed(MUTANTS, kept, lambda name: _found(MUTANTS[name], code))


def _found(mutant: Mutant, code: str) -> Found:
    caught_by = found_in(examine_mutant(mutant, secrets.randbits(32)))
    log(f"{mutant.name}: {', '.join(caught_by) or 'not found'}")
    return Found(mutant=mutant.name, fault=mutant.fault, caught_by=caught_by, code=code)


def try_config(name: str) -> Trial:
    """Examine one of the kit's configs, on synthetic data of its own."""
    seed, begun = secrets.randbits(32), time.process_time()
    found = found_in(examine(Inputs(method=name, seed=seed)))
    trial = Trial(found, time.process_time() - begun)
    log(f"{name}: {', '.join(found) or 'conforms'}, seed {seed}, {trial.seconds:.1f} s")
    return trial


def honest_codes(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of the code that a count of each of these configs is of."""
    return {name: covered_sha256(COVERED, name) for name in names}


def private_configs() -> list[str]:
    """Return the names of the kit's private configs that can be examined."""
    return [config.name for config in kit_configs() if config.unit and config.name not in UNSUPPORTED]
