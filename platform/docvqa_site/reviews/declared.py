"""Facts that a training record declares in its first line and no report repeats: who adds the noise, and the codec."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from django.core.cache import caches

from docvqa_site.submissions.models import Artifact, Run
from docvqa_site.submissions.record_heads import first_line
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.lines import RunLine
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
    StatedFact("normalizer", "Normalizer", ("empty_rounds",), lambda line: f"{line.normalizer:g}"),
    StatedFact("server_step", "Server's step", ("adaptivity",), lambda line: step_in_words(line.server)),
    StatedFact(
        "codec",
        "Codec",
        ("new_mechanisms",),
        lambda line: f"{line.codec.name}, {line.codec.bits_per_parameter:g} bits per number",
    ),
)


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
    """Return the texts of `DECLARED` by the runs whose records can be read, which are read once."""
    records = Artifact.objects.filter(kind=ArtifactKind.TRAINING_RECORD, run__in=runs)
    stored = records.values_list("run", "upload", "upload__store_key")
    return {run: texts for run, upload, key in stored if (texts := _texts(upload, key))}


def _texts(upload: UUID, store_key: str) -> dict[str, str]:
    cached, key = caches["pages"], f"record-declares:{upload}"
    texts: dict[str, str] | None = cached.get(key)
    if texts is None:
        line = first_line(store_key)
        texts = {one.key: one.text(line) for one in DECLARED} if line else {}
        cached.set(key, texts, CACHED_SECONDS)
    return texts
