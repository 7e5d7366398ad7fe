from pathlib import Path

import pytest

from tests.studies.conformance.covered_code import code_hash, executed

SOURCE = '''"""What it is for."""

def f(x: int) -> str:
    """Return it."""
    # Because.
    return f"# {x}"  # no comment within the quotes
'''


def test_comments_docstrings_and_empty_lines_are_not_executed() -> None:
    assert executed(SOURCE) == 'def f(x: int) -> str:\n    return f"# {x}"'


def test_another_statement_is_other_code() -> None:
    assert executed(SOURCE.replace("# {x}", "# {x + 1}")) != executed(SOURCE)
    assert executed(SOURCE.replace("Because", "As")) == executed(SOURCE)


def test_a_hash_follows_from_files_and_what_else_is_covered() -> None:
    noise = code_hash(["starter_kit/dp/noise.py"])
    assert noise == code_hash(["starter_kit/dp/noise.py"])
    assert (
        len({noise, code_hash(["starter_kit/dp/*.py"]), code_hash(["starter_kit/dp/noise.py"], "σ = 1")}) == 3
    )


def test_a_file_that_is_gone_is_not_overlooked() -> None:
    assert not Path("starter_kit/dp/gone.py").exists()
    with pytest.raises(ValueError, match=r"no file matches starter_kit/dp/gone.py"):
        code_hash(["starter_kit/dp/gone.py"])
