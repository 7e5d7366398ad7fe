"""All studies, each as a command of `python -m tests.studies` whose options have the sizes of the published page."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from click import Choice
from typer import BadParameter, Option

from tests.studies import (
    adaptive_submissions,
    competition_tables,
    false_alarms,
    genuine_runs,
    private_rows,
    published_epsilon,
    published_settings,
    random_allocation,
)
from tests.studies.auditing import page as auditing_page
from tests.studies.auditing import simulation
from tests.studies.auditing.simulation import Simulated
from tests.studies.conformance import counting
from tests.studies.conformance import page as conformance_page
from tests.studies.conformance.counting import Counts
from tests.studies.false_alarms import Flagged
from tests.studies.forging import page as forging_page
from tests.studies.forging.measuring import Forger, Forging
from tests.studies.memorization import experiment as memorization_experiment
from tests.studies.memorization import page as memorization_page
from tests.studies.published_settings import Accounted
from tests.studies.random_allocation import Compared
from tests.studies.rehearsal.inputs import Shape
from tests.studies.rehearsal.page import with_table
from tests.studies.rehearsal.rehearsal import Rehearsal, stage_names
from tests.studies.rehearsal.results import Conditions
from tests.studies.rehearsal.results import Results as RehearsalResults
from tests.studies.reproduction import curves, experiment
from tests.studies.reproduction import page as reproduction_page
from tests.studies.reproduction.ablations import page as ablations_page
from tests.studies.reproduction.ablations import staged_scores
from tests.studies.reproduction.curves import Convergence, Curves
from tests.studies.reproduction.experiment import TASK, Experiment, Results
from tests.studies.reproduction.fewest import counted as fewest_counted
from tests.studies.reproduction.fewest import page as fewest_page
from tests.studies.reproduction.leakage import page as leakage_page
from tests.studies.reproduction.leakage.experiment import LeakageExperiment, LeakageResults, Size
from tests.studies.study import DOCS, Study
from tests.studies.tallies import Tally

Folder = Annotated[Path, Option(help="Where data and runs are kept.")]
Seeds = Annotated[int, Option(min=1, help="How often each row is trained.")]
Processes = Annotated[int, Option(min=1)]
FOLDER = Path("var/reproduction")


def reproduction(folder: Folder = FOLDER, seeds: Seeds = 3) -> Study[Results]:
    """Train the papers' rows on a task that a small model learns, and report whether their order holds."""
    trained = Experiment(folder, seeds, parts=experiment.PARTS)
    return Study("reproduction", Results, trained.run, reproduction_page.page, trained.forget)


def ablations(folder: Folder = FOLDER, seeds: Seeds = 3) -> Study[Results]:
    """Train the ablations of track 1's winner on the same task, and report which claims hold."""
    trained = Experiment(folder, seeds, parts=staged_scores.PARTS)
    return Study("ablations", Results, trained.run, ablations_page.page, trained.forget)


def competition(folder: Folder = FOLDER, seeds: Seeds = 3) -> Study[Curves]:
    """Train the rows of the competition's figures again, score every round, and write its tables beside ours."""
    trained = Convergence(folder, seeds)

    def page(curves: Curves) -> str:
        return competition_tables.page(reproduction().read(), ablations().read(), curves)

    return Study("competition-tables", Curves, trained.run, page, trained.forget)


def fewest_bytes(folder: Folder = FOLDER, seeds: Seeds = 3) -> Study[Results]:
    """Train with fewer and fewer counted bytes on the same task, and report which rows reach the threshold."""
    trained = Experiment(folder, seeds, parts=fewest_counted.PARTS, once=fewest_counted.ONCE)
    return Study("fewest-bytes", Results, trained.run, fewest_page.page, trained.forget)


def better_private_rows(folder: Folder = FOLDER, seeds: Seeds = 3) -> Study[private_rows.Results]:
    """Try changes of DP-LoRA on the same task, and report which score higher at every ε in every seed."""
    trained = private_rows.PrivateRows(folder, seeds)

    def page(results: private_rows.Results) -> str:
        return private_rows.page(results, reproduction().read())

    return Study("private-rows", private_rows.Results, trained.run, page, trained.forget)


def leakage(
    folder: Folder = FOLDER,
    seeds: Seeds = 3,
    trained: Annotated[int, Option(min=20, help="Providers that are trained on.")] = TASK.providers,
    providers: Annotated[int, Option(min=4, help="Providers of each kind that are asked about.")] = 200,
    resamples: Annotated[int, Option(min=100, help="Of each bootstrap.")] = 2000,
    coverage_runs: Annotated[int, Option(min=10, help="Simulated attacks for the coverage.")] = 1000,
) -> Study[LeakageResults]:
    """Attack the baselines of the reproduction, and compare what leaks with what ε allows."""
    forms = {name: min(getattr(TASK, name), trained) for name in ("valid_forms", "test_forms")}
    attacks = LeakageExperiment(
        folder,
        seeds,
        task=TASK.model_copy(update={"providers": trained, **forms}),
        size=Size(providers=min(providers, trained), resamples=resamples),
        coverage_runs=coverage_runs,
    )
    return Study("leakage", LeakageResults, attacks.run, leakage_page.page, attacks.forget)


def memorization(folder: Folder = FOLDER) -> Study[memorization_experiment.Results]:
    """Train on providers with constants, with and without privacy, and report what the models know of them."""
    trained = memorization_experiment.Memorization(folder)
    return Study(
        "memorization", memorization_experiment.Results, trained.run, memorization_page.page, trained.forget
    )


def auditing() -> Study[list[Simulated]]:
    """Simulate audits with canaries, of honest and of faulty runs."""
    return Study("auditing", list[Simulated], simulation.run, auditing_page.page)


def conformance(
    examinations: Annotated[
        int, Option(min=0, help="Examinations of each private config by the present code.")
    ] = 100,
    processes: Processes = 1,
) -> Study[Counts]:
    """Examine all mutants, and every private config of the kit many times."""
    run = partial(counting.run, examinations=examinations, processes=processes)
    return Study("conformance", Counts, run, conformance_page.page, faults=counting.faults)


def genuine(
    runs: Annotated[int, Option(min=0, help="Runs of each setting by the present code.")] = 200,
    processes: Processes = 1,
    keep: Annotated[Path | None, Option(help="A folder for runs that are flagged or rejected.")] = None,
) -> Study[list[Tally]]:
    """Train and evaluate genuine runs of every private setting, and count the false alarms."""
    run = partial(genuine_runs.run, runs=runs, processes=processes, keep=keep)
    return Study("genuine-runs", list[Tally], run, genuine_runs.page, faults=genuine_runs.faults)


def simulated_alarms(
    runs: Annotated[int, Option(min=1, help="Runs of each size.")] = 1000,
    sizes: Annotated[
        list[str] | None,
        Option("--size", click_type=Choice(list(false_alarms.SIZES)), help="All where none is named."),
    ] = None,
    seed: int = false_alarms.SEED,
) -> Study[list[Flagged]]:
    """Simulate honest noise, and count what the noise tests flag."""
    run = partial(false_alarms.run, runs=runs, sizes=sizes or list(false_alarms.SIZES), seed=seed)
    return Study("false-alarms", list[Flagged], run, false_alarms.page)


def adaptive() -> Study[list[adaptive_submissions.Simulated]]:
    """Simulate teams that adapt their submissions to the displayed scores."""
    outcomes = list[adaptive_submissions.Simulated]
    return Study("adaptive-submissions", outcomes, adaptive_submissions.run, adaptive_submissions.page)


def forging(folder: Folder = FOLDER) -> Study[Forging]:
    """Forge records of a model that was trained without privacy, and report what they gain and what finds them."""
    forger = Forger(Experiment(folder, 1, parts=[]))
    return Study("forging", Forging, forger.run, forging_page.page)


def allocation() -> Study[list[Compared]]:
    """Compute the noise of random allocation and of Poisson sampling for each budget."""
    return Study("random-allocation", list[Compared], random_allocation.run, random_allocation.page)


def published() -> Study[list[Accounted]]:
    """Account the published settings under both amplification rules."""
    return Study("published-settings", list[Accounted], published_settings.run, published_settings.page)


def _known(stages: list[str] | None) -> list[str] | None:
    if unknown := set(stages or []) - set(stage_names()):
        raise BadParameter(f"{', '.join(sorted(unknown))} is none of {', '.join(stage_names())}")
    return stages


def rehearsal(
    scale: Annotated[float, Option(help="Size of the data; 1 is the published one.")] = 1.0,
    tiny: Annotated[bool, Option("--tiny", help="Use the tiny VT5 instead of the real one.")] = False,
    work: Annotated[
        Path | None,
        Option(help="Where data and base weights are kept, 15 GB; by default a temporary folder."),
    ] = None,
    batch_size: Annotated[int | None, Option(help="Examples in a step, where a config has more.")] = None,
    changes: Annotated[
        list[str] | None, Option("--set", help="A setting to change, as for pfl train.")
    ] = None,
    stages: Annotated[
        list[str] | None,
        Option("--stage", help="A full config, or rounds; all where none is named.", callback=_known),
    ] = None,
) -> Study[RehearsalResults]:
    """Measure a training step of each method at full size, and rounds that are killed and resumed."""
    conditions = Conditions(
        shape=Shape.scaled(scale), tiny=tiny, batch_size=batch_size, changes=changes or []
    )
    rehearsed = Rehearsal(conditions, stages or [], work)
    page = DOCS / "full-size.md"
    return Study(
        "full-size",
        RehearsalResults,
        rehearsed.run,
        lambda results: with_table(page.read_text(encoding="utf-8"), results, stage_names()),
        rehearsed.forget,
    )


# By the name of the page.
STUDIES: Mapping[str, Callable[..., Study[Any]]] = {
    "reproduction": reproduction,
    "ablations": ablations,
    "competition-tables": competition,
    "fewest-bytes": fewest_bytes,
    "private-rows": better_private_rows,
    "leakage": leakage,
    "memorization": memorization,
    "auditing": auditing,
    "conformance": conformance,
    "genuine-runs": genuine,
    "false-alarms": simulated_alarms,
    "forging": forging,
    "adaptive-submissions": adaptive,
    "published-settings": published,
    "random-allocation": allocation,
    "full-size": rehearsal,
}


def derived_files() -> dict[str, str]:
    """Return the files in docs/ that are made of the outcomes of several studies, or of one with a page of its own."""
    exposed, *_ = published_epsilon.exposed_runs()
    drawn = competition().read()
    return {
        "published-epsilon.md": published_epsilon.page(published().read()),
        "published-epsilon.svg": published_epsilon.picture(exposed),
        **{curves.file_of(figure): curves.picture(drawn, figure) for figure in curves.pictures(drawn)},
    }
