"""The levels that examinations earn, as a table: a further level is a row here and a judge in the starter kit.

A judge is a module of the kit with a function `examine`. It runs in a process of its own, which never loads the
method file; the method runs in sandboxed processes that the judge asks. See `starter_kit.examining`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from evaluator.messages.examinations import (
    ConformanceFindings,
    ExaminationJob,
    Findings,
    ReplayFindings,
    RerunFindings,
)
from evaluator.messages.jobs import ArtifactKind, TrustLevel

HOUR_S = 3600
# A conformance examination asks the method's processes so many questions at most, ...
QUESTIONS = 40
# ... and each has ten times its computing time to wait.
WAITING = 10
# A training of a rerun is followed by at most so many steps of a worker, each as long as a training at most.
STEPS = 4


class Folder(StrEnum):
    """A folder that the machine must have: training data, base weights, or the secret test set."""

    DATA = "data"
    BASE = "base"
    TEST_SET = "test_set"

    @property
    def label(self) -> str:
        """Its name for the organizers."""
        return {"data": "training data", "base": "base weights", "test_set": "test set"}[self]


@dataclass(frozen=True)
class Effort:
    """How much an examination may take.

    Attributes:
        timeout_s: Seconds of computing for each process that runs the method on synthetic data.
        hours: How long one training may take.
        repeats: How often a rerun trains; the variation of scores takes at least 3.
    """

    timeout_s: int = 60
    hours: float = 24
    repeats: int = 5


@dataclass(frozen=True)
class Level:
    """A level that an examination earns.

    Attributes:
        title: What the examination does, on the organizers' page.
        judge: The module of the kit that judges.
        findings: What the report has inside.
        required: The files of the run that it can't do without.
        optional: Those that it uses if they are there.
        folders: What the machine must have.
        longest_s: After how many seconds a judge is stopped.
        meaning: What a run that has the level has shown, for everyone.
    """

    trust: TrustLevel
    title: str
    judge: str
    findings: type[Findings]
    required: tuple[ArtifactKind, ...]
    optional: tuple[ArtifactKind, ...]
    folders: tuple[Folder, ...]
    longest_s: Callable[[ExaminationJob], float]
    meaning: str

    @property
    def needs(self) -> str:
        """What it needs of the run and of the machine, for the organizers."""
        return ", ".join(
            [*(kind.replace("_", " ") for kind in self.required), *(one.label for one in self.folders)]
        )


LEVELS = {
    level.trust: level
    for level in (
        Level(
            TrustLevel.CONFORMING,
            title="run the method on synthetic data",
            judge="starter_kit.examining.conformance",
            findings=ConformanceFindings,
            required=(ArtifactKind.SETTINGS,),
            optional=(ArtifactKind.METHOD_FILE, ArtifactKind.TRAINING_RECORD),
            folders=(),
            longest_s=lambda job: QUESTIONS * WAITING * job.timeout_s,
            meaning="When run on synthetic data in a sandbox, the attached method behaved as its ε calculation "
            "assumes. Nobody has verified that this code produced the checkpoint.",
        ),
        Level(
            TrustLevel.REPLAYED,
            title="repeat the last round and the randomly selected ones",
            judge="starter_kit.examining.replay",
            findings=ReplayFindings,
            required=(
                ArtifactKind.SETTINGS,
                ArtifactKind.TRAINING_RECORD,
                ArtifactKind.TRAINING_ANNEX,
                ArtifactKind.ROUND_OPENING,
            ),
            optional=(ArtifactKind.METHOD_FILE,),
            folders=(Folder.DATA, Folder.BASE),
            # A round that doesn't agree is trained twice, and is the last one that is trained.
            longest_s=lambda job: HOUR_S * ((2 + job.rules.drawn_rounds) * job.hours + 1),
            meaning="Using their own copy of the data, the organizers repeated the last round and several others, "
            "which were picked at random after the record was uploaded, and got the recorded results. The badge shows "
            "how many rounds were repeated; nobody has verified the rest.",
        ),
        Level(
            TrustLevel.RERUN,
            title="train the whole run again",
            judge="starter_kit.examining.rerun",
            findings=RerunFindings,
            required=(ArtifactKind.SETTINGS,),
            optional=(ArtifactKind.METHOD_FILE, ArtifactKind.TRAINING_RECORD),
            folders=(Folder.DATA, Folder.BASE, Folder.TEST_SET),
            longest_s=lambda job: HOUR_S * job.hours * job.repeats * (1 + STEPS),
            meaning="The organizers repeated the whole training with the attached files, and the scores "
            "agreed within random variation. This says nothing about the privacy claim.",
        ),
    )
}
# The first level is the evaluation's, and needs no examination.
MEANINGS = {
    TrustLevel.RECOMPUTED: "Every number was recomputed from the submitted files. Nobody has verified that the "
    "training ran as these files describe.",
    **{level.trust: level.meaning for level in LEVELS.values()},
}
