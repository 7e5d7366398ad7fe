"""The providers of imported documents: companies, as their documents spell them."""

from collections import Counter
from collections.abc import Mapping

from starter_kit.data.folding import fold_company
from starter_kit.data.summary import Finding, Findings


def join_spellings(companies: Mapping[str, str], findings: Findings) -> dict[str, str]:
    """Document -> provider. Spellings of one company join under the commonest, or the first of equals."""
    spellings: dict[str, Counter[str]] = {}
    for company in companies.values():
        spellings.setdefault(fold_company(company), Counter())[company] += 1
    names: dict[str, str] = {}
    for folded, counted in spellings.items():
        names[folded] = min(counted, key=lambda spelling: (-counted[spelling], spelling))
        if len(counted) > 1:
            findings.note(Finding.JOINED_SPELLINGS, " = ".join(sorted(counted)))
        if counted.total() == 1:
            findings.note(Finding.ONE_DOCUMENT, names[folded])
    return {document: names[fold_company(company)] for document, company in companies.items()}
