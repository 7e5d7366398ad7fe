"""The server learning rates that suit the starter kit's tiny private configs at each privacy budget.

A smaller ε needs smaller steps, because each step comes with more noise.
"""

from collections.abc import Mapping

# By config and ε. The config itself has the rate of its own ε.
SERVER_LEARNING_RATES: Mapping[str, Mapping[float, float]] = {
    "fl-provider-dp": {1: 0.35, 4: 0.7, 8: 1.2},
    "dp-lora": {1: 0.08, 4: 0.18, 8: 0.24},
}


def changes_at(config: str, epsilon: float | None) -> list[str]:
    """Return the changes of settings with which a config trains at an ε: the ε itself, and the rate if known.

    None where there is no ε.
    """
    if epsilon is None:
        return []
    rate = SERVER_LEARNING_RATES.get(config, {}).get(epsilon)
    rates = [] if rate is None else [f"server_learning_rate={rate:g}"]
    return [f"target_epsilon={epsilon:g}", *rates]
