"""The checklist by which reviewers judge a privacy proof."""

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """The answers to a question of the checklist."""

    YES = "yes"
    NO = "no"
    NOT_APPLICABLE = "n/a"


class Group(StrEnum):
    """What a question is about, in the order of the page."""

    CLAIM = "Claim"
    MECHANISM = "Mechanism"
    SAMPLING = "Sampling"
    COMPOSITION = "Composition"
    CODE = "Code"


@dataclass(frozen=True)
class Item:
    """One question; "yes" is always the answer that speaks for the proof."""

    key: str
    group: Group
    question: str
    why: str


CHECKLIST = [
    Item(
        "unit",
        Group.CLAIM,
        "Is the privacy unit one provider, added or removed with all of its documents and questions?",
        "A guarantee for individual documents says little about a provider with a thousand documents in the "
        "data.",
    ),
    Item(
        "adversary",
        Group.CLAIM,
        "Does the proof state who sees what: intermediate global models, individual updates, or only the "
        "final model?",
        "Noise added after aggregation doesn't protect against a server that sees individual updates, "
        "unless aggregation is secure.",
    ),
    Item(
        "releases",
        Group.CLAIM,
        "Does the proof list every output of the training that depends on the data?",
        "Counts, loss curves, normalizers, a vocabulary or the choice of the best round are releases too.",
    ),
    Item(
        "sensitivity",
        Group.MECHANISM,
        "Is the whole update of one provider clipped to one global L2 norm, with NaN and infinity handled?",
        "Clipping layer by layer, or omitting buffers or adapters, increases the true sensitivity.",
    ),
    Item(
        "isolation",
        Group.MECHANISM,
        "Does a provider's update depend only on its own data, released values and fresh randomness?",
        "Optimizer or control state shared between providers leaks one provider's data into another's update.",
    ),
    Item(
        "noise",
        Group.MECHANISM,
        "Are the noise's distribution and standard deviation stated, and is the noise independent in every coordinate "
        "and round?",
        "The guarantee breaks if variance is confused with standard deviation, if the seed is known, or if the noise "
        "has half precision.",
    ),
    Item(
        "adaptivity",
        Group.MECHANISM,
        "Do clip norm, learning rate and other adaptive choices use only released values, or is their cost "
        "accounted for?",
        "A parameter chosen from private values is an unaccounted release.",
    ),
    Item(
        "new_mechanisms",
        Group.MECHANISM,
        "Is every step that is not in the baseline (compression, sparsification, dual variables, …) proved "
        "to be"
        " post-processing, or accounted for?",
        "Steps after the noise are post-processing; steps before it must be accounted for.",
    ),
    Item(
        "sampling",
        Group.SAMPLING,
        "Does the sampling assumed in the accounting match the sampling actually used?",
        "Poisson, fixed-size and two-stage sampling amplify differently; fixed-size sampling is not Poisson "
        "sampling.",
    ),
    Item(
        "empty_rounds",
        Group.SAMPLING,
        "Are empty rounds noised and counted, and is the normalizer constant?",
        "Dividing by the number of sampled providers or skipping empty rounds reveals who participated.",
    ),
    Item(
        "composition",
        Group.COMPOSITION,
        "Does the composition cover every round with its parameters, including failed and repeated rounds?",
        "Every access to the data costs privacy, whether or not the result was used.",
    ),
    Item(
        "conversion",
        Group.COMPOSITION,
        "Does δ match the track, and is the conversion from the accountant to (ε, δ) stated?",
        "Values at a different δ or from another conversion can't be compared.",
    ),
    Item(
        "recomputed",
        Group.COMPOSITION,
        "Does the recomputed ε agree with what the proof claims?",
        "The evaluator recomputes ε from the record. A proof with other parameters is about a different run.",
    ),
    Item(
        "tuning",
        Group.COMPOSITION,
        "Does the proof state which data was used to choose hyperparameters and the final model, and "
        "account for the cost?",
        "Choosing the best of many private runs on private validation data consumes budget.",
    ),
    Item(
        "multiple_releases",
        Group.COMPOSITION,
        "If several budgets are submitted, is it clear whether the runs share private state and what they "
        "cost jointly?",
        "Every published checkpoint trained on the same providers adds to their privacy loss.",
    ),
    Item(
        "code",
        Group.CODE,
        "Does the proof point to the code for each step, and does the code do what the proof says?",
        "A correct proof of a different program verifies nothing.",
    ),
]
