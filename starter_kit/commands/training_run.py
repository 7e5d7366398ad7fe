"""A training run as `pfl train` and `pfl federate server` make it: reported on the terminal from start to end."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.options import connect, connect_if_known, key_path
from starter_kit.console import log, print_lines
from starter_kit.secure_aggregation import NOT_AUDITED

if TYPE_CHECKING:  # what trains takes seconds to load, and mistakes are reported before
    from evaluator.errors import Problem
    from evaluator.messages.api import TrackInfo
    from starter_kit.reporting.metrics import RoundMetrics
    from starter_kit.runs.setup import RunSetup
    from starter_kit.runs.training import OpenEngine
    from starter_kit.settings.run_settings import RunSettings
    from starter_kit.site.client import SiteClient
    from starter_kit.site.credentials import Credentials

# Of a run with a training record, unless another is named.
RECORD_TRACK = "track-2"


@dataclass(frozen=True)
class RunOptions:
    """What a command says of a run beside its settings: see `starter_kit.commands.options`.

    Attributes:
        resume: Whether the run that was interrupted in `out` is resumed.
        log_to: Where the rounds are sent besides.
        site, token: Of the site that may issue a run token; empty where there is none.
    """

    data: Path
    base: Path
    out: Path
    track: str | None = None
    resume: bool = False
    log_to: Sequence[str] = ()
    run_token: str | None = None
    key: Path | None = None
    site: str = ""
    token: str = ""


def run_training(settings: "RunSettings", options: RunOptions, open_engine: "OpenEngine") -> None:
    """Train with progress on the terminal, report the run on a page, and print the outcome.

    The file of an own method is kept with the run.

    Raises:
        ProblemError: See `starter_kit.runs.training.train`; or an option is wrong.
    """
    from starter_kit.reporting.logger_choice import loggers_of
    from starter_kit.reporting.metrics import SUMMARY, read_summary
    from starter_kit.reporting.report import write_report
    from starter_kit.runs.logged_rounds import logged_rounds
    from starter_kit.runs.progress import show_progress
    from starter_kit.runs.training import train
    from starter_kit.settings.own_methods import check_returns, own_files

    def checked_and_compared(setup: "RunSetup") -> None:
        check_returns(setup.method)
        compare(setup)

    out, track, resume = options.out, options.track or RECORD_TRACK, options.resume
    loggers = loggers_of(options.log_to)
    compare = comparison_with_site(settings, options)
    site = connect_if_known(options.site, options.token)
    credentials = credentials_of(settings, options.key, options.run_token, track, site, out, resumed=resume)
    if settings.secure_aggregation is not None:
        log(NOT_AUDITED)
    if site and not resume:
        _report_unstated_runs(settings, site, track)
    with (
        _reported_interruption(out),
        show_progress(settings.experiment) as watcher,
        logged_rounds(loggers, settings, _earlier(out, resume=resume)) as delivery,
    ):
        train(
            settings,
            data=options.data,
            base=options.base,
            out=out,
            track=track,
            credentials=credentials,
            watcher=watcher,
            on_round=delivery.write,
            resume=resume,
            open_engine=open_engine,
            on_setup=checked_and_compared,
        )
        delivery.close(read_summary(out / SUMMARY))
    for file in own_files(settings):
        file.keep(out)
    write_report(out)
    print_lines(*_outcome(options, settings.rounds))


def _report_unstated_runs(settings: "RunSettings", site: "SiteClient", track: str) -> None:
    """Report that the site knows of more private runs than the record will state, which is signed at the end."""
    from starter_kit.settings.run_settings import RecordedSettings
    from starter_kit.site.earlier_runs import earlier_records_if_known, unstated_runs

    if not isinstance(settings, RecordedSettings):
        return
    earlier = earlier_records_if_known(site, track, None)
    if found := unstated_runs(earlier, settings.tuning.private_runs, track):
        log(f"{found} If you chose settings by their results, add --set tuning.private_runs={earlier}.")


def comparison_with_site(settings: "RunSettings", options: RunOptions) -> "Callable[[RunSetup], None]":
    """Return a function that compares a run with its track at the site, whose rules are asked for now.

    A run with a record that carries a run token is rejected where it differs, since the token would be spent in vain.
    Any other may be an experiment: then the differences are reported. Nothing is compared of a run that is resumed.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The site has no such track; (`E_SITE_UNREACHABLE`) it doesn't answer.
    """
    from starter_kit.settings.run_settings import RecordedSettings
    from starter_kit.settings.track_rules import BUDGETS

    recorded = isinstance(settings, RecordedSettings)
    track = _track_at(options, recorded=recorded) if options.site and not options.resume else None
    spends_token = recorded and bool(options.token or options.run_token)

    def compare(setup: "RunSetup") -> None:
        from starter_kit.runs.track_fit import track_differences

        problems = track_differences(setup, track) if track else []
        if not options.resume:
            problems += _over_budget(setup, track.budgets if track else BUDGETS)
        if problems and track and spends_token:
            raise ProblemError(*problems)
        demanding = f"{track.slug} of {options.site} demands" if track else "the competition demands"
        for problem in problems:
            log(f"not as {demanding}: {problem}")

    return compare


def _over_budget(setup: "RunSetup", budgets: "Sequence[float | None]") -> "list[Problem]":
    """Return that a run with a training record spends more than each of a track's budgets; else nothing."""
    limits = [budget for budget in budgets if budget is not None]
    if not (limits and setup.record_terms and setup.guarantee):
        return []
    epsilon, most = setup.guarantee.epsilon(setup.rounds), max(limits)
    if epsilon <= most:
        return []
    # Of one's own method, the settings may have other names.
    is_computed = getattr(setup.settings, "noise_multiplier", None) is None
    noise = "" if is_computed else "--set noise_multiplier=null "
    return ProblemError.of(
        ErrorCode.TRACK_RULES,
        message="The run spends more than every privacy budget, and its record would be rejected.",
        where="ε of all rounds",
        expected=f"at most {most:g}",
        found=f"{epsilon:.4g}",
        next_step=f"Train with {noise}--set target_epsilon={most:g}, or less; see `pfl plan`.",
    ).problems


def _track_at(options: RunOptions, *, recorded: bool) -> "TrackInfo | None":
    """Return the track of the site that the run is for; None where it has none for such runs, or isn't needed."""
    site = connect(options.site, options.token, needs_token=False)
    slug = options.track or (RECORD_TRACK if recorded else "")
    if recorded and options.token and not options.run_token:
        return site.track(slug)
    try:
        tracks = site.tracks()
    except ProblemError as error:
        # The machine may have no access to it: the run brings its token, or needs none.
        log(f"The run isn't compared with {options.site}: {error.problem.message}")
        return None
    fitting = (track for track in tracks if track.slug == slug or not (slug or track.rule.is_accounted))
    return next(fitting, None)


def require_free_folder(out: Path, *, resume: bool) -> None:
    """Check a run's folder before anything is loaded that takes seconds; the run checks it again when it opens it.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) There is something already, or a new run would delete rounds that were trained.
    """
    from starter_kit.runs.folder import require_new

    require_new(out)
    folder, rounds = _unfinished(out)
    if rounds and not resume:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="This folder contains an interrupted run, which would be lost.",
            where=str(folder),
            expected="no such folder, or --resume",
            found=f"a run with {_rounds(rounds)} trained",
            next_step="Add --resume to continue the run; to start over, delete this folder or choose another --out.",
        )


def credentials_of(
    settings: "RunSettings",
    key: Path | None,
    run_token: str | None,
    track: str,
    site: "SiteClient | None",
    out: Path,
    *,
    resumed: bool,
) -> "Callable[[], Credentials]":
    """Return a function that obtains the credentials of the run in `out` and reports what is new or missing.

    What is there already, and that the site would issue a token, is checked now, if the run needs it.
    Training calls it once everything else is known to be right, so that no token is used up in vain.
    """

    from starter_kit.settings.run_settings import RecordedSettings
    from starter_kit.site.credentials import check_credentials, obtain_credentials

    if isinstance(settings, RecordedSettings):
        check_credentials(key_path(key), run_token, track, site, resumed=resumed)

    def obtain() -> "Credentials":
        from starter_kit.runs.opening import RunPaths

        path, training = key_path(key), RunPaths(out).training
        credentials = obtain_credentials(path, run_token, track, site, training=training, resumed=resumed)
        if credentials.new_key:
            print_lines(f"{path}: new key that signs your records (keep it private, and don't lose it)")
        if credentials.run_token and run_token is None and not resumed:
            print_lines(
                f"{credentials.run_token}: run token of this run, from {track}; the record contains it"
            )
        if credentials.run_token is None and not resumed:
            print_lines(
                "No run token: you can check this run but not submit it. To train for the benchmark, set PFL_SITE and "
                "PFL_TOKEN, or pass a token from `pfl token`."
            )
        return credentials

    return obtain


def _unfinished(out: Path) -> tuple[Path, int]:
    """The folder of an interrupted run, and how many whole rounds it has."""
    from starter_kit.reporting.metrics import METRICS, read_metrics

    folder = out.with_name(f"{out.name}.unfinished")
    return folder, len(read_metrics(folder / METRICS)) if (folder / METRICS).is_file() else 0


def _earlier(out: Path, *, resume: bool) -> "Sequence[RoundMetrics]":
    """The rounds of the run that is resumed; none of another."""
    from starter_kit.reporting.metrics import METRICS, read_metrics

    path = _unfinished(out)[0] / METRICS
    return read_metrics(path) if resume and path.is_file() else ()


@contextmanager
def _reported_interruption(out: Path) -> Iterator[None]:
    """Report after Ctrl-C what is there and how to resume it."""
    try:
        yield
    except KeyboardInterrupt:
        folder, rounds = _unfinished(out)
        hint = (
            f" The same command with --resume continues after round {rounds}, from {folder}" if rounds else ""
        )
        log(f"Interrupted.{hint}")
        raise


def _rounds(count: int) -> str:
    return f"{count} {'round' if count == 1 else 'rounds'}"


def _outcome(options: RunOptions, rounds: int) -> list[str]:
    """A finished run in a few lines, with the command that scores it; `rounds` is how many its settings name."""
    from starter_kit.reporting.metrics import SUMMARY, read_summary
    from starter_kit.reporting.rounding import epsilon_text, size_text
    from starter_kit.runs.folder import RunFolder
    from starter_kit.runs.vectors import FOLDER, VectorFolder

    run = options.out
    summary = read_summary(run / SUMMARY)
    line = f"{run}: trained with {summary.experiment}, {_rounds(summary.rounds)}, {size_text(summary.bytes_total)} sent"
    if summary.epsilon is not None:
        line += f", ε = {epsilon_text(summary.epsilon)} for one {summary.unit}, δ = {summary.delta:g}"
    lines = [line]
    if summary.budget is not None and summary.rounds < rounds:
        lines.append(
            f"Trained {summary.rounds} of {rounds} rounds: another round would exceed ε = {summary.budget:g}"
        )
    if kept := VectorFolder.of(run, 0).size_bytes:
        token = RunFolder(run).record(max_rounds=summary.rounds).run.run_token
        use = (
            "`pfl submit` and deleted afterwards"
            if token
            else "`pfl replay open`; delete it when it isn't any more"
        )
        lines.append(f"{run / FOLDER}: {size_text(kept)}, needed by {use}")
    words = ("pfl", "evaluate", run, "--base", options.base, "--data", options.data)
    track = ("--track", options.track) if options.track else ()
    check = ("pfl", "check", run, "--base", options.base, *track)
    return [
        *lines,
        f"Report: {run / 'report.html'}",
        f"To score the run: {shlex.join(map(str, words))}",
        f"To check it before you submit it: {shlex.join(map(str, check))}",
    ]
