"""`pfl report`."""

from starter_kit.commands.app import new_app
from starter_kit.commands.options import RunDirectory
from starter_kit.console import exit_on_problem, print_lines

app = new_app()


@app.command()
def report(run: RunDirectory) -> None:
    """Write RUN/report.html again, from the run's settings and numbers."""
    from starter_kit.reporting.report import write_report

    with exit_on_problem():
        path = write_report(run)
    print_lines(path)
