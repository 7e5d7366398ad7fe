"""`pfl privacy`: ε, noise, comparisons and the checks on a record, computed by the code that the workers run."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Column, Table

from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Event, Laplace, Release
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Poisson, RandomAllocation
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.mechanisms.values import MAX_NOISE_MULTIPLIER, MAX_ROUNDS
from evaluator.messages.jobs import ArtifactKind
from starter_kit.commands.app import CommandOfNumber, new_app
from starter_kit.commands.options import RunDirectory, require_number, wrong_option
from starter_kit.console import console, print_lines
from starter_kit.reporting.rounding import rounded_up

app = new_app("Compute ε and noise with the benchmark's own accountants, and explain the checks on a record.")

Result = TypeVar("Result")
Releases = Mapping[SamplingRule, Sequence[Event]]

RULES = {SamplingRule.TWO_STAGE: "two-stage", SamplingRule.PRODUCT: "product"}

OptionalRecord = Annotated[
    Path | None, typer.Argument(help="A training record, instead of the options below.")
]
SamplingRate = Annotated[
    float | None, typer.Option(help="Sampling probability of each provider; all clients take part.")
]
ClientRate = Annotated[float | None, typer.Option(help="Sampling probability of each client.")]
ProviderRate = Annotated[
    float | None, typer.Option(help="Sampling probability of each provider of a sampled client.")
]
NoiseMultiplier = Annotated[
    float | None, typer.Option(help="σ: standard deviation of the noise over the clip norm.")
]
LaplaceScale = Annotated[
    float | None,
    typer.Option(
        help="Instead of σ: scale of Laplace noise over the L1 sensitivity, which protects one question, replaced by "
        "another."
    ),
]
Rounds = Annotated[int, typer.Option(help="Number of rounds.")]
Delta = Annotated[float, typer.Option(help="δ.")]
Rule = Annotated[SamplingRule, typer.Option(help="Amplification rule for two stages of sampling.")]

RoundsPerCycle = Annotated[
    int | None,
    typer.Option(
        help="Random allocation: each provider takes part in one round of every so many; all clients take part."
    ),
]

DELTA = 1e-5  # the competition's
CLIENTS = 10  # likewise; with the server's noise their number doesn't count
FIELDS = (
    Poisson.model_fields
    | RandomAllocation.model_fields
    | Noise.model_fields
    | Release.model_fields
    | Laplace.model_fields
)


@dataclass(frozen=True)
class Participation:
    """The options of who takes part in a round; without any, everyone does."""

    sampling_rate: float | None = None
    client_rate: float | None = None
    provider_rate: float | None = None
    rounds_per_cycle: int | None = None

    def sampling(self) -> Poisson | RandomAllocation:
        """Return the sampling that the options name.

        Raises:
            ProblemError: (`E_CONFIGURATION`) They don't go together.
            ValueError: A number is out of range.
        """
        rates = (self.client_rate, self.provider_rate)
        if self.rounds_per_cycle is not None:
            if (self.sampling_rate, *rates) != (None,) * 3:
                raise wrong_option("--rounds-per-cycle", "random allocation, or a sampling rate", "both")
            return RandomAllocation(rounds_per_cycle=self.rounds_per_cycle)
        if self.sampling_rate is not None and rates != (None, None):
            raise wrong_option(
                "--sampling-rate", "one stage of sampling, or --client-rate and --provider-rate", "both"
            )
        client_rate, provider_rate = rates
        if self.sampling_rate is not None:
            provider_rate = self.sampling_rate
        return Poisson(
            client_rate=1.0 if client_rate is None else client_rate,
            provider_rate=1.0 if provider_rate is None else provider_rate,
        )


@app.command()
def epsilon(
    record: OptionalRecord = None,
    sampling_rate: SamplingRate = None,
    client_rate: ClientRate = None,
    provider_rate: ProviderRate = None,
    rounds_per_cycle: RoundsPerCycle = None,
    noise_multiplier: NoiseMultiplier = None,
    laplace_scale: LaplaceScale = None,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
    sampling_rule: Rule = SamplingRule.TWO_STAGE,
) -> None:
    """Print the ε of a training record, or of identical rounds, computed by the official accountant."""
    from evaluator.accounting import official

    require_number("--delta", delta, below=1)
    releases = _releases(
        record,
        Participation(sampling_rate, client_rate, provider_rate, rounds_per_cycle),
        noise_multiplier,
        laplace_scale,
        rounds,
    )
    bound = _within_range(lambda: official.epsilon(releases[sampling_rule], delta))
    print_lines(rounded_up(bound, 6))


@app.command(cls=CommandOfNumber)
def noise(
    target_epsilon: Annotated[float, typer.Argument(help="ε that the run must not exceed.")],
    sampling_rate: SamplingRate = None,
    client_rate: ClientRate = None,
    provider_rate: ProviderRate = None,
    rounds_per_cycle: RoundsPerCycle = None,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
    sampling_rule: Rule = SamplingRule.TWO_STAGE,
    accountant: Annotated[
        Accountant, typer.Option(help="pld is official; the competition's script searched with rdp.")
    ] = Accountant.PLD,
) -> None:
    """Print the smallest noise multiplier σ whose ε doesn't exceed the target."""
    from evaluator.accounting.calibration import noise_multiplier_for

    require_number("--delta", delta, below=1)
    mechanism = _mechanism(Participation(sampling_rate, client_rate, provider_rate, rounds_per_cycle))
    sigma = _within_range(
        lambda: noise_multiplier_for(
            mechanism, epsilon=target_epsilon, delta=delta, rounds=rounds, rule=sampling_rule
        )
    )
    if accountant is Accountant.RDP:
        from evaluator.accounting import rdp

        def is_enough(multiplier: float) -> bool:
            events = mechanism.with_noise_multiplier(multiplier).events(sampling_rule, rounds)
            return rdp.epsilon(events, delta) <= target_epsilon

        sigma = _within_range(lambda: _least_from(sigma, is_enough))
    print_lines(rounded_up(sigma, 6))


@app.command()
def compare(
    record: OptionalRecord = None,
    sampling_rate: SamplingRate = None,
    client_rate: ClientRate = None,
    provider_rate: ProviderRate = None,
    rounds_per_cycle: RoundsPerCycle = None,
    noise_multiplier: NoiseMultiplier = None,
    laplace_scale: LaplaceScale = None,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
    tuning_runs: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Also bound the ε of choosing the best of a random number of such runs "
            "(Poisson-distributed with this mean).",
        ),
    ] = None,
) -> None:
    """List ε under both sampling rules according to every accountant, and to the classical theorems if they apply."""
    from evaluator.accounting import comparison

    require_number("--delta", delta, below=1)
    require_number("--tuning-runs", tuning_runs)
    releases = _releases(
        record,
        Participation(sampling_rate, client_rate, provider_rate, rounds_per_cycle),
        noise_multiplier,
        laplace_scale,
        rounds,
    )
    bounds = _within_range(lambda: comparison.compare(releases, delta, tuning_runs=tuning_runs))
    table = Table("sampling rule", "accountant", "ε", title=f"δ = {delta:g}")
    for bound in bounds:
        rules = " and ".join(RULES[rule] for rule in bound.rules)
        found = bound.rejection if bound.epsilon is None else rounded_up(bound.epsilon, 6)
        table.add_row(rules, bound.method, found)
    console.print(table)


@app.command()
def membership(
    record: OptionalRecord = None,
    sampling_rate: SamplingRate = None,
    client_rate: ClientRate = None,
    provider_rate: ProviderRate = None,
    rounds_per_cycle: RoundsPerCycle = None,
    noise_multiplier: NoiseMultiplier = None,
    laplace_scale: LaplaceScale = None,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
    sampling_rule: Rule = SamplingRule.TWO_STAGE,
) -> None:
    """Print how well any attack can tell whether a provider's documents were in the training data."""
    from evaluator.accounting.membership import membership_bounds, privacy_profiles

    require_number("--delta", delta, below=1)
    releases = _releases(
        record,
        Participation(sampling_rate, client_rate, provider_rate, rounds_per_cycle),
        noise_multiplier,
        laplace_scale,
        rounds,
    )
    bounds = _within_range(lambda: membership_bounds(privacy_profiles(releases[sampling_rule]), delta))
    table = Table("what an attack can reach", "at most", title="Whether a provider took part")
    table.add_row("balanced accuracy (guessing: 50%)", _percent_up(bounds.balanced_accuracy))
    for rate in bounds.true_positive_rates:
        name = f"true positive rate at {_percent_up(rate.false_positive_rate)} false positives"
        table.add_row(name, _percent_up(rate.at_most))
    mu = "none" if bounds.gaussian_mu is None else f"{bounds.gaussian_mu:.4f}"
    table.add_row("μ of the closest Gaussian differential privacy", mu)
    console.print(table)


@app.command()
def published() -> None:
    """List the published private runs: noise, claimed ε, and ε under each sampling rule and accountant."""
    from evaluator.accounting import comparison
    from starter_kit.settings.published_noise import published_runs

    ours = [
        (rule, name, accounting)
        for rule in (SamplingRule.PRODUCT, SamplingRule.TWO_STAGE)
        for name, accounting in comparison.ACCOUNTANTS.items()
    ]
    columns = [
        "σ",
        "claimed ε",
        *(f"{RULES[rule]}\n{name.upper()}" for rule, name, _ in ours),
    ]
    table = Table("run", *(Column(name, justify="right") for name in columns), title=f"δ = {DELTA:g}")
    for run in published_runs():
        releases = run.releases()
        table.add_row(
            run.source,
            f"{run.noise_multiplier:.4g}",
            f"{run.claimed_epsilon:g}",
            *(rounded_up(accounting(releases[rule], DELTA), 3) for rule, _, accounting in ours),
        )
    console.print(table)
    print_lines("VT5_C+DP and VT5_FL+DP are the private models of Tito et al. 2024, Table A8.")


@app.command()
def explain(
    record: Annotated[Path, typer.Argument(help="A training record.")],
    annex: Annotated[Path | None, typer.Option(help="The record's annex.")] = None,
    base: Annotated[Path | None, typer.Option(help="Folder of the track's base weights.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="The trained model.")] = None,
    log: Annotated[Path | None, typer.Option(help="The communication log.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="ε of the board; by default the record's own claim.")
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="Clients of the track.")] = 10,
    delta: Delta = DELTA,
    flagged: Annotated[
        bool, typer.Option("--flagged", help="Show only checks that failed, are flagged or have no power.")
    ] = False,
) -> None:
    """Explain each check: its result, meaning and limits. Other files of the run are found next to the record."""
    from evaluator.messages.jobs import PrivacyRules, TrackRules
    from evaluator.pipeline import WEIGHTS
    from evaluator.records.case import RunFile
    from evaluator.records.reading import read_record
    from starter_kit.evaluation.record_checks import AccountedCase, explain_checks, verdict
    from starter_kit.runs.folder import RunFolder
    from starter_kit.weights.base_weights import read_base

    found_beside = {
        ArtifactKind.CHECKPOINT: RunFile.CHECKPOINT,
        ArtifactKind.COMMUNICATION_LOG: RunFile.LOG,
        ArtifactKind.TRAINING_ANNEX: RunFile.ANNEX,
    }
    named = {
        RunFile.ANNEX: annex,
        RunFile.BASE: base and base / WEIGHTS,
        RunFile.CHECKPOINT: checkpoint,
        RunFile.LOG: log,
    }
    require_number("--budget", budget)
    require_number("--delta", delta, below=1)
    read = read_record(record, max_rounds=MAX_ROUNDS)
    if base is not None:
        read_base(base)
    beside = {
        found_beside[kind]: path
        for kind, path in RunFolder(record.parent).files().items()
        if kind in found_beside
    }
    given = {name: path for name, path in named.items() if path is not None}
    target = read.claimed_epsilon if budget is None else budget
    privacy = _within_range(lambda: PrivacyRules(epsilon=target, delta=delta))
    rules = TrackRules(
        reference="local", test_set="local", clients=clients, max_rounds=MAX_ROUNDS, privacy=privacy
    )
    case = AccountedCase(read, rules, beside | given)
    explained = list(explain_checks(case))
    shown = [check for check in explained if check.needs_reading or not flagged]
    print_lines(verdict(case, explained), *shown)


@app.command()
def annex(
    run: RunDirectory,
    challenge: Annotated[
        str, typer.Option(help="The challenge on the draft's page, shown after the upload of the record.")
    ],
) -> None:
    """Create a run's annex for the site's challenge. `pfl submit` does so automatically."""
    from starter_kit.runs.answering import answer_challenge
    from starter_kit.runs.folder import FILES

    if not re.fullmatch("[0-9a-f]{64}", challenge):
        raise wrong_option(
            "--challenge",
            "64 hexadecimal digits in lower case, as the draft's page shows them",
            challenge,
        )
    made = answer_challenge(run, challenge)
    path = run / FILES[ArtifactKind.TRAINING_ANNEX]
    print_lines(
        f"{path}: {'made for this challenge' if made else 'answers this challenge already'}. Upload it now."
    )


def _least_from(low: float, is_enough: Callable[[float], bool]) -> float:
    """Return the least noise multiplier from `low` on that is enough, to one in 10⁵."""
    high = low
    while not is_enough(high):
        if high == MAX_NOISE_MULTIPLIER:
            raise ValueError(f"no noise multiplier up to {MAX_NOISE_MULTIPLIER:g} is enough")
        low, high = high, min(2 * high, MAX_NOISE_MULTIPLIER)
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _percent_up(share: float) -> str:
    """Return a share in percent, rounded up to a tenth."""
    return f"{math.ceil(round(1000 * share, 6)) / 10:g}%"


def _releases(
    record: Path | None,
    participation: Participation,
    noise_multiplier: float | None,
    laplace_scale: float | None,
    rounds: int,
) -> Releases:
    """Return what a record, or equal rounds of the options, release under each amplification rule."""
    if record is not None:
        from evaluator.records import epsilon as rules
        from evaluator.records.reading import read_record

        read = read_record(record, max_rounds=MAX_ROUNDS)
        return {rule: rules.releases(read, rule) for rule in RULES}
    if laplace_scale is not None:
        if participation != Participation() or noise_multiplier is not None:
            raise wrong_option("--laplace-scale", "no option for σ or for sampling", "one")
        released = _within_range(
            lambda: Laplace(
                unit=PrivacyUnit.RECORD,
                adjacency=Adjacency.REPLACE,
                relative_scale=laplace_scale,
                rounds=rounds,
            ),
            {"relative_scale": "--laplace-scale"},
        )
        return {rule: [released] for rule in RULES}
    if noise_multiplier is None:
        raise wrong_option("--noise-multiplier", "σ, or a training record", "neither")
    mechanism = _mechanism(participation, noise_multiplier)
    return _within_range(lambda: mechanism.releases(rounds))


def _mechanism(participation: Participation, noise_multiplier: float = 1.0) -> Mechanism:
    """Return the mechanism of the options."""
    options = {"multiplier": "--noise-multiplier"}
    if participation.sampling_rate is not None:
        options["provider_rate"] = "--sampling-rate"
    return _within_range(
        lambda: Mechanism(
            sampling=participation.sampling(), noise=Noise(multiplier=noise_multiplier), clients=CLIENTS
        ),
        options,
    )


def _within_range(compute: Callable[[], Result], options: Mapping[str, str] = {}) -> Result:
    """`compute()`, with a number that is out of range reported as a problem of the command line.

    A field is set by the option of its name, unless `options` says otherwise.
    """
    from pydantic import ValidationError

    from starter_kit.settings.words import kind

    try:
        return compute()
    except ValidationError as error:
        detail = error.errors()[0]
        field = ".".join(map(str, detail["loc"]))
        raise wrong_option(
            options.get(field, f"--{field.replace('_', '-')}" if field else "options"),
            kind(FIELDS[field]) if field in FIELDS else detail["msg"],
            detail["input"],
        ) from error
    except ValueError as error:
        raise wrong_option("options", "a run that can be accounted", error) from error
