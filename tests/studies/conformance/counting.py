"""Counts of the harness itself: which mutants an examination finds, and how often it fails an honest method."""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from starter_kit.conformance.examination import examine
from starter_kit.conformance.processes import examine_apart
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.console import log
from starter_kit.runs.executed_code import code_sha256
from starter_kit.settings.method_list import kit_configs
from tests.studies.conformance.covered_code import method_files, settings_text
from tests.studies.conformance.tallies import Tally, Trial
from tests.studies.mutants.catalog import CATALOG, SETTINGS, Mutant

# The harness, and what runs in its rounds, beside the method.
COVERED = (
    "evaluator/mechanisms/*.py",
    "starter_kit/conformance/*.py",
    "starter_kit/dp/*.py",
    "starter_kit/federation/local_engine.py",
    "starter_kit/federation/*.py",
    "starter_kit/learning/local_training.py",
    "starter_kit/learning/pacing.py",
    "starter_kit/learning/tensors.py",
    "starter_kit/secure_aggregation/*.py",
)
MUTANTS = "tests/studies/mutants/*.py"
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
    return code_sha256([*COVERED, MUTANTS, *method_files(str(SETTINGS))], settings_text(str(SETTINGS)))


def count_mutants(known: Sequence[Found]) -> Iterator[Found]:
    """Yield every mutant, examined unless the present code has done so."""
    code = mutant_code()
    made = {found.mutant: found for found in known if found.code == code}
    for mutant in CATALOG:
        found = made.get(mutant.name)
        if found is None or not found.caught_by:
            caught_by = found_in(examine_mutant(mutant, secrets.randbits(32)))
            log(f"{mutant.name}: {', '.join(caught_by) or 'not found'}")
            found = Found(mutant=mutant.name, fault=mutant.fault, caught_by=caught_by, code=code)
        yield found


def try_config(name: str) -> Trial:
    """Examine one of the kit's configs, on synthetic data of its own."""
    seed, begun = secrets.randbits(32), time.process_time()
    found = found_in(examine(Inputs(method=name, seed=seed)))
    trial = Trial(found, time.process_time() - begun)
    log(f"{name}: {', '.join(found) or 'conforms'}, seed {seed}, {trial.seconds:.1f} s")
    return trial


def honest_codes(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of the code that a count of each of these configs is of."""
    return {name: code_sha256([*COVERED, *method_files(name)], settings_text(name)) for name in names}


def private_configs() -> list[str]:
    """Return the names of the kit's private configs that can be examined."""
    return [config.name for config in kit_configs() if config.unit and config.name not in UNSUPPORTED]
