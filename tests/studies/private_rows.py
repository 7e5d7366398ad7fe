"""Private rows that may score higher than DP-LoRA of the reproduction, tuned on one seed and tested on its seeds.

Each candidate is DP-LoRA's config with a few changes. A trial trains a candidate with one server learning rate on the
data of another seed, and is scored on the validation split. Candidates whose best trials are above DP-LoRA's at every ε
are then tested with those learning rates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from pydantic import BaseModel, ConfigDict

from evaluator.messages.jobs import ArtifactKind
from starter_kit.console import log
from starter_kit.data.forms import FormSettings
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.folder import RunFolder
from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.experiment import (
    TASK,
    Experiment,
    RunKey,
    TrainedRow,
    key_of,
    made_here,
    made_with,
    score_of,
)
from tests.studies.reproduction.experiment import Results as Reproduced
from tests.studies.reproduction.rows import EPSILONS, Outcome, Row
from tests.studies.reproduction.verdicts import by_row, spread
from tests.studies.study import completed
from tests.studies.tiny_vt5.origin import Origin, read_origin

BASELINE = "dp-lora"
# Whose data the trials are trained and scored on.
TUNING_SEED = 4
# The most trials that a private row of the reproduction had for each ε, of those that were counted.
MOST_TRIALS = 11


@dataclass(frozen=True, eq=False)
class Candidate:
    """A change of DP-LoRA.

    Attributes:
        changes: Of DP-LoRA's config, as `pfl train --set` takes them.
        rates: The server learning rates that are tried at each ε; without one at some ε, the candidate isn't tested.
        setting: Which setting a rate is.
    """

    name: str
    title: str
    changes: tuple[str, ...]
    rates: Mapping[int, Sequence[float]]
    setting: str = "server_learning_rate"

    @property
    def is_baseline(self) -> bool:
        """Whether it is DP-LoRA itself."""
        return not self.changes

    def row(self, epsilon: int, rate: float) -> Row:
        """Return what is trained."""
        return Row(
            f"private-{self.name}-{epsilon}",
            f"{self.title}, ε = {epsilon}",
            BASELINE,
            (*self.changes, f"target_epsilon={epsilon}", f"{self.setting}={rate:g}"),
        )

    def rows(self, epsilon: int) -> dict[float, Row]:
        """Return the trials at one ε, by their rate."""
        return {rate: self.row(epsilon, rate) for rate in self.rates.get(epsilon, ())}


def _encoder(*layers: str) -> str:
    return f"lora.targets=[{', '.join(f'language_backbone.encoder.*.{layer}' for layer in layers)}]"


def _adapters(kind: str, rank: int, scale: int) -> tuple[str, ...]:
    return f"lora.type={kind}", f"lora.rank={rank}", f"lora.alpha={scale * rank}"


def _momentum(momentum: float) -> tuple[str, ...]:
    return "server_learning_rate=1", f"server_optimizer={{type: fedavgm, momentum: {momentum}}}"


ALLOCATION = "sampling={type: random_allocation, rounds_per_cycle: 4}"
CLIP = "clip_norm=0.5"

CANDIDATES = (
    # Which shows how much equal runs differ.
    Candidate("again", "DP-LoRA, trained again", (), {1: (0.6,), 4: (1.0,), 8: (1.3,)}),
    Candidate(
        "allocation", "DP-LoRA with random allocation", (ALLOCATION,), {1: (0.6,), 4: (1.0,), 8: (1.3,)}
    ),
    Candidate(
        "momentum",
        "DP-LoRA with momentum 0.8",
        _momentum(0.8),
        {1: (0.16,), 4: (0.3,), 8: (0.4,)},
        setting="server_optimizer.learning_rate",
    ),
    Candidate(
        "core-v",
        "Core adapters in the encoder's values",
        (ALLOCATION, CLIP, *_adapters("core", 16, 1), _encoder("v")),
        {1: (3, 6, 12, 24), 4: (6, 12, 24), 8: (16,)},
    ),
    Candidate(
        "core-vo",
        "Core adapters in the encoder's values and outputs",
        (ALLOCATION, CLIP, *_adapters("core", 16, 1), _encoder("v", "o")),
        {1: (2, 4, 8, 16), 4: (8, 16), 8: (16,)},
    ),
    Candidate(
        "lora-v",
        "LoRA in the encoder's values",
        (ALLOCATION, CLIP, _encoder("v")),
        {1: (3,), 4: (4, 6), 8: (3, 4, 6, 12)},
    ),
    Candidate(
        "lora-v-momentum",
        "LoRA in the encoder's values, momentum 0.5",
        (ALLOCATION, CLIP, _encoder("v"), *_momentum(0.5)),
        {1: (1.5,), 4: (2.5,), 8: (2.5,)},
        setting="server_optimizer.learning_rate",
    ),
    Candidate(
        "lora-v-more-momentum",
        "LoRA in the encoder's values, momentum 0.8",
        (ALLOCATION, CLIP, _encoder("v"), *_momentum(0.8)),
        {1: (0.8, 1.2), 4: (1.6, 2.4), 8: (1.6, 2.4, 3.6)},
        setting="server_optimizer.learning_rate",
    ),
    Candidate(
        "lora-v-coins",
        "LoRA in the encoder's values, Poisson sampling",
        (CLIP, _encoder("v")),
        {1: (3,), 4: (6,), 8: (6,)},
    ),
    Candidate(
        "lora-vo",
        "LoRA in the encoder's values and outputs",
        (ALLOCATION, CLIP, _encoder("v", "o")),
        {1: (2, 4), 4: (3, 5), 8: (3, 4, 8)},
    ),
    Candidate(
        "ffa-vo",
        "FFA-LoRA in the encoder's values and outputs",
        (ALLOCATION, CLIP, *_adapters("ffa-lora", 6, 2), _encoder("v", "o")),
        {1: (4,), 4: (16,)},
    ),
    Candidate(
        "core-wide",
        "Core adapters of rank 32 in the encoder's values, clip norm 2",
        (ALLOCATION, *_adapters("core", 32, 1), _encoder("v")),
        {1: (0.6,)},
    ),
)


class Results(BaseModel):
    """All outcomes, and what they were found with.

    Attributes:
        base: Of the tiny VT5 that every row starts from.
        task: Of every seed's data, but for the seed.
        trials: With the tuning seed, on the validation split.
        tested: With the seeds of the reproduction, on the test split.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Origin
    task: FormSettings
    trials: list[Outcome]
    tested: list[Outcome]


class PrivateRows:
    """The trials of all `candidates` and the tests of the promising ones, in an experiment's folder.

    Args:
        say: Receives what came out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        candidates: Sequence[Candidate] = CANDIDATES,
        task: FormSettings = TASK,
        say: Callable[[str], None] = log,
    ) -> None:
        self._folder = folder
        self._experiment = Experiment(folder, seeds, parts=[], task=task)
        self._candidates = candidates
        self._seeds = range(1, seeds + 1)
        self._task = task
        self._say = say

    def run(self, earlier: Results | None = None) -> Iterator[Results]:
        """Yield all outcomes: the `earlier` ones of the same base, task and settings, and new ones of the rest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        base = read_origin()
        if earlier is None or (earlier.base, earlier.task) != (base, self._task):
            earlier = Results(base=base, task=self._task, trials=[], tested=[])
        trials: list[Outcome] = []
        for trials in self._completed(self._trials(), earlier.trials, self._tried):
            yield earlier.model_copy(update={"trials": trials})
        for tested in self._completed(self._tests(trials), earlier.tested, self._tested):
            yield Results(base=base, task=self._task, trials=trials, tested=tested)

    def forget(self, earlier: Results | None) -> Results | None:
        """Keep the outcomes that were made as they would be now."""
        if earlier is None:
            return None
        kept = {"trials": made_here(earlier.trials), "tested": made_here(earlier.tested)}
        return earlier.model_copy(update=kept)

    def _completed(
        self,
        wanted: Sequence[tuple[Row, int]],
        known: Sequence[Outcome],
        measure: Callable[[Row, int], Outcome],
    ) -> Iterator[list[Outcome]]:
        kept = {key_of(outcome): outcome for outcome in known}
        rows = {_key(row, seed): row for row, seed in wanted}

        def measured(key: RunKey) -> Outcome:
            outcome = measure(rows[key], key[1])
            self._say(f"seed {outcome.seed}, {rows[key].title}: ANLS {outcome.anls:.4f}")
            return outcome

        yield from completed(rows, kept, measured)

    def _trials(self) -> list[tuple[Row, int]]:
        return [
            (row, TUNING_SEED)
            for epsilon in reversed(EPSILONS)
            for candidate in self._candidates
            for row in candidate.rows(epsilon).values()
        ]

    def _tests(self, trials: Sequence[Outcome]) -> list[tuple[Row, int]]:
        """Return what is tested, the candidate with the best trials first."""
        return [
            (candidate.row(epsilon, rate), seed)
            for candidate, rates in chosen(self._candidates, trials).items()
            for seed in self._seeds
            for epsilon, rate in rates.items()
        ]

    def _tried(self, row: Row, seed: int) -> Outcome:
        out = self._experiment.run_folder(row, seed)
        summary = read_summary(out / SUMMARY)
        checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
        found = score_of(checkpoint, self._experiment.data(seed), "valid")
        return Outcome(
            row=row.name,
            seed=seed,
            anls=found.anls,
            accuracy=found.accuracy,
            bytes_total=summary.bytes_total,
            epsilon=summary.epsilon,
            settings_sha256=row.settings_sha256,
            made_with=made_with(),
        )

    def _tested(self, row: Row, seed: int) -> Outcome:
        [outcome] = TrainedRow(row).measure(self._experiment, seed)
        return outcome


def _key(row: Row, seed: int) -> RunKey:
    return row.name, seed, row.settings_sha256


def _scores(candidate: Candidate, epsilon: int, trials: Sequence[Outcome]) -> dict[float, float]:
    """Return the ANLS of each trial at one ε, by its rate."""
    found = {key_of(outcome): outcome.anls for outcome in trials}
    return {
        rate: found[key]
        for rate, row in candidate.rows(epsilon).items()
        if (key := _key(row, TUNING_SEED)) in found
    }


def chosen(
    candidates: Sequence[Candidate], trials: Sequence[Outcome]
) -> dict[Candidate, Mapping[int, float]]:
    """Return the rate of the best trial at each ε, of the candidates to test, the best on average first.

    These are the ones whose best trial is above that of DP-LoRA at every ε, and DP-LoRA itself where it is a candidate.
    """
    scores = {
        candidate: {epsilon: _scores(candidate, epsilon, trials) for epsilon in EPSILONS}
        for candidate in candidates
    }
    best = {
        candidate: [max(found.values()) for found in by_epsilon.values()]
        for candidate, by_epsilon in scores.items()
        if all(by_epsilon.values())
    }
    least = next(
        (found for candidate, found in best.items() if candidate.is_baseline), [0.0 for _ in EPSILONS]
    )
    promising = [
        candidate
        for candidate, found in best.items()
        if candidate.is_baseline or all(one > other for one, other in zip(found, least, strict=True))
    ]
    return {
        candidate: {
            epsilon: max(found, key=found.__getitem__) for epsilon, found in scores[candidate].items()
        }
        for candidate in sorted(promising, key=lambda candidate: -mean(best[candidate]))
    }


@dataclass(frozen=True)
class Comparison:
    """A candidate and DP-LoRA at one ε, by seed."""

    candidate: Candidate
    epsilon: int
    rate: float
    outcomes: Sequence[Outcome]
    baseline: Sequence[Outcome]

    @property
    def differences(self) -> list[float]:
        """Of each seed that both have; positive where the candidate is above."""
        below = {outcome.seed: outcome.anls for outcome in self.baseline}
        return [outcome.anls - below[outcome.seed] for outcome in self.outcomes if outcome.seed in below]


def compared(
    results: Results, reproduced: Reproduced, candidates: Sequence[Candidate] = CANDIDATES
) -> list[Comparison]:
    """Return every tested candidate at every ε, in the order of the trials."""
    baseline = by_row(reproduced.outcomes)
    tested = by_row(results.tested)
    return [
        Comparison(
            candidate,
            epsilon,
            rate,
            [
                outcome
                for outcome in tested[row.name]
                if outcome.settings_sha256 == candidate.row(epsilon, rate).settings_sha256
            ],
            baseline[f"{BASELINE}-{epsilon}"],
        )
        for candidate, rates in chosen(candidates, results.trials).items()
        for epsilon, rate in rates.items()
        for row in [candidate.row(epsilon, rate)]
    ]


def beating(comparisons: Sequence[Comparison]) -> list[Candidate]:
    """Return the candidates that are above DP-LoRA in every seed of DP-LoRA at every ε."""
    lost = {
        one.candidate
        for one in comparisons
        if one.candidate.is_baseline
        or len(one.differences) < len(one.baseline)
        or min(one.differences, default=0) <= 0
    }
    return list(dict.fromkeys(one.candidate for one in comparisons if one.candidate not in lost))


def page(results: Results, reproduced: Reproduced) -> str:
    """Return the page in Markdown."""
    comparisons = compared(results, reproduced)
    seeds = len({outcome.seed for outcome in reproduced.outcomes})
    counts = {
        epsilon: [
            len(_scores(candidate, epsilon, results.trials))
            for candidate in CANDIDATES
            if not candidate.is_baseline
        ]
        for epsilon in EPSILONS
    }
    return fill(
        Path(__file__).with_suffix(".md"),
        seeds=seeds,
        chance=2 ** (seeds * len(EPSILONS)),
        verdict=_verdict(comparisons),
        table=[_line(one) for one in comparisons if one.outcomes],
        settings=[
            table_row(candidate.title, "; ".join(f"`{change}`" for change in candidate.changes) or "none")
            for candidate in CANDIDATES
        ],
        trials=_trial_lines(results, comparisons),
        counts=", ".join(f"{sum(each)} at ε = {epsilon}" for epsilon, each in counts.items()),
        most_of_one=max(max(each) for each in counts.values()),
        most=MOST_TRIALS,
        tuning_seed=TUNING_SEED,
        baseline_sent=", ".join(sorted({_sent(one) for each in comparisons for one in each.baseline})),
        made_with="; ".join(sorted({one.made_with for one in (*results.trials, *results.tested)})),
    )


def _verdict(comparisons: Sequence[Comparison]) -> str:
    winners = beating(comparisons)
    tested = _titles(one for one in comparisons if one.outcomes and not one.candidate.is_baseline)
    lines = [f"Candidates that beat DP-LoRA: {len(winners)} of {len(tested)} tested."]
    lines += [
        f"{winner.title} has a mean ANLS that is higher by "
        + ", ".join(
            f"{mean(one.differences):.4f} at ε = {one.epsilon}"
            for one in comparisons
            if one.candidate is winner
        )
        + "."
        for winner in winners
    ]
    untested = _titles(one for one in comparisons if not one.outcomes and not one.candidate.is_baseline)
    lines += [f"Better than DP-LoRA in the trials, but not tested yet: {'; '.join(untested)}."] * bool(
        untested
    )
    return "\n".join(lines)


def _titles(comparisons: Iterable[Comparison]) -> list[str]:
    return list(dict.fromkeys(one.candidate.title for one in comparisons))


def _line(one: Comparison) -> str:
    sent = {_sent(outcome) for outcome in one.outcomes}
    return table_row(
        one.candidate.title,
        one.epsilon,
        f"{one.rate:g}",
        "; ".join(f"{outcome.anls:.4f}" for outcome in one.outcomes),
        spread([outcome.anls for outcome in one.outcomes]),
        spread([outcome.anls for outcome in one.baseline]),
        "; ".join(f"{difference:+.4f}" for difference in one.differences),
        ", ".join(sorted(sent)),
    )


def _sent(outcome: Outcome) -> str:
    return f"{outcome.bytes_total / 1e6:.2f}"


def _trial_lines(results: Results, comparisons: Sequence[Comparison]) -> list[str]:
    taken = {(one.candidate.name, one.epsilon, one.rate) for one in comparisons}
    return [
        table_row(
            candidate.title,
            *(
                "; ".join(
                    f"{rate:g}: {f'**{anls:.4f}**' if (candidate.name, epsilon, rate) in taken else f'{anls:.4f}'}"
                    for rate, anls in _scores(candidate, epsilon, results.trials).items()
                )
                or "–"
                for epsilon in EPSILONS
            ),
        )
        for candidate in CANDIDATES
    ]
