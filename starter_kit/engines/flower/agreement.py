"""What the parties of a federation must have alike, compared before the first round."""

import hashlib
import json
from dataclasses import asdict, dataclass

from evaluator.contracts import evaluator_version
from evaluator.errors import ErrorCode, Problem, ProblemError
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.own_methods import own_file
from starter_kit.settings.run_settings import RunSettings

OWN_CHOICE = {"device"}  # settings that a party may have to itself


@dataclass(frozen=True)
class Agreement:
    """The kit's version, and SHA-256 of the settings, of the base weights and of who has which providers."""

    kit: str
    settings: str
    base: str
    clients: str

    @classmethod
    def of(cls, setup: RunSetup) -> "Agreement":
        return cls(
            kit=evaluator_version(),
            settings=_sha256(_settings(setup.settings)),
            base=setup.base_sha256,
            clients=_sha256({str(client.id): list(client.providers) for client in setup.clients}),
        )

    def check(self, other: "Agreement", party: str) -> None:
        """Raises `ProblemError` (`E_CONFIGURATION`), with one problem for each thing in which `party` differs."""
        theirs = asdict(other)
        problems = [
            Problem.of(
                ErrorCode.CONFIGURATION,
                where=f"{party}, {name}",
                expected=value,
                found=theirs[name],
                next_step="Give server and nodes the same kit, settings, base weights and list of clients.",
            )
            for name, value in asdict(self).items()
            if theirs[name] != value
        ]
        if problems:
            raise ProblemError(*problems)


def _settings(settings: RunSettings) -> dict[str, object]:
    """The settings, with a method's file by what is in it."""
    values: dict[str, object] = settings.model_dump(mode="json", exclude=OWN_CHOICE)
    if file := own_file(type(settings)):
        values["method"] = file.sha256
    return values


def _sha256(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def tells_counts(setup: RunSetup) -> bool:
    """Whether clients tell the server how many of their providers took part, and the loss where there is one to tell.

    That is where nothing is private and updates aren't masked, and where the server is trusted with sums without noise
    and writes the annex of a training record.
    """
    guarantee = setup.guarantee
    if guarantee is None:
        return setup.settings.secure_aggregation is None
    return setup.record_terms is not None and not guarantee.seen_by_server


def reject_untold(setup: RunSetup) -> None:
    """Raises `ProblemError` (`E_CONFIGURATION`) for a run whose record needs numbers that its server must not learn.

    The record's annex tells how many providers took part in each round. A server that is trusted with sums without
    noise is trusted with these numbers as well; another must not have them, as no guarantee covers that.
    """
    if setup.record_terms is not None and not tells_counts(setup):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="placement",
            expected="server: whoever leads the run writes its annex, and has to be trusted with what is in it",
            found=setup.settings.method,
            next_step="Run it on one machine, with `pfl train`; see docs/distributed.md for the reason.",
        )
