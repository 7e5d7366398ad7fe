"""The examination of a replayable run: are the opened rounds what its record, its code and the data make of them?

Everything that needs no training is compared first, and no code is run that the record doesn't name. Then each round
is trained again, the last one first, in a sandbox if it isn't one's own code (`starter_kit.examining.replay`), and
compared here, in a process that never loads the method's file.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.manifest import manifest_sha256
from evaluator.docvqa.vt5 import WEIGHTS as BASE_WEIGHTS
from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import DRAWN_ROUNDS
from evaluator.records.annex import Annex, read_annex
from evaluator.records.certificate import MAX_ROUNDS, Floats
from evaluator.records.lines import RoundLine, RunLine, TrainingRecord
from evaluator.records.reading import read_record
from evaluator.records.round_keys import OpenedKeys
from evaluator.records.round_opening import RoundOpening, check_opening, read_opening
from evaluator.records.terms import agree
from evaluator.sandbox.written_files import is_own_file
from starter_kit.replay.comparison import Comparison, compare
from starter_kit.replay.diagnosis import diagnose
from starter_kit.replay.training import UPDATE, WEIGHTS, RoundRequest, TrainedRound
from starter_kit.runs.executed_code import code_sha256
from starter_kit.settings.configuration import METHOD_SHA256
from starter_kit.settings.files import read_settings_file

# What the first line of the record states otherwise than the files here give, and its code; `CODE` for all others.
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

Train = Callable[[RoundRequest], TrainedRound]


class ReplayInputs(BaseModel):
    """The files of a replay.

    Attributes:
        settings: The run's settings, with the method's file beside them if it isn't the kit's.
        challenge: What the site drew after the record was uploaded, in hexadecimal.
        drawn: How many rounds it draws, beside the last one.
        data, base: The organizers' own data folder and base weights.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: Path
    annex: Path
    opening: Path
    settings: Path
    challenge: str
    drawn: int = DRAWN_ROUNDS
    data: Path
    base: Path


@dataclass(frozen=True)
class Replayed:
    """Rounds that agree: how well each of them does, by its number, and how many rounds the run has."""

    comparisons: dict[int, Comparison]
    of: int

    @property
    def exact(self) -> bool:
        """Whether all of them are the same, bit for bit."""
        return all(found.exact for found in self.comparisons.values())


def examine(
    inputs: ReplayInputs, train: Train, on_progress: Callable[[str], None] = lambda _: None
) -> Replayed:
    """Replay the last round and the drawn ones, and compare them with the run.

    Args:
        train: Trains a round.

    Raises:
        ProblemError: (`E_REPLAY_…`) A round isn't what the record says: see `evaluator.errors.codes`; or a file can't
            be read.
    """
    record = read_record(inputs.record, max_rounds=MAX_ROUNDS)
    annex = read_annex(inputs.annex, clients=record.run.clients, max_rounds=MAX_ROUNDS)
    opening = read_opening(inputs.opening, record.run.numel)
    keys = check_opening(record, opening, inputs.challenge, inputs.drawn)
    _check_code(record.run, inputs.settings)
    _check_base(record.run, inputs.base)
    _check_data(annex, inputs.data)
    comparisons = {}
    # Most lies are in the last round.
    for place, (opened, key) in enumerate(reversed(list(zip(opening.rounds, keys, strict=True))), 1):
        on_progress(f"Round {key.round}, {place} of {len(keys)} …")
        with tempfile.TemporaryDirectory(prefix="replay-") as folder:
            replay = _Replay(inputs, record, annex, opened, key, train, Path(folder))
            comparisons[key.round] = replay.comparison()
    return Replayed(dict(sorted(comparisons.items())), len(record.rounds))


@dataclass(frozen=True)
class _Replay:
    """The trainings of one round."""

    inputs: ReplayInputs
    record: TrainingRecord
    annex: Annex
    opening: RoundOpening
    keys: OpenedKeys
    train: Train
    folder: Path

    def comparison(self) -> Comparison:
        """Train the round, and return how well it agrees. Raises `ProblemError` if it doesn't."""
        trained, update, weights = self.trained()
        _check_terms(self.record, self.annex, trained, self.keys.round)
        _check_counts(self.record, self.annex, trained, self.keys.round)
        providers = max(1, sum(trained.sampled.values()))
        comparison = compare(
            self.record.run, self.opening, update, weights, number=self.keys.round, providers=providers
        )
        if not comparison.sums_agree:
            raise self.difference(update, comparison, providers)
        if not comparison.step_follows:
            raise ProblemError.of(
                ErrorCode.REPLAY_STEP,
                where=f"round {self.keys.round}",
                expected=f"weights that follow from the noised sum under the update rule "
                f"{self.record.run.server.rule}",
                found="others",
            )
        return comparison

    def trained(self, noise: float = 1.0) -> tuple[TrainedRound, Floats, Floats]:
        """Return the outcome of a training, its sum (d,) and its weights (d,)."""
        before, out = self.folder / "before.f32", self.folder / f"noise-{noise:g}"
        out.mkdir()
        np.array(self.opening.before).tofile(before)
        trained = self.train(
            RoundRequest(
                settings=self.inputs.settings,
                data=self.inputs.data,
                base=self.inputs.base,
                run_token=self.keys.run_token,
                track=self.record.run.track,
                round=self.keys.round,
                key=self.keys.round_key.hex(),
                interruptions=self.keys.interruptions,
                before=before,
                out=out,
                noise=noise,
            )
        )
        if trained.problems:
            raise ProblemError(*trained.problems)
        return trained, self._vector(out / UPDATE), self._vector(out / WEIGHTS)

    def difference(self, update: Floats, comparison: Comparison, providers: int) -> ProblemError:
        """Return the problem of sums that differ, named as well as it can be."""
        _, noisier, _ = self.trained(noise=2.0)
        largest = providers * self.record.run.clip_norm
        diagnosis = diagnose(self.opening.update, update, noisier, largest_sum=largest)
        return ProblemError.of(
            diagnosis.code,
            where=f"round {self.keys.round}, the noised sum",
            expected=f"at most {comparison.bound:.3g} clip norms from the replayed one",
            found=f"{comparison.distance:.3g}; {diagnosis.found}",
        )

    def _vector(self, path: Path) -> Floats:
        """Read a vector (d,) that a training wrote, which may be anybody's code."""
        size, expected = path.stat().st_size if is_own_file(path) else 0, 4 * self.record.run.numel
        if size != expected:
            raise ProblemError.of(
                ErrorCode.REPLAY_TRAINING,
                where=path.name,
                expected=f"{expected} bytes",
                found=f"{size} bytes",
            )
        vector = np.fromfile(path, "<f4")
        if not np.isfinite(vector).all():
            raise ProblemError.of(
                ErrorCode.REPLAY_TRAINING, where=path.name, expected="finite numbers", found="others"
            )
        return vector


def _check_code(run: RunLine, settings: Path) -> None:
    """Compare the kit, the settings and the method's file with the record, without running any of them."""
    values = read_settings_file(settings)
    found = code_sha256(more=settings.read_text(encoding="utf-8"))
    if found != run.code_sha256:
        raise ProblemError.of(
            ErrorCode.REPLAY_CODE,
            where="training record, code_sha256",
            expected=f"{found}, of this kit and these settings",
            found=run.code_sha256,
        )
    if (stated := values.get(METHOD_SHA256)) is None:
        return
    method = settings.parent / Path(str(values.get("method"))).name
    held = hashlib.sha256(method.read_bytes()).hexdigest() if method.is_file() else "no such file"
    if held != stated:
        raise ProblemError.of(ErrorCode.REPLAY_CODE, where=method.name, expected=stated, found=held)


def _check_base(run: RunLine, base: Path) -> None:
    found = sha256_of(base / BASE_WEIGHTS)
    if found != run.base_sha256:
        raise ProblemError.of(
            ErrorCode.REPLAY_DATA, where="training record, base_sha256", expected=found, found=run.base_sha256
        )


def _check_data(annex: Annex, data: Path) -> None:
    """Compare the data that the run states with the organizers', of which a sum would only show that they differ."""
    here = manifest_sha256(Dataset(data, "train"))
    if annex.data_sha256 != here:
        raise ProblemError.of(
            ErrorCode.REPLAY_DATA, where="annex, data_sha256", expected=here, found=annex.data_sha256
        )


def _check_terms(record: TrainingRecord, annex: Annex, trained: TrainedRound, number: int) -> None:
    """Compare what the record states with what the settings, the code, the data and the base weights give here."""
    if trained.terms is None:
        raise ProblemError.of(ErrorCode.REPLAY_TRAINING, where="a round", expected="its terms", found="none")
    problems = [
        *_run_problems(record.run, trained.terms),
        *_round_problems(record.rounds[number - 1], trained.terms),
    ]
    if dict(annex.providers_per_client) != trained.providers:
        found = annex.providers_per_client
        problems.append(
            _differs(ErrorCode.REPLAY_DATA, "annex, providers_per_client", trained.providers, found)
        )
    if problems:
        raise ProblemError(*problems)


def _run_problems(recorded: RunLine, here: RunLine) -> Iterator[Problem]:
    values, expected = recorded.model_dump(mode="json"), here.model_dump(mode="json")
    # A line leaves out what has its default.
    for name in sorted((expected.keys() | values.keys()) - NOT_COMPARED):
        due, found = expected.get(name), values.get(name)
        if not agree(found, due):
            yield _differs(CODES.get(name, ErrorCode.REPLAY_CODE), f"training record, {name}", due, found)


def _round_problems(recorded: RoundLine, here: RunLine) -> Iterator[Problem]:
    """Compare a round's own terms, which may be others than the first line's."""
    terms: Mapping[ErrorCode, tuple[str, object, object]] = {
        ErrorCode.REPLAY_CLIP: ("clip_norm", here.clip_norm, recorded.clip_norm),
        ErrorCode.REPLAY_NOISE: ("noise_multiplier", here.noise.multiplier, recorded.noise_multiplier),
        ErrorCode.REPLAY_COUNT: ("sampling", here.sampling, recorded.sampling),
    }
    for code, (name, expected, found) in terms.items():
        if not agree(found, expected):
            yield _differs(code, f"training record, round {recorded.round}, {name}", expected, found)


def _check_counts(record: TrainingRecord, annex: Annex, trained: TrainedRound, number: int) -> None:
    line, sampled = record.rounds[number - 1], annex.sampled[number - 1 : number]
    problems = []
    if line.clients != len(trained.sampled):
        where = f"training record, round {number}, clients"
        problems.append(_differs(ErrorCode.REPLAY_COUNT, where, len(trained.sampled), line.clients))
    if [dict(counts) for counts in sampled] != [trained.sampled]:
        where, found = f"annex, round {number}, sampled", sampled[0] if sampled else "nothing"
        problems.append(_differs(ErrorCode.REPLAY_COUNT, where, trained.sampled, found))
    if problems:
        raise ProblemError(*problems)


def _differs(code: ErrorCode, where: str, expected: object, found: object) -> Problem:
    return Problem.of(code, where=where, expected=shorten(expected), found=shorten(found))
