"""`pfl submit`."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.errors import ProblemError
from starter_kit.commands.options import ApiToken, Site, connect, require_at_sign, wrong_option
from starter_kit.commands.submissions import follow
from starter_kit.console import console, log, print_lines, transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evaluator.messages.api import Submission, SubmissionStatus
    from evaluator.messages.file_api import StoredArtifact
    from starter_kit.site.client import SiteClient
    from starter_kit.submitting import SubmissionPlan

BECOMES_PUBLIC = (
    "With the results, the method's description, its communication log and any training record become public. The "
    "checkpoint and the annex never do. Where the track allows it, --private keeps everything unpublished, and "
    "--anonymous hides your team and these files."
)


def submit(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders: one in track 1, up to one per budget in track 2.")
    ],
    track: Annotated[str, typer.Option(help="Name of the track, such as track-1.")],
    title: Annotated[
        str,
        typer.Option(help="The method's title on the leaderboard. It can't be changed after you submit."),
    ],
    description: Annotated[
        str, typer.Option(help="What the method does, in Markdown, or @FILE. Some tracks require it.")
    ] = "",
    code_url: Annotated[
        str, typer.Option("--code-url", help="Public link to a commit of the method's code.")
    ] = "",
    proof: Annotated[
        Path | None, typer.Option(help="Privacy proof: PDF, Markdown or notebook. `pfl describe` drafts one.")
    ] = None,
    code: Annotated[
        bool,
        typer.Option(
            help="Attach settings.yaml and your own method's file, for a higher trust level. Only your team, the "
            "organizers and reviewers can read them."
        ),
    ] = True,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Keep the submission unpublished until your team publishes it, if the track's phase allows "
            "this.",
        ),
    ] = False,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous", help="List the submission under a random name, if the track's phase allows this."
        ),
    ] = False,
    accepted_license: Annotated[
        str,
        typer.Option(
            "--license",
            help="Accept the track's license of submissions by its SPDX identifier, if the track specifies one.",
        ),
    ] = "",
    practice: Annotated[
        bool,
        typer.Option(
            "--practice",
            help="Submit for practice: the runs are evaluated, but never public, reviewed or ranked. No "
            "proof is needed, and a checkpoint can be repeated. A private run spends its run token: submit the same "
            "run for a rank later.",
        ),
    ] = False,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Submit runs that seem to be for another track, or that this phase doesn't rank."
        ),
    ] = False,
    publish_proof: Annotated[
        bool,
        typer.Option(
            "--publish-proof",
            help="Publish the proof and its checklist while it is accepted. Your team can change "
            "this at any time on the method's page.",
        ),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the evaluation until it ends.")] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Upload runs and submit them. After an interruption, the same command resumes where it stopped.

    In a track with privacy budgets, the site draws a challenge after it receives a run's record. The command
    creates the run's annex from the challenge, and deletes the run's folder `vectors` once everything is
    submitted.
    """
    from evaluator.messages.api import ChangedText
    from starter_kit.submitting import (
        discard_private_files,
        practiced_challenges,
        prepare,
        register_keys,
        send,
        unexplained_challenges,
    )

    if publish_proof and proof is None:
        raise wrong_option(
            "--publish-proof",
            "a privacy proof, named by --proof",
            "no --proof",
            message="There is no proof to publish.",
            next_step="Name the proof with --proof, or leave out --publish-proof.",
        )
    require_at_sign(description)
    _require_filled(description, proof, practice=practice)
    client = connect(site, token)
    plan = prepare(
        client, track, runs, proof, with_code=code, practice=practice, accepted_license=accepted_license
    )
    if plan.doubts and not (anyway or practice):
        raise ProblemError(*plan.doubts)
    for doubt in plan.doubts:
        log(f"Note: {doubt.message} This run would have no rank in {track}.")
    _report_consequences(client, plan)
    for public_key in register_keys(client, plan):
        print_lines(f"{public_key}: registered as your team's key")
    # None leaves a draft that is resumed as it is: nothing becomes public because an option was forgotten.
    description = _text(description)
    choices = ChangedText(
        description=description or None,
        code_url=code_url or None,
        keep_private=private or None,
        anonymous=anonymous or None,
        publishes_proof=publish_proof or None,
    )
    stored: list[StoredArtifact] = []
    with _kept_draft() as keep, transfer() as show:
        submission = send(
            client,
            plan,
            title,
            description,
            show,
            choices if choices.model_dump(exclude_none=True) else None,
            stored.append,
            keep,
        )
    print_lines(f"Submitted: {submission.url}")
    if plan.examined_files:
        print_lines(f"Attached {', '.join(plan.examined_files)} (for verification by the organizers)")
    print_lines(*_not_displayed(stored))
    print_lines(*_visibility(submission))
    if practiced := practiced_challenges(client, plan):
        print_lines(_still_to_rank(len(practiced)))
    if submission.publishes_proof:
        print_lines("As your team agreed, the proof is public while it is accepted.")
    if unexplained := unexplained_challenges(client, plan):
        print_lines(
            f"Unresolved challenges that flag this submission: {len(unexplained)}. Explain to the reviewers what "
            f"happened: `pfl challenges explain {unexplained[0]} ...`"
        )
    if removed_bytes := discard_private_files(plan):
        print_lines(f"Deleted {removed_bytes / 1e6:,.1f} MB of challenge data (no longer needed)")
    if wait:
        follow(client, submission.id)


@contextmanager
def _kept_draft() -> "Iterator[Callable[[Submission], object]]":
    """Report the draft that a failed submission leaves, and what to do with it."""
    drafts: list[Submission] = []
    try:
        yield drafts.append
    except ProblemError:
        for draft in drafts:
            log(f"Not submitted. The draft is kept: {draft.url}")
            log(
                "To continue, fix the problem below and run the same command again; or discard the draft on its page."
            )
        raise


def _require_filled(description: str, proof: Path | None, *, practice: bool) -> None:
    """Raise `ProblemError` with the gaps in what the team has written; nobody reads them of a practice submission.

    A proof that isn't there is reported with the runs' files.
    """
    from starter_kit.reporting.gaps import require_filled

    files = [Path(description[1:])] if description.startswith("@") else []
    files += [proof] if proof and proof.is_file() else []
    if not practice:
        require_filled(*files)


def _text(text: str) -> str:
    """Return the text, or that of the file whose name follows an @."""
    return Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text


def _not_displayed(stored: "Sequence[StoredArtifact]") -> list[str]:
    """Return what reviewers won't see of the proof, and what the team can do about it."""
    return [
        f"Reviewers don't see all of the proof as Jupyter shows it: {one.not_displayed} not displayed. The proof's "
        "page lists them. The submission's page links to it, and takes a revised proof, which uses no quota slot."
        for one in stored
        if one.not_displayed
    ]


def _report_consequences(client: "SiteClient", plan: "SubmissionPlan") -> None:
    """State before anything is uploaded what can't be undone, and ask in a terminal where practice spends tokens."""
    from starter_kit.submitting import tokens_to_spend, unstated_by_records

    for note in unstated_by_records(client, plan):
        log(f"Note: {note} The site shows how many training runs your team had.")
    if not plan.practice:
        print_lines(BECOMES_PUBLIC)
        return
    spent = len(tokens_to_spend(client, plan))
    if not spent:
        return
    spends = (
        "training record spends its run token" if spent == 1 else "training records spends their run tokens"
    )
    stays = "its challenge stays" if spent == 1 else "their challenges stay"
    print_lines(
        f"Uploading the {spends}. Until you submit the same for a rank, {stays} unresolved and all later runs of your "
        "team are flagged."
    )
    if console.is_terminal and not typer.confirm("Submit for practice?"):
        print_lines("Nothing was uploaded.")
        raise typer.Exit


def _still_to_rank(challenges: int) -> str:
    """What practice leaves of the challenges of its training records, and what resolves them."""
    spent = (
        "The run token is spent, and its challenge is unresolved until you submit the same training record"
        if challenges == 1
        else f"{challenges} run tokens are spent, and their challenges are unresolved until you submit the same "
        "training records"
    )
    return (
        f"{spent} for a rank. Until then, all later runs of your team are flagged. To compete, keep the run folder and "
        "run the same command without --practice, and with what the track requires for a rank, such as --proof FILE."
    )


def _visibility(submission: "SubmissionStatus") -> list[str]:
    """Who will see the submission, in sentences."""
    if submission.practice:
        return ["For practice: only your team and the organizers see it, and it is never ranked."]
    lines = []
    if submission.published_at is None:
        lines.append(
            "The submission is unpublished. Its page says when it becomes public, or lets you publish it."
        )
    return lines
