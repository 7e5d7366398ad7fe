"""`pfl plan`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.commands.official_flags import CommandWithOfficialFlags, config_of, given_flags
from starter_kit.commands.options import (
    ApiToken,
    BaseFolder,
    Changes,
    DataFolder,
    Site,
    connect,
    wrong_option,
)
from starter_kit.console import console, log, print_lines

if TYPE_CHECKING:
    from evaluator.messages.api import TrackInfo
    from evaluator.messages.rankings import RankingRule
    from starter_kit.runs.forecast import Forecast, Memory, Privacy
    from starter_kit.runs.setup import RunSetup

app = new_app()


@app.command(cls=CommandWithOfficialFlags)
def plan(
    context: typer.Context,
    data: DataFolder,
    base: BaseFolder,
    config: Annotated[
        str | None,
        typer.Argument(help="A YAML file, or the name of one of the kit's configs, as for `pfl train`."),
    ] = None,
    changes: Changes = None,
    out: Annotated[Path, typer.Option(help="Folder to which the run would be written.")] = Path("save"),
    track: Annotated[
        str | None,
        typer.Option(
            help="The track that the run is for. With --site or PFL_SITE, its budgets apply, and the plan lists where "
            "the run differs from its rules; without a site, track-1 or track-2."
        ),
    ] = None,
    site: Site = "",
    token: ApiToken = "",
    measure: Annotated[bool, typer.Option(help="Time one step on a few pages of the data.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Estimate a run's bytes, ε, memory and time before it starts, and suggest changes if it won't fit or rank."""
    config = config_of(context, config)

    # What trains takes seconds to load: mistakes are reported before.
    from starter_kit.settings.configuration import load_settings

    settings = load_settings(config, changes or [], flags=given_flags(context), on_note=log)

    from starter_kit.runs.forecast import advice
    from starter_kit.runs.planning import as_values, forecast, micro_batch_size
    from starter_kit.runs.setup import RunSetup
    from starter_kit.settings.rate_notes import rate_notes
    from starter_kit.settings.track_rules import BUDGETS, KNOWN

    rules = _rules_of(track, site, token)
    chosen = (track, rules.rule if rules else KNOWN[track]) if track else None
    budgets = tuple(budget for budget in rules.budgets if budget is not None) if rules else ()
    budgets = budgets or BUDGETS
    setup = RunSetup(settings, data=data, base=base)
    found = forecast(setup, out, budgets, measure=measure)
    changed = advice(
        found,
        micro_batch_size=micro_batch_size(setup),
        features=settings.compute.features,
        budgets=budgets,
    )
    changed += [*rate_notes(settings), *(_differences(setup, rules) if rules else [])]
    if as_json:
        typer.echo(json.dumps(as_values(found, changed), indent=1))
        return
    console.print(_table(found, budgets, chosen))
    print_lines(*(changed or ["No changes needed."]))


def _table(found: "Forecast", budgets: tuple[float, ...], track: "tuple[str, RankingRule] | None") -> Table:
    table = Table(
        Column("quantity", no_wrap=True),
        Column("estimate", overflow="fold"),
        title=", ".join(dict.fromkeys([found.experiment, found.method])),
        title_justify="left",
    )
    for name, value in (*_sizes(found), *_times(found), *_ranks(found.privacy, budgets, track)):
        table.add_row(Text(name), Text(value))
    return table


def _sizes(found: "Forecast") -> list[tuple[str, str]]:
    from starter_kit.reporting.rounding import size_text

    traffic, memory, room, disk = found.traffic, found.memory, found.room, found.disk
    most = "" if traffic.clients == traffic.most_clients else f", {size_text(traffic.most_bytes)} at most"
    rows = [
        ("weights", f"{found.parameters:,}, of which {found.trained:,} are trained and sent"),
        (
            "rounds",
            f"{traffic.rounds}, with {traffic.clients:g} client{'' if traffic.clients == 1 else 's'} each",
        ),
        ("one message", f"{size_text(traffic.down_bytes)} down, {size_text(traffic.up_bytes)} up"),
        ("all messages", f"{size_text(traffic.expected_bytes)}{most}"),
        ("memory", f"{size_text(found.host_bytes)} of {size_text(room.memory)}"),
        ("largest parts of memory", ", ".join(f"{name} {size_text(size)}" for name, size in _parts(memory))),
    ]
    if room.device is not None:
        peak = found.device_peak_bytes
        measured = "" if peak is None else f"; {size_text(peak)} measured in a step"
        free = f"{size_text(memory.device_bytes)} of {size_text(room.device)} free{measured}"
        rows.append(("memory of the GPU", free))
    features = f"{size_text(disk.features_bytes)} for the pages' image features"
    return [*rows, ("disk", f"{size_text(disk.run_bytes)} for the run, {features}")]


def _parts(memory: "Memory") -> list[tuple[str, int]]:
    """The parts of the memory that are no round-off of it, the largest first."""
    parts = {name.removesuffix("_bytes"): size for name, size in vars(memory).items()}
    shown = {name: size for name, size in parts.items() if size > sum(parts.values()) / 100}
    return sorted(shown.items(), key=lambda part: -part[1])


def _times(found: "Forecast") -> list[tuple[str, str]]:
    timing = found.timing
    if timing is None:
        return []
    scoring = [("scoring of all rounds", _duration(timing.scoring_s))] if timing.scoring_s else []
    return [
        ("one step", f"{timing.step_s:.3g} s, measured"),
        ("image features", f"{_duration(timing.pages_s)}, once for all runs on the data"),
        ("one round", _duration(timing.round_s)),
        *scoring,
        ("all rounds, with scoring" if scoring else "all rounds", _duration(timing.total_s)),
    ]


def _ranks(
    privacy: "Privacy | None", budgets: tuple[float, ...], track: "tuple[str, RankingRule] | None"
) -> list[tuple[str, str]]:
    """Return the rows of ε and the rank in a track, by its name and rule; without one, in the competition's."""
    rows = [] if privacy is None else _epsilons(privacy)
    name, rule = track or ("track 2", None)
    if rule is not None and not rule.is_accounted:
        return [*rows, ("rank", _condition(name, rule))]
    if privacy is None:
        rank = _rank_without_privacy() if rule is None else f"none in {name}, which needs a training record"
    elif not privacy.recorded:
        rank = f"none in {name}"
    else:
        budget = privacy.budget(budgets)
        rejected = budget is None or privacy.rejections()
        rank = f"none in {name}, which rejects the record" if rejected else f"{name}, ε = {budget:g}"
    return [*rows, ("rank", rank)]


def _epsilons(privacy: "Privacy") -> list[tuple[str, str]]:
    from starter_kit.reporting.rounding import epsilon_text

    rows = [("ε", f"{epsilon_text(privacy.epsilon)} for one {privacy.unit}, δ = {privacy.delta:g}")]
    if privacy.product is not None:
        rows.append(("ε under the product rule", f"{epsilon_text(privacy.product)}, not used by any board"))
    if privacy.recorded and (privacy.claims_less or privacy.claimed_delta != privacy.delta):
        claim = (
            f"{epsilon_text(privacy.claimed)} under the rule {privacy.rule}, δ = {privacy.claimed_delta:g}"
        )
        rows.append(("ε that the record claims", claim))
    if privacy.noise_multiplier is not None:
        rows.append(("noise multiplier", f"{privacy.noise_multiplier:.4g}"))
    return rows


def _rank_without_privacy() -> str:
    """In which tracks a run without a training record has a rank, and on which condition."""
    from starter_kit.settings.track_rules import TRACKS

    return "; ".join(
        _condition(name.replace("-", " "), rule) for name, rule in TRACKS.items() if not rule.is_accounted
    )


def _condition(name: str, rule: "RankingRule") -> str:
    results = [result.upper() for result in rule.at_least]
    return f"{name}, if its {' and its '.join(results)} reaches the track's threshold" if results else name


def _rules_of(track: str | None, site: str, token: str) -> "TrackInfo | None":
    """Return the rules of the site's track; None without a site or a track.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such track; (`E_SITE_UNREACHABLE`) the site doesn't answer.
    """
    from starter_kit.settings.track_rules import KNOWN

    if track and site:
        return connect(site, token, needs_token=False).track(track)
    if track and track not in KNOWN:
        raise wrong_option(
            "--track", " or ".join(KNOWN), track, next_step="Set PFL_SITE for the rules of a site's track."
        )
    return None


def _differences(setup: "RunSetup", track: "TrackInfo") -> list[str]:
    """Return where the run differs from what the track demands, each with what to change."""
    from starter_kit.runs.track_fit import track_differences
    from starter_kit.settings.track_rules import DELTA, RULE

    found = [
        f"{track.slug} demands {problem.expected} ({problem.where}), not {problem.found}. {problem.next_step}"
        for problem in track_differences(setup, track)
    ]
    if track.rule.is_accounted and (track.delta, track.sampling_rule) != (DELTA, RULE):
        found.append(
            f"{track.slug} computes ε at δ = {track.delta:g} by the rule {track.sampling_rule}; this plan, at δ = "
            f"{DELTA:g} by the rule {RULE}."
        )
    return found


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
