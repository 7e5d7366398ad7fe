"""What the images run, run for real: the compose file's commands and health checks, behind the proxy and TLS."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg2
import pytest
import urllib3

from tests.docker.compose import ROOT, configuration
from tests.docker.containers import Containers
from tests.docker.slow_bodies import SlowBodies, slow_connections, slow_streams
from tests.services.mail import MailServer
from tests.services.ports import free_port
from tests.services.redis import SITE, WORKER, Redis

pytestmark = pytest.mark.e2e

PROCESSES = ["site", "intake", "clock", "mail"]
HOST = "benchmark.test"
# In the container it listens at the usual ports of all addresses.
PROXY_ONLY = {"PFL_HTTP_PORT", "PFL_BIND"}


@dataclass
class Deployed:
    """The running services, and how they are reached."""

    containers: Containers
    services: dict[str, Any]
    web_port: int
    tls_port: int
    mail: MailServer
    replaced: dict[str, str]

    def environment(self, name: str) -> dict[str, str]:
        """A service's environment, its addresses replaced by those of the test's services."""
        own: dict[str, str] = self.services[name]["environment"]
        added = PROXY_ONLY if name == "proxy" else set()
        environment = {key: self.replaced.get(key, own.get(key, "")) for key in own.keys() | added}
        # The site's image adds these two.
        of_image = {
            "DJANGO_SETTINGS_MODULE": "docvqa_site.settings",
            "PFL_HOME": str(self.containers.folder / "home"),
        }
        if name.startswith("worker"):
            return environment | {"PFL_BROKER_URL": environment["PFL_BROKER_URL"].replace(SITE, WORKER)}
        return environment | of_image

    def command(self, name: str) -> list[str]:
        return [
            argument.replace("0.0.0.0:8000", f"127.0.0.1:{self.web_port}").replace(
                "/etc/caddy/Caddyfile", str(ROOT / "docker" / "caddy" / "Caddyfile")
            )
            for argument in self.services[name]["command"]
        ]

    def start(self, name: str) -> None:
        self.containers.start(name, self.command(name), self.environment(name))

    def wait_until_healthy(self, name: str) -> None:
        test = self.services[name]["healthcheck"]["test"]
        self.containers.wait_until_healthy(name, test[1:], self.environment(name))

    def get(self, path: str, **headers: str) -> urllib3.BaseHTTPResponse:
        """Ask through the proxy, whose certificate is verified."""
        authority = self.containers.folder / "caddy" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        with urllib3.HTTPSConnectionPool(
            "127.0.0.1", self.tls_port, server_hostname=HOST, assert_hostname=HOST, ca_certs=str(authority)
        ) as pool:
            return pool.request(
                "GET",
                path,
                headers={"Host": f"{HOST}:{self.tls_port}", **headers},
                redirect=False,
                timeout=30,
            )

    def ask(self, path: str, **headers: str) -> urllib3.BaseHTTPResponse:
        """Ask a web server itself, as a probe does."""
        url = f"http://127.0.0.1:{self.web_port}{path}"
        return urllib3.request("GET", url, headers={"Host": HOST, **headers}, timeout=30)


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    server = os.environ["PFL_TEST_POSTGRES_URL"].rsplit("/", 1)[0]
    database = f"deployed_{uuid4().hex[:8]}"
    connection = psycopg2.connect(f"{server}/postgres")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
    web_port, tls_port, redis = free_port(), free_port(), Redis(is_closed=True)
    services = configuration(PFL_SITE_HOST=f"{HOST}:{tls_port}", WEB_WORKERS="1")["services"]
    with MailServer() as mail, Containers() as containers:
        replaced = {
            "PFL_DATABASE_URL": f"{server}/{database}",
            "PFL_BROKER_URL": redis.url,
            "PFL_SMTP_URL": f"smtp+plain://127.0.0.1:{mail.port}",
            "PFL_PROBE_URL": f"http://127.0.0.1:{web_port}",
            "PFL_UPSTREAM": f"127.0.0.1:{web_port}",
            "PFL_TLS": "internal",
            "PFL_HTTP_PORT": str(free_port()),
            "PFL_BIND": "127.0.0.1",
            "PFL_STORE_FOLDER": str(containers.folder / "home"),
            "XDG_DATA_HOME": str(containers.folder / "caddy"),
            "XDG_CONFIG_HOME": str(containers.folder / "caddy"),
            "PFL_EVALUATOR_HOME": str(containers.folder / "home"),
            "OMP_NUM_THREADS": "1",
        }
        site = Deployed(containers, services, web_port, tls_port, mail, replaced)
        containers.run("migrate", site.command("migrate"), site.environment("migrate"))
        for name in [*PROCESSES, "proxy", "worker-cpu"]:
            site.start(name)
        for name in PROCESSES:
            site.wait_until_healthy(name)
        containers.wait_for_line("worker-cpu", "ready.")
        yield site
        containers.stop_all()
    redis.stop()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {database} WITH (FORCE)")
    connection.close()


def test_the_whole_site_is_ready(deployed: Deployed) -> None:
    answer = deployed.ask("/readyz")
    assert set(answer.json()["checks"].values()) == {"ok"}
    assert answer.status == 200


def test_visitors_are_served_through_the_proxy_by_tls(deployed: Deployed) -> None:
    answer = deployed.get("/")
    assert answer.status == 200
    assert "PFL-DocVQA" in answer.data.decode()
    assert "max-age=31536000" in answer.headers["Strict-Transport-Security"]
    assert len(answer.headers["X-Request-ID"]) >= 24
    assert {"Server", "Via"} & answer.headers.keys() == set()


def test_log_in_works_through_the_proxy(deployed: Deployed) -> None:
    answer = deployed.get("/account/login/")
    assert answer.status == 200
    assert "__Host-csrftoken=" in answer.headers["Set-Cookie"]
    assert "Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("opening", [slow_connections, slow_streams])
def test_bodies_that_never_arrive_take_no_thread_of_the_site(
    deployed: Deployed, opening: Callable[[str, int, int], AbstractContextManager[SlowBodies]]
) -> None:
    # More than the site has threads.
    with opening(HOST, deployed.tls_port, 40) as slow:
        slow.drip()
        assert deployed.get("/account/login/").status == 200
        slow.drip()


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/healthz"])
def test_what_is_for_the_inside_stays_inside(deployed: Deployed, path: str) -> None:
    assert deployed.get(path, Authorization="Bearer metrics-token").status == 404


def test_metrics_are_served_inside_to_the_token(deployed: Deployed) -> None:
    assert deployed.ask("/metrics").status == 404
    answer = deployed.ask("/metrics", Authorization="Bearer metrics-token")
    assert "pfl_runs" in answer.data.decode()


def test_a_visitor_without_tls_is_sent_to_it(deployed: Deployed) -> None:
    answer = urllib3.request(
        "GET", f"http://127.0.0.1:{deployed.web_port}/", headers={"Host": HOST}, redirect=False
    )
    assert answer.status == 301
    assert answer.headers["Location"].startswith("https://")


def test_mail_leaves_by_the_process_of_its_own(deployed: Deployed) -> None:
    command = ["django-admin", "sendtestemail", "ada@example.org"]
    deployed.containers.run("sendtestemail", command, deployed.environment("mail"))
    deployed.containers.wait_for_line("mail", "Delivered mail")
    assert deployed.mail.received[0]["To"] == "ada@example.org"


def test_processes_log_lines_of_json(deployed: Deployed) -> None:
    for name in ("mail", "intake", "worker-cpu"):
        deployed.containers.wait_for_line(name, "{")
        for line in deployed.containers.log(name).splitlines():
            if line.startswith("{"):
                assert {"time", "level", "message"} <= json.loads(line).keys()


def test_a_process_runs_as_the_images_user_and_writes_only_its_folder(deployed: Deployed) -> None:
    if not deployed.containers.isolated:
        pytest.skip("another user and read-only folders need root and the right to make mount namespaces")
    script = f"id -u; touch {ROOT}/written 2>/dev/null && echo wrote; touch home/written && echo wrote own"
    assert deployed.containers.run("id", ["sh", "-c", script], {}).split("\n") == ["10001", "wrote own", ""]


def test_every_process_ends_well_on_sigterm(deployed: Deployed) -> None:
    names = list(deployed.containers.running)
    assert deployed.containers.stop_all() == dict.fromkeys(names, 0)
