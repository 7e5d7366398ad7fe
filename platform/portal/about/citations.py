"""How to cite the benchmark, in the version that the site runs."""

from evaluator.contracts import evaluator_version

TITLE = "PFL-DocVQA benchmark: privacy-preserving federated document visual question answering"
AUTHORS = "The PFL-DocVQA benchmark authors"


def bibtex(address: str, year: int) -> str:
    """Return the BibTeX entry of the benchmark; braces keep the capitals of its names."""
    return "\n".join(
        [
            "@misc{pfl_docvqa_benchmark,",
            f"  title        = {{{{PFL-DocVQA}} {TITLE.removeprefix('PFL-DocVQA ')}}},",
            f"  author       = {{{{{AUTHORS}}}}},",
            f"  year         = {{{year}}},",
            f"  version      = {{{evaluator_version()}}},",
            f"  howpublished = {{\\url{{{address}}}}},",
            "}",
        ]
    )


def in_words(address: str, year: int) -> str:
    """Return the citation as text."""
    return f"{AUTHORS}. {TITLE}. Version {evaluator_version()}, {year}. {address}"
