"""`pfl report`."""

from starter_kit.commands.options import RunDirectory
from starter_kit.console import print_lines


def report(run: RunDirectory) -> None:
    """Write RUN/report.html again, from the run's settings and numbers."""
    from starter_kit.reporting.report import write_report

    path = write_report(run)
    print_lines(path)
