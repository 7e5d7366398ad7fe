"""The sections of a proof that answer the questions of the checklist, found by the words of their headings."""

import re
from collections.abc import Iterable, Mapping

from docvqa_site.proofs.outline import Section

WORD = re.compile(r"\w+")
# By the key of a question: the words of a section's heading, the fittest first. Proofs of the kit's methods, and the
# outline that the kit writes, have a section for each subject that no other word here names.
WORDS: Mapping[str, tuple[str, ...]] = {
    "unit": ("unit", "adjacency"),
    "adversary": ("adversary", "threat"),
    "releases": ("releases", "outputs", "adversary"),
    "sensitivity": ("sensitivity", "clipping"),
    "isolation": ("isolation", "sensitivity"),
    "noise": ("noise",),
    "adaptivity": ("adaptivity", "adaptive", "composition"),
    "new_mechanisms": ("postprocessing", "processing", "sensitivity"),
    "sampling": ("sampling",),
    "empty_rounds": ("empty", "normalizer", "sampling"),
    "composition": ("composition",),
    "conversion": ("conversion", "accounting", "composition"),
    "recomputed": ("accounting", "composition"),
    "tuning": ("tuning", "hyperparameters", "composition"),
    "multiple_releases": ("joint", "budgets", "composition"),
    "code": ("code", "implementation"),
}


def sections_by_question(sections: Iterable[Section]) -> dict[str, Section]:
    """Return the section that each question leads to, of those questions for which the proof has one.

    Of several headings with the same word, the shortest is about it alone.
    """
    listed = [(WORD.findall(section.title.lower()), section) for section in sections]
    found: dict[str, Section] = {}
    for key, words in WORDS.items():
        for word in words:
            fitting = [(len(title), place) for place, (title, _) in enumerate(listed) if word in title]
            if fitting:
                found[key] = listed[min(fitting)[1]][1]
                break
    return found
