"""What a training record declares in its first line: facts that no report repeats, and the settings of the run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from django.core.cache import caches

from docvqa_site.submissions.models import Artifact, Run
from docvqa_site.submissions.record_heads import first_line
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import FixedSize, RandomAllocation
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.lines import RunLine, TrainedLine
from evaluator.records.server_steps import ServerStep

CACHED_SECONDS = 24 * 3600

PLACEMENTS: Mapping[Placement, str] = {
    Placement.SERVER: "by the server, to the sum",
    Placement.CLIENT_FULL: "by each client, in full",
    Placement.CLIENT_SHARE: "by each client, a share of it",
}


Source = TypeVar("Source")


@dataclass(frozen=True)
class StatedFact(Generic[Source]):
    """A fact that a source states of a run: its name, the questions that it bears on, and its text."""

    key: str
    title: str
    items: tuple[str, ...]
    text: Callable[[Source], str]


DECLARED: tuple[StatedFact[RunLine], ...] = (
    StatedFact("placement", "Noise added", ("adversary", "noise"), lambda line: placement(line.noise)),
    StatedFact(
        "replayable",
        "Noise from recorded keys (replayable)",
        ("noise", "sampling"),
        lambda line: "yes" if line.round_keys_root else "no",
    ),
    StatedFact("normalizer", "Normalizer", ("empty_rounds",), lambda line: f"{line.normalizer:g}"),
    StatedFact("server_step", "Server's step", ("adaptivity",), lambda line: step_in_words(line.server)),
    StatedFact(
        "codec",
        "Codec",
        ("new_mechanisms",),
        lambda line: f"{line.codec.name}, {line.codec.bits_per_parameter:g} bits per number",
    ),
)


# What a run was trained with, in the order of a table; a text is empty where a run has no such setting.
SETTINGS: tuple[StatedFact[RunLine], ...] = (
    StatedFact("method", "Trainer", (), lambda line: line.method),
    StatedFact("adapter_rank", "Adapter rank", (), lambda line: adapter_rank(line)),
    StatedFact("rounds", "Rounds", (), lambda line: f"{line.rounds:,}"),
    StatedFact("client_rate", "Client rate", (), lambda line: sampling_rates(line)[0]),
    StatedFact("provider_rate", "Provider rate", (), lambda line: sampling_rates(line)[1]),
    StatedFact("clip_norm", "Clip norm", (), lambda line: f"{line.clip_norm:g}"),
    StatedFact("noise_multiplier", "Noise multiplier", (), lambda line: f"{line.noise.multiplier:.6g}"),
    *DECLARED,
)


def adapter_rank(line: TrainedLine) -> str:
    """Return the ranks of the adapters, and what they are; empty where none are trained."""
    ranks = sorted(set[int]().union(*(one.ranks for one in line.adapters)))
    return f"{', '.join(map(str, ranks))} ({line.parametrization})" if ranks else ""


def sampling_rates(line: RunLine) -> tuple[str, str]:
    """Return the chance of a client, and of a provider whose client takes part; empty where they aren't known."""
    sampling = line.sampling
    try:
        clients, providers = sampling.rates(line.clients)
    except ValueError:
        return "", ""
    match sampling:
        case FixedSize():
            words = f"{providers:.6g}, fixed size"
        case RandomAllocation(rounds_per_cycle=rounds):
            words = f"once in {rounds} rounds"
        case _:
            words = _rate(providers)
    return _rate(clients), words


def _rate(rate: float) -> str:
    return "all" if rate == 1 else f"{rate:.6g}"


def placement(noise: Noise) -> str:
    """Return who adds the noise, and what hides the clients' updates from the server if something does."""
    hidden = {"none": "", "simulated": "; secure aggregation is simulated", "real": "; secure aggregation"}
    return PLACEMENTS[noise.placement] + hidden[noise.secure_aggregation]


def step_in_words(step: ServerStep) -> str:
    """Return the server's rule with its parameters, such as "momentum, learning rate 0.5, momentum 0.9"."""
    values = step.model_dump(exclude={"rule"})
    parameters = (f"{name.replace('_', ' ')} {_plain(value)}" for name, value in values.items())
    return ", ".join([step.rule, *parameters])


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def declared_of(runs: Iterable[Run]) -> dict[UUID, dict[str, str]]:
    """Return the texts of `SETTINGS` by the runs whose records can be read, which are read once."""
    records = Artifact.objects.filter(kind=ArtifactKind.TRAINING_RECORD, run__in=runs)
    stored = records.values_list("run", "upload", "upload__store_key")
    return {run: texts for run, upload, key in stored if (texts := _texts(upload, key))}


@dataclass(frozen=True)
class SettingsTable:
    """The settings of some runs, by the names of the runs.

    Attributes:
        rows: The title of each setting that some run has, and its texts: one for all runs where they are equal.
        is_whole: Whether they are all settings, as training records have them.
    """

    runs: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    is_whole: bool = True

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to say of the settings: which they are, or where the others are."""
        return bool(self.rows) or not self.is_whole


def settings_of(runs: Sequence[tuple[str, Run]]) -> SettingsTable:
    """Return the settings of these named runs, without rows where no record can be read."""
    found, names = declared_of(run for _, run in runs), [name for name, _ in runs]
    texts = {one.title: [found.get(run.pk, {}).get(one.key, "") for _, run in runs] for one in SETTINGS}
    rows = [
        (
            title,
            [("All runs", own[0])] if len(set(own)) == 1 < len(own) else list(zip(names, own, strict=True)),
        )
        for title, own in texts.items()
        if any(own)
    ]
    return SettingsTable(names, rows)


def _texts(upload: UUID, store_key: str) -> dict[str, str]:
    cached, key = caches["pages"], f"record-settings:{upload}"
    texts: dict[str, str] | None = cached.get(key)
    if texts is None:
        line = first_line(store_key)
        texts = {one.key: one.text(line) for one in SETTINGS} if line else {}
        cached.set(key, texts, CACHED_SECONDS)
    return texts
