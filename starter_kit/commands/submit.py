"""`pfl submit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.options import ApiToken, Site, connect
from starter_kit.console import exit_on_problem, print_lines, print_problems, progress

if TYPE_CHECKING:
    from starter_kit.site.api import SiteClient

app = new_app()


@app.command()
def submit(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders: one in track 1, up to one per budget in track 2.")
    ],
    track: Annotated[
        str, typer.Option(help="The track's name in its address, such as track-1.", show_default=False)
    ],
    title: Annotated[str, typer.Option(help="The method's name on the leaderboard.", show_default=False)],
    description: Annotated[str, typer.Option(help="Markdown.")] = "",
    proof: Annotated[Path | None, typer.Option(help="Privacy proof: PDF, Markdown or notebook.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the evaluation until it ends.")] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Upload runs and submit them. After an interrupted connection, the same command resumes the upload."""
    from starter_kit.submitting import prepare, register_keys, send

    with exit_on_problem():
        client = connect(site, token)
        plan = prepare(client, track, runs, proof)
        for public_key in register_keys(client, plan):
            print_lines(f"{public_key}: registered as your team's key")
        with progress("uploading, MB") as show:
            submission = send(
                client, plan, title, description, lambda done, total: show(done // 10**6, total // 10**6)
            )
        print_lines(f"Submitted: {submission['url']}")
        if wait and not follow(client, submission["id"]):
            raise typer.Exit(1)


def follow(client: "SiteClient", submission: str) -> bool:
    """Print what happens until every run is final, and return whether all of them were scored."""
    from evaluator.errors import Problem

    last_lines: dict[str, str] = {}
    final: dict[str, Any] = {}
    for final in client.follow(submission):
        for run in final["runs"]:
            line = _status_line(run)
            if last_lines.get(run["id"]) != line:
                last_lines[run["id"]] = line
                print_lines(line)
    for run in final["runs"]:
        print_problems([Problem.model_validate(problem) for problem in run["problems"]])
    return all(run["state"] == "scored" for run in final["runs"])


def _status_line(run: dict[str, Any]) -> str:
    from evaluator.scoring.metrics import cut
    from evaluator.worker.time_left import in_words

    name = f"ε = {run['budget']:g}" if run["budget"] else "run"
    if run["state"] == "scored":
        epsilon = f", ε = {run['epsilon']:.4f}" if run["epsilon"] is not None else ""
        return f"{name}: scored, ANLS {cut(run['anls'])}, {run['bytes_total']:,} bytes{epsilon}"
    step = f", {run['step']}" if run["step"] else ""
    place = f", number {run['queue_position']} in the queue" if run["queue_position"] else ""
    time_left = in_words(run["remaining_s"])
    return f"{name}: {run['state']}{step}{place}{f', {time_left}' if time_left else ''}"
