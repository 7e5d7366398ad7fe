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
        "Is the protected unit one provider, with all of its documents and questions, added or removed?",
        "A guarantee for single documents says little about a provider that is in the data a thousand times.",
    ),
    Item(
        "adversary",
        Group.CLAIM,
        "Does the proof say who sees what: the intermediate global models, single updates, only the last model?",
        "Noise that is added after aggregation protects nobody from a server that sees single updates, unless"
        " aggregation is really secure.",
    ),
    Item(
        "releases",
        Group.CLAIM,
        "Is everything listed that leaves the training and depends on the data?",
        "Counts, loss curves, normalizers, a vocabulary or the choice of the best round are releases too.",
    ),
    Item(
        "sensitivity",
        Group.MECHANISM,
        "Is the whole update of one provider clipped to one global L2 norm, with NaN and infinity dealt with?",
        "Clipping layer by layer, or leaving out buffers or adapters, makes the real sensitivity larger.",
    ),
    Item(
        "isolation",
        Group.MECHANISM,
        "Does a provider's update depend on its own data, released values and fresh randomness only?",
        "Optimizer or control state shared between providers carries one's data into another's update.",
    ),
    Item(
        "noise",
        Group.MECHANISM,
        "Are the noise's distribution and standard deviation stated, independent in every coordinate and round?",
        "A variance mistaken for a deviation, a seed known to others or noise in half precision breaks the guarantee.",
    ),
    Item(
        "adaptivity",
        Group.MECHANISM,
        "Do clip norm, learning rate and other adaptive choices use released values only, or pay for themselves?",
        "A parameter chosen from private values is a release that nobody accounted for.",
    ),
    Item(
        "new_mechanisms",
        Group.MECHANISM,
        "Is every step that is not in the baseline (compression, sparsification, dual variables, …) proved to be"
        " post-processing, or accounted for?",
        "Whether a step comes before or after clipping and noise decides which of the two it is.",
    ),
    Item(
        "sampling",
        Group.SAMPLING,
        "Does the sampling that is accounted for match the one that was run?",
        "Independent coins, fixed-size draws and two-stage sampling amplify differently; fixed size is not Poisson.",
    ),
    Item(
        "empty_rounds",
        Group.SAMPLING,
        "Are rounds in which nobody was sampled noised and counted, and is the normalizer a constant?",
        "Dividing by the number of sampled providers, or skipping empty rounds, reveals who took part.",
    ),
    Item(
        "composition",
        Group.COMPOSITION,
        "Does the composition cover every round, failed and repeated ones included, with its own parameters?",
        "Each look at the data costs, whether or not its result was used.",
    ),
    Item(
        "conversion",
        Group.COMPOSITION,
        "Is δ the track's, and is the way from the accountant to (ε, δ) named?",
        "Numbers at different δ, or by another conversion, can't be compared.",
    ),
    Item(
        "recomputed",
        Group.COMPOSITION,
        "Does the recomputed ε on this page agree with what the proof claims?",
        "The evaluator recomputes ε from the record; a proof about other parameters proves another run.",
    ),
    Item(
        "tuning",
        Group.COMPOSITION,
        "Is it declared which data hyper-parameters and the final model were chosen on, and its cost counted?",
        "Choosing the best of many private runs by private validation data spends budget.",
    ),
    Item(
        "multiple_releases",
        Group.COMPOSITION,
        "Where several budgets are submitted, is it clear whether their runs share private state, and what they"
        " cost together?",
        "Each checkpoint that is published about the same providers adds to what they lose.",
    ),
    Item(
        "code",
        Group.CODE,
        "Does the proof name the place in the code of each of its steps, and does the code do that?",
        "A right proof of another program verifies nothing.",
    ),
]
