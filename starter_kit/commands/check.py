"""`pfl check`."""

from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.commands.options import BaseFolder, RunDirectory, require_number, wrong_option
from starter_kit.console import EXIT_REJECTED, print_lines, print_problems, progress
from starter_kit.reporting.rounding import rounded_up
from starter_kit.settings.track_rules import BUDGETS, DELTA, KNOWN, MAX_ROUNDS, RULE

if TYPE_CHECKING:
    from evaluator.messages.jobs import StepResult, TrackRules
    from evaluator.messages.rankings import RankingRule
    from starter_kit.evaluation.steps import StepOutcome


def check(
    run: RunDirectory,
    base: BaseFolder,
    track: Annotated[str, typer.Option(help="The track, or kind of track, whose rules apply.")] = "track-1",
    budget: Annotated[
        float | None,
        typer.Option(help="ε of the board; by default the smallest one that covers the record's claim."),
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="Number of clients in the track.")] = 10,
    max_rounds: Annotated[
        int, typer.Option(min=1, help="Maximum number of rounds in the track.")
    ] = MAX_ROUNDS,
    delta: Annotated[float, typer.Option(help="δ of the track.")] = DELTA,
    sampling_rule: Annotated[
        SamplingRule, typer.Option(help="The track's amplification rule for two-stage sampling.")
    ] = RULE,
    trainable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Tensors that may differ from the base weights, such as '*.layer_norm.weight'; repeat the option for "
            "several patterns. By default, all may differ.",
        ),
    ] = None,
) -> None:
    """Run the workers' checks on your machine, and list everything that they would reject."""
    from evaluator.messages.jobs import PrivacyRules, TrackRules
    from starter_kit.evaluation.steps import check_run, require_record, require_run
    from starter_kit.runs.folder import RunFolder, budget_of

    folder = RunFolder(run)
    rule = _rule_of(track)
    require_number("--budget", budget)
    require_number("--delta", delta, below=1)
    require_run(folder)
    privacy = None
    if rule.is_accounted:
        require_record(folder)
        epsilon = budget_of(folder.record(max_rounds=max_rounds), BUDGETS) if budget is None else budget
        privacy = PrivacyRules(epsilon=epsilon, delta=delta, sampling_rule=sampling_rule)
    rules = TrackRules(
        reference="local",
        test_set="local",
        trainable=trainable or [],
        clients=clients,
        max_rounds=max_rounds,
        privacy=privacy,
    )
    accepted = True
    for outcome in check_run(folder, rules, base, progress):
        _print_outcome(outcome, rules)
        accepted = accepted and outcome.accepted
    if privacy:
        print_lines(
            "The site also checks whether the run token and the key belong to your team. After it receives the record, "
            "it draws the blocks that the annex must open (record.challenge)."
        )
    print_lines("See docs/checks.md for what each check covers and what it can't.")
    if not accepted:
        raise typer.Exit(EXIT_REJECTED)


def _rule_of(track: str) -> "RankingRule":
    if track not in KNOWN:
        raise wrong_option(
            "--track",
            " or ".join(KNOWN),
            track,
            next_step="Choose the closest track, or its kind, and override its rules with options.",
        )
    return KNOWN[track]


def _print_outcome(outcome: "StepOutcome", rules: "TrackRules") -> None:

    from evaluator.messages.jobs import AccountingResult, CommunicationResult

    result = outcome.result
    if result is None:
        print_lines(f"{outcome.step}: rejected")
        print_problems(outcome.problems)
        return
    verdict = "passed" if outcome.accepted else "not passed"
    print_lines(f"{outcome.step}: {verdict}{_detail(result, rules)}")
    if isinstance(result, CommunicationResult | AccountingResult):
        for check in result.checks:
            status = check.status.replace("_", " ")
            print_lines(f"  {check.id:<22}{status:<16}{check.found}")


def _detail(result: "StepResult", rules: "TrackRules") -> str:
    from evaluator.messages.jobs import AccountingResult, CommunicationResult, ValidationResult

    if isinstance(result, ValidationResult):
        return f", {len(result.changed)} of {result.tensors} tensors differ from the base weights"
    if isinstance(result, CommunicationResult):
        return f", {result.bytes_total:,} bytes in {result.rounds} rounds"
    if isinstance(result, AccountingResult) and rules.privacy:
        within = "within" if result.within_budget else "ABOVE"
        token = "" if result.run_token else "; no run token, so you can't submit this run"
        return (
            f", ε = {rounded_up(result.epsilon, 4)}, {within} the budget of {rules.privacy.epsilon:g}{token}"
        )
    return ""
