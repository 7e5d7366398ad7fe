"""What the parties of a federation must have in common, which is compared before the first round."""

import hashlib
import json
from dataclasses import asdict, dataclass

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import evaluator_version
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.own_methods import own_file
from starter_kit.settings.run_settings import RunSettings

PARTY_SPECIFIC = {"device", "compute"}  # settings that each party chooses for itself


@dataclass(frozen=True)
class Agreement:
    """The kit's version, and the SHA-256 of the settings, the base weights and the clients' lists of providers."""

    kit: str
    settings: str
    base: str
    clients: str

    @classmethod
    def of(cls, setup: RunSetup) -> "Agreement":
        """Return what this party brings to the federation."""
        return cls(
            kit=evaluator_version(),
            settings=_sha256(_settings(setup.settings)),
            base=setup.base_sha256,
            clients=_sha256({str(client.id): list(client.providers) for client in setup.clients}),
        )

    def check(self, other: "Agreement", party: str) -> None:
        """Compare this agreement with that of `party`.

        Raises:
            ProblemError: (`E_CONFIGURATION`) They differ; there is one problem for each field that does.
        """
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
    """Return the settings, in which the file of a participant's own method is identified by its content."""
    values: dict[str, object] = settings.model_dump(mode="json", exclude=PARTY_SPECIFIC)
    if file := own_file(type(settings)):
        values["method"] = file.sha256
    return values


def _sha256(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def reports_provider_counts(setup: RunSetup) -> bool:
    """Return whether clients report to the server how many of their providers took part, and their loss.

    They do where nothing is private and updates aren't masked, and where the server is trusted with sums without noise
    and writes the annex of a training record.
    """
    guarantee = setup.guarantee
    if guarantee is None:
        return setup.settings.secure_aggregation is None
    return setup.record_terms is not None and not guarantee.seen_by_server


def require_trusted_server(setup: RunSetup) -> None:
    """Reject a run whose record needs numbers that its server must not learn.

    The record's annex states how many providers took part in each round. A server that is trusted with sums without
    noise is trusted with these numbers as well; any other must not have them, as no guarantee covers that.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The run keeps a training record and its server is not trusted.
    """
    if setup.record_terms is not None and not reports_provider_counts(setup):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="placement",
            expected="server: whoever leads the run writes its annex, and has to be trusted with what is in it",
            found=getattr(setup.settings, "placement", setup.settings.method),
            next_step="Run it on one machine, with `pfl train`; docs/distributed.md gives the reason.",
        )
