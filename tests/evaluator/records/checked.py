"""The outcomes of all checks on a made record, and adapters for one."""

from collections.abc import Sequence

from evaluator.messages.jobs import Check, CheckStatus, PrivacyRules, TrackRules
from evaluator.records.case import Case, RunFile
from evaluator.records.check_table import check_record
from evaluator.records.lines import (
    TrainableTensor,
)
from evaluator.records.reading import read_record
from tests.evaluator.records.factories import MadeRun

PRIVACY = PrivacyRules(epsilon=8, delta=1e-5)


def checks(
    made: MadeRun,
    clients: int = 2,
    providers: Sequence[int] = (),
    data_sha256: str = "",
    challenge: str | None = None,
) -> dict[str, Check]:
    rules = TrackRules(
        reference="tiny",
        test_set="secret",
        clients=clients,
        providers_per_client=list(providers),
        data_sha256=data_sha256,
        privacy=PRIVACY,
    )
    files = {
        RunFile.CHECKPOINT: made.checkpoint,
        RunFile.BASE: made.base,
        RunFile.LOG: made.log,
        RunFile.ANNEX: made.annex,
    }
    found = check_record(Case(read_record(made.record, max_rounds=100), rules, files, challenge))
    assert len({check.id for check in found}) == len(found)
    return {check.id: check for check in found}


def odd(found: dict[str, Check]) -> dict[str, CheckStatus]:
    good = (CheckStatus.PASSED, CheckStatus.NO_POWER, CheckStatus.NOT_APPLICABLE)
    return {name: check.status for name, check in found.items() if check.status not in good}


def adapter(rank: int) -> list[TrainableTensor]:
    return [
        TrainableTensor(name="encoder.lora_A.weight", shape=[rank, 40]),
        TrainableTensor(name="encoder.lora_B.weight", shape=[60, rank]),
    ]
