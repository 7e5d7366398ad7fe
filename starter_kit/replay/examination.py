"""The examination of a replayable run: is the opened round what its record, its code and the data make of it?

Everything that needs no training is compared first: the opening with the record, then the record with what the
settings, the method's file, the data and the base weights give here. Only then is the round trained again, by the code
that trained it, from the opened weights.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.records.annex import Annex, read_annex
from evaluator.records.certificate import MAX_ROUNDS
from evaluator.records.lines import RoundLine, RunLine, TrainingRecord
from evaluator.records.reading import read_record
from evaluator.records.round_keys import OpenedKeys
from evaluator.records.round_opening import RoundOpening, check_opening, read_opening
from starter_kit.engines.local import LocalEngine
from starter_kit.federation.rounds import Round, Server
from starter_kit.replay.comparison import Comparison, compare
from starter_kit.replay.diagnosis import diagnose
from starter_kit.runs.progress import Watcher
from starter_kit.runs.record_line import run_line
from starter_kit.runs.replayable import check_replayable
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings

# What the first line of the record says otherwise than the files here give, and its code; `CODE` for all others.
CODES = {
    "base_sha256": ErrorCode.REPLAY_DATA,
    "data_sha256": ErrorCode.REPLAY_DATA,
    "weights_root": ErrorCode.REPLAY_DATA,
    "clip_norm": ErrorCode.REPLAY_CLIP,
    "clients": ErrorCode.REPLAY_COUNT,
    "sampling": ErrorCode.REPLAY_COUNT,
    "noise": ErrorCode.REPLAY_NOISE,
}
# What a replay can't tell, or what was compared already.
NOT_COMPARED = {"run_token", "track", "claimed_epsilon", "round_keys_root"}


@dataclass(frozen=True)
class ReplayInputs:
    """The files of a replay.

    Attributes:
        settings: The run's settings, with the method's file beside them if it isn't the kit's.
        challenge: What the site drew after the record was uploaded, in hexadecimal.
        data, base: The organizers' own data folder and base weights.
    """

    record: Path
    annex: Path
    opening: Path
    settings: Path
    challenge: str
    data: Path
    base: Path


@dataclass(frozen=True)
class Replayed:
    """A round that agrees: its number, and how well."""

    round: int
    comparison: Comparison


def examine(inputs: ReplayInputs) -> Replayed:
    """Replay the drawn round, and compare it with the run.

    Raises:
        ProblemError: (`E_REPLAY_…`) The round isn't what the record says: see `evaluator.error_codes`; or a file can't
            be read.
    """
    record = read_record(inputs.record, max_rounds=MAX_ROUNDS)
    annex = read_annex(inputs.annex, clients=record.run.clients, max_rounds=MAX_ROUNDS)
    opening = read_opening(inputs.opening, record.run.numel)
    keys = check_opening(record, opening, inputs.challenge)
    setup = RunSetup(load_settings(str(inputs.settings)), data=inputs.data, base=inputs.base)
    check_replayable(setup, apart=False)
    _check_terms(record, annex, setup, keys.round)
    replayed = _train(setup, keys, opening)
    _check_counts(record, annex, replayed)
    comparison = compare(record.run, opening, replayed)
    if not comparison.sums_agree:
        raise _difference(inputs, setup, keys, opening, replayed, comparison)
    if not comparison.step_follows:
        raise ProblemError.of(
            ErrorCode.REPLAY_STEP,
            where=f"round {keys.round}",
            expected=f"weights that follow from the noised sum by the rule {record.run.server.rule}",
            found="others",
        )
    return Replayed(keys.round, comparison)


def _check_terms(record: TrainingRecord, annex: Annex, setup: RunSetup, number: int) -> None:
    """Compare what the record states with what the settings, the code, the data and the base weights give here."""
    here = run_line(
        setup,
        record.run.claimed_epsilon,
        track=record.run.track,
        run_token=record.run.run_token,
        apart=False,
        round_keys_root=record.run.round_keys_root,
    )
    problems = [*_run_problems(record.run, here), *_round_problems(record.rounds[number - 1], here)]
    providers = {client.id: len(client.providers) for client in setup.clients}
    if dict(annex.providers_per_client) != providers:
        problems.append(
            _differs(
                ErrorCode.REPLAY_DATA, "annex, providers_per_client", providers, annex.providers_per_client
            )
        )
    if problems:
        raise ProblemError(*problems)


def _run_problems(recorded: RunLine, here: RunLine) -> Iterator[Problem]:
    values, expected = recorded.model_dump(mode="json"), here.model_dump(mode="json")
    for name in expected.keys() - NOT_COMPARED:
        if values[name] != expected[name]:
            code = CODES.get(name, ErrorCode.REPLAY_CODE)
            yield _differs(code, f"training record, {name}", expected[name], values[name])


def _round_problems(recorded: RoundLine, here: RunLine) -> Iterator[Problem]:
    """Compare a round's own terms, which may be others than the first line's."""
    terms: Mapping[ErrorCode, tuple[str, object, object]] = {
        ErrorCode.REPLAY_CLIP: ("clip_norm", here.clip_norm, recorded.clip_norm),
        ErrorCode.REPLAY_NOISE: ("noise_multiplier", here.noise.multiplier, recorded.noise_multiplier),
        ErrorCode.REPLAY_COUNT: ("sampling", here.sampling, recorded.sampling),
    }
    for code, (name, expected, found) in terms.items():
        if expected != found:
            yield _differs(code, f"training record, round {recorded.round}, {name}", expected, found)


def _differs(code: ErrorCode, where: str, expected: object, found: object) -> Problem:
    return Problem.of(code, where=where, expected=shorten(expected), found=shorten(found))


def _train(setup: RunSetup, keys: OpenedKeys, opening: RoundOpening) -> Round:
    """Run the opened round again, with clients in this process."""
    server = Server(
        setup.method,
        LocalEngine(setup.participant(Watcher().pages)),
        setup.aggregation,
        setup.stream,
        needs_all=setup.needs_every_client,
        draws=keys,
    )
    return server.round(keys.round, torch.from_numpy(np.array(opening.before, np.float32)))


def _check_counts(record: TrainingRecord, annex: Annex, replayed: Round) -> None:
    number = replayed.number
    line, sampled = record.rounds[number - 1], annex.sampled[number - 1 : number]
    if line.clients != len(replayed.clients):
        raise ProblemError.of(
            ErrorCode.REPLAY_COUNT,
            where=f"training record, round {number}, clients",
            expected=len(replayed.clients),
            found=line.clients,
        )
    if [dict(counts) for counts in sampled] != [replayed.sampled]:
        raise ProblemError.of(
            ErrorCode.REPLAY_COUNT,
            where=f"annex, round {number}, sampled",
            expected=replayed.sampled,
            found=dict(sampled[0]) if sampled else "nothing",
        )


def _difference(
    inputs: ReplayInputs,
    setup: RunSetup,
    keys: OpenedKeys,
    opening: RoundOpening,
    replayed: Round,
    comparison: Comparison,
) -> ProblemError:
    """Return the problem of sums that differ, named as well as it can be."""
    noisier = _with_twice_the_noise(inputs, setup)
    providers, clip_norm = max(1, sum(replayed.sampled.values())), _clip_norm(setup)
    diagnosis = diagnose(
        opening.update,
        replayed.aggregate.total.numpy(),
        _train(noisier, keys, opening).aggregate.total.numpy(),
        largest_sum=providers * clip_norm,
    )
    return ProblemError.of(
        diagnosis.code,
        where=f"round {keys.round}, the noised sum",
        expected=f"at most {comparison.bound:.3g} clip norms from the replayed one",
        found=f"{comparison.distance:.3g}; {diagnosis.found}",
    )


def _with_twice_the_noise(inputs: ReplayInputs, setup: RunSetup) -> RunSetup:
    terms = setup.record_terms
    multiplier = 2 * (terms.mechanism.noise.multiplier if terms else 0.0)
    values = setup.settings.model_dump() | {"noise_multiplier": multiplier, "target_epsilon": None}
    settings = type(setup.settings).model_validate(values)
    return RunSetup(settings, data=inputs.data, base=inputs.base)


def _clip_norm(setup: RunSetup) -> float:
    return setup.record_terms.clip_norm if setup.record_terms else 0.0
