"""docs/leakage.md: all outcomes, and the answers to three questions about them. Nothing in it is set by hand."""

from collections.abc import Iterator, Sequence
from math import comb, sqrt
from pathlib import Path
from statistics import NormalDist, mean

from evaluator.accounting.bounds import MembershipBounds
from evaluator.leakage.results import LIKELIHOOD, AttackResult, Measure
from evaluator.leakage.statistics import LEVEL, Statistic
from starter_kit.published import Source, published
from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.experiment import TASK
from tests.studies.reproduction.leakage.coverage import Coverage
from tests.studies.reproduction.leakage.experiment import (
    ATTACKED_ROWS,
    QUESTIONS,
    LeakageOutcome,
    LeakageResults,
    Size,
)

PRIVATE = ("fl-provider-dp", "dp-lora")
EPSILONS = (1, 4, 8)
SEEDS = 3
NAMES = {
    Statistic.BALANCED_ACCURACY: "balanced accuracy",
    Statistic.TPR_AT_1: "TPR at 1%",
    Statistic.TPR_AT_10: "TPR at 10%",
}
# The rows and attacks of the privacy paper's Table A6.
PUBLISHED_MODELS = {
    "fedavg": "VT5_FL",
    **{f"fl-provider-dp-{epsilon}": f"VT5_FL+DP, ε = {epsilon}" for epsilon in EPSILONS},
}
PUBLISHED_FEATURES = {"AZK": "G1", "APK": "G1+G2+G3"}
# How often a model that leaks nothing is significantly above the base weights, by the 95% interval.
BY_CHANCE = 0.025
FALSE_POSITIVE_RATES = {Statistic.TPR_AT_1: 0.01, Statistic.TPR_AT_10: 0.1}


def page(results: LeakageResults) -> str:
    """Return the page in Markdown."""
    coverage = results.coverage
    return fill(
        Path(__file__).with_name("page.md"),
        seeds=len({outcome.seed for outcome in results.outcomes}),
        **results.task.model_dump(include={"clients"}),
        trained=results.task.providers,
        **results.size.model_dump(),
        **results.model_dump(include={"kit_version", "torch_version", "machine"}),
        smaller=_smaller(results),
        tables="\n\n".join(_table(results, split) for split in QUESTIONS),
        published=_published(results),
        order=_order(results),
        significant_at_one=_significant_at_one(results),
        significance=_significance(results),
        bounds=_within(results),
        coverage=_coverage(coverage),
        coverage_runs=f"{coverage[0].runs:,}" if coverage else 0,
        coverage_error=f"{_coverage_error(coverage[0]):.1%}" if coverage else 0,
    )


def _smaller(results: LeakageResults) -> str:
    """Return, as a sentence, what is smaller than with the command's defaults; nothing where nothing is."""
    sizes = [
        (len({outcome.seed for outcome in results.outcomes}), SEEDS, "seeds"),
        (results.task.providers, TASK.providers, "training providers"),
        (results.size.providers, Size().providers, "providers of each kind that the attacks consider"),
    ]
    reduced = [f"{size:,} of {full:,} {what}" for size, full, what in sizes if size < full]
    if not reduced:
        return ""
    return (
        f"\nThe sizes were reduced to {', and '.join(reduced)}; without options, the command uses the full sizes. "
        "Orders and significance are weaker evidence as a result."
    )


def _of(results: LeakageResults, row: str, split: str) -> list[LeakageOutcome]:
    return [outcome for outcome in results.outcomes if (outcome.row, outcome.questions) == (row, split)]


def _ours(outcome: LeakageOutcome) -> AttackResult:
    return next(attack for attack in outcome.attacks if attack.attack == LIKELIHOOD)


def _table(results: LeakageResults, split: str) -> str:
    lines = [
        f"Questions about {QUESTIONS[split]}:",
        "",
        "| row | AUC of each seed, with 95% intervals | balanced accuracy | TPR at 1% | TPR at 10% "
        "| ε allows at most (balanced; 1%; 10%) |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for row in ATTACKED_ROWS:
        outcomes = _of(results, row.name, split)
        if not outcomes:
            continue
        measures = [_ours(outcome).measures for outcome in outcomes]
        line = table_row(
            row.title,
            "; ".join(_interval(found[Statistic.AUC]) for found in measures),
            *(
                f"{mean(found[statistic].value for found in measures):.3f}"
                for statistic in (Statistic.BALANCED_ACCURACY, *FALSE_POSITIVE_RATES)
            ),
            _allowed(outcomes[0].bounds),
        )
        lines.append(line)
    return "\n".join(lines)


def _interval(measure: Measure) -> str:
    mark = " *" if _is_above(measure) else ""
    return f"{measure.value:.3f} ({measure.low:.3f}–{measure.high:.3f}){mark}"


def _is_above(measure: Measure) -> bool:
    """Return whether there is significantly more than with the base weights."""
    return measure.above_base.low > 0


def _allowed(bounds: MembershipBounds | None) -> str:
    if bounds is None:
        return "–"
    rates = {rate.false_positive_rate: rate.at_most for rate in bounds.true_positive_rates}
    return f"{bounds.balanced_accuracy:.3f}; {rates[0.01]:.3f}; {rates[0.1]:.3f}"


def _published(results: LeakageResults) -> str:
    """Return the published attacks on new forms: accuracy in percent, the mean over the seeds."""
    names = list(
        dict.fromkeys(
            name
            for outcome in results.outcomes
            if outcome.questions == "red"
            for name, attack in _distinct(outcome)
            if attack.attack != LIKELIHOOD
        )
    )
    if not names:
        return "There were too few providers for these attacks."
    columns = [*names, *(f"published {attack}, s = {s}" for attack in PUBLISHED_FEATURES for s in (5, 10))]
    lines = [table_row("row", *columns), "| --- |" + " --: |" * len(columns)]
    for row in ATTACKED_ROWS:
        outcomes = _of(results, row.name, "red")
        if outcomes:
            ours = (_accuracy(outcomes, name) for name in names)
            lines.append(table_row(row.title, *ours, *_table_a6(row.name)))
    return "\n".join(lines)


def _table_a6(row: str) -> Iterator[str]:
    """Yield the published accuracies on the model that a row stands for."""
    printed = {(one.row, one.column): one.value for one in published().table(Source.PRIVACY, "A6").numbers()}
    model = PUBLISHED_MODELS.get(row, "")
    for attack, features in PUBLISHED_FEATURES.items():
        for s in (5, 10):
            found = printed.get((f"{model}: {attack}, {features}", f"s_{s}"))
            yield "–" if found is None else f"{found:.2f}"


def _distinct(outcome: LeakageOutcome) -> list[tuple[str, AttackResult]]:
    """Return the attacks with their names; one for all target sets of the same providers."""
    sets: dict[tuple[str, int], list[AttackResult]] = {}
    for attack in outcome.attacks:
        # A target set is part of those with a smaller s: sets of one size are the same.
        sets.setdefault((attack.attack, attack.members + attack.nonmembers), []).append(attack)
    return [
        (name if alike[0].target_set == 0 else f"{name}, s = {_joined(alike)}", alike[0])
        for (name, _), alike in sets.items()
    ]


def _joined(attacks: Sequence[AttackResult]) -> str:
    return " and ".join(str(attack.target_set) for attack in attacks)


def _accuracy(outcomes: Sequence[LeakageOutcome], wanted: str) -> str:
    found = [
        attack.accuracy
        for outcome in outcomes
        for name, attack in _distinct(outcome)
        if name == wanted and attack.accuracy is not None
    ]
    return f"{100 * mean(found):.1f}" if found else "–"


def _order(results: LeakageResults) -> Iterator[str]:
    """Yield for each private method and set of questions whether more ε leaks more."""
    titles = {row.name: row.title for row in ATTACKED_ROWS}
    for split, about in QUESTIONS.items():
        for method in PRIVATE:
            rows = [f"{method}-{epsilon}" for epsilon in EPSILONS]
            if not all(_of(results, row, split) for row in rows):
                continue
            found = [_mean_auc(results, row, split) for row in [*rows, "fedavg"] if _of(results, row, split)]
            numbers = ", ".join(f"{value:.3f} ± {error:.3f}" for value, error in found)
            name = titles[rows[0]].split(",")[0]
            yield f"- {name}, {about}: {_in_order(found)}; AUC {numbers} at ε = 1, 4, 8 and without privacy (FedAvg)."


def _in_order(found: Sequence[tuple[float, float]]) -> str:
    """Return whether means with standard errors rise, and if not, whether that may be chance."""
    falls = [
        (before - after) / max(sqrt(error**2 + next_error**2), 1e-12)
        for place, (before, error) in enumerate(found)
        for after, next_error in found[place + 1 :]
        if after < before
    ]
    if not falls:
        return "**yes**"
    if max(falls) < 2:
        return "**not at every step**, but no reversed pair differs by two standard errors"
    return "**no**"


def _mean_auc(results: LeakageResults, row: str, split: str) -> tuple[float, float]:
    """Return the mean over the seeds with its standard error, from the intervals over providers."""
    measures = [_ours(outcome).measures[Statistic.AUC] for outcome in _of(results, row, split)]
    errors = [(measure.high - measure.low) / (2 * NormalDist().inv_cdf(0.975)) for measure in measures]
    return mean(measure.value for measure in measures), sqrt(sum(error**2 for error in errors)) / len(errors)


def _significant_at_one(results: LeakageResults) -> str:
    """Return in a sentence whether more is significant at ε = 1 than is by chance."""
    found = [
        _is_above(_ours(outcome).measures[Statistic.AUC])
        for method in PRIVATE
        for split in QUESTIONS
        for outcome in _of(results, f"{method}-1", split)
    ]
    if not found:
        return "No row has ε = 1."
    if not any(found):
        verdict = "**No**"
    else:
        by_chance = _tail(sum(found), len(found)) > 1 - LEVEL
        verdict = "**No more than by chance**" if by_chance else "**Yes**"
    return (
        f"{verdict}: {sum(found)} of {len(found)} AUCs are significantly above the base "
        f"weights'; of the same number of models that leak nothing, {BY_CHANCE * len(found):.1f} would be."
    )


def _tail(least: int, of: int) -> float:
    """Return the chance of at least so many that are significant, where nothing leaks."""
    return sum(comb(of, k) * BY_CHANCE**k * (1 - BY_CHANCE) ** (of - k) for k in range(least, of + 1))


def _significance(results: LeakageResults) -> Iterator[str]:
    for row in ATTACKED_ROWS:
        parts = []
        for split, about in QUESTIONS.items():
            outcomes = _of(results, row.name, split)
            found = [_is_above(_ours(outcome).measures[Statistic.AUC]) for outcome in outcomes]
            if found:
                parts.append(f"{sum(found)} of {len(found)} seeds on {about}")
        if parts:
            yield f"- {row.title}: {', '.join(parts)}."


def _within(results: LeakageResults) -> Iterator[str]:
    """Yield how many of the private rows' measured rates are within what ε allows, and each that isn't."""
    checked, above, surely = 0, list[str](), 0
    titles = {row.name: row.title for row in ATTACKED_ROWS}
    for outcome in results.outcomes:
        for name, attack in _distinct(outcome) if outcome.bounds else []:
            for statistic, limit in _limits(outcome.bounds):
                measure = attack.measures[statistic]
                checked += 1
                surely += measure.low > limit
                if measure.value > limit:
                    above.append(
                        f"- {titles[outcome.row]}, seed {outcome.seed}, {name}, "
                        f"{QUESTIONS[outcome.questions]}: {NAMES[statistic]} {measure.value:.3f} "
                        f"({measure.low:.3f}–{measure.high:.3f}), allowed {limit:.3f}"
                    )
    verdict = "**Yes**" if not above else "**No**" if surely else "**As far as intervals tell, yes**"
    yield (
        f"{verdict}: of {checked} measured rates of private rows, {checked - len(above)} are within what ε allows; "
        f"for {surely}, the whole interval is above the limit." + (" These are above:" if above else "")
    )
    if above:
        yield ""
    yield from above


def _limits(bounds: MembershipBounds | None) -> Iterator[tuple[Statistic, float]]:
    if bounds is None:
        return
    yield Statistic.BALANCED_ACCURACY, bounds.balanced_accuracy
    rates = {rate.false_positive_rate: rate.at_most for rate in bounds.true_positive_rates}
    for statistic, rate in FALSE_POSITIVE_RATES.items():
        yield statistic, rates[rate]


def _coverage_error(found: Coverage) -> float:
    """Return two standard errors of a share of 95% of the simulated attacks."""
    return 2 * sqrt(LEVEL * (1 - LEVEL) / found.runs)


def _coverage(coverage: Sequence[Coverage]) -> Iterator[str]:
    yield "| providers of each kind | true AUC | AUC | balanced accuracy | TPR at 10% | TPR at 1% |"
    yield "| --: | --: | --: | --: | --: | --: |"
    for found in coverage:
        shares = (
            found.share(statistic)
            for statistic in (
                Statistic.AUC,
                Statistic.BALANCED_ACCURACY,
                Statistic.TPR_AT_10,
                Statistic.TPR_AT_1,
            )
        )
        yield table_row(found.providers, f"{found.auc:.2f}", *(f"{share:.1%}" for share in shares))
