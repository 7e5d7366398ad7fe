"""Programs that run the test of a method where they are, each in a process that has loaded the kit's libraries."""

import runpy
import sys

FILE = "test_clever_idea.py"


def as_a_script() -> None:
    """Do what `python test_clever_idea.py` does."""
    assert "pytest" not in sys.modules
    sys.path.insert(0, ".")
    runpy.run_path(FILE, run_name="__main__")


def by_pytest() -> None:
    """Do what `python -m pytest -q test_clever_idea.py` does."""
    sys.path.insert(0, ".")
    sys.argv = ["pytest", "-q", FILE]
    runpy.run_module("pytest", run_name="__main__")
