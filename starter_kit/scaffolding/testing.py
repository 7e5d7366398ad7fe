"""Runs the tests of a file as a program, without pytest, which can run the same file."""

import sys
import unittest
from collections.abc import Callable, Mapping


class _Test(unittest.FunctionTestCase):
    """A test function, whose name is shown as a sentence."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(function, description=function.__name__.removeprefix("test_").replace("_", " "))

    def __str__(self) -> str:
        return self.shortDescription() or ""


def run_tests(module: Mapping[str, object]) -> None:
    """Run the functions of a module whose names begin with `test_`, and end the program, with status 1 if one fails.

    Args:
        module: The `globals()` of the module.

    Raises:
        SystemExit: Always.
    """
    functions = [value for name, value in module.items() if name.startswith("test_") and callable(value)]
    suite = unittest.TestSuite(map(_Test, functions))
    runner = unittest.TextTestRunner(verbosity=2, descriptions=False)
    sys.exit(0 if runner.run(suite).wasSuccessful() else 1)
