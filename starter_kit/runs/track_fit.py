"""Whether a run fits a track of a site: its data, base weights and settings, compared before anything is trained.

A run that doesn't would train, spend its run token, and be rejected by the site.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from evaluator.docvqa.vt5 import WEIGHTS
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.api import TrackInfo
from evaluator.messages.file_hash import sha256_of
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.run_settings import PrivateSettings, RecordedSettings

SHOWN_NAMES = 3


def track_differences(setup: RunSetup, track: TrackInfo) -> list[Problem]:
    """Return where a run differs from what the track demands (`E_TRACK_RULES`); what the site doesn't say is skipped.

    Args:
        track: With the hash of the data, if the site was asked with an API token.
    """
    return [
        *_data_differences(setup, track),
        *base_differences(setup.base_folder, track),
        *_setting_differences(setup, track),
        *_tensor_differences(setup, track.trainable),
    ]


def base_differences(base: Path, track: TrackInfo) -> Iterator[Problem]:
    """Yield that a folder holds other base weights than the track's."""
    path = base / WEIGHTS
    if not track.reference_sha256 or not path.is_file():
        return
    if (found := sha256_of(path)) != track.reference_sha256:
        yield _difference(
            str(path),
            f"{track.reference}, SHA-256 {track.reference_sha256[:12]}…",
            f"SHA-256 {found[:12]}…",
            "Download the base weights from the site's data page, and name their folder with --base.",
        )


def _data_differences(setup: RunSetup, track: TrackInfo) -> Iterator[Problem]:
    advice = "Download the track's data from the site's data page, and name its folder with --data."
    where = f"--data {setup.data}"
    if len(setup.clients) != track.clients:
        yield _difference(where, f"{track.clients} clients", len(setup.clients), advice)
        return
    providers = [len(client.providers) for client in sorted(setup.clients, key=lambda one: one.id)]
    for client, (due, found) in enumerate(zip(track.providers_per_client, providers, strict=False)):
        if found != due:
            yield _difference(f"{where}, client {client}", f"{due} providers", found, advice)
            return
    if track.data_sha256 and setup.data_sha256 != track.data_sha256:
        yield _difference(where, f"the data of {track.slug}", "other documents, words or questions", advice)


def _setting_differences(setup: RunSetup, track: TrackInfo) -> Iterator[Problem]:
    settings = setup.settings
    if setup.rounds > track.max_rounds:
        yield _difference(
            "rounds",
            f"at most {track.max_rounds}",
            setup.rounds,
            f"Add --set rounds={track.max_rounds}, or fewer.",
        )
    if isinstance(settings, PrivateSettings) and settings.delta != track.delta:
        yield _difference("delta", f"{track.delta:g}", settings.delta, f"Add --set delta={track.delta:g}.")
    if isinstance(settings, RecordedSettings) and settings.sampling_rule != track.sampling_rule:
        rule = track.sampling_rule.value
        yield _difference(
            "sampling_rule", rule, settings.sampling_rule.value, f"Add --set sampling_rule={rule}."
        )


def _tensor_differences(setup: RunSetup, patterns: Sequence[str]) -> Iterator[Problem]:
    """Yield the trained tensors that the track holds fixed; an adapter changes the tensor that it is merged into."""
    adapters = setup.model.adapters
    targets = adapters.targets if adapters else {}
    trained = dict.fromkeys(targets.get(name, name) for name in setup.model.tensors.parameters)
    fixed = [name for name in trained if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    if patterns and fixed:
        names = ", ".join(fixed[:SHOWN_NAMES]) + (", …" if len(fixed) > SHOWN_NAMES else "")
        yield _difference(
            "trainable",
            f"tensors matching {', '.join(patterns)}",
            names,
            "Set trainable or lora.targets to them.",
        )


def _difference(where: str, expected: object, found: object, next_step: str) -> Problem:
    return Problem.of(ErrorCode.TRACK_RULES, where, str(expected), str(found), next_step=next_step)
