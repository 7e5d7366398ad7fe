"""What to cite: the papers of the data set, its documents and the competition, and this software in its version."""

from dataclasses import dataclass

from docvqa_site.ui.bibtex import entry
from evaluator.messages.jobs import evaluator_version

TITLE = "PFL-DocVQA benchmark: privacy-preserving federated document visual question answering"
AUTHORS = "The PFL-DocVQA benchmark authors"


@dataclass(frozen=True)
class Paper:
    """A publication. BibTeX reads Unicode, so names are as their owners write them.

    Attributes:
        key: Of its BibTeX entry.
        venue: The kind of its entry, the field that names where it appeared, and that name.
        doi: Empty where it has none.
        arxiv: The number of its preprint.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    venue: tuple[str, str, str]
    arxiv: str
    doi: str = ""

    @property
    def url(self) -> str:
        return f"https://doi.org/{self.doi}" if self.doi else f"https://arxiv.org/abs/{self.arxiv}"

    @property
    def in_words(self) -> str:
        """The citation as text, without its address."""
        return f"{', '.join(self.authors)}. {self.title}. {self.venue[2]}, {self.year}."

    @property
    def bibtex(self) -> str:
        kind, field, venue = self.venue
        fields = {
            "title": f"{{{self.title}}}",
            "author": " and ".join(self.authors),
            field: venue,
            "year": str(self.year),
            "doi": self.doi,
            "eprint": self.arxiv,
            "eprinttype": "arxiv",
            "url": self.url,
        }
        return entry(self.key, {name: value for name, value in fields.items() if value}, kind)


DATA_PAPER = Paper(
    key="tito2024privacy",
    title="Privacy-Aware Document Visual Question Answering",
    authors=(
        "Rubèn Tito",
        "Khanh Nguyen",
        "Marlon Tobaben",
        "Raouf Kerkouche",
        "Mohamed Ali Souibgui",
        "Kangsoo Jung",
        "Joonas Jälkö",
        "Vincent Poulain D'Andecy",
        "Aurelie Joseph",
        "Lei Kang",
        "Ernest Valveny",
        "Antti Honkela",
        "Mario Fritz",
        "Dimosthenis Karatzas",
    ),
    year=2024,
    venue=("inproceedings", "booktitle", "Document Analysis and Recognition – ICDAR 2024"),
    doi="10.1007/978-3-031-70552-6_12",
    arxiv="2312.10108",
)
COMPETITION_PAPER = Paper(
    key="tobaben2024neurips",
    title="NeurIPS 2023 Competition: Privacy Preserving Federated Learning Document VQA",
    authors=(
        "Marlon Tobaben",
        "Mohamed Ali Souibgui",
        "Rubèn Tito",
        "Khanh Nguyen",
        "Raouf Kerkouche",
        "Kangsoo Jung",
        "Joonas Jälkö",
        "Lei Kang",
        "Andrey Barsky",
        "Vincent Poulain d'Andecy",
        "Aurélie Joseph",
        "Aashiq Muhamed",
        "Kevin Kuo",
        "Virginia Smith",
        "Yusuke Yamasaki",
        "Takumi Fukami",
        "Kenta Niwa",
        "Iifan Tyou",
        "Hiro Ishii",
        "Rio Yokota",
        "Ragul N",
        "Rintu Kutum",
        "Josep Lladós",
        "Ernest Valveny",
        "Antti Honkela",
        "Mario Fritz",
        "Dimosthenis Karatzas",
    ),
    year=2024,
    venue=("misc", "howpublished", "arXiv preprint"),
    arxiv="2411.03730",
)
DOCUMENTS_PAPER = Paper(
    key="simsa2023docile",
    title="DocILE Benchmark for Document Information Localization and Extraction",
    authors=(
        "Štěpán Šimsa",
        "Milan Šulc",
        "Michal Uřičář",
        "Yash Patel",
        "Ahmed Hamdi",
        "Matěj Kocián",
        "Matyáš Skalický",
        "Jiří Matas",
        "Antoine Doucet",
        "Mickaël Coustaty",
        "Dimosthenis Karatzas",
    ),
    year=2023,
    venue=("inproceedings", "booktitle", "Document Analysis and Recognition – ICDAR 2023"),
    arxiv="2302.05658",
)

# By what they are about.
PAPERS = {
    "The data set": DATA_PAPER,
    "The documents of the data set": DOCUMENTS_PAPER,
    "The competition": COMPETITION_PAPER,
}


def bibtex(address: str, year: int) -> str:
    """Return the BibTeX entry of the benchmark; braces keep the capitals of its names."""
    fields = {
        "title": f"{{PFL-DocVQA}} {TITLE.removeprefix('PFL-DocVQA ')}",
        "author": f"{{{AUTHORS}}}",
        "year": str(year),
        "version": evaluator_version(),
        "url": address,
    }
    return entry("pfl_docvqa_benchmark", fields)


def in_words(address: str, year: int) -> str:
    """Return the citation of the benchmark as text."""
    return f"{AUTHORS}. {TITLE}. Version {evaluator_version()}, {year}. {address}"
