"""The compose file's services from the images, and a run of each track through the proxy to a rank.

Started by `make images` in namespaces of its own: the networks and names that it makes end with it.
"""

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.docker.compose import PROGRAM, VALUES
from tests.images.build import BUILT, DOCKER, ROOT, Built
from tests.images.containers import ContainerError, Containers
from tests.images.networks import ip
from tests.images.page import page
from tests.images.visitor import Visitor, VisitorError
from tests.services.mail import MailServer

FOLDER = ROOT / "var" / "images"
HOST = "benchmark.test"
USER = 10001
TEST_SET, REFERENCE = "pfl-docvqa", "vt5-base"
# Where the proxy keeps the certificate of its own authority, and where a worker finds the copy.
AUTHORITY = Path("caddy") / "pki" / "authorities" / "local" / "root.crt"
WORKER_TRUSTS = "REQUESTS_CA_BUNDLE=/var/lib/pfl/references/root.crt\n"
FORMS = ("--providers", "80", "--valid-forms", "10", "--test-forms", "20")
SMALL = ("--set", "rounds=1", "--set", "local.max_steps=1")
THRESHOLD = 0.3
DESCRIBED = ("--proof", "proof.md", "--description", "The baseline, by the kit's image.")
# What takes part: the method, its settings, the track.
RUNS = {
    "track-1": ("fedavg", SMALL, ()),
    "track-2": ("fl-provider-dp", (*SMALL, "--set", "target_epsilon=8"), DESCRIBED),
}


def fill_in(example: str, values: dict[str, str]) -> str:
    """Return env.example with these values in place of its own."""
    return re.sub(
        r"^(\w+)=(.*)$", lambda line: f"{line[1]}={values.get(line[1], line[2])}", example, flags=re.M
    )


def configuration(folder: Path) -> dict[str, Any]:
    """Return the compose file of a folder, with its .env, as Docker Compose reads it."""
    command = [str(PROGRAM), "--project-directory", str(folder), "--file", str(folder / "compose.yaml")]
    printed = subprocess.run(
        [*command, "--profile", "redis", "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    parsed: dict[str, Any] = json.loads(printed)
    return parsed


class Competition:
    """A competition on the compose file's services, and what is measured on the way."""

    def __init__(self, folder: Path, built: Built, mail_port: int) -> None:
        self.docker = folder / "docker"
        self.work = folder / "work"
        self.ranks: dict[str, str] = {}
        self.data_sha256 = ""
        # Without the values and files of somebody who runs a site from here.
        theirs = shutil.ignore_patterns(".env", "site.env", "worker.env", "worker")
        shutil.copytree(DOCKER, self.docker, ignore=theirs)
        self.work.mkdir()
        shutil.copy(ROOT / "docs" / "proofs" / "fl-provider-dp.md", self.work / "proof.md")
        for name in ("references", "test_sets"):
            (self.docker / "worker" / name).mkdir(parents=True)
        passwords = ("PFL_SECRET_KEY", "POSTGRES_PASSWORD", "PFL_METRICS_TOKEN", "BROKER_SITE_PASSWORD")
        # The example makes the broker's addresses of its passwords.
        own = {name: value for name, value in VALUES.items() if not name.endswith("BROKER_URL")}
        values = own | {
            **{name: secrets.token_urlsafe(48) for name in (*passwords, "BROKER_WORKER_PASSWORD")},
            "PFL_SITE_HOST": HOST,
            "PFL_SMTP_URL": f"smtp+plain://smtp:{mail_port}",
            "WEB_WORKERS": "2",
            "WORKER_THREADS": "1",
        }
        example = (DOCKER / "env.example").read_text()
        (self.docker / ".env").write_text(fill_in(example, values))
        services = self.services()
        # What visitors reach are the ports that a service publishes.
        for service in services.values():
            if "ports" in service:
                service["networks"]["visitors"] = {"aliases": [HOST]}
        self.containers = Containers(services, built.stand_ins, folder, {"outside": "smtp"})

    def services(self) -> dict[str, Any]:
        """Return the compose file's services, and the starter kit as its Dockerfile says that it is run."""
        services: dict[str, Any] = configuration(self.docker)["services"]
        work = {"type": "bind", "source": str(self.work), "target": "/work"}
        kit = {"image": "pfl-docvqa/kit:latest", "user": f"{USER}:{USER}", "volumes": [work], "restart": "no"}
        return {
            **services,
            "kit": {**kit, "networks": {"visitors": None}, "environment": {"OMP_NUM_THREADS": "1"}},
        }

    def take_place(self, mails: MailServer) -> None:
        with step("Drawing forms and base weights with the kit"):
            self.draw()
        with step("Starting the services"):
            self.start()
        with step("An account, a team and a token, through the proxy"):
            self.join(mails)
        for track in RUNS:
            with step(f"A run of {track}: trained, uploaded, evaluated"):
                self.take_part(track)

    def draw(self) -> None:
        """Draw forms, and put the base weights and the secret test set where the compose file has the worker look."""
        os.chown(self.work, USER, USER)
        self.containers.run(
            "kit", "data", "forms", "data", "--providers", "80", "--valid-forms", "10", "--test-forms", "20"
        )
        self.containers.run("kit", "base", "create", "base")
        worker = self.docker / "worker"
        shutil.copytree(self.work / "base", worker / "references" / REFERENCE)
        (self.work / "data" / "secret").rename(worker / "test_sets" / TEST_SET)
        self.data_sha256 = self.containers.run("kit", "data", "manifest", "data/public").strip()

    def start(self) -> None:
        """Start all services; the workers trust the proxy's own authority."""
        self.containers.up("redis", "proxy")
        certificate = self.containers.volume("proxy") / AUTHORITY
        for place in (self.work, self.docker / "worker" / "references"):
            shutil.copy(certificate, place)
            (place / certificate.name).chmod(0o644)
        (self.docker / "worker.env").write_text(WORKER_TRUSTS)
        worker = configuration(self.docker)["services"]["worker-cpu"]
        self.containers.services["worker-cpu"]["environment"].update(worker["environment"])
        self.containers.up("intake", "clock", "mail", "worker-cpu")
        overrides = (f"track-1.anls_threshold={THRESHOLD}", f'track-2.data_sha256="{self.data_sha256}"')
        words = [word for override in overrides for word in ("--set", override)]
        self.containers.run("migrate", "django-admin", "load_tracks", "--publish", *words)

    def join(self, mails: MailServer) -> None:
        """Sign up, make a team, and give the kit a token of it."""
        hosts = FOLDER / "hosts"
        address = self.containers.networks.address("visitors", "proxy")
        hosts.write_text(f"127.0.0.1 localhost\n{address} {HOST}\n")
        subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
        visitor = Visitor(f"https://{HOST}", self.work / AUTHORITY.name)
        visitor.sign_up("ada@example.org", "Ada", mails.received)
        visitor.send("/team/create/", name="Team Ada")
        self.containers.services["kit"]["environment"].update(
            PFL_SITE=visitor.url,
            PFL_TOKEN=visitor.create_token(),
            REQUESTS_CA_BUNDLE=f"/work/{AUTHORITY.name}",
        )
        self.containers.run("kit", "key", "create")

    def take_part(self, track: str) -> None:
        """Train a run with the kit, submit it, and wait for its rank."""
        method, settings, files = RUNS[track]
        run = f"save/{track}"
        self.containers.run(
            "kit", "train", method, "--data", "data/public", "--base", "base", "--out", run, *settings
        )
        printed = self.containers.run(
            "kit", "submit", run, "--track", track, "--title", method, *files, "--wait"
        )
        found = re.search(r"#\d+ of \d+", printed)
        if found is None:
            raise ContainerError(f"{track}: no rank is printed, but:\n{printed[-4000:]}")
        self.ranks[track] = found.group()
        say(f"      {method}: {found.group()}")
        self.containers.check()


class step:  # noqa: N801  (used like a function)
    """Say what is done, and then how long it took."""

    def __init__(self, title: str) -> None:
        say(title)

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            say(f"      done in {time.monotonic() - self._begun:.0f} s")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page to write")
    options = parser.parse_args()
    built = Built.model_validate_json(BUILT.read_text())
    folder = FOLDER / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ip("link", "set", "lo", "up")
    # All addresses of this process: those that the containers' networks get.
    with MailServer(host="0.0.0.0") as mails:
        competition = Competition(folder, built, mails.port)
        try:
            with competition.containers:
                competition.take_place(mails)
                statuses = competition.containers.stop()
        except (ContainerError, VisitorError) as error:
            say(f"\n{error}\nLogs: {folder / 'logs'}")
            return 1
    say(f"Exit statuses: {statuses}")
    options.page.write_text(
        page(built, competition.containers.start_s, competition.ranks, datetime.now(UTC).date())
    )
    say(f"Written to {options.page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
