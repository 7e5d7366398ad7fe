"""docs/memorization.md: all outcomes, and whether they show what the papers show. Nothing in it is set by hand."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from statistics import mean

from scipy.stats import combine_pvalues, norm

from evaluator.leakage.memorization import exact_test
from starter_kit.data.forms.skewed import CONSTANTS
from starter_kit.published import Source, published
from starter_kit.settings.configuration import load_settings
from tests.studies.markdown import fill, table_row
from tests.studies.memorization.experiment import ROWS, SEEDS, Outcome, Results, Row, Trial

SIGNIFICANT = 0.05
KINDS = ("members", "nonmembers")
PRIVATE, OPEN = "fl-provider-dp-8", "centralized"
# The published model of each row, and the tables of the privacy paper that have its scores, and its hidden constants.
MODELS = {"zero-shot": "VT5_0", OPEN: "VT5_C", PRIVATE: "VT5_FL+DP, ε = 8"}
SCORES = ("1", "A5")
TESTED = {"provider": ("2", "A3"), "email": ("A4",)}


def page(results: Results) -> str:
    """Return the page in Markdown."""
    task, outcomes = results.task, results.outcomes
    (half, _), (unseen, _) = task.held_out("test")
    return fill(
        Path(__file__).with_name("page.md"),
        **task.model_dump(include={"providers", "clients", "documents", "test_forms"}),
        each=task.forms_held_out,
        logo_share=f"{task.logo_share:.0%}",
        seen=half,
        unseen=unseen,
        seeds=f"{len(_of(results, PRIVATE))} of {len(SEEDS)}",
        trained=_trained(),
        made_with="; ".join(sorted({outcome.made_with for outcome in outcomes})),
        code=", ".join(sorted({f"`{outcome.code[:12]}`" for outcome in outcomes})),
        level=SIGNIFICANT,
        gaps=_table(
            results,
            [
                "row",
                "ANLS of each seed, seen",
                "unseen",
                "gap of each seed",
                "mean gap",
                "published ANLS, seen; unseen",
            ],
            lambda found: [
                "; ".join(f"{one.scored.seen:.3f}" for one in found),
                "; ".join(f"{one.scored.unseen:.3f}" for one in found),
                "; ".join(f"{one.scored.gap:+.3f}{_star(one.scored.p_value)}" for one in found),
                f"{mean(one.scored.gap for one in found):+.3f}",
                _published(found[0].row, SCORES, "anls"),
            ],
        ),
        attacks=_table(
            results,
            ["row", "AUC of each seed, with 95% intervals", "mean AUC"],
            lambda found: [
                "; ".join(
                    f"{one.attack.auc:.3f} ({one.attack.low:.3f}–{one.attack.high:.3f})"
                    f"{_star(one.attack.p_value)}"
                    for one in found
                ),
                f"{mean(one.attack.auc for one in found):.3f}",
            ],
        ),
        hidden=_table(
            results,
            [
                "row",
                *(f"{field}, seen; unseen" for field in CONSTANTS),
                *(f"published {field}, seen; unseen" for field in TESTED),
                "seen providers",
                "unseen providers",
                "p",
            ],
            lambda found: [
                *(_exact(found, field) for field in CONSTANTS),
                *(_published(found[0].row, tables, "accuracy") for tables in TESTED.values()),
                *map(str, _recalled(found)),
                f"{_recall_p_value(found, half):.2g}",
            ],
        ),
        findings=_findings(results),
        verdicts=_verdicts(results, half),
        tried=_tried(results),
        power=_power(_of(results, OPEN), half),
    )


def _star(p_value: float) -> str:
    return " *" if p_value < SIGNIFICANT else ""


def _of(results: Results, name: str) -> list[Outcome]:
    return [outcome for outcome in results.outcomes if outcome.row == name]


def _table(results: Results, heads: Sequence[str], cells: Callable[[list[Outcome]], list[str]]) -> str:
    lines = [table_row(*heads), table_row("---", *(["--:"] * (len(heads) - 1)))]
    for row in ROWS:
        found = _of(results, row.name)
        lines.append(table_row(row.title, *(cells(found) if found else ["not run"] * (len(heads) - 1))))
    return "\n".join(lines)


def _exact(found: Sequence[Outcome], field: str) -> str:
    """Return the shares of hidden answers that are given exactly, of seen and of unseen providers."""
    shares = (_share(found, field, kind) for kind in KINDS)
    return "; ".join("–" if share is None else f"{share:.1%}" for share in shares)


def _share(found: Sequence[Outcome], field: str, kind: str) -> float | None:
    asked = [one for outcome in found for one in outcome.hidden if (one.field, one.kind) == (field, kind)]
    total = sum(one.documents for one in asked)
    return sum(one.documents * one.accuracy for one in asked) / total if total else None


def _published(row: str, tables: Sequence[str], metric: str) -> str:
    """Return what the first table with the row's model prints of seen and of unseen providers."""
    for name in tables:
        table = published().table(Source.PRIVACY, name)
        if MODELS[row] in table.rows:
            pair = [table.number(MODELS[row], f"{metric}_{side}").value for side in ("in", "out")]
            return "; ".join(f"{value:g}%" for value in pair)
    return "–"


def _verdicts(results: Results, half: int) -> str:
    """Return a sentence on each group of published tables: whether what it shows is seen here too."""
    free, private = _of(results, OPEN), _of(results, PRIVATE)
    if not free or not private:
        return "- Not run."
    gaps = [mean(one.scored.gap for one in found) for found in (free, private)]
    significant = sum(one.scored.p_value < SIGNIFICANT for one in free)
    lines = [
        f"- **Tables 1 and A5, seen minus unseen: {_word(gaps[0] > max(gaps[1], 0), significant == len(free))}.** "
        f"The mean gap is {gaps[0]:+.3f} without privacy and {gaps[1]:+.3f} with ε = 8. Without privacy, it is "
        f"significant in {significant} of {len(free)} seeds."
    ]
    for field, tables in TESTED.items():
        shares = [_share(found, field, kind) or 0.0 for found in (free, private) for kind in KINDS]
        seen, unseen, private_seen, _ = shares
        is_clear = _recall_p_value(free, half) < SIGNIFICANT <= _recall_p_value(private, half)
        lines.append(
            f"- **{'Tables' if len(tables) > 1 else 'Table'} {' and '.join(tables)}, hidden {field}: "
            f"{_word(seen > max(unseen, private_seen), is_clear)}.** Without privacy, {seen:.1%} of the answers are "
            f"exact for seen providers and {unseen:.1%} for unseen ones; with ε = 8, {private_seen:.1%} for seen ones."
        )
    return "\n".join(lines)


def _word(is_in_direction: bool, is_clear: bool) -> str:
    if not is_in_direction:
        return "not reproduced"
    return "reproduced" if is_clear else "the direction only"


def _recalled(found: Sequence[Outcome]) -> tuple[int, int]:
    return sum(one.recalled[0] for one in found), sum(one.recalled[1] for one in found)


def _recall_p_value(found: Sequence[Outcome], each: int) -> float:
    """Return Fisher's p-value of all seeds together, with so many providers of each kind in each seed."""
    members, others = _recalled(found)
    return exact_test(each * len(found), members, each * len(found), others)


def _trained() -> str:
    return "\n  ".join(f"{row.title}: {_setting_words(row)}." for row in ROWS if row.config)


def _setting_words(row: Row) -> str:
    settings = load_settings(str(row.config_file), list(row.changes)).model_dump()
    rounds, local = settings["rounds"], settings["local"]
    steps = f"{local['max_steps']} step" if local["max_steps"] else f"{local['epochs']} passes"
    return (
        f"{rounds} round{'s' * (rounds > 1)} of {steps} in batches of {local['batch_size']}, learning rate "
        f"{local['learning_rate']:g}"
    )


def _findings(results: Results) -> str:
    free, private = _of(results, OPEN), _of(results, PRIVATE)
    pairs = [(one, other) for one in free for other in private if one.seed == other.seed]
    smaller = sum(other.scored.gap < one.scored.gap for one, other in pairs)
    weaker = sum(other.attack.auc < one.attack.auc for one, other in pairs)
    lines = [f"- **Without privacy**, {_counts(free)}. {_combined(free)}"]
    if pairs:
        lines.append(
            f"- **With ε = 8**, {_counts([other for _, other in pairs])}. The AUC is lower than without privacy in "
            f"{weaker} of {len(pairs)} seeds, and the gap is smaller in {smaller} of {len(pairs)}."
        )
        if any(other.attack.p_value < SIGNIFICANT for _, other in pairs):
            lines[-1] += (
                " A significant attack doesn't contradict ε = 8, which limits attacks but doesn't rule them out."
            )
    if len(pairs) < len(SEEDS):
        lines.append(
            f"- **Not finished:** {len(SEEDS)} seeds are planned, and one or two are weak evidence. The command runs "
            "those that are missing."
        )
    return "\n".join(lines)


def _tried(results: Results) -> str:
    """Return what came of the trials that the settings were chosen by, and what they have in common with the rest."""
    seeds = {outcome.seed for outcome in results.outcomes}
    lines = [_trial_words(trial) for trial in results.trials]
    if any(seeds & {one.seed for one in trial.outcomes} for trial in results.trials):
        lines.append(
            "With the same seed, the providers have the same constants, but other logos and test forms."
        )
    return "\n".join(f"  - {line}" for line in lines)


def _trial_words(trial: Trial) -> str:
    (half, _), _ = trial.task.held_out("test")
    seeds = sorted({one.seed for one in trial.outcomes})
    rows = []
    for row in ROWS:
        found = [one for one in trial.outcomes if one.row == row.name]
        if row.config and found:
            gaps, aucs = (
                "; ".join(f"{value:{form}}{_star(p_value)}" for value, p_value in pairs)
                for form, pairs in (
                    ("+.3f", [(one.scored.gap, one.scored.p_value) for one in found]),
                    (".3f", [(one.attack.auc, one.attack.p_value) for one in found]),
                )
            )
            rows.append(f"{row.title}: gap {gaps}, AUC {aucs}")
    return (
        f"{'Seeds' if len(seeds) > 1 else 'Seed'} {', '.join(map(str, seeds))}, the name only in the logo on "
        f"{trial.task.logo_share:.0%} of the forms, {half} test providers of each kind with "
        f"{trial.task.forms_held_out} forms each: {'. '.join(rows)}."
    )


def _combined(found: Sequence[Outcome]) -> str:
    """Return the p-values of all seeds together."""
    attack = combine_pvalues([one.attack.p_value for one in found]).pvalue
    gap = combine_pvalues([one.scored.p_value for one in found]).pvalue
    return f"Over all seeds together (Fisher's method), p = {attack:.1g} for the attack and {gap:.2g} for the gap."


def _power(free: Sequence[Outcome], half: int) -> str:
    """Return how well a gap is known, by the p-values, and how many providers would tell the mean gap from chance."""
    clear = [one.scored for one in free if one.scored.gap > 0 and one.scored.p_value < 0.5]
    if not clear:
        return "The gap of a seed is within chance."
    errors = [one.gap / norm.isf(one.p_value) for one in clear]
    if all(one.scored.p_value < SIGNIFICANT for one in free):
        # A p-value is never below that of one permutation, which may make the gap look less sure than it is.
        return f"By chance alone, the gap of a seed would vary by at most about ± {max(errors):.3f}."
    error = mean(errors)
    needed = half * (norm.isf(SIGNIFICANT) * error / mean(one.scored.gap for one in free)) ** 2
    return (
        f"By chance alone, the gap of a seed would vary by ± {error:.3f}. With about {ceil(needed / 10) * 10} "
        f"providers of each kind instead of {half}, a gap like the mean one would be significant in every second seed."
    )


def _counts(found: Sequence[Outcome]) -> str:
    """Return in how many seeds a row's figures are significant, and of how many providers a constant was named."""
    attacks = sum(one.attack.p_value < SIGNIFICANT for one in found)
    gaps = sum(one.scored.p_value < SIGNIFICANT for one in found)
    seen, unseen = _recalled(found)
    return (
        f"the attack on new forms is significant in {attacks} of {len(found)} seeds, and the gap in {gaps} of "
        f"{len(found)}. A hidden constant was named of {seen} seen and {unseen} unseen providers"
    )
