"""From a training record to its ε, under the track's rules.

Guarantee: every round is accounted with what was recorded of that round, by the pessimistic PLD accountant; a
combination for which this project has no proof is refused, never approximated. Whether the record tells the truth
is not decided here.

The track's `product` rule takes C·p, client rate times provider rate, as each provider's own sampling rate. That is
the competition's published rule; docs/privacy.md says where it falls short.
"""

import math
from importlib.metadata import version

from evaluator.accounting import pld, rdp
from evaluator.accounting.mechanisms import PoissonGaussian, grouped
from evaluator.contracts import AccountingResult, PrivacyRules
from evaluator.errors import ErrorCode, refuse
from evaluator.records import RoundLine, RunLine, TrainingRecord

# Each different round costs a convolution. A schedule of noise or sampling may have as many steps as this.
MAX_DIFFERENT_ROUNDS = 256
CLAIM_TOLERANCE = 1e-3
# Where noise is drawn and what is seen, in the combinations in which one draw of σ times the clip norm covers all
# that is seen of a provider.
COVERED_VIEWS = {("server", "aggregate"), ("client_full", "per_client")}


def mechanisms(record: TrainingRecord) -> list[PoissonGaussian]:
    """The composition that the record's rounds amount to, equal rounds merged.

    Raises:
        ProblemError: ``E_ACCOUNTING_UNSUPPORTED``, with the reason.
    """
    _check_covered(record.run)
    merged = grouped(_round_mechanism(line) for line in record.rounds)
    if len(merged) > MAX_DIFFERENT_ROUNDS:
        raise refuse(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="rounds",
            expected=f"at most {MAX_DIFFERENT_ROUNDS} different pairs of sampling rate and noise multiplier",
            found=len(merged),
            next_step="Change the noise or the sampling rate in fewer steps.",
        )
    return merged


def account(record: TrainingRecord, rules: PrivacyRules) -> AccountingResult:
    """ε of a run at the track's δ. Being over the budget is no error: see `within_budget`.

    Raises:
        ProblemError: ``E_ACCOUNTING_UNSUPPORTED``, or ``E_RECORD_CLAIM`` where the record claims less than was
            recomputed.
    """
    composition = mechanisms(record)
    epsilon = pld.epsilon(composition, rules.delta)
    if math.isinf(epsilon):
        raise refuse(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="rounds",
            expected="noise that gives a finite ε",
            found=epsilon,
        )
    claimed = record.run.claimed_epsilon
    if claimed < epsilon - CLAIM_TOLERANCE:
        raise refuse(
            ErrorCode.RECORD_CLAIM,
            where="line 1, claimed_epsilon",
            expected=f"at least {epsilon:.6g}",
            found=claimed,
        )
    return AccountingResult(
        epsilon=epsilon,
        epsilon_rdp=rdp.epsilon(composition, rules.delta),
        epsilon_claimed=claimed,
        delta=rules.delta,
        rounds=len(record.rounds),
        accountant=f"dp-accounting {version('dp-accounting')}, PLD, connect-the-dots, "
        f"grid {pld.loss_interval(composition):.3g}",
        within_budget=epsilon <= rules.epsilon,
    )


def _check_covered(run: RunLine) -> None:
    if run.sampling.type != "two_stage_poisson":
        raise refuse(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="line 1, sampling",
            expected="two_stage_poisson",
            found=run.sampling.type,
            next_step="Sample clients and providers with independent coins: a fixed number of participants gives no "
            "such amplification under add/remove, since one provider displaces another.",
        )
    if (run.noise.placement, run.noise.release_view) not in COVERED_VIEWS:
        raise refuse(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where="line 1, noise",
            expected=" or ".join(f"{placement} with {view}" for placement, view in sorted(COVERED_VIEWS)),
            found=f"{run.noise.placement} with {run.noise.release_view}",
            next_step="Noise drawn at the server doesn't cover single clients' updates; where every client draws the "
            "whole noise, declare the per_client view.",
        )


def _round_mechanism(line: RoundLine) -> PoissonGaussian:
    try:
        return PoissonGaussian(line.client_rate * line.provider_rate, line.noise_multiplier)
    except ValueError as error:
        raise refuse(
            ErrorCode.ACCOUNTING_UNSUPPORTED,
            where=f"round {line.round}",
            expected="values that the accountant covers",
            found=error,
        ) from error
