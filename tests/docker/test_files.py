"""Dockerfiles, the compose file, the manifests and the alerts, by their own linters and against what they speak of."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.db import connection
from django.test import Client

from docvqa_site.evaluation.models import Evaluation
from docvqa_site.evaluation.queue.places import STEPS
from docvqa_site.liveness.models import Process
from docvqa_site.operations.metrics import exposition
from evaluator.messages.jobs import SCORING_QUEUE, Step
from tests.docker.compose import FILE, ROOT, VALUES, configuration, run_compose
from tests.docvqa_site.factories import make_run

DOCKER = ROOT / "docker"
BIN = Path(sys.executable).parent
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
# Resources of Kubernetes itself; the others are of KEDA and kustomize.
MANIFESTS = [
    path
    for path in sorted((DOCKER / "kubernetes").glob("*.yaml"))
    if path.stem not in {"kustomization", "scaling"}
]
OURS = {"site", "intake", "clock", "mail", "worker-cpu", "worker-cuda"}


def accepts(program: str, *arguments: str | Path) -> None:
    command = [str(BIN / program), *map(str, arguments)]
    result = subprocess.run(command, text=True, capture_output=True, timeout=120, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_a_dockerfile_passes_its_linter(path: Path) -> None:
    accepts("hadolint", path)


def test_yaml_files_pass_their_linter() -> None:
    accepts("yamllint", "--strict", "docker")


def test_the_compose_file_follows_its_schema() -> None:
    accepts("check-jsonschema", "--builtin-schema", "vendor.compose-spec", FILE)


def test_manifests_follow_their_schemas() -> None:
    assert MANIFESTS
    accepts("kubernetes-validate", "--strict", *MANIFESTS)


@pytest.mark.parametrize("name", VALUES)
def test_compose_starts_nothing_without_a_value_that_it_needs(name: str) -> None:
    result = run_compose("config", "--quiet", **{name: ""})
    assert result.returncode != 0
    assert name in result.stderr


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = configuration()["services"]
    return services


class TestCompose:
    def test_nothing_of_ours_may_become_root_or_write_its_root(self, services: dict[str, Any]) -> None:
        for name in {*OURS, "migrate", "proxy"}:
            service = services[name]
            # The group of root may write the folder of certificates in the proxy's image.
            assert service["user"] == ("10001:0" if name == "proxy" else "10001:10001"), name
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name

    def test_a_worker_knows_nothing_of_the_site_and_reaches_no_database(
        self, services: dict[str, Any]
    ) -> None:
        for name in ("worker-cpu", "worker-cuda"):
            worker = services[name]
            assert worker["environment"].keys() == {
                "PFL_BROKER_URL",
                "PFL_EVALUATOR_HOME",
                "PFL_LOG_FORMAT",
                "PFL_SANDBOX",
                "OMP_NUM_THREADS",
            }
            assert worker["networks"].keys().isdisjoint(services["postgres"]["networks"])
            assert "outside" not in worker["networks"]

    def test_a_worker_is_given_the_time_to_finish_its_step(self, services: dict[str, Any]) -> None:
        assert services["worker-cuda"]["stop_grace_period"] == "6h0m0s"

    def test_every_process_that_shows_signs_of_life_is_run_and_watched(
        self, services: dict[str, Any]
    ) -> None:
        for process in Process:
            assert services[process]["healthcheck"]["test"][-1] == process

    def test_only_the_proxy_is_open_to_the_world(self, services: dict[str, Any]) -> None:
        assert [name for name, service in services.items() if "ports" in service] == ["proxy"]

    def test_every_value_is_in_the_example_of_the_environment(self) -> None:
        named = set(re.findall(r"\$\{(\w+)", FILE.read_text()))
        example = (DOCKER / "env.example").read_text()
        assert named <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))

    def test_what_the_example_does_not_name_reaches_site_and_workers(self) -> None:
        written = yaml.safe_load(FILE.read_text())["services"]
        for name in OURS:
            kind = "worker" if name.startswith("worker") else "site"
            assert written[name]["env_file"] == [{"path": f"{kind}.env", "required": False}]

    def test_the_site_has_the_base_weights_of_the_workers(self, services: dict[str, Any]) -> None:
        def source(name: str, target: str) -> str:
            (mount,) = [mount for mount in services[name]["volumes"] if mount["target"] == target]
            assert mount["read_only"]
            return str(mount["source"])

        folder = services["site"]["environment"]["PFL_REFERENCES"]
        assert source("site", folder) == source("worker-cpu", "/var/lib/pfl/references")

    def test_images_of_others_are_pinned_to_a_version(self, services: dict[str, Any]) -> None:
        for name in services.keys() - OURS - {"migrate"}:
            assert re.search(r":\d+\.\d+", services[name]["image"]), name


def pods() -> list[tuple[str, dict[str, Any]]]:
    return [
        (document["metadata"]["name"], document["spec"]["template"]["spec"])
        for path in MANIFESTS
        for document in documents(path)
        if document["kind"] in {"Deployment", "Job"}
    ]


class TestKubernetes:
    @pytest.mark.parametrize(
        ("name", "pod"), pods(), ids=lambda value: value if isinstance(value, str) else ""
    )
    def test_a_pod_may_do_nothing_that_it_does_not_need(self, name: str, pod: dict[str, Any]) -> None:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]

    @pytest.mark.parametrize(
        ("name", "pod"), pods(), ids=lambda value: value if isinstance(value, str) else ""
    )
    def test_a_pod_has_what_its_image_expects(
        self, name: str, pod: dict[str, Any], services: dict[str, Any]
    ) -> None:
        (container,) = pod["containers"]
        registry_and_name = services[name]["image"].partition(":")[0]
        assert container["image"] == registry_and_name
        image = (DOCKER / f"{registry_and_name.partition('/')[2].partition('-')[0]}.Dockerfile").read_text()
        user, group = re.findall(r"^USER (\d+):(\d+)$", image, re.MULTILINE)[-1]
        security = pod["securityContext"]
        assert [security["runAsUser"], security["runAsGroup"], security["fsGroup"]] == [
            int(user), int(group), int(group),
        ]  # fmt: skip
        (home,) = re.findall(r"^ +(?:ENV )?PFL_(?:EVALUATOR_)?HOME=(\S+)", image, re.MULTILINE)[-1:]
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        # The root is read-only, and sandboxes have their folders in /tmp.
        assert not any(mounts[path].get("readOnly") for path in (home, "/tmp"))
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in mounts.values()} == volumes.keys()
        # A full volume ends one pod, a full disk all that are on the node.
        for volume in volumes.values():
            assert "sizeLimit" in volume.get("emptyDir", {"sizeLimit": ""}), volume["name"]
        for port in container.get("ports", []):
            assert f"EXPOSE {port['containerPort']}\n" in image
            assert f"--bind=0.0.0.0:{port['containerPort']}" in container["command"]

    @pytest.mark.parametrize(
        ("name", "pod"), pods(), ids=lambda value: value if isinstance(value, str) else ""
    )
    def test_a_pod_has_the_folders_and_the_time_that_the_compose_file_gives_it(
        self, name: str, pod: dict[str, Any], services: dict[str, Any]
    ) -> None:
        service, (container,) = services[name], pod["containers"]
        shared = {
            mount["target"]: mount["read_only"] for mount in service["volumes"] if mount["type"] == "bind"
        }
        mounted = {
            mount["mountPath"]: mount["readOnly"]
            for mount in container["volumeMounts"]
            if "readOnly" in mount
        }
        missing = shared.items() - mounted.items()
        # On Kubernetes, workers without a GPU score nothing. What doesn't answer visitors compares no weights.
        if name == "worker-cpu":
            assert {path for path, _ in missing} == {"/var/lib/pfl/test_sets"}
        else:
            assert missing == set() or name not in {"site", "worker-cuda"}
        grace = service.get("stop_grace_period", "10s")
        hours, minutes, seconds = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(\d+)s", grace).groups(default=0)
        grace_s = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
        assert pod.get("terminationGracePeriodSeconds", 30) >= grace_s

    def test_services_probes_and_ingresses_lead_to_the_site(self, client: Client, db: None) -> None:
        found = {
            kind: [one for one in documents(DOCKER / "kubernetes" / "site.yaml") if one["kind"] == kind]
            for kind in ("Deployment", "Service", "PodDisruptionBudget", "Ingress")
        }
        (deployment,), (service,), (budget,) = (
            found[kind] for kind in ("Deployment", "Service", "PodDisruptionBudget")
        )
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for selector in (
            deployment["spec"]["selector"]["matchLabels"],
            service["spec"]["selector"],
            budget["spec"]["selector"]["matchLabels"],
        ):
            assert selector.items() <= labels.items()
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} == ports
        (settings,) = documents(DOCKER / "kubernetes" / "settings.yaml")
        host = urlsplit(settings["data"]["PFL_SITE_URL"]).hostname
        for ingress in found["Ingress"]:
            (rule,), (tls,) = ingress["spec"]["rules"], ingress["spec"]["tls"]
            assert [rule["host"], *tls["hosts"]] == [host, host]
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                assert backend["name"] == service["metadata"]["name"]
                assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
        for name in ("readinessProbe", "livenessProbe", "startupProbe"):
            probe = container[name]["httpGet"]
            assert probe["port"] in ports
            assert {header["name"]: header["value"] for header in probe["httpHeaders"]} == {"Host": host}
            assert client.get(probe["path"]).status_code == 200

    def test_the_site_has_every_setting_that_compose_requires(self, services: dict[str, Any]) -> None:
        (settings,) = documents(DOCKER / "kubernetes" / "settings.yaml")
        secrets, *_ = documents(DOCKER / "kubernetes" / "secrets.example.yaml")
        named = settings["data"].keys() | secrets["stringData"].keys()
        composed = {name for name, value in services["site"]["environment"].items() if value}
        # The proxy that sends files of a folder store, and the health check of the compose file.
        assert composed - named == {"PFL_ACCEL_PREFIX", "PFL_PROBE_URL"}

    def test_all_processes_of_the_compose_file_run_here_by_the_same_commands(self) -> None:
        services = configuration()["services"]
        commands = {name: pod["containers"][0]["command"] for name, pod in pods()}
        for name in {"intake", "clock", "mail", "migrate", "worker-cuda"}:
            assert commands[name] == services[name]["command"]
        without_number = {argument for argument in commands["site"] if "--workers" not in argument}
        assert without_number <= set(services["site"]["command"])

    def test_keda_wakes_the_workers_that_take_a_step(self, db: None) -> None:
        (_, *scaled) = documents(DOCKER / "kubernetes" / "scaling.yaml")
        queries = {one["metadata"]["name"]: one["spec"]["triggers"][0]["metadata"]["query"] for one in scaled}
        evaluation = Evaluation.objects.create(run=make_run(state="running"), attempt=1, step="validate")
        for step in Step:
            Evaluation.objects.filter(pk=evaluation.pk).update(step=step)
            counted = {}
            for name, query in queries.items():
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    (counted[name],) = cursor.fetchone()
            takes_gpu = step in STEPS[SCORING_QUEUE]
            assert counted == {"worker-cuda": int(takes_gpu), "worker-cpu": int(not takes_gpu)}, step

    def test_prometheus_asks_for_a_name_that_the_site_has(self) -> None:
        (settings,) = documents(DOCKER / "kubernetes" / "settings.yaml")
        (namespace,) = documents(DOCKER / "kubernetes" / "namespace.yaml")
        name = f"site.{namespace['metadata']['name']}.svc"
        assert name in settings["data"]["PFL_ALLOWED_HOSTS"].split()
        assert f"{name}:8000" in (ROOT / "docs" / "operations.md").read_text()

    def test_every_file_is_listed(self) -> None:
        (listed,) = documents(DOCKER / "kubernetes" / "kustomization.yaml")
        found = {
            path.name.replace("secrets.example", "secrets") for path in (DOCKER / "kubernetes").glob("*.yaml")
        }
        assert {*listed["resources"], "kustomization.yaml"} == found


class TestAlerts:
    def alerts(self) -> list[dict[str, Any]]:
        (parsed,) = documents(DOCKER / "prometheus" / "alerts.yaml")
        (group,) = parsed["groups"]
        rules: list[dict[str, Any]] = group["rules"]
        return rules

    def test_an_alert_asks_for_metrics_that_exist(self, db: None) -> None:
        metrics = set(re.findall(r"^# TYPE (\w+)", exposition().decode(), re.MULTILINE))
        for alert in self.alerts():
            assert set(re.findall(r"\bpfl_\w+", alert["expr"])) <= metrics, alert["alert"]

    def test_every_alert_has_its_section_in_the_runbook(self) -> None:
        runbook = (ROOT / "docs" / "operations.md").read_text()
        for alert in self.alerts():
            assert f"### {alert['alert']}\n" in runbook


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["site", "worker", "kit", "build"])
def test_what_images_install_has_the_projects_versions_and_hashes(name: str) -> None:
    path = DOCKER / "requirements" / f"{name}.txt"
    constraints = pins(ROOT / "constraints.txt")
    found = pins(path)
    same = {package: version for package, version in found.items() if package in constraints}
    assert same.items() <= constraints.items(), "run `make constraints`"
    assert found.keys() - constraints.keys() <= {"psycopg2", "uv"}
    assert path.read_text().count("--hash=sha256:") >= len(found)


# The site's image has what its settings can ask for.
EXTRAS = {"site": ["sentry", "otel"], "worker": ["worker"], "kit": ["kit"]}


@pytest.mark.parametrize("image", EXTRAS)
def test_images_install_all_that_the_project_needs(image: str) -> None:
    import tomllib

    common, site = (
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for folder in (ROOT, ROOT / "platform")
    )
    extras = {**common["optional-dependencies"], **site["optional-dependencies"]}
    needed = {
        re.split(r"[<>=\[ ]", requirement)[0]
        for requirements in (
            common["dependencies"],
            site["dependencies"] if image == "site" else [],
            *map(extras.get, EXTRAS[image]),
        )
        for requirement in requirements
    }
    installed = pins(DOCKER / "requirements" / f"{image}.txt").keys()
    assert needed - {common["name"], "psycopg2-binary", "torch"} <= installed, "run `make constraints`"
