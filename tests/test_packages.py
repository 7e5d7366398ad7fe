"""The two distributions that this repository gives: the evaluator with the starter kit, and the site."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import grimp
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "platform"
# Folders of the repository by their place in each wheel.
CONTENT = {
    "pfl_docvqa_benchmark": {
        "evaluator": "evaluator",
        "starter_kit": "starter_kit",
        "docs/proofs": "starter_kit/proofs",
    },
    "pfl_docvqa_site": {"platform/docvqa_site": "docvqa_site", "docs": "docvqa_site/docs/pages"},
}
METADATA = {"METADATA", "RECORD", "WHEEL", "licenses/LICENSE", "licenses/NOTICE"}


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def repository_files(folder: str) -> set[str]:
    """Return what git has in a folder, or would add, relative to that folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT / folder, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    return {name for name in listed.split("\0") if name and (ROOT / folder / name).exists()}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    built = [
        next(WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"]))
        for root in (ROOT, SITE)
    ]
    return {Path(path).name.partition("-")[0]: Path(path) for path in built}


@pytest.mark.parametrize("name", CONTENT)
def test_a_wheel_has_the_files_of_its_folders_and_no_others(name: str, wheels: dict[str, Path]) -> None:
    expected = {
        f"{place}/{file}" for folder, place in CONTENT[name].items() for file in repository_files(folder)
    }
    assert len(expected) > 500
    about = f"{name}-{project(ROOT)['version']}.dist-info/"
    expected |= {about + file for file in METADATA}
    if name == "pfl_docvqa_benchmark":
        expected.add(about + "entry_points.txt")
    with ZipFile(wheels[name]) as wheel:
        assert set(wheel.namelist()) == expected
    # What only writes a page of results, or only serves tests, is no part of the product.
    assert not [path for path in expected if {"tests", "studies"} & set(path.split("/"))]


def test_the_unpacked_wheels_run_without_the_repository(tmp_path: Path, wheels: dict[str, Path]) -> None:
    for path in wheels.values():
        with ZipFile(path) as wheel:
            wheel.extractall(tmp_path)
    check = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import docvqa_site.celery, evaluator.worker, starter_kit, platform, uuid\n"
        "from docvqa_site.docs.library import folder\n"
        "from starter_kit.reporting.kit_proofs import INSTALLED, kit_proof\n"
        "assert platform.system()\n"
        "assert kit_proof('fl-provider-dp').covers\n"
        "print(*(module.__file__ for module in (docvqa_site, evaluator, starter_kit)), folder(), INSTALLED, sep='\\n')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert [line for line in ran.stdout.splitlines() if not line.startswith(str(tmp_path))] == []


# Whose modules need which extras of which distribution. A module that only one optional feature needs counts as well.
OPTIONAL = ["docile", "flower", "leakage", "parquet", "tensorboard", "wandb"]
NEEDED = {
    "docvqa_site": (SITE, []),
    "evaluator": (ROOT, ["worker"]),
    "starter_kit": (ROOT, ["kit", *OPTIONAL]),
}


def installed_with(folder: Path, extras: list[str]) -> set[str]:
    """Return the distributions that an installation brings, with those that they need themselves."""
    stated = project(folder)
    texts = [*stated["dependencies"], *chain(*(stated["optional-dependencies"][extra] for extra in extras))]
    waiting, found = [Requirement(text) for text in texts], set()
    while waiting:
        wanted = waiting.pop()
        if (canonicalize_name(wanted.name), extras_key := frozenset(wanted.extras)) in found:
            continue
        found.add((canonicalize_name(wanted.name), extras_key))
        if wanted.name == project(ROOT)["name"]:
            waiting += map(Requirement, project(ROOT)["dependencies"])
            continue
        for needed in map(Requirement, requires(wanted.name) or []):
            if any(
                needed.marker is None or needed.marker.evaluate({"extra": extra})
                for extra in ["", *extras_key]
            ):
                waiting.append(needed)
    return {name for name, _ in found}


@pytest.mark.parametrize("package", NEEDED)
def test_a_package_imports_only_what_its_installation_brings(package: str) -> None:
    graph = grimp.build_graph(
        *NEEDED, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )
    modules = {
        module.partition(".")[0]
        for module in graph.find_upstream_modules(package, as_package=True)
        if graph.is_module_squashed(module)
    }
    distributions = packages_distributions()
    imported = {canonicalize_name(distributions[module][0]) for module in modules - sys.stdlib_module_names}
    assert imported - installed_with(*NEEDED[package]) <= {"ipython"}, "Jupyter brings it"


def test_the_extra_verify_is_enough_to_verify_a_board_and_says_what_other_verbs_need() -> None:
    allowed = installed_with(ROOT, ["verify"])
    others = {
        module
        for module, distributions in packages_distributions().items()
        if not allowed & set(map(canonicalize_name, distributions))
        and module not in ("evaluator", "starter_kit", "docvqa_site")
    }
    run = (
        f"import sys; others = {others!r}\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in others: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import importlib.util; found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name in others else found(name, *rest)\n"
        "from starter_kit.commands.main import main\n"
        "sys.argv[1:] = sys.stdin.read().split()\n"
        "main()"
    )
    assert "torch" in others

    def ended(call: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", run], input=call, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stderr

    status, problem = ended("verify http://127.0.0.1:9")
    assert (status, problem.partition(":")[0]) == (2, "E_SITE_UNREACHABLE"), problem
    status, problem = ended("train fedavg")
    assert status == 2
    assert problem.startswith("E_CONFIGURATION: `pfl train` needs the whole starter kit.")


def test_all_that_states_the_version_agrees() -> None:
    version = project(ROOT)["version"]
    assert project(SITE)["version"] == version
    assert f"pfl-docvqa-benchmark=={version}" in project(SITE)["dependencies"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_both_distributions_have_the_same_license(name: str) -> None:
    assert (SITE / name).read_bytes() == (ROOT / name).read_bytes()


def test_torch_is_a_range_in_the_metadata_and_pinned_in_the_constraints() -> None:
    extras = project(ROOT)["optional-dependencies"]
    ranges = {text for text in chain(*extras.values()) if re.match(r"torch\b", text)}
    assert len(ranges) == 1
    pinned = re.search(r"^torch==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    allowed = Requirement(ranges.pop()).specifier
    assert Version(pinned) in allowed
    assert Version("3") not in allowed


def test_every_python_version_of_the_metadata_is_tested_by_ci() -> None:
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tested = ci["jobs"]["test"]["strategy"]["matrix"]["python"]
    for folder in (ROOT, SITE):
        stated = re.findall(
            r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(project(folder)["classifiers"]), re.M
        )
        assert stated == tested
        assert project(folder)["requires-python"] == f">={tested[0]}"
