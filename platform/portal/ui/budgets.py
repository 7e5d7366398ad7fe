"""Equations with ε as pages show them: in one piece, which no line breaks."""

IN_ONE_PIECE = "ε\xa0=\xa0"


def budget_text(budget: float) -> str:
    """Return a privacy budget, such as "ε = 8"."""
    return f"{IN_ONE_PIECE}{budget:g}"


def unbroken(text: str) -> str:
    """Return a text with its equations in one piece. Exports and messages for programs have plain spaces."""
    return text.replace("ε = ", IN_ONE_PIECE)
