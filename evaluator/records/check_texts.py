"""The meaning and the limits of each named check: one table for workers, site, command line and documentation.

C checks compare a training record with itself and with the run's other files; P checks test whether a communication
log is plausible. Their results travel as `evaluator.messages.jobs.Check`; the texts are here.
"""

from dataclasses import dataclass

from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import Check, CheckStatus


@dataclass(frozen=True)
class CheckText:
    """The texts of a check.

    Attributes:
        name: The check in a few words.
        meaning: What is true when it passes, in one sentence.
        limit: What it doesn't cover, in one sentence.
        code: The error code of a run that is rejected because it fails; None where it only ever flags.
    """

    name: str
    meaning: str
    limit: str
    code: ErrorCode | None = None


CHECKS: dict[str, CheckText] = {
    "C1": CheckText(
        name="budget",
        meaning="ε, recomputed from the record's rounds under the track's rules, is within the budget.",
        limit="Anything missing from the record or stated falsely.",
    ),
    "C2": CheckText(
        name="rounds",
        meaning="The record contains the declared number of rounds, numbered without gaps, and each round uses the "
        "planned sampling, clip norm and noise. Rounds that differ from the plan are accounted as recorded and "
        "flagged, as are runs that were interrupted and resumed.",
        limit="Unrecorded rounds and unrecorded interruptions.",
        code=ErrorCode.RECORD_ROUNDS,
    ),
    "C3": CheckText(
        name="chain of models",
        meaning="The record commits to all weights before the first round and after every round. The first weights "
        "match the base weights, and the last weights match the checkpoint.",
        limit="The steps in between. C21 covers them, including adapters, which are in neither file.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C4": CheckText(
        name="bytes",
        meaning="In every round, the byte count follows from the declared tensors, codec and clients (within 1 % for "
        "framing), and the byte counts and clients match the communication log.",
        limit="Messages missing from both the record and the log.",
        code=ErrorCode.RECORD_BYTES,
    ),
    "C5": CheckText(
        name="clients of the rounds",
        meaning="The number of clients in each round matches the declared sampling: the exact number for fixed-size "
        "sampling, or a plausible distribution for independent sampling. A run is flagged if its counts have a "
        "probability below 10⁻⁴ and rejected if the probability of its totals is below 10⁻¹².",
        limit="Clients that were chosen in another way but in plausible numbers. The check has little power in short "
        "runs: sampling exactly 2 of 10 clients in every round passes as independent sampling at rate 0.2 until about "
        "round 20.",
        code=ErrorCode.RECORD_ROUNDS,
    ),
    "C6": CheckText(
        name="providers of the clients",
        meaning="For each participating client, the number of sampled providers matches the declared sampling (same "
        "test as C5). It never exceeds the number of providers that the client has or that the track states, and with "
        "fixed-size sampling each client has at least `fewest_providers`.",
        limit="The identity of the sampled providers, such as the same providers in every round; invented numbers that "
        "look random; and a fixed sample size chosen based on the number of providers.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C8": CheckText(
        name="noise in the sums",
        meaning="Blocks of the noised sums, drawn after all sums were committed to, match the commitments and vary as "
        "much as the declared noise. An honest run is flagged with a probability below 4·10⁻⁶ (below 10⁻⁵ for C8, C9 "
        "and C22 together). The check reports the noise level, as a share of the declared level, below which it would "
        "have detected missing noise with 99 % probability, even if all updates of the expected number of providers "
        "pointed the same way. It has no power if that share is 50 % or less.",
        limit="Noise known to someone (noise from a known seed looks like any other); unclipped updates hidden by the "
        "noise; invented sums that were never used; and missing noise in a share s of all blocks, which goes "
        "undetected with a probability of (1 − s)ⁿ if n blocks are opened, with only one attempt (C23). If the track "
        "doesn't state the number of providers, a normalizer that is too small makes the check overstate its power.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C9": CheckText(
        name="fresh noise in every round",
        meaning="The opened blocks of a round are not correlated with those of an earlier round, or with the sum of "
        "all earlier ones, beyond the effect of the clipped updates, and adding them leaves noise. An honest run is "
        "flagged with a probability below 4·10⁻⁶. The check reports the share of a round's noise above which it would "
        "have detected reused or canceled noise, with the same probability as C8. It has no power if that share "
        "exceeds 100 %.",
        limit="Noise canceled in later rounds in which the updates of many providers could hide it, and noise that "
        "each round cancels only in part behind a signal (telescoping sums).",
    ),
    "C10": CheckText(
        name="trained tensors",
        meaning="The declared tensors are distinct and have the shapes of the base weights. Every other change in the "
        "checkpoint has a rank that the declared adapters can produce.",
        limit="Tensors that were sent but did not change.",
        code=ErrorCode.RECORD_TENSORS,
    ),
    "C14": CheckText(
        name="declared runs",
        meaning="All run tokens that the site issued to the team in this track are accounted for: each belongs to a "
        "submitted run or is covered by the number of tuning runs that the team declares.",
        limit="Training runs on the same data without a token.",
    ),
    "C15": CheckText(
        name="joint ε",
        meaning="Reports the joint ε of all the team's accounted training runs in this track, since they all used the "
        "same data. No budget limits the joint ε.",
        limit="Models that were trained on the data but never submitted.",
    ),
    "C16": CheckText(
        name="checkpoint file",
        meaning="The record's last line contains the SHA-256 of the submitted checkpoint.",
        limit="How the checkpoint was produced.",
        code=ErrorCode.RECORD_CHECKPOINT,
    ),
    "C17": CheckText(
        name="annex file",
        meaning="The annex's body, which contains the counts and the adapters, matches the SHA-256 in the record's "
        "last line, and the annex contains the record's run token and number of rounds.",
        limit="Whether the annex is true.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C18": CheckText(
        name="base weights",
        meaning="The record contains the SHA-256 of the track's base weights.",
        limit="Whether training started from these weights; see C3.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C19": CheckText(
        name="the track's rules",
        meaning="The record's privacy unit, adjacency, δ and number of clients match the track's.",
        limit="Whether the trainer really protects this unit; see the privacy proof.",
        code=ErrorCode.RECORD_RULES,
    ),
    "C20": CheckText(
        name="other uses of private data",
        meaning="The record declares no choice of settings, rounds or checkpoints based on private data. ε covers no "
        "such choice.",
        limit="Undeclared uses.",
    ),
    "C21": CheckText(
        name="linkage",
        meaning="On blocks of the vectors, drawn after all vectors were committed to, the declared server update (with "
        "its learning rate, normalizer and other parameters) leads from the base weights through every noised sum to "
        "the checkpoint, up to float32 rounding (for a sum, 8·2⁻²³ of the summed magnitudes). Adapters, which the "
        "annex contains in full, start without effect and give the checkpoint once merged. Update rules that can't be "
        "replayed, tensors that can't be followed, and steps so small that rounding could hide a tenth of them or more "
        "are flagged.",
        limit="Sums invented to produce the wanted model, such as the wanted change plus noise that is canceled over "
        "the rounds (see C8 and C9); whether the sums contain clipped updates, or come from any training at all; noise "
        "known to someone; a change to a share s of all blocks, which goes undetected with a probability of (1 − s)ⁿ "
        "if n blocks are opened, with only one attempt (C23); and initial adapter values chosen by looking at private "
        "data.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C22": CheckText(
        name="shape of the noise",
        meaning="All opened blocks, their even and odd coordinates and pairs of coordinates spread at least as much as "
        "independent Gaussian noise (measured by the characteristic function), whatever the updates are. An honest run "
        "is flagged with a probability below 2·10⁻⁶. The check reports the share of coordinates in which it would have "
        "detected missing noise with 99 % probability, even behind the longest updates of the expected number of "
        "providers. It has no power if that share exceeds one half, or if a codec rounded the noise.",
        limit="Missing noise behind a signal that is itself distributed like noise; noise that repeats within a round "
        "in a pattern other than between neighbors, halves, mirror images or neighboring blocks; more noise than "
        "declared.",
    ),
    "C23": CheckText(
        name="challenge",
        meaning="The annex opens the blocks selected by a number that the site drew at random after the record was "
        "uploaded, once per run token. Nobody could know these blocks when the vectors were fixed, or try again with "
        "another record. In a dry run without a site, the blocks follow from the record's own hash, so the record's "
        "author could choose them and the check has no power.",
        limit="A second training run under another token. C14 counts it, and its blocks are just as unpredictable.",
        code=ErrorCode.RECORD_CHALLENGE,
    ),
    "C24": CheckText(
        name="training data",
        meaning="The annex states the hash of the data manifest set by the organizers, which covers every document of "
        "every provider and client, with words and questions. Without such a hash, nothing is compared.",
        limit="Whether the run used that data, or additional data, since the hash can be copied; and the pixels of the "
        "pages.",
        code=ErrorCode.RECORD_DATA,
    ),
    "P1": CheckText(
        name="both directions",
        meaning="In every round, each client that received a message also sent one, and vice versa. The first download "
        "of each client is therefore also in the log.",
        limit="Messages missing in both directions, and missing rounds.",
    ),
    "P2": CheckText(
        name="regular rounds",
        meaning="Every exchange has the same number of messages each way, and there are no more empty rounds than "
        "independent client sampling would produce.",
        limit="Clients or rounds left out in a way that keeps the rest regular.",
    ),
    "P3": CheckText(
        name="bits per parameter",
        meaning="All exchanges in one direction have the same size, between 1 bit per parameter that describes the "
        "change and 64 bits per entry of the changed tensors.",
        limit="Invented sizes within that range. A codec with messages of varying size is flagged even if honest.",
    ),
    "P4": CheckText(
        name="floor",
        meaning="In each direction, the bytes are enough to carry the change of the weights once, at 4.5 bits per "
        "parameter, with the change of each matrix as two factors of its rank.",
        limit="Missing messages beyond the first. A codec with fewer bits is flagged even if honest.",
    ),
}

# Lies that no check detects in an otherwise consistent run, each with the method that can. The tests forge every one
# of them, along with those that checks do detect: tests/evaluator/records/test_lies.py.
UNCAUGHT: dict[str, str] = {
    "noise known to the "
    "cheater": "Conformance (L1), if the attached code draws the noise from a seed of its own. In a replayable run, a "
    "replay (L2), because its noise follows from keys committed to before the run.",
    "unclipped updates hidden by the noise": "Conformance (L1), if the attached code doesn't clip; a replay (L2) of "
    "such a round.",
    "a whole run of invented sums, and the model they lead to": "A replay (L2) of any round; another training run "
    "(L3), if the model scores better than a private one can.",
    "two rounds declared as one": "Conformance (L1), if the attached code does so; a replay (L2) of such a round.",
    "fixed-size sampling declared as Poisson, in a run with few rounds or with invented counts": "Conformance (L1), if "
    "the attached code samples so; a replay (L2).",
    "the same providers in every round": "Conformance (L1), if the attached code samples so; a replay (L2).",
}


def failures(checks: list[Check]) -> list[Problem]:
    """Return the problems that failed checks amount to."""
    return [_problem(check) for check in checks if check.status is CheckStatus.FAILED]


def _problem(check: Check) -> Problem:
    text = CHECKS[check.id]
    if text.code is None:
        raise ValueError(f"check {check.id} flags and never fails")
    return Problem.of(
        text.code,
        where=f"check {check.id}, {check.where}" if check.where else f"check {check.id}",
        expected=check.expected,
        found=check.found,
    )


def catalog() -> str:
    """Return the table as Markdown: docs/checks.md is this text."""
    rows = [
        f"| {name} | {text.name} | {text.meaning} | {text.limit} | {f'`{text.code}`' if text.code else 'flagged'} |"
        for name, text in CHECKS.items()
    ]
    return "\n".join(
        [
            "# Checks",
            "",
            "Generated by `make docs` from `evaluator/records/check_texts.py`. C checks compare a training record",
            "with itself, the run's other files and the team's other runs; P checks test whether a communication log",
            "is plausible. A failed check rejects the run with the code in the last column; reviewers look at flagged",
            "checks. “No power” means that the check found nothing and, with this run's numbers, could not have found",
            "anything relevant, so it is not evidence.",
            "",
            "| check | name | what passing means | not covered | otherwise |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## What no check catches",
            "",
            "The tests forge each of these lies, with full knowledge of the checks, and no check detects them. A "
            "higher",
            "[trust level](trust-levels.md) can:",
            "",
            "| lie | detected by |",
            "| --- | --- |",
            *(f"| {lie} | {shown} |" for lie, shown in UNCAUGHT.items()),
            "",
            "If the noise checks have no power, wrong or reused noise can also pass, hidden behind updates.",
            "",
            "No check compares a checkpoint with those of other runs;",
            "[operations.md](operations.md#near-copies) describes how organizers learn of near copies, and the limits.",
            "",
        ]
    )
