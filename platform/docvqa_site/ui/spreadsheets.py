"""Text in CSV files that people open as spreadsheets."""

import unicodedata

# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms of East Asian keyboards too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def without_formula(text: str) -> str:
    """Return the text of a cell; one that a spreadsheet would take for a formula gets an apostrophe before it.

    Some leave out spaces before the formula, and characters that can't be seen.
    """
    # Almost every cell, and much faster than to look for characters that can't be seen.
    if text[:1].isalnum():
        return text
    first = next((one for one in text if not one.isspace() and unicodedata.category(one) != "Cf"), "")
    return f"'{text}" if text.startswith(FORMULA_STARTS) or first in FORMULA_STARTS else text
