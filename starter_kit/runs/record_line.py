"""The first line of a private run's training record: what is trained, by which code, and how it is protected."""

from evaluator.messages.jobs import evaluator_version
from evaluator.records.certificate import vector_root
from evaluator.records.lines import Codec, RunLine, TrainableTensor
from starter_kit.dp.guarantee import accounting_problems
from starter_kit.runs.executed_code import code_sha256
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import snapshot
from starter_kit.settings.run_settings import RecordedSettings


def run_line(
    setup: RunSetup,
    claimed_epsilon: float,
    *,
    track: str,
    run_token: str | None,
    apart: bool,
    round_keys_root: str | None = None,
) -> RunLine:
    """Return the first line of the training record.

    Args:
        claimed_epsilon: ε that the run will have spent at its end.
        apart: Whether clients run separately from the server; where they don't, secure aggregation is a simulation.
        round_keys_root: See `RunLine`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The record's schema doesn't cover these settings.
        ValueError: The method writes no record.
    """
    settings, guarantee, terms = setup.settings, setup.guarantee, setup.record_terms
    if not isinstance(settings, RecordedSettings) or guarantee is None or terms is None:
        raise ValueError(f"a run of {settings.method} has no training record")
    secure = "none" if settings.secure_aggregation is None else "real" if apart else "simulated"
    mechanism = terms.mechanism
    with accounting_problems():
        return RunLine(
            run_token=run_token,
            kit_version=evaluator_version(),
            code_sha256=code_sha256(more=snapshot(settings)),
            track=track,
            method=settings.method,
            unit=mechanism.unit,
            adjacency=mechanism.adjacency,
            delta=guarantee.delta,
            clients=mechanism.clients,
            sampling=mechanism.sampling,
            clip_norm=terms.clip_norm,
            noise=mechanism.noise.model_copy(update={"secure_aggregation": secure}),
            normalizer=terms.normalizer,
            server=terms.server,
            codec=Codec(name=str(settings.codec), bits_per_parameter=setup.bits_per_parameter),
            rounds=setup.rounds,
            base_sha256=setup.base_sha256,
            trainable=[
                TrainableTensor(name=name, shape=list(parameter.shape))
                for name, parameter in setup.model.tensors.parameters.items()
            ],
            **setup.parametrization,
            weights_root=vector_root(setup.model.start.numpy()),
            round_keys_root=round_keys_root,
            tuning=settings.tuning,
            validation_on_private_data=settings.validation_on_private_data,
            claimed_epsilon=claimed_epsilon,
        )
