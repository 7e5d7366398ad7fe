"""What `make images` starts is what the compose file says: its containers, and the values that it is filled in with."""

import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.docker.compose import VALUES, configuration
from tests.images.build import DOCKER, ROOT, Built, Image
from tests.images.containers import probe_of, process_of, resources_of
from tests.images.page import page
from tests.images.run import configuration as of_folder
from tests.images.run import fill_in

IMAGE = {"User": "10001:10001", "Env": ["PATH=/opt/pfl/bin"], "Entrypoint": ["pfl"], "Cmd": ["--help"]}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = configuration()["services"]
    return services


def test_a_container_gets_the_compose_files_command_environment_user_and_rights(
    services: dict[str, Any],
) -> None:
    proxy = process_of(services["proxy"], {"Env": ["PATH=/usr/bin"]}, [])
    assert proxy["args"] == ["caddy", "run", "--config", "/etc/caddy/Caddyfile"]
    assert {"PATH=/usr/bin", "PFL_UPSTREAM=site:8000"} <= set(proxy["env"])
    assert proxy["user"] == {"uid": 10001, "gid": 0}
    assert proxy["capabilities"] == {"bounding": ["CAP_NET_BIND_SERVICE"], "permitted": [], "effective": []}
    assert proxy["noNewPrivileges"]
    redis = process_of(services["redis"], {}, [])
    assert redis["user"] == {"uid": 0, "gid": 0}
    assert "CAP_SETUID" in redis["capabilities"]["effective"]
    assert not redis["noNewPrivileges"]
    assert resources_of(services["worker-cpu"])["memory"] == {"limit": 16 * 2**30}
    assert resources_of(services["worker-cpu"])["pids"] == {"limit": 512}


def test_an_image_says_what_the_compose_file_leaves_open() -> None:
    process = process_of({"image": "kit"}, IMAGE, ["data", "forms"])
    assert process["args"] == ["pfl", "data", "forms"]
    assert process["user"] == {"uid": 10001, "gid": 10001}
    assert process_of({"image": "kit"}, IMAGE, [])["args"] == ["pfl", "--help"]


def test_health_checks_run_as_a_container_engine_runs_them(services: dict[str, Any]) -> None:
    assert probe_of(services["intake"]) == ["python", "-m", "docvqa_site.operations.probe", "intake"]
    shell, option, text = probe_of(services["redis"])
    assert (shell, option) == ("sh", "-c")
    assert text.startswith("REDISCLI_AUTH=$BROKER_SITE_PASSWORD ")
    assert probe_of(services["proxy"]) == []


def test_the_example_of_the_environment_is_all_that_the_compose_file_needs(tmp_path: Path) -> None:
    folder = tmp_path / "docker"
    shutil.copytree(DOCKER, folder)
    # Addresses of the broker are made of the passwords, as the example says.
    values = {name: value for name, value in VALUES.items() if not name.endswith("BROKER_URL")}
    (folder / ".env").write_text(fill_in((DOCKER / "env.example").read_text(), values))
    (folder / "worker.env").write_text("REQUESTS_CA_BUNDLE=/var/lib/pfl/references/root.crt\n")
    services = of_folder(folder)["services"]
    site, worker = services["site"]["environment"], services["worker-cpu"]["environment"]
    assert site["PFL_BROKER_URL"] == VALUES["PFL_BROKER_URL"]
    assert site["PFL_SITE_URL"] == "https://benchmark.test"
    assert worker["PFL_BROKER_URL"] == VALUES["PFL_WORKER_BROKER_URL"]
    assert worker["REQUESTS_CA_BUNDLE"] == "/var/lib/pfl/references/root.crt"


def test_the_page_has_sizes_start_times_and_ranks() -> None:
    built = Built(
        images=[Image(name="localhost/pfl-docvqa/site:latest", size="870 MB", seconds=61.4)],
        stand_ins={"redis": "localhost/pfl-docvqa/stand-in-redis:latest"},
    )
    text = page(built, {"site": 7.26}, {"track-1": "#1 of 1"}, date(2026, 11, 28))
    assert "| pfl-docvqa/site:latest | 870 MB | 61 s |\n" in text
    assert "| site | 7.3 s |\n" in text
    assert "| track-1 | #1 of 1 |\n" in text
    assert "something else stood in for: redis." in text


# What a Dockerfile copies from the source, besides the pins.
COPIED = re.compile(r"^COPY (?!--from)(.+) /source/\S*$", re.MULTILINE)


@pytest.mark.parametrize(
    ("image", "folders"), [("site", [".", "platform"]), ("worker", ["."]), ("kit", ["."])]
)
def test_what_an_image_copies_is_enough_to_build_its_wheels(
    tmp_path: Path, image: str, folders: list[str]
) -> None:
    copied = " ".join(COPIED.findall((DOCKER / f"{image}.Dockerfile").read_text())).split()
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(copied) <= set(allowed)
    source = tmp_path / "source"
    source.mkdir()
    for name in copied:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    for folder in folders:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "wheel")]
        built = subprocess.run(command, cwd=source / folder, text=True, capture_output=True, check=False)
        assert built.returncode == 0, built.stderr
    assert len(list((tmp_path / "wheel").iterdir())) == len(folders)
