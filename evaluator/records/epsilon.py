"""ε of a training record under the track's rules.

Guarantee: every round is accounted with what was recorded of that round, under both amplification rules and by both
accountants; a combination for which there is no proof is rejected, never approximated. Whether the record is true is
not decided here.

Under `product` each provider's own sampling rate is client rate times provider rate: the competition's published rule;
docs/privacy.md says where it falls short. Under `two_stage` a round is, with the probability that a client takes part,
the mechanism that its providers go through.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from pydantic import ValidationError

from evaluator.accounting import official, pld
from evaluator.accounting.accountant import Accountant
from evaluator.accounting.comparison import distinct
from evaluator.accounting.membership import membership_bounds, privacy_profiles
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event, UnsupportedError, merged
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.noise import Placement
from evaluator.mechanisms.sampling import Sampling
from evaluator.messages.jobs import (
    AccountingResult,
    Check,
    Epsilon,
    PrivacyRules,
    evaluator_version,
)
from evaluator.records.check_table import BUDGET
from evaluator.records.lines import RoundLine, RunLine, TrainingRecord

# Each different round costs a Fourier transform. A schedule of noise or sampling may have as many steps as this.
MAX_DIFFERENT_ROUNDS = 256
CLAIM_TOLERANCE = 1e-3


def releases(record: TrainingRecord, rule: SamplingRule) -> list[Event]:
    """Return the composition that the record's rounds amount to, equal rounds merged.

    Args:
        rule: The amplification rule.

    Raises:
        ProblemError: ``E_ACCOUNTING_UNSUPPORTED``, with the reason.
    """
    kinds = defaultdict[tuple[Sampling, float], list[RoundLine]](list)
    for line in [*record.rounds, *_seen_unrecorded(record)]:
        kinds[line.sampling, line.noise_multiplier].append(line)
    composition = merged(event for lines in kinds.values() for event in _released(record.run, lines, rule))
    if len(composition) > MAX_DIFFERENT_ROUNDS:
        raise ProblemError.of(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="rounds",
            expected=f"at most {MAX_DIFFERENT_ROUNDS} different combinations of sampling rate and noise multiplier",
            found=len(composition),
            next_step="Change the noise or the sampling rate less often.",
        )
    return composition


def account(
    record: TrainingRecord, rules: PrivacyRules, checks: list[Check], deciding: list[Event] | None = None
) -> AccountingResult:
    """Compute ε of a run at the track's δ; the result includes `checks` on the record, with that of the budget added.

    A run over the budget is not an error: see `within_budget`.

    Args:
        deciding: The composition under the track's amplification rule, if `releases` has returned it already.

    Raises:
        ProblemError: ``E_ACCOUNTING_UNSUPPORTED``, or ``E_RECORD_CLAIM`` where the record claims less than was
            recomputed.
    """
    known = {rules.sampling_rule: deciding}
    compositions = {rule: known.get(rule) or releases(record, rule) for rule in SamplingRule}
    bounds = {
        (rule, accountant): bound
        for composition, same in distinct(compositions).items()
        for accountant in Accountant
        for bound in [official.bound(composition, rules.delta, accountant)]
        for rule in same
    }
    epsilons = [
        _epsilon_row(rule, accountant, bound.epsilon, rules) for (rule, accountant), bound in bounds.items()
    ]
    epsilon = next(row.epsilon for row in epsilons if row.decides)
    if epsilon is None:
        raise ProblemError.of(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="rounds",
            expected=f"a finite ε by {rules.accountant} under {rules.sampling_rule}",
            found="none",
        )
    claimed = record.claimed_epsilon
    if claimed < epsilon - CLAIM_TOLERANCE:
        raise ProblemError.of(
            ErrorCode.RECORD_CLAIM,
            where=f"{'the last resume line' if record.resumes else 'line 1'}, claimed_epsilon",
            expected=f"at least {epsilon:.6g}",
            found=claimed,
        )
    within_budget = epsilon <= rules.epsilon
    outcome = BUDGET.passed if within_budget else BUDGET.flagged
    budget = outcome(f"{epsilon:.6g}", expected=f"ε at most {rules.epsilon:g}")
    return AccountingResult(
        epsilon=epsilon,
        epsilons=epsilons,
        epsilon_claimed=claimed,
        delta=rules.delta,
        rounds=len(record.rounds),
        accountant=_name(
            bounds[rules.sampling_rule, rules.accountant].accountant,
            compositions[rules.sampling_rule],
            asked=rules.accountant,
        ),
        within_budget=within_budget,
        membership=membership_bounds(privacy_profiles(compositions[rules.sampling_rule]), rules.delta),
        events=compositions[SamplingRule.TWO_STAGE],
        run_token=record.run.run_token,
        public_key=record.end.public_key,
        tuning_runs=record.run.tuning.private_runs,
        checks=[budget, *checks],
    )


def joint_epsilon(events: Iterable[Event], delta: float) -> float:
    """Return ε of everything that was released together, such as all runs of one team; infinite where none is known.

    Raises:
        ValueError: The events protect different privacy units, or are meant for different neighbors.
    """
    return official.epsilon(list(events), delta)


def _seen_unrecorded(record: TrainingRecord) -> list[RoundLine]:
    """Return the rounds that were interrupted, as the rounds that replaced them, where clients draw the noise.

    The server, which is then not trusted, may have received their messages, or even their sum. A server that draws the
    noise is trusted and publishes a round's model only after the round is recorded, so there is nothing to account.
    """
    if record.run.noise.placement is Placement.SERVER:
        return []
    return [record.rounds[resume.round - 1] for resume in record.resumes if resume.begun]


def _released(run: RunLine, lines: Sequence[RoundLine], rule: SamplingRule) -> list[Event]:
    """Return the events of rounds with the same sampling and noise."""
    try:
        return run.mechanism_in(lines[0]).events(rule, _accounted_rounds(lines))
    except ValueError as error:
        raise ProblemError.of(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where=f"round {lines[0].round}",
            expected="a combination that the accountant covers",
            found=_reason(error),
        ) from error


def _accounted_rounds(lines: Sequence[RoundLine]) -> int:
    """Return how many rounds are accounted for these, of the same sampling: those of all cycles that they are in.

    Raises:
        UnsupportedError: A round of a cycle was seen twice.
    """
    per_cycle = lines[0].sampling.rounds_per_cycle
    if per_cycle == 1:
        return len(lines)
    numbers = {line.round for line in lines}
    if len(numbers) < len(lines):
        raise UnsupportedError("a round that is seen twice, in a cycle of random allocation")
    return per_cycle * len({(number - 1) // per_cycle for number in numbers})


def _epsilon_row(rule: SamplingRule, accountant: Accountant, epsilon: float, rules: PrivacyRules) -> Epsilon:
    known = math.isfinite(epsilon)
    return Epsilon(
        sampling_rule=rule,
        accountant=accountant,
        epsilon=epsilon if known else None,
        within_budget=epsilon <= rules.epsilon,
        margin=rules.epsilon - epsilon if known else None,
        decides=(rule, accountant) == (rules.sampling_rule, rules.accountant),
    )


def _name(accountant: Accountant, composition: list[Event], *, asked: Accountant) -> str:
    if accountant is Accountant.RDP:
        instead = "" if asked is accountant else ", as PLD gives no ε at this δ"
        return f"RDP, dp-accounting {version('dp-accounting')}{instead}"
    return f"PLD, evaluator {evaluator_version()}, connect-the-dots, {pld.precision(composition)}"


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))} {e['input']}: {e['msg']}" for e in error.errors())
    return str(error)
