"""`pfl check`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.commands.options import (
    ApiToken,
    BaseFolder,
    RunDirectory,
    Site,
    connect,
    require_at_sign,
    require_number,
    wrong_option,
)
from starter_kit.console import EXIT_REJECTED, print_lines, print_problems, progress
from starter_kit.reporting.rounding import rounded_up
from starter_kit.settings.track_rules import BUDGETS, DELTA, KNOWN, MAX_ROUNDS, RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evaluator.errors import Problem
    from evaluator.messages.api import TrackInfo
    from evaluator.messages.jobs import Check, StepResult, TrackRules
    from evaluator.messages.rankings import RankingRule
    from evaluator.records.lines import RunLine
    from starter_kit.evaluation.steps import StepOutcome
    from starter_kit.runs.folder import RunFolder
    from starter_kit.site.client import SiteClient

DEFAULT_CLIENTS = 10


def check(
    run: RunDirectory,
    base: BaseFolder,
    track: Annotated[
        str,
        typer.Option(
            help="The site's track whose rules apply; without a site, track-1, track-2 or a kind of track."
        ),
    ] = "track-1",
    description: Annotated[
        str, typer.Option(metavar="@FILE", help="The description to submit with the run, if it is in a file.")
    ] = "",
    proof: Annotated[Path | None, typer.Option(help="The privacy proof to submit with the run.")] = None,
    site: Site = "",
    token: ApiToken = "",
    budget: Annotated[
        float | None,
        typer.Option(help="ε of the board; by default the smallest one that covers the record's claim."),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(min=1, help=f"Number of clients, instead of the track's or {DEFAULT_CLIENTS}."),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option(min=1, help=f"Maximum number of rounds, instead of the track's or {MAX_ROUNDS:,}."),
    ] = None,
    delta: Annotated[float | None, typer.Option(help=f"δ, instead of the track's or {DELTA:g}.")] = None,
    sampling_rule: Annotated[
        SamplingRule | None,
        typer.Option(
            help=f"Amplification rule for two-stage sampling, instead of the track's or {RULE.value}."
        ),
    ] = None,
    trainable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Tensors that may differ from the base weights, such as '*.layer_norm.weight', instead of "
            "the track's; can be repeated. Without a site, all tensors may differ by default.",
        ),
    ] = None,
) -> None:
    """Run the workers' checks on your machine, and list everything they would reject.

    With --site or PFL_SITE, the rules of that site's track apply: base weights, clients, providers, rounds
    and privacy. With an API token as well, the command also checks the run's data and whether the checkpoint
    was submitted before. With --description and --proof, it finds the gaps that are left in the drafts of
    `pfl describe`.
    """
    from starter_kit.reporting.gaps import gap_problems
    from starter_kit.runs.folder import RunFolder

    require_at_sign(description)
    require_number("--budget", budget)
    require_number("--delta", delta, below=1)
    drafts = [*([Path(description[1:])] if description.startswith("@") else []), *([proof] if proof else [])]
    gaps = [problem for draft in drafts for problem in gap_problems(draft)]
    client = connect(site, token, needs_token=False) if site else None
    known = client.track(track) if client else None
    rule = known.rule if known else _rule_of(track)
    folder = RunFolder(run)
    options = {"clients": clients, "max_rounds": max_rounds, "trainable": trainable}
    rules = _rules_of(
        folder, rule, known, options, {"epsilon": budget, "delta": delta, "sampling_rule": sampling_rule}
    )
    print_lines(_source(known, client))
    accepted = _check_run(folder, rules, base)
    if known and known.ranks_counted_alone:
        print_lines(*_declared(folder))
    if known and client:
        accepted = _check_with_site(client, known, folder, base, rules.max_rounds) and accepted
    accepted = _print_drafts(drafts, gaps) and accepted
    if rules.privacy:
        print_lines(
            "The site also checks whether the run token and the key belong to your team. After it receives the record, "
            "it draws the blocks that the annex must open (record.challenge)."
        )
    where = f"{client.site}/docs/checks/" if client else "docs/checks.md"
    print_lines(f"See {where} for what each check covers and what it can't.")
    if accepted and known:
        print_lines(*_submitting(run, known, description, proof))
    if not accepted:
        raise typer.Exit(EXIT_REJECTED)


def _submitting(run: Path, track: "TrackInfo", description: str, proof: Path | None) -> "Iterator[str]":
    """Yield what submits the run to a site's track; what participants choose is in capitals."""
    from evaluator.messages.jobs import ArtifactKind

    needs_proof = ArtifactKind.PRIVACY_PROOF in track.submission_artifacts
    options = ["--title", "TITLE"]
    options += ["--description", description or "@method.md"] if track.requires_code else []
    options += ["--proof", str(proof or "proof.md")] if needs_proof else []
    options += ["--license", track.submission_license] if track.submission_license else []
    submit = shlex.join(["pfl", "submit", str(run), "--track", track.slug, *options])
    if (needs_proof and not proof) or (track.requires_code and not description):
        yield f"Next: {shlex.join(['pfl', 'describe', str(run)])}"
        yield f"Then: {submit}"
    else:
        yield f"Next: {submit}"


def _print_drafts(drafts: "Sequence[Path]", gaps: "Sequence[Problem]") -> bool:
    """Print the gaps that are left in what is submitted with the run, and return whether there are none."""
    if drafts:
        print_lines(f"drafts: {'not passed' if gaps else 'passed'}")
    print_problems(gaps)
    return not gaps


def _rule_of(track: str) -> "RankingRule":
    if track not in KNOWN:
        raise wrong_option(
            "--track",
            " or ".join(KNOWN),
            track,
            next_step="Set PFL_SITE for the rules of a site's track; or choose the closest track, or its kind, and "
            "override its rules with options.",
        )
    return KNOWN[track]


def _rules_of(
    folder: "RunFolder",
    rule: "RankingRule",
    track: "TrackInfo | None",
    options: dict[str, Any],
    private: dict[str, Any],
) -> "TrackRules":
    """The rules of a run: the site's or the competition's, with those in their place that options name.

    Args:
        private: The options of the privacy rules, which apply where ε is accounted.

    Raises:
        ProblemError: The run's folder or its record is missing.
    """
    from evaluator.messages.jobs import PrivacyRules, TrackRules
    from starter_kit.evaluation.steps import require_record, require_run
    from starter_kit.runs.folder import budget_of

    rules = TrackRules(reference="local", test_set="local", clients=DEFAULT_CLIENTS, max_rounds=MAX_ROUNDS)
    if track:
        rules = track.rules(None)
    rules = rules.model_copy(update=_given(options))
    require_run(folder)
    if not rule.is_accounted:
        return rules
    require_record(folder)
    budgets = [one for one in track.budgets if one is not None] if track else BUDGETS
    epsilon = private["epsilon"] or budget_of(folder.record(max_rounds=rules.max_rounds), budgets)
    privacy = track.rules(epsilon).privacy if track else None
    privacy = privacy or PrivacyRules(epsilon=epsilon, delta=DELTA, sampling_rule=RULE)
    return rules.model_copy(update={"privacy": privacy.model_copy(update=_given(private))})


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _check_run(folder: "RunFolder", rules: "TrackRules", base: "Path") -> bool:
    """Take the workers' steps, print what they find, and return whether all pass."""
    from starter_kit.evaluation.steps import check_run

    accepted = True
    for outcome in check_run(folder, rules, base, progress):
        _print_outcome(outcome, rules)
        accepted = accepted and outcome.accepted
    return accepted


def _check_with_site(
    client: "SiteClient", track: "TrackInfo", folder: "RunFolder", base: "Path", max_rounds: int
) -> bool:
    """Print what else the site would reject, and return whether that is nothing."""
    problems = list(_site_problems(client, track, folder, base, max_rounds))
    print_lines(f"site: {'not passed' if problems else 'passed'}{_not_compared(client, track)}")
    print_problems(problems)
    if track.rule.is_accounted and client.has_token:
        run = folder.record(max_rounds=max_rounds).run
        print_lines(*_unstated_runs(client, run))
    return not problems


def _unstated_runs(client: "SiteClient", run: "RunLine") -> list[str]:
    """Return that the site knows of more private runs before this one than the record states."""
    from starter_kit.site.earlier_runs import earlier_records_if_known, unstated_runs

    earlier = earlier_records_if_known(client, run.track, run.run_token)
    found = unstated_runs(earlier, run.tuning.private_runs, run.track)
    return [f"Note: {found} If they used the same private data, explain in the proof what they cost."] * bool(
        found
    )


def _declared(folder: "RunFolder") -> list[str]:
    """Return what a phase that ranks counted bytes alone makes of the run."""
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.submitting import is_declared

    files = folder.files()
    log = files.get(ArtifactKind.COMMUNICATION_LOG)
    if log is None or not is_declared(files.keys(), log):
        return []
    return [
        "No rank: the bytes are declared, and this phase ranks only counted bytes, which need transcript.jsonl and "
        "messages.bin. Runs without privacy write them; see docs/bytes.md."
    ]


def _source(track: "TrackInfo | None", client: "SiteClient | None") -> str:
    """Whose rules the run is checked by."""
    if track and client:
        return f"Rules: {track.slug} of {client.site}"
    return (
        "Rules: the competition's defaults, unless options change them. To use the rules of a site's "
        "track, set PFL_SITE."
    )


def _site_problems(
    client: "SiteClient", track: "TrackInfo", folder: "RunFolder", base: "Path", max_rounds: int
) -> "Iterator[Problem]":
    """Yield what no step of the workers finds: other base weights, a missing token, an earlier submission."""
    from evaluator.messages.file_hash import sha256_of
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.runs.run_token import token_problems
    from starter_kit.runs.track_fit import base_differences

    yield from base_differences(base, track)
    if track.rule.is_accounted:
        yield from token_problems(folder.record(max_rounds=max_rounds).run, track, str(folder.path))
    checkpoint = folder.files().get(ArtifactKind.CHECKPOINT)
    if client.has_token and checkpoint:
        yield from client.checkpoint_problems(track.slug, sha256_of(checkpoint))


def _not_compared(client: "SiteClient", track: "TrackInfo") -> str:
    """What couldn't be compared."""
    missing = []
    if not track.reference_sha256:
        missing.append("base weights, which the site doesn't have")
    if not client.has_token:
        missing.append("data and earlier submissions, which need PFL_TOKEN")
    return f"; not compared: {'; '.join(missing)}" if missing else ""


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
            print_lines(f"  {check.id:<22}{_status(check):<16}{check.found}")


def _status(check: "Check") -> str:
    """A check's status in words; on one's own disk there is no challenge of the site to test."""
    from evaluator.messages.jobs import CheckStatus

    if check.id == "record.challenge" and check.status is CheckStatus.NO_POWER:
        return "not testable before the upload: "
    return check.status.replace("_", " ")


def _detail(result: "StepResult", rules: "TrackRules") -> str:
    from evaluator.messages.jobs import (
        AccountingResult,
        CommunicationResult,
        FirstDownload,
        ValidationResult,
    )

    if isinstance(result, ValidationResult):
        return f", {len(result.changed)} of {result.tensors} tensors differ from the base weights"
    if isinstance(result, CommunicationResult):
        downloads = "" if rules.first_download is FirstDownload.COUNTED else " without first downloads"
        rounds = f"{result.rounds} round{'s' * (result.rounds != 1)}"
        return (
            f", {result.bytes_total:,} bytes in {rounds}{downloads} "
            f"({result.bytes_sent:,} in the log), {result.counting}"
        )
    if isinstance(result, AccountingResult) and rules.privacy:
        within = "within" if result.within_budget else "ABOVE"
        token = "" if result.run_token else "; no run token, so you can't submit this run"
        return (
            f", ε = {rounded_up(result.epsilon, 4)}, {within} the budget of {rules.privacy.epsilon:g}{token}"
        )
    return ""
