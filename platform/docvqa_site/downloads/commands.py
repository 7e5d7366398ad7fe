"""The commands by which pages show how to take part: those of this site, for one of its tracks, as they are typed."""

import shlex

from django.conf import settings

from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.ui.budgets import at_budget, plain


def has_files() -> bool:
    """Return whether the site offers data and base weights, which `pfl data download` fetches."""
    kinds = Download.objects.offered().values_list("kind", flat=True)
    return {DownloadKind.DATA, DownloadKind.WEIGHTS} <= set(kinds)


def trial_commands() -> list[str]:
    """Return the commands of a trial on made-up data, which needs no site and no download."""
    return [
        "pfl data forms data && pfl base create base",
        "pfl train fedavg --data data/public --base base --out save/run",
        "pfl evaluate save/run --base base --data data/public",
    ]


def track_commands(track: Track) -> list[str]:
    """Return the commands from nothing to a submission in a track, with the track's data and base weights.

    Without downloads, both must be in the folders `data/public` and `base` already.
    """
    target = at_budget(track.run_budgets()[-1], " --set target_epsilon={}", plain)
    # One folder for each track: a participant may well follow the commands of several, one after the other.
    run = f"save/{track.slug}"
    kind, described = track.kind, " --description @method.md" if track.requires_code else ""
    licensed = f" --license {shlex.quote(track.submission_license)}" if track.submission_license else ""
    return [
        f"export PFL_SITE={settings.SITE_URL} PFL_TOKEN=…",
        *([f"pfl data download --track {track.slug}"] if has_files() else []),
        f"pfl train {kind.config} --data data/public --base base --out {run} --track {track.slug}{target}",
        f"pfl check {run} --base base --track {track.slug}",
        f'pfl submit {run} --track {track.slug} --title "My method"{described}{licensed}{kind.submit_options} --wait',
    ]
