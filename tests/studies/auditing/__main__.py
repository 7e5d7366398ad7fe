"""`make audit`: simulate audits, and write docs/auditing.md."""

import sys
from pathlib import Path

from tests.studies.auditing.page import page
from tests.studies.auditing.simulation import simulate

if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page(list(simulate())), encoding="utf-8")
    sys.stdout.write(f"{target}: written\n")
