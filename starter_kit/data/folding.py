"""Text reduced to what identifies it, so that spellings of one thing compare equal."""

import re
import unicodedata

# The Malaysian private limited company, as receipts spell it: SDN BHD, SDN. BHD., S/B, SB.
_PRIVATE_LIMITED = re.compile(r"\bs(?:dn\W*bhd|\W?b)\W*$")


def squeeze(text: str) -> str:
    """Return `text` in one letter case and one Unicode form (NFKC), without white space."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def fold_company(name: str) -> str:
    """Return what two spellings of one company's name have in common.

    Conservative: letter case, Unicode form, punctuation, white space and the spelling of a closing SDN BHD are
    folded, and nothing else. A misread letter, another branch in parentheses or BHD against SDN BHD make
    another company. A name of punctuation alone is kept as it is.
    """
    text = unicodedata.normalize("NFKC", name).casefold().strip()
    text = _PRIVATE_LIMITED.sub("sdnbhd", text)
    # Marks (M) are letters' parts in many scripts: dropping them would join different names.
    return "".join(c for c in text if unicodedata.category(c)[0] in "LNM") or text
