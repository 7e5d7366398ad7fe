"""What each named check means, and what it can't detect: one table for workers, site, command line and documentation.

C checks compare a training record with itself and with the run's other files; P checks ask whether a communication log
is plausible. Their results travel as `contracts.Check`; the texts are here.
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
        limit: What it can't detect, in one sentence.
        code: The error code of a run that is rejected because it fails; None where it only ever flags.
    """

    name: str
    meaning: str
    limit: str
    code: ErrorCode | None = None


CHECKS: dict[str, CheckText] = {
    "C1": CheckText(
        name="budget",
        meaning="ε, recomputed from the rounds of the record under the track's rules, is within the budget.",
        limit="Anything that the record doesn't say, or says falsely.",
    ),
    "C2": CheckText(
        name="rounds",
        meaning="The record has as many rounds as it declares, numbered without a gap, and each has the sampling, clip "
        "norm and noise that were planned; a round that differs from the plan is accounted as it is, and "
        "flagged, and so is a run that was interrupted and resumed.",
        limit="Rounds that were run and never recorded, and interruptions that the record doesn't mention.",
        code=ErrorCode.RECORD_ROUNDS,
    ),
    "C3": CheckText(
        name="chain of models",
        meaning="The record commits to all weights before the first round and after every round: the first are the "
        "base weights', and the last are the checkpoint's.",
        limit="What is between the two: see C21, which also looks at adapters, as they are in neither file.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C4": CheckText(
        name="bytes",
        meaning="In every round, bytes follow from the declared tensors, codec and clients, to 1 % for framing, and "
        "they and the clients are those of the communication log.",
        limit="Messages that are left out of record and log alike, or sent beside them.",
        code=ErrorCode.RECORD_BYTES,
    ),
    "C5": CheckText(
        name="clients of the rounds",
        meaning="The number of clients in each round is the one that the round's sampling fixes, or varies over the "
        "rounds as independent coins make it vary; what coins show with a probability below 10⁻⁴ is flagged, and a run "
        "whose totals they show with one below 10⁻¹² is rejected.",
        limit="Clients that were chosen in another way but in the number that coins would choose, and little at "
        "all in a run of a few rounds: 2 of 10 clients in every round pass for coins of rate 0.2 until there are "
        "about 20 rounds.",
        code=ErrorCode.RECORD_ROUNDS,
    ),
    "C6": CheckText(
        name="providers of the clients",
        meaning="Of each client that took part, as many providers were sampled as the round's sampling fixes, or as "
        "independent coins make it, by the same test as C5; never more than it has, or than the track says it has; and "
        "where a fixed number is drawn, each client has at least `fewest_providers`.",
        limit="Which providers they were, such as the same ones in every round; made-up numbers that look random; "
        "and a fixed number that was chosen by how many providers there are.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C8": CheckText(
        name="noise in the sums",
        meaning="Blocks of the noised sums, drawn when all sums were committed to, are the committed ones and have "
        "the size of the declared noise; an honest run is flagged with a probability below 4·10⁻⁶, and by C8, C9 and "
        "C22 together below 10⁻⁵. It says below which part of the declared noise it would have detected that noise is "
        "missing, with a probability of 99 %, even behind updates of the expected providers that all point the same "
        "way; it has no power where that is half of it or less.",
        limit="Noise that somebody knows, since noise from a known seed looks like any other; updates that weren't "
        "clipped, as far as the noise covers them; sums that were made up and never used; and noise left out of a "
        "share s of all blocks, with a probability of (1 − s)ⁿ where n blocks are opened, for which there is one try "
        "(C23). Where the track doesn't say how many providers there are, too small a normalizer makes it claim too "
        "much power.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C9": CheckText(
        name="fresh noise in every round",
        meaning="The opened blocks of a round follow neither those of an earlier round nor the sum of all earlier "
        "opened ones, beyond what the clipped updates can do, and leave noise when they are added to them; an honest "
        "run is flagged with a probability below 4·10⁻⁶. It says from which part of a round's noise on it would have "
        "detected, likewise, that it is used again or taken back; it has no power where that is more than all of it.",
        limit="Noise that is taken back in later rounds where many providers' updates could hide it, or that each "
        "round takes back in part only (telescoping sums) behind a signal.",
    ),
    "C10": CheckText(
        name="trained tensors",
        meaning="The declared tensors are different ones with the base weights' shapes, and whatever else changed in "
        "the checkpoint has a rank that the declared adapters can give.",
        limit="Tensors that were sent and didn't change.",
        code=ErrorCode.RECORD_TENSORS,
    ),
    "C14": CheckText(
        name="declared runs",
        meaning="The run tokens that the site issued to the team in this track are accounted for: each is that of a "
        "submitted run, or is covered by the number of tuning runs that the team declares.",
        limit="Training runs on the same data without a token.",
    ),
    "C15": CheckText(
        name="joint ε",
        meaning="ε of all of the team's accounted trainings in this track together is shown: they all learned from the "
        "same data. No budget limits it.",
        limit="Models that were trained on the data and never submitted.",
    ),
    "C16": CheckText(
        name="checkpoint file",
        meaning="The record's last line has the SHA-256 of the submitted checkpoint.",
        limit="How that checkpoint came about.",
        code=ErrorCode.RECORD_CHECKPOINT,
    ),
    "C17": CheckText(
        name="annex file",
        meaning="The annex's body, which has the counts and the adapters, has the SHA-256 in the record's last line, "
        "and the annex has the record's run token and number of rounds.",
        limit="Whether what the annex says is true.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    "C18": CheckText(
        name="base weights",
        meaning="The record names the SHA-256 of the track's base weights.",
        limit="Whether training started from them: see C3.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C19": CheckText(
        name="the track's rules",
        meaning="Unit, adjacency, δ and the number of clients are the track's.",
        limit="Whether the trainer really protects that unit: see the privacy proof.",
        code=ErrorCode.RECORD_RULES,
    ),
    "C20": CheckText(
        name="other uses of private data",
        meaning="The record declares no choice of settings, round or checkpoint on private data; ε covers none.",
        limit="Uses that aren't declared.",
    ),
    "C21": CheckText(
        name="linkage",
        meaning="On blocks of the vectors, drawn when all of them were committed to, the server's declared rule, with "
        "its learning rate, normalizer and other parameters, leads from the base weights through every noised sum to "
        "the checkpoint, up to float32 rounding (for a sum, 8·2⁻²³ of the magnitudes that are added); and adapters, "
        "which the annex has as a whole, begin without an effect and give the checkpoint when they are merged. A "
        "rule that can't be replayed, tensors that can't be followed, and steps so small that rounding could hide a "
        "tenth of them or more, are flagged.",
        limit="Sums that were made up so that they lead to the wanted model, such as the wanted change with noise "
        "that is taken back over the rounds, which is for C8 and C9 to see; whether the sums are those of clipped "
        "updates, or of any training at all; noise that somebody knows; a change of a share s of all blocks, with a "
        "probability of (1 − s)ⁿ where n blocks are opened, for which there is one try (C23); and first values of "
        "adapters that were chosen by looking at private data.",
        code=ErrorCode.RECORD_MODELS,
    ),
    "C22": CheckText(
        name="shape of the noise",
        meaning="The opened blocks, every one of them, their even and odd coordinates and pairs of coordinates spread "
        "at least as independent normally distributed noise makes them (by their characteristic function), whatever "
        "the updates are; an honest run is flagged with a probability below 2·10⁻⁶. It says in which part of the "
        "coordinates it would have detected, with a probability of 99 %, that noise is missing, even behind the "
        "longest updates of the expected providers; it has no power where that is more than half, or where a codec "
        "rounded the noise.",
        limit="Missing noise behind a signal that is itself spread like noise; noise that repeats within a round in "
        "another order than between neighbors, halves, mirror images or neighboring blocks; more noise than declared.",
    ),
    "C23": CheckText(
        name="challenge",
        meaning="The annex opens the blocks that follow from a number that the site drew at random after the record "
        "was uploaded, once for its run token. So nobody could know them when the vectors were fixed, and nobody "
        "could try again with another record. Without a site, in a dry run, they follow from the record's own hash: "
        "whoever made the record could choose it, and the check has no power.",
        limit="A second training under another token, which C14 counts, and whose blocks are as unknown beforehand.",
        code=ErrorCode.RECORD_CHALLENGE,
    ),
    "C24": CheckText(
        name="training data",
        meaning="The annex states the hash of the data manifest that the organizers set: which documents every "
        "provider and client has, with their words and questions. Where they set none, it wasn't compared.",
        limit="Whether the run used that data, or other data besides, since the hash can be copied; and the pixels of "
        "the pages.",
        code=ErrorCode.RECORD_DATA,
    ),
    "P1": CheckText(
        name="both directions",
        meaning="In every round, each client that was sent a message sent one back, and the reverse; so each client's "
        "first download is there too.",
        limit="Messages that were left out of the log both ways, and whole rounds.",
    ),
    "P2": CheckText(
        name="regular rounds",
        meaning="Every exchange has the same number of messages each way, and no more rounds are empty than sampling "
        "each client by its own coin leaves.",
        limit="Clients or rounds left out so that the rest still looks regular.",
    ),
    "P3": CheckText(
        name="bits per parameter",
        meaning="Exchanges are of one size each way, from 1 bit for each parameter that describes the change to 64 "
        "bits for each entry of the tensors that changed.",
        limit="Sizes made up within that range. A codec whose messages vary in size is flagged and may be honest.",
    ),
    "P4": CheckText(
        name="floor",
        meaning="Each way, the bytes could have carried what changed in the weights once, at 4.5 bits a parameter and "
        "with a matrix's change as two factors of its rank.",
        limit="Messages beyond the first that were left out. A codec of fewer bits is flagged and may be honest.",
    ),
}

# Lies that no check sees in a run that is otherwise consistent, each with what else can show it. The tests forge every
# one of them, beside those that checks do see: tests/evaluator/records/test_lies.py.
UNCAUGHT: dict[str, str] = {
    "noise that the cheat knows": "Conformance (L1), if the attached code draws it from a seed of its own. In a "
    "replayable run, a replay (L2), as its noise follows from keys that were committed to before the run.",
    "updates that weren't clipped, as long as the noise covers them": "Conformance (L1), if the attached code is what "
    "doesn't clip; a replay (L2) of such a round.",
    "a whole run of made-up sums, and the model that they lead to": "A replay (L2) of any round; another training "
    "(L3), if the model scores as no private one does.",
    "two rounds declared as one": "Conformance (L1), if the attached code does so; a replay (L2) of such a round.",
    "fixed-size sampling declared as Poisson, in a run of few rounds or with made-up counts": "Conformance (L1), if "
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
            "with itself, the run's other files and the team's other runs; P checks ask whether a communication log is",
            "plausible. A check that fails rejects the run with the code in the last column; reviewers look at one",
            "that is only flagged. A check without power found nothing, and in a run of these numbers would have found",
            "nothing that matters: it is no evidence.",
            "",
            "| check | name | what is true when it passes | what it can't detect | otherwise |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## What no check catches",
            "",
            "The tests forge each of these lies, with full knowledge of the checks, and none of these sees it. Above",
            "L0, a [trust level](trust-levels.md) can show it:",
            "",
            "| lie | what can show it |",
            "| --- | --- |",
            *(f"| {lie} | {shown} |" for lie, shown in UNCAUGHT.items()),
            "",
            "Where the checks of the noise have no power, wrong noise and noise that is used again can pass as well,",
            "behind updates that hide it.",
            "",
            "Whether a checkpoint is nearly that of another run is no check:",
            "[operations.md](operations.md#near-copies) says how organizers learn of it, and what it can't see.",
            "",
        ]
    )
