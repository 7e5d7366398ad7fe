"""How to cite the benchmark, in the version that the site runs."""

from evaluator.messages.jobs import evaluator_version
from portal.ui.bibtex import entry

TITLE = "PFL-DocVQA benchmark: privacy-preserving federated document visual question answering"
AUTHORS = "The PFL-DocVQA benchmark authors"


def bibtex(address: str, year: int) -> str:
    """Return the BibTeX entry of the benchmark; braces keep the capitals of its names."""
    fields = {
        "title": f"{{PFL-DocVQA}} {TITLE.removeprefix('PFL-DocVQA ')}",
        "author": f"{{{AUTHORS}}}",
        "year": str(year),
        "version": evaluator_version(),
        "howpublished": rf"\url{{{address}}}",
    }
    return entry("pfl_docvqa_benchmark", fields)


def in_words(address: str, year: int) -> str:
    """Return the citation as text."""
    return f"{AUTHORS}. {TITLE}. Version {evaluator_version()}, {year}. {address}"
