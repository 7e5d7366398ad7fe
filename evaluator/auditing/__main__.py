"""`make audit`: simulate audits, and write docs/auditing.md."""

import sys
from pathlib import Path

from evaluator.auditing.page import page
from evaluator.auditing.simulation import simulate

if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page(list(simulate())), encoding="utf-8")
    sys.stdout.write(f"{target}: written\n")
