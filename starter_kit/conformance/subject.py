"""The method under examination, as the harness sees it: its settings, and the rounds that it runs.

The harness decides what to run and judges what comes out; a subject runs it. `LocalSubject` does in this process, with
the harness; `starter_kit.examining.conformance.ConfinedSubject` in processes that the method can't leave.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from starter_kit.conformance.session import Asked, Observation, ObservedRun, Session
from starter_kit.conformance.synthetic import Federation
from starter_kit.conformance.variants import as_examined, with_noise, without_participants
from starter_kit.learning.local_training import LocalTraining
from starter_kit.settings.own_methods import own_file
from starter_kit.settings.run_settings import LocalTrainingSettings, RunSettings


class Rounds(ObservedRun, Protocol):
    """A run of a method on synthetic data; see `Session`."""

    @property
    def text(self) -> str:
        """What was printed during the rounds."""

    def rounds(self, count: int, asked: Asked = Asked()) -> list[Observation]:  # noqa: B008  (frozen)
        """Run rounds; see `Session.rounds`. Called once for each run, or with another start than `CONTINUED`."""


class Subject(Protocol):
    """A method with its settings.

    Attributes:
        values: The settings.
        local: How a provider trains; None where the method has no such settings.
        is_masked: Whether secure aggregation hides single messages.
        method_sha256: Of the method's own file; empty for one of the kit's.
    """

    values: Mapping[str, Any]
    local: LocalTraining | None
    is_masked: bool
    method_sha256: str

    def with_noise(self, relative: float, clip_norm: float | None = None) -> "Subject":
        """Return the method with this noise and clip norm; see `variants.with_noise`."""

    def without_participants(self) -> "Subject | None":
        """Return the method with a chance at which nobody takes part; see `variants.without_participants`."""

    def session(self, federation: Federation, *, quick: bool = False, plain: bool = False) -> Rounds:
        """Return a run on these data, with a quick learner (`Federation.learner`) or plain messages if asked."""


class LocalSubject:
    """A method in this process."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self.values: Mapping[str, Any] = settings.model_dump()
        self.local = settings.local if isinstance(settings, LocalTrainingSettings) else None
        self.is_masked = settings.secure_aggregation is not None
        file = own_file(type(settings))
        self.method_sha256 = file.sha256 if file else ""

    def as_examined(self) -> "LocalSubject":
        """Return the method with the settings of an examination; see `variants.as_examined`."""
        return LocalSubject(as_examined(self._settings))

    def with_noise(self, relative: float, clip_norm: float | None = None) -> "LocalSubject":
        return LocalSubject(with_noise(self._settings, relative, clip_norm))

    def without_participants(self) -> "LocalSubject | None":
        empty = without_participants(self._settings)
        return None if empty is None else LocalSubject(empty)

    def session(self, federation: Federation, *, quick: bool = False, plain: bool = False) -> Session:
        return Session(self._settings, federation, federation.learner(quick=quick), plain=plain)
