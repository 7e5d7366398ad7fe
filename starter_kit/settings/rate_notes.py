"""A hint about the server learning rate, before a run at another ε than that of its config."""

from evaluator.messages.tuned_rates import SERVER_LEARNING_RATES
from starter_kit.settings.run_settings import RunSettings


def rate_notes(settings: RunSettings) -> list[str]:
    """Return a line where one of the kit's configs keeps its server learning rate at a smaller ε; else nothing."""
    rates, values = SERVER_LEARNING_RATES.get(settings.experiment, {}), vars(settings)
    target, rate = values.get("target_epsilon"), values.get("server_learning_rate")
    # The rate of the board on which the run would be.
    suited = next((rates[budget] for budget in sorted(rates) if target and target <= budget), None)
    largest = max(rates, default=0)
    if suited is None or rate != rates[largest] or suited == rate:
        return []
    return [
        f"The server learning rate {rate:g} suits ε = {largest:g}. At ε = {target:g}, a run with it scores much lower: "
        f"add --set server_learning_rate={suited:g}"
    ]
