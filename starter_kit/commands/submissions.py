"""`pfl submissions`."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from starter_kit.commands.options import ApiToken, Site, connect, wrong_option
from starter_kit.console import console, print_lines, print_problems

if TYPE_CHECKING:
    from evaluator.messages.api import ListedRun, SubmissionSummary
    from starter_kit.site.client import SiteClient

# Of an id, as lists show it.
SHOWN_DIGITS = 8


def submissions(
    submission: Annotated[
        str, typer.Argument(help="ID of a submission, or its first characters.", metavar="[ID]")
    ] = "",
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Follow the evaluation until it ends; without an ID, follow the newest submission.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's responses.")] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """List your team's submissions with their scores and ranks, or follow one.

    With an ID, the command shows the submission's runs, their problems, and the address of its page. With
    `--watch`, the exit status is 0 if every run is scored.
    """
    client = connect(site, token)
    if not (submission or watch):
        found = client.submissions()
        if as_json:
            console.print_json(data=[one.model_dump(mode="json") for one in found])
        else:
            print_lines(*([line for one in found for line in _lines(one)] or ["No submissions yet"]))
        return
    chosen = _chosen(client, submission)
    if watch:
        follow(client, chosen, as_json=as_json)
    else:
        _show(client, chosen, as_json=as_json)


def follow(client: "SiteClient", submission: UUID, *, as_json: bool = False) -> None:
    """Follow a submission's evaluation to its end: rank and address, or the problems and exit status 1."""
    from evaluator.messages.states import RunState
    from starter_kit.submitting import watch

    final = watch(client, submission, (lambda _: None) if as_json else print_lines)
    _show(client, submission, as_json=as_json, with_state=False)
    if any(run.state is not RunState.SCORED for run in final.runs):
        raise typer.Exit(1)


def _show(client: "SiteClient", submission: UUID, *, as_json: bool, with_state: bool = True) -> None:
    from starter_kit.submitting import outcome_line, status_line

    shown = client.submission(submission)
    if as_json:
        console.print_json(shown.model_dump_json())
        return
    if with_state:
        print_lines(f"{shown.title}, {shown.track}: {shown.state}", *map(status_line, shown.runs))
    print_lines(*(outcome_line(run, shown.url) for run in shown.runs))
    print_problems([problem for run in shown.runs for problem in run.problems])


def _chosen(client: "SiteClient", start: str) -> UUID:
    """Return the id that begins like this, or the newest submission's."""
    found = [one.id for one in client.submissions() if str(one.id).startswith(start.lower())]
    if not found or (start and len(found) > 1):
        raise wrong_option(
            "ID",
            "the id of one of your team's submissions, or its first characters",
            f"{start}, with which {len(found)} begin" if found else start or "none",
            next_step="`pfl submissions` lists them.",
        )
    return found[0]


def _lines(submission: "SubmissionSummary") -> list[str]:
    day = f"{submission.submitted_at:%Y-%m-%d}" if submission.submitted_at else "not submitted"
    state = f"practice, {submission.state}" if submission.practice else submission.state
    head = f"{str(submission.id)[:SHOWN_DIGITS]}  {submission.track}  {submission.title} ({state}, {day})"
    lines = [_run_line(run, str(submission.id)[:SHOWN_DIGITS]) for run in submission.runs]
    return [head, *(f"          {line}" for line in lines)]


def _run_line(run: "ListedRun", submission: str) -> str:
    from evaluator.messages.states import RunState
    from evaluator.scoring.metrics import cut
    from starter_kit.submitting import rank_text

    name = f"ε = {run.budget:g}" if run.budget else "run"
    score = f", ANLS {cut(run.anls, run.decimals)}" if run.anls is not None else ""
    size = f", {run.bytes_total:,} bytes" if run.bytes_total is not None else ""
    why = f": {run.unranked_because}" if run.unranked_because else ""
    rank = f", {rank_text(run)}" if run.rank else f", no rank{why}" if run.anls is not None else ""
    problems = f"; `pfl submissions {submission}` shows why" if run.state is RunState.REJECTED else ""
    return f"{name}: {run.state}{score}{size}{rank}{problems}"
