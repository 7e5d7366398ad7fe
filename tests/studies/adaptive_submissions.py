"""What a team gains by adapting many submissions to displayed scores: `python -m tests.studies adaptive-submissions`.

A test set is drawn, and a team with a model that answers about half of it. For every page, a checkpoint can give one of
several answers, all of the same expected score, and choose among them by a hash of the page. The team changes answers,
looks at the displayed score, and continues from there. Nothing in that makes the model better: what the score gains is
adaptation to the test set, and new pages gain nothing but chance.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.messages.results import MOST_DECIMALS, supported_decimals
from starter_kit.commands.data_options import DEFAULT_PRIVATE
from starter_kit.console import log
from tests.studies.markdown import fill, table_row
from tests.studies.study import completed

SEED = 1
REPETITIONS = 50
SUBMISSIONS = (20, 100, 1000)
ALTERNATIVES = 8
# As the commands that write a test set suggest, and as scores are stored.
QUESTIONS_OF_A_PAGE, PAGES_OF_A_PROVIDER = 3, 6
# A climbing team changes one page in so many at a time; the page reports the best of these for the team.
STEPS = (1, 2, 8, 32, 128)
# Against sums of scores that are a rounding error below a whole number.
TINY = 1e-9

Floats = NDArray[np.float64]
Pages = NDArray[np.intp] | NDArray[np.bool_]


@dataclass(frozen=True)
class Setting:
    """A test set: how many questions it has, and which part of them is private."""

    questions: int
    private_fraction: float


SETTINGS = tuple(
    Setting(questions, private) for questions, private in product((1200, 5000, 43591), (0.0, DEFAULT_PRIVATE))
)


class Part:
    """Some pages, and the answers that the team's checkpoint gives for them now.

    Attributes:
        scores: (answers, pages), each summed over the questions of its page; the first answer is the model's own.
        questions: How many questions the pages have.
    """

    def __init__(self, scores: Floats, questions: int) -> None:
        self.scores, self.questions = scores, questions
        self.start_over()

    @property
    def pages(self) -> int:
        """The number of pages."""
        return self.scores.shape[1]

    @property
    def gain(self) -> float:
        """How much the mean score has risen since the start."""
        return (self.total - float(self.scores[0].sum())) / max(1, self.questions)

    def start_over(self) -> None:
        """Give the model's own answer for every page."""
        self.now = self.scores[0].copy()
        self.total = float(self.now.sum())

    def change(self, answer: int, pages: Pages) -> float:
        """Return how much the total would rise by another answer for these pages."""
        return float(self.scores[answer, pages].sum() - self.now[pages].sum())

    def give(self, answer: int, pages: Pages) -> None:
        """Give another answer for these pages."""
        self.total += self.change(answer, pages)
        self.now[pages] = self.scores[answer, pages]

    def displayed(self, total: float, decimals: int) -> float:
        """Return what the site shows of a total: the mean, truncated."""
        return math.floor(total / self.questions * 10**decimals + TINY) / 10**decimals


@dataclass(frozen=True)
class Task:
    """The public part of a test set, its private part, and as many fresh questions as the test set has."""

    public: Part
    private: Part
    fresh: Part

    @property
    def hidden(self) -> Sequence[Part]:
        """What the team sees no score of."""
        return self.private, self.fresh


def draw(random: np.random.Generator, setting: Setting) -> Task:
    """Draw a test set whose providers are in one part each, and fresh questions of other providers."""
    scores, sizes = _pages(random, setting.questions)
    providers = np.arange(len(sizes)) // PAGES_OF_A_PROVIDER
    order = random.permutation(providers[-1] + 1)
    private = np.isin(providers, order[: round(setting.private_fraction * len(order))])
    fresh = _pages(random, setting.questions)
    return Task(
        Part(scores[:, ~private], int(sizes[~private].sum())),
        Part(scores[:, private], int(sizes[private].sum())),
        Part(fresh[0], int(fresh[1].sum())),
    )


def _pages(random: np.random.Generator, questions: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the scores of all answers (answers, pages), and how many questions each page has.

    Providers differ in how well they are read, and their questions much more. All answers to one question are right
    with the same probability, 0.55 on average; of the wrong ones, a fifth earns some ANLS.
    """
    of_question = np.arange(questions)
    provider = of_question // (QUESTIONS_OF_A_PAGE * PAGES_OF_A_PROVIDER)
    readable = random.beta(5.5, 4.5, provider[-1] + 1)[provider]
    chance = random.beta(readable, 1 - readable)
    shape = (ALTERNATIVES + 1, questions)
    nearly = np.where(random.random(shape) < 0.2, random.uniform(0.5, 1, shape), 0.0)
    scores = np.where(random.random(shape) < chance, 1.0, nearly)
    first = of_question[::QUESTIONS_OF_A_PAGE]
    return np.add.reduceat(scores, first, axis=1), np.diff(np.append(first, questions))


def climb(random: np.random.Generator, task: Task, decimals: int, one_in: int) -> Iterator[list[float]]:
    """Yield the gains after `SUBMISSIONS`, where a change is kept whenever the displayed score rises.

    Each submission changes the answers of one page in `one_in`; pages take turns in a new order each time.
    """
    public, turns = task.public, list[Pages]()
    for submission in range(1, SUBMISSIONS[-1] + 1):
        turns = turns or list(np.array_split(random.permutation(public.pages), one_in))
        pages, answer = turns.pop(), int(random.integers(ALTERNATIVES + 1))
        risen = public.total + public.change(answer, pages)
        if public.displayed(risen, decimals) > public.displayed(public.total, decimals):
            public.give(answer, pages)
            for part in task.hidden:
                part.give(answer, random.random(part.pages) < 1 / one_in)
        if submission in SUBMISSIONS:
            yield gains(task, decimals)


def vote(random: np.random.Generator, task: Task, decimals: int) -> Iterator[list[float]]:
    """Yield the gains after `SUBMISSIONS`, where all but the last give one of two answers for each page at random.

    The last gives for each page the answer that had the higher displayed scores on average. The boosting attack of Blum
    and Hardt (2015, arXiv:1502.04585), section 4.1, with weights.
    """
    public = task.public
    tries = random.integers(0, 2, (SUBMISSIONS[-1] - 1, public.pages), dtype=np.int8).astype(np.float32)
    rise = (public.scores[1] - public.scores[0]).astype(np.float32)
    start = float(public.scores[0].sum())
    seen = np.array([public.displayed(start + float(more), decimals) for more in tries @ rise])
    for submissions in SUBMISSIONS:
        some = seen[: submissions - 1]
        public.give(1, (some - some.mean()).astype(np.float32) @ tries[: submissions - 1] > 0)
        for part in task.hidden:
            part.give(1, random.random(part.pages) < 0.5)
        yield gains(task, decimals)
        for part in (public, *task.hidden):
            part.start_over()


def gains(task: Task, decimals: int) -> list[float]:
    """Return the gain of the displayed score, of the private part and of fresh questions."""
    public = task.public
    start = public.displayed(float(public.scores[0].sum()), decimals)
    return [public.displayed(public.total, decimals) - start, *(part.gain for part in task.hidden)]


# From a task and the number of displayed decimals to the gains after `SUBMISSIONS`.
Strategy = Callable[[np.random.Generator, Task, int], Iterator[list[float]]]
STRATEGIES: Mapping[str, Strategy] = {
    **{
        f"climbing, {'all pages' if one_in == 1 else f'1 page in {one_in}'}": partial(climb, one_in=one_in)
        for one_in in STEPS
    },
    "voting": vote,
}


@dataclass(frozen=True)
class Gain:
    """A gain over all repetitions."""

    mean: float
    largest: float


@dataclass(frozen=True)
class Adapted:
    """What a strategy gained after so many submissions; on the private part, zero where there is none."""

    strategy: str
    decimals: int
    submissions: int
    displayed: Gain
    private: Gain
    fresh: Gain


@dataclass(frozen=True)
class Simulated:
    """All that was gained on test sets of one setting."""

    setting: Setting
    seed: int
    repetitions: int
    adapted: list[Adapted]


def run(
    earlier: list[Simulated] | None,
    settings: Sequence[Setting] = SETTINGS,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
) -> Iterator[list[Simulated]]:
    """Simulate the settings that are missing; yield the outcomes of all."""
    kept = {
        found.setting: found
        for found in earlier or []
        if (found.repetitions, found.seed) == (repetitions, seed)
    }
    return completed(settings, kept, lambda setting: simulate(setting, repetitions, seed))


def simulate(setting: Setting, repetitions: int = REPETITIONS, seed: int = SEED) -> Simulated:
    """Return what every strategy gains on test sets of this setting, with four decimals and as many as are shown."""
    began = time.process_time()
    shown = displayed_decimals(setting)
    found: dict[tuple[str, int], list[list[list[float]]]] = {}
    for repetition in range(repetitions):
        start = [seed, setting.questions, round(1000 * setting.private_fraction), repetition]
        task = draw(np.random.default_rng(start), setting)
        for key in product(STRATEGIES, dict.fromkeys((shown, MOST_DECIMALS))):
            for part in (task.public, *task.hidden):
                part.start_over()
            adapted = STRATEGIES[key[0]](np.random.default_rng([*start, 1]), task, key[1])
            found.setdefault(key, []).append(list(adapted))
    log(f"{setting}: {time.process_time() - began:.0f} s of CPU time")
    rows = [
        Adapted(*key, submissions, *map(_gain, each.T))
        for key, runs in found.items()
        for submissions, each in zip(SUBMISSIONS, np.array(runs).swapaxes(0, 1), strict=True)
    ]
    return Simulated(setting, seed, repetitions, rows)


def displayed_decimals(setting: Setting) -> int:
    """Return how many decimals a score on the public part supports: the last is worth about 1 / (4·√questions)."""
    return supported_decimals(round(setting.questions * (1 - setting.private_fraction)))


def _gain(values: Floats) -> Gain:
    return Gain(round(float(values.mean()), 5), round(float(values.max()), 5))


def page(outcomes: Sequence[Simulated]) -> str:
    """Return the page in Markdown."""
    rows = [row for found in outcomes for row in _rows(found)]
    return fill(
        Path(__file__).with_suffix(".md"),
        climbing=[text for name, text in rows if name != "voting"],
        voting=[text for name, text in rows if name == "voting"],
        repetitions=REPETITIONS,
        alternatives=ALTERNATIVES,
        private=f"{DEFAULT_PRIVATE:.0%}",
        steps=", ".join(map(str, STEPS)),
    )


def _rows(found: Simulated) -> Iterator[tuple[str, str]]:
    """Yield the rows with the strategy of each: of climbing, that with the largest gain for the team."""
    setting = found.setting
    for decimals, submissions in product(dict.fromkeys(one.decimals for one in found.adapted), SUBMISSIONS):
        same = [one for one in found.adapted if (one.decimals, one.submissions) == (decimals, submissions)]
        climbing = [one for one in same if one.strategy != "voting"]
        best = max(climbing, key=lambda one: one.displayed.mean)
        for one in (best, *(one for one in same if one.strategy == "voting")):
            cells = [one.displayed, one.private if setting.private_fraction else None, one.fresh]
            yield (
                one.strategy,
                table_row(
                    f"{setting.questions:,}",
                    f"{setting.private_fraction:.0%}" if setting.private_fraction else "none",
                    decimals,
                    f"{submissions:,}",
                    *([one.strategy.removeprefix("climbing, ")] if one is best else []),
                    *("–" if gain is None else f"{gain.mean:+.4f} ({gain.largest:+.4f})" for gain in cells),
                ),
            )
