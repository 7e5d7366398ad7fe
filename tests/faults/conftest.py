"""Sites for the faults, one of each kind as long as it works, and the page with the counts."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.conftest import trained  # noqa: F401  (a fixture)
from tests.faults.back_ends import BackEnds, Kind
from tests.faults.counts import Counts, findings
from tests.faults.page import Result, machine, merged, page, read_results
from tests.faults.scenarios import Scenario
from tests.faults.sites import Site
from tests.faults.traffic import Material, Traffic, make_participants
from tests.faults.trials import Trial

TEAMS = 20
SMALL_DISK_MB = 300
RESERVE_MB = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reliability", type=Path, help="page to write the counts into, with a .json beside it")


def write_page(file: Path, result: Result) -> None:
    """Write the page, and the numbers beside it, with one more result."""
    results = merged(read_results(file.with_suffix(".json")), [result])
    rows = ",\n".join(result.model_dump_json() for result in results)
    file.with_suffix(".json").write_text(f"[\n{rows}\n]\n")
    file.write_text(page(results), encoding="utf-8")


class Running:
    """A site with its back ends and participants."""

    def __init__(self, kind: Kind, home: Path, base: Path, *, small_disk: bool = False) -> None:
        self.kind = kind
        variables = {"PFL_DISK_RESERVE_BYTES": str(RESERVE_MB * 2**20)} if small_disk else {}
        home.mkdir()
        with ExitStack() as opening:
            if small_disk:
                opening.enter_context(_small_disk(home))
            back_ends = opening.enter_context(BackEnds(kind, home))
            self.site = Site(back_ends, base, variables)
            opening.callback(self.site.stop)
            self.site.start()
            self.tokens = make_participants(self.site, TEAMS)
            self._open = opening.pop_all()

    def stop(self) -> None:
        self._open.close()


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of `SMALL_DISK_MB` on the folder."""
    options = ["-t", "tmpfs", "-o", f"size={SMALL_DISK_MB}m", "tmpfs", str(folder)]
    subprocess.run(["mount", *options], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Sites:
    """One site at a time; it serves all scenarios on the same back ends until something is wrong with it."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._folder = folder
        self._base = base
        self._running: Running | None = None

    def site(self, scenario: Scenario, kind: Kind) -> Running:
        running = self._running
        if running is None or running.kind is not kind or scenario.small_disk:
            self.stop()
            home = self._folder / f"site-{len(list(self._folder.iterdir()))}"
            running = self._running = Running(kind, home, self._base, small_disk=scenario.small_disk)
        return running

    def stop(self) -> None:
        """Stop the site; the next scenario gets a new one."""
        if self._running is not None:
            self._running.stop()
            self._running = None


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Iterator[Sites]:  # noqa: F811
    sites = Sites(tmp_path_factory.mktemp("sites"), trained / "base")
    yield sites
    sites.stop()


@pytest.fixture
def counted(
    request: pytest.FixtureRequest,
    sites: Sites,
    trained: Path,  # noqa: F811
    tmp_path: Path,
) -> Callable[[Scenario, Kind], Counts]:
    """Runs a scenario and returns its counts, which the page shows too, or what was found wrong."""
    material = Material(trained / "base", trained / "fedavg" / "communication_log.csv", tmp_path)

    def count(scenario: Scenario, kind: Kind) -> Counts:
        running = sites.site(scenario, kind)
        traffic = Traffic(running.site, material, running.tokens, f"{scenario.name}:")
        trial = Trial(running.site, traffic, trained, tmp_path, running.tokens[0])
        begun, failure = time.monotonic(), ""
        counts: Counts | None = None
        try:
            scenario.inflict(trial)
            counts = traffic.finish()
            failure = "; ".join(findings(counts, failed=scenario.failed))
        except BaseException as error:
            failure = str(error).partition("\n")[0] or type(error).__name__
            raise
        finally:
            traffic.stop()
            result = Result(
                scenario=scenario.name,
                kind=kind,
                counts=counts,
                faults=trial.faults,
                seconds=round(time.monotonic() - begun, 1),
                day=datetime.now(UTC).date(),
                machine=machine(),
                failure=failure,
            )
            if file := request.config.getoption("--reliability", None):
                # At once: a long run may be interrupted.
                write_page(file, result)
            running.site.proxy.on_request = lambda _request: None
            if failure or scenario.small_disk:
                sites.stop()
        assert failure == "", f"{failure}\n{counts}"
        return counts

    return count
