"""Questions of made-up providers, and what a model that leaks, or doesn't, would do with them."""

import numpy as np

from evaluator.leakage.features import Answers, Asked

QUESTIONS = 8


def asked(seed: int, *, gain: float, providers: int = 120, questions: int = QUESTIONS) -> Asked:
    """Half of the providers are members; training lowers the loss of members' questions by `gain` nats more.

    Providers differ in how hard they are by a nat, and their questions by another.
    """
    rng = np.random.default_rng(seed)
    names = [f"provider-{number:04}" for number in range(providers)]
    is_member = dict(zip(names, (number % 2 == 0 for number in range(providers)), strict=True))
    owners = np.repeat(np.arange(providers), questions)
    hard = 3 + np.repeat(rng.normal(size=providers), questions) + rng.normal(size=len(owners))
    member = (owners % 2 == 0).astype(float)
    after = hard - 0.5 - gain * member + 0.5 * rng.normal(size=len(owners))
    return Asked(
        providers=[names[owner] for owner in owners],
        is_member=is_member,
        submitted=_answers(after, rng),
        base=_answers(hard, rng),
    )


def _answers(loss: np.ndarray, rng: np.random.Generator) -> Answers:
    right = (rng.random(len(loss)) < np.exp(-np.maximum(loss, 0) / 3)).astype(float)
    return Answers(accuracy=right, nls=right, loss=loss, confidence=np.exp(-np.maximum(loss, 0)))
