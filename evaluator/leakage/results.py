"""What an assessment finds, as one document: for `leakage.json`, for pages and for tables."""

from evaluator.leakage.hiding import Hiding
from evaluator.leakage.memorization import Recall
from evaluator.leakage.statistics import Estimate, Interval, Statistic
from evaluator.leakage.training_answers import Disclosed
from evaluator.messages.base import Message

# Our own attack's name, beside the published ones.
LIKELIHOOD = "likelihood"


class Measure(Estimate):
    """A statistic of an attack, and its difference from the base weights."""

    above_base: Interval


class AttackResult(Message):
    """One attack on one target set.

    Attributes:
        target_set: s of T_s: providers with at least so many questions.
        accuracy: The paper's figure, of all tested providers, the mean over the seeds; None for our own attack.
        accuracy_spread: Its standard deviation over the seeds.
        chance: The share of the larger class, which accuracy has by guessing.
    """

    attack: str
    target_set: int
    members: int
    nonmembers: int
    accuracy: float | None = None
    accuracy_spread: float | None = None
    chance: float
    measures: dict[Statistic, Measure]


class RecallResult(Recall):
    """Answers of one model to hidden questions about members or nonmembers."""

    hiding: Hiding
    field: str
    model: str
    kind: str


class ProviderScore(Message):
    """How strongly our own attack holds a provider for a member, and the truth."""

    provider: str
    is_member: bool
    questions: int
    score: float


class Example(Message):
    """A hidden answer that the model gave exactly."""

    provider: str
    is_member: bool
    hiding: Hiding
    field: str
    question: str
    answer: str
    confidence: float


class LeakageResult(Message):
    """All that an assessment found. Names of providers are in it: it is for organizers, and for one's own data.

    Attributes:
        left_out: What was not assessed, and why: coded problems, in words.
        disclosed: The most frequent answers about fields that nonmembers' pages don't have.
        recalled_members: Members of which a hidden answer was given exactly; `recalled_nonmembers` likewise.
        recall_p_value: Fisher's exact test of those two counts; None without a memorization test.
        without_loss: Questions whose loss was no finite number.
    """

    questions: int
    providers: list[ProviderScore]
    attacks: list[AttackResult]
    recalls: list[RecallResult] = []
    examples: list[Example] = []
    disclosed: list[Disclosed] = []
    recalled_members: int = 0
    recalled_nonmembers: int = 0
    recall_p_value: float | None = None
    without_loss: int = 0
    references: int = 0
    left_out: list[str] = []

    @property
    def strongest(self) -> AttackResult:
        """Return our own attack on all providers, which is fixed beforehand: the best of many would be too good."""
        return next(attack for attack in self.attacks if attack.attack == LIKELIHOOD)
