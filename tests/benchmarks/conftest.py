"""What the benchmarks print, shown at the end and, with `--performance FILE`, written into a page.

The page has a section for each benchmark file. Those that ran are replaced, others stay as they were: figures of
different machines stand side by side, each with the machine that it comes from.
"""

import importlib
import inspect
import os
import platform
import re
import subprocess
from collections import defaultdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

HEAD = """# Performance

Written by `make benchmark`, which measures everything on this page; nothing is set by hand. Machines differ, and this
one may have been busy, so speeds are stated relative to a named reference in the same run. Trust these ratios, not the
seconds.
"""
SECTION = re.compile(r"<!-- (test_\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)

printed: dict[str, list[str]] = defaultdict(list)
skipped: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--performance", type=Path, help="page to write the figures into")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    module = Path(report.nodeid.split("::")[0]).stem
    if report.when == "call":
        printed[module].append(report.capstdout.strip("\n"))
        if report.failed:
            name = report.nodeid.split("::")[-1]
            printed[module].append(f"{name}: FAILED")
    elif report.skipped and isinstance(report.longrepr, tuple):
        skipped[module] = report.longrepr[2].removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    sections = {module: _text(module, config) for module in sorted({*printed, *skipped})}
    for module, text in sections.items():
        terminalreporter.section(module)
        terminalreporter.write_line(text or skipped.get(module, "nothing printed"))
    page: Path | None = config.getoption("--performance", None)
    if page is not None:
        _write(page, sections)


def _text(module: str, config: pytest.Config) -> str:
    blocks = [block for block in printed[module] if block]
    blocks += _timed_by_the_plugin(module, config)
    return "\n".join(blocks)


def _timed_by_the_plugin(module: str, config: pytest.Config) -> list[str]:
    """The groups of pytest-benchmark: what each contestant took, relative to the first."""
    session = getattr(config, "_benchmarksession", None)
    groups: dict[str, list[Any]] = defaultdict(list)
    for timed in session.benchmarks if session else []:
        if Path(timed.fullname.split("::")[0]).stem == module:
            groups[timed.group].append(timed)
    blocks = []
    for group, contestants in groups.items():
        first = contestants[0].stats.min
        rows = [
            f"    {_contestant(timed):<34}{timed.stats.min:10.4f} s  {timed.stats.min / first:8.2f}"
            for timed in contestants
        ]
        blocks.append("\n".join([f"{group} (least time, relative to the first)", *rows]))
    return blocks


def _contestant(timed: Any) -> str:
    params = timed.params or {}
    return str(params.get("accountant") or params.get("calibration") or "ours")


def read_page(page: Path) -> dict[str, str]:
    """The sections of the page by their benchmark file; none where there is no page."""
    return dict(SECTION.findall(page.read_text(encoding="utf-8"))) if page.exists() else {}


def _write(page: Path, sections: dict[str, str]) -> None:
    old = read_page(page)
    new = {
        module: f"## {_title(module)}\n\n{_measured(text) if text else 'Not measured yet.'}\n\n"
        for module, text in sections.items()
        if module not in old or text
    }
    write_page(page, {**old, **new})


def write_page(page: Path, sections: dict[str, str]) -> None:
    """Write the sections so that `read_page` finds them again."""
    body = "".join(f"\n<!-- {module} -->\n{text}<!-- end -->\n" for module, text in sorted(sections.items()))
    page.write_text(HEAD + body, encoding="utf-8")


def _title(module: str) -> str:
    """The first sentence of the benchmark's docstring."""
    text = inspect.getdoc(importlib.import_module(f"tests.benchmarks.{module}")) or module
    return re.split(r"[:.](?:\s|$)", text)[0].replace("\n", " ")


def _measured(text: str) -> str:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {memory_gb:.0f} GB, {_accelerator()}"
    software = f"Python {platform.python_version()}, PyTorch {version('torch')}"
    return f"{datetime.now(UTC):%B %-d, %Y}, {_commit()}{machine}; {software}.\n\n```text\n{text}\n```"


def _commit() -> str:
    """The commit that was measured, marked where files differ from it; empty outside a repository."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty= with changes"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"commit {found.stdout.strip()}, "


def _processor() -> str:
    """The processor's name, with family and model, as a cloud gives generations of processors one name."""
    try:
        facts = dict(re.findall(r"(\S.*?)\s*: (.*)", Path("/proc/cpuinfo").read_text()))
        return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"
    except (OSError, KeyError):
        return platform.machine()


def _accelerator() -> str:
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else "no GPU"
