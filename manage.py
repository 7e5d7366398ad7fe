#!/usr/bin/env python
"""Django's command line for the site."""

import os
import sys
from pathlib import Path


def main() -> None:
    # The site is importable before anything is installed; `platform/` itself is never a package.
    sys.path.insert(0, str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docvqa_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
