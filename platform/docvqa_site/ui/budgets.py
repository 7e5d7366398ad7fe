"""Equations with ε as pages show them: in one piece, which no line breaks."""

from collections.abc import Callable

IN_ONE_PIECE = "ε\xa0=\xa0"


def budget_text(budget: float) -> str:
    """Return a privacy budget, such as "ε = 8"."""
    return f"{IN_ONE_PIECE}{budget:g}"


def at_budget(budget: float | None, words: str = " at {}", text: Callable[[float], str] = budget_text) -> str:
    """Return words with a budget in place of {}, such as " at ε = 8"; empty for a board without a budget."""
    return "" if budget is None else words.format(text(budget))


def plain(budget: float) -> str:
    """Return a privacy budget as addresses, exports and messages have it, such as "8"."""
    return f"{budget:g}"


def board_query(budget: float | None) -> str:
    """Return the query of the address of a board, such as "?epsilon=8"; empty for a board without a budget."""
    return at_budget(budget, "?epsilon={}", plain)


def unbroken(text: str) -> str:
    """Return a text with its equations in one piece. Exports and messages for programs have plain spaces."""
    return text.replace("ε = ", IN_ONE_PIECE)
