"""What judges a run: it validates artifacts, recomputes ε and scores ANLS on the secret test set.

The same code runs on the workers and on a participant's machine. It knows nothing of the site.
"""

from importlib.metadata import PackageNotFoundError, version


def evaluator_version() -> str:
    """The version that every score is stamped with."""
    try:
        return version("pfl-docvqa-benchmark")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+source"
