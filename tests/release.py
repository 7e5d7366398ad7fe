"""Builds a release and tries it in empty environments, as participants and organizers would. Run by `make release`.

Into the folder go wheel and source distribution of both packages, the hash-pinned requirements of the kit, a software
bill of materials (CycloneDX) of kit, site and worker, this version's section of the changelog, and the SHA-256 of each
file.
Nothing is written into it before all of it has been tried. The same commit gives the same bytes.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "platform"
REQUIREMENTS = ROOT / "docker" / "requirements"
GUIDE = ROOT / "docs" / "starter-kit.md"


def changes(changelog: str, version: str, *, is_draft: bool) -> str:
    """A version's section of the changelog; that of the changes to come for a draft.

    Raises `SystemExit` where there is none.
    """
    title = "Unreleased" if is_draft else version
    section = re.search(
        rf"^## {re.escape(title)}(?: - \S+)?\n.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None:
        sys.exit(
            f"CHANGELOG.md has no section “{title}”. Give “Unreleased” the name “{version} - <date>”, or try a draft "
            "with make release DRAFT=1."
        )
    return section.group().rstrip() + "\n"


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """What a command printed. Ends the program with its output where it fails."""
    # An installed release must not find the clone beside it.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: exit status {done.returncode}")
    return done.stdout


def build(project_folder: Path, folder: Path) -> Path:
    """Write source distribution and wheel into the folder. Returns the wheel, which the source gives to the byte."""
    commit_time = run("git", "log", "-1", "--format=%ct").strip()
    before = set(folder.iterdir())
    run(
        sys.executable, "-m", "hatchling", "build", "-d", folder,
        cwd=project_folder, SOURCE_DATE_EPOCH=commit_time,
    )  # fmt: skip
    source, wheel = sorted(set(folder.iterdir()) - before, key=lambda path: path.suffix == ".whl")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(source, unpacked, filter="data")
        [project] = Path(unpacked).iterdir()
        again = Path(unpacked) / "again"
        command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", again)
        run(*command, cwd=project, SOURCE_DATE_EPOCH=commit_time)
        if (again / wheel.name).read_bytes() != wheel.read_bytes():
            sys.exit(f"{source.name} gives another wheel than the clone.")
    return wheel


def environment(folder: Path, wheel: Path, torch: list[str]) -> Path:
    """An environment with the wheel and the kit's requirements alone. Returns its `bin`."""
    uv = Path(sys.executable).parent / "uv"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    install = (uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python")
    # Each build of torch has hashes of its own.
    run(*install, "-c", ROOT / "constraints.txt", *torch, "torch")
    run(*install, "--require-hashes", "-r", REQUIREMENTS / "kit.txt")
    run(*install, "--no-deps", wheel)
    run(uv, "pip", "check", "--quiet", "--python", folder / "bin" / "python")
    return folder / "bin"


def try_site(folder: Path, wheels: list[Path], torch: list[str]) -> None:
    """Install the wheels with the pinned versions, without the kit's or the worker's extras, and prepare a site."""
    uv = Path(sys.executable).parent / "uv"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    install = (uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python")
    run(*install, "-c", ROOT / "constraints.txt", *torch, *wheels)
    for command in ("check", "migrate"):
        run(
            folder / "bin" / "django-admin", command,
            cwd=folder, PFL_HOME=str(folder / "site"), DJANGO_SETTINGS_MODULE="docvqa_site.settings",
        )  # fmt: skip


def guided() -> list[str]:
    """The commands of the guide, from nothing to a run whose checks pass."""
    lines = [line.partition("  #")[0].strip() for line in GUIDE.read_text().splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("pfl data "))
    end = next(number for number, line in enumerate(lines) if line.startswith("pfl check "))
    return lines[begin : end + 1]


def first_run(bin_folder: Path, folder: Path) -> None:
    """Run the guide's commands in an empty folder, and print how long each took and what the last one says."""
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    for command in guided():
        since = time.monotonic()
        program, *arguments = command.split()
        printed = run(
            bin_folder / program, *arguments, cwd=folder, PATH=path, PFL_KEY=str(folder / "key.pem")
        )
        print(f"  {command}  # {time.monotonic() - since:.0f} s", flush=True)
    print(printed.rstrip())


def bills_of_materials(folder: Path, kit: Path) -> None:
    """Write what the kit's environment, and the images of site and worker, are made of."""
    cyclonedx = (sys.executable, "-m", "cyclonedx_py")

    def about(project_folder: Path) -> tuple[str | Path, ...]:
        pyproject = project_folder / "pyproject.toml"
        return ("--pyproject", pyproject, "--mc-type", "application", "--output-reproducible")

    output = ("--output-format", "JSON", "--validate", "-o")
    run(*cyclonedx, "environment", kit / "python", *about(ROOT), *output, folder / "sbom-kit.json")
    torch = re.findall(r"^torch==.*\n", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for image, project_folder, without_hash in (("site", SITE, []), ("worker", ROOT, torch)):
        pins = kit / f"{image}.txt"
        pins.write_text((REQUIREMENTS / f"{image}.txt").read_text() + "".join(without_hash))
        run(*cyclonedx, "requirements", pins, *about(project_folder), *output, folder / f"sbom-{image}.json")


def checksums(folder: Path) -> str:
    """Lines as `sha256sum` writes them, which `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="where the release goes; what it has of an earlier one is removed"
    )
    parser.add_argument("--draft", action="store_true", help="take the changelog's Unreleased section")
    parser.add_argument("--torch", default="", help="options of uv that choose the build of torch")
    options = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    notes = changes((ROOT / "CHANGELOG.md").read_text(), version, is_draft=options.draft)
    if not options.draft and run("git", "status", "--porcelain"):
        sys.exit(
            "The clone has changes that aren't committed. Commit them, or try a draft with make release DRAFT=1."
        )
    with tempfile.TemporaryDirectory() as work:
        built, empty = Path(work) / "built", Path(work) / "empty"
        built.mkdir()
        empty.mkdir()
        wheel, site_wheel = (build(folder, built) for folder in (ROOT, SITE))
        begin = time.monotonic()
        bin_folder = environment(Path(work) / "environment", wheel, options.torch.split())
        print(
            f"{wheel.name}: installed in {time.monotonic() - begin:.0f} s; then, in an empty folder,",
            flush=True,
        )
        first_run(bin_folder, empty)
        print(f"From the wheel to a run that passes its checks: {time.monotonic() - begin:.0f} s")
        begin = time.monotonic()
        try_site(Path(work) / "site", [wheel, site_wheel], options.torch.split())
        print(
            f"{site_wheel.name}: installed, checked and migrated in {time.monotonic() - begin:.0f} s",
            flush=True,
        )
        bills_of_materials(built, bin_folder)
        shutil.copy(REQUIREMENTS / "kit.txt", built / "requirements-kit.txt")
        (built / "CHANGES.md").write_text(notes)
        (built / "SHA256SUMS").write_text(checksums(built))
        shutil.rmtree(options.folder, ignore_errors=True)
        shutil.copytree(built, options.folder)
    print(
        "".join(f"{path.stat().st_size:>10,}  {path}\n" for path in sorted(options.folder.iterdir())), end=""
    )


if __name__ == "__main__":
    main()
