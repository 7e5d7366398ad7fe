"""Runs the tests of a file as a program. pytest runs the same file, and is not needed."""

import sys
import unittest
from collections.abc import Callable, Mapping


class _Test(unittest.FunctionTestCase):
    """A function, told by its name as a sentence."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(function, description=function.__name__.removeprefix("test_").replace("_", " "))

    def __str__(self) -> str:
        return self.shortDescription() or ""


def run_tests(module: Mapping[str, object]) -> None:
    """Run the functions of a module whose names begin with `test_`, and end the program: status 1 where one fails.

    Args:
        module: Its `globals()`.
    """
    functions = [value for name, value in module.items() if name.startswith("test_") and callable(value)]
    suite = unittest.TestSuite(map(_Test, functions))
    runner = unittest.TextTestRunner(verbosity=2, descriptions=False)
    sys.exit(0 if runner.run(suite).wasSuccessful() else 1)
