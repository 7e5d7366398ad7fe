"""What a rehearsal has measured."""

import hashlib
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from starter_kit.settings.configuration import load_settings
from tests.studies.rehearsal.inputs import Shape
from tests.studies.rehearsal.stages import Measured


class Conditions(BaseModel):
    """What all rows of a table have in common.

    Attributes:
        tiny: Whether the model is the tiny VT5.
        batch_size: Examples in a step, where a config has more; None for as many as configs say.
        changes: Settings that were changed, as for `pfl train --set`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: Shape
    tiny: bool
    batch_size: int | None
    changes: list[str]


class StageResult(BaseModel):
    """A stage that was measured.

    Attributes:
        settings_sha256: Of the settings that it ran with, all of them.
        machine: What it ran on.
        other_work: The share of all cores' time that other processes took meanwhile.
        rows: The lines of the table.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    settings_sha256: str
    machine: str
    other_work: float
    rows: list[Measured]


class Results(BaseModel):
    """All stages that were measured under the same conditions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    conditions: Conditions
    stages: list[StageResult]

    @classmethod
    def of(cls, conditions: Conditions, earlier: "Results | None") -> "Results":
        """Return the `earlier` results if they were measured under `conditions`, and else none."""
        return (
            earlier if earlier and earlier.conditions == conditions else cls(conditions=conditions, stages=[])
        )

    def without(self, stages: Sequence[str]) -> "Results":
        """Return the results of all stages but these."""
        return Results(
            conditions=self.conditions, stages=[each for each in self.stages if each.stage not in stages]
        )

    def current(self, stage: str, settings_sha256: str) -> StageResult | None:
        """Return the result of a stage with these settings, if there is one."""
        found = [result for result in self.stages if result.stage == stage]
        return next((result for result in found if result.settings_sha256 == settings_sha256), None)

    def with_stage(self, result: StageResult, order: Sequence[str]) -> "Results":
        """Return the results with that of one stage in place of its earlier one, in the order of the table."""
        others = [other for other in self.stages if other.stage != result.stage and other.stage in order]
        stages = sorted([*others, result], key=lambda each: order.index(each.stage))
        return Results(conditions=self.conditions, stages=stages)


def settings_sha256(config: str, changes: Sequence[str]) -> str:
    """Return the hash of a config's settings with `changes`."""
    return hashlib.sha256(load_settings(config, changes).model_dump_json().encode()).hexdigest()
