"""The commands by which pages show how to take part: those of this site, for one of its tracks, as they are typed."""

import shlex

from django.conf import settings

from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.ui.budgets import at_budget, plain
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.tuned_rates import changes_at


def missing_files(track: Track) -> list[DownloadKind]:
    """Return which of data and base weights, which `pfl data download` fetches, the site doesn't offer for a track."""
    kinds = set(Download.objects.for_track(track).values_list("kind", flat=True))
    return [kind for kind in (DownloadKind.DATA, DownloadKind.WEIGHTS) if kind not in kinds]


def trial_commands() -> list[str]:
    """Return the commands of a trial on made-up data, which needs no site and no download."""
    return [
        "pfl data forms data && pfl base create base",
        "pfl train fedavg --data data/public --base base --out save/run",
        "pfl evaluate save/run --base base --data data/public",
    ]


def track_commands(track: Track) -> list[list[str]]:
    """Return the commands from nothing to a submission in a track, with the track's data and base weights.

    Without downloads, both must be in the folders `data/public` and `base` already. Between two blocks of commands,
    participants complete the files that the first one drafted: see `drafts_of`.
    """
    run = _run_folder(track)
    kind, described = track.kind, " --description @method.md" if track.requires_code else ""
    licensed = f" --license {shlex.quote(track.submission_license)}" if track.submission_license else ""
    written = f"{described}{licensed}{kind.submit_options}"
    submit = f'pfl submit {run} --track {track.slug} --title "My method"{written} --wait'
    before = [
        # Whoever pastes all commands keeps a token that is set already, for instance by the page that showed it.
        f"export PFL_SITE={settings.SITE_URL} PFL_TOKEN=${{PFL_TOKEN:-…}}",
        *([f"pfl data download --track {track.slug}"] if not missing_files(track) else []),
        _train_command(track, track.run_budgets()[-1], run),
        f"pfl check {run} --base base --track {track.slug}",
    ]
    return [[*before, f"pfl describe {run}"], [submit]] if drafts_of(track) else [[*before, submit]]


def drafts_of(track: Track) -> list[str]:
    """Return the files that a submission in the track needs and that `pfl describe` drafts."""
    described = ["method.md"] if track.requires_code else []
    return (
        [*described, "proof.md"]
        if ArtifactKind.PRIVACY_PROOF in track.kind.submission_artifacts
        else described
    )


def other_budgets(track: Track) -> list[tuple[float | None, str]]:
    """Return the budgets of a track but the one in `track_commands`, each with the command that trains for it."""
    folder = _run_folder(track)
    return [
        (budget, _train_command(track, budget, at_budget(budget, f"{folder}-epsilon-{{}}", plain)))
        for budget in track.run_budgets()[:-1]
    ]


def _train_command(track: Track, budget: float | None, folder: str) -> str:
    config = track.kind.config
    where = f"--data data/public --base base --out {folder} --track {track.slug}"
    changes = [f"--set {change}" for change in changes_at(config, budget)]
    return " ".join([f"pfl train {config} {where}", *changes])


def _run_folder(track: Track) -> str:
    """Return a folder of the track's own: a participant may well follow the commands of several tracks."""
    return f"save/{track.slug}"
