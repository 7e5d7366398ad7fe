"""The compose file's services as containers of runc: its commands, environment, users, limits, volumes and networks.

What a container engine would add is added: its default capabilities, a new volume's contents from the image, and ports
below 1024 for everybody. Its seccomp profile is not, and nothing is restarted.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.images.build import buildah, configuration_of
from tests.images.networks import Networks

Service = Mapping[str, Any]
# Of Docker, for containers that say nothing else.
CAPABILITIES = {
    *(
        "CAP_AUDIT_WRITE",
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FOWNER",
        "CAP_FSETID",
        "CAP_KILL",
        "CAP_MKNOD",
    ),
    *("CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"),
    "CAP_SYS_CHROOT",
}
# By these, where there is no health check, a service says that it is ready.
READY = {"proxy": "serving initial configuration", "worker-cpu": "ready."}
# A program that hangs ends the run; a busy machine doesn't.
START_TIMEOUT_S = 900


class ContainerError(Exception):
    """A container did not start, or ended by itself; the message has what it printed last."""


def capabilities(service: Service) -> list[str]:
    """Return what the processes of a container may have at most."""
    kept = set() if "ALL" in (service.get("cap_drop") or []) else CAPABILITIES
    return sorted(kept | {f"CAP_{name}" for name in service.get("cap_add") or []})


def probe_of(service: Service) -> list[str]:
    """Return the command of a service's health check; empty if it has none."""
    test = [word.replace("$$", "$") for word in service.get("healthcheck", {}).get("test", [])]
    return ["sh", "-c", test[1]] if test[:1] == ["CMD-SHELL"] else test[1:]


def process_of(service: Service, image: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Return the first process of a container, as the OCI runtime specification has it."""
    user, _, group = str(service.get("user") or image.get("User") or "0:0").partition(":")
    chosen = command or service.get("command") or image.get("Cmd") or []
    arguments = [*(service.get("entrypoint") or image.get("Entrypoint") or []), *chosen]
    given = {name: value for name, value in service.get("environment", {}).items() if value is not None}
    allowed = capabilities(service)
    held = allowed if user == "0" else []
    return {
        "user": {"uid": int(user), "gid": int(group or 0)},
        "args": [word.replace("$$", "$") for word in arguments],
        "env": [*image.get("Env", []), *(f"{name}={value}" for name, value in given.items())],
        "cwd": image.get("WorkingDir") or "/",
        "capabilities": {"bounding": allowed, "permitted": held, "effective": held},
        "noNewPrivileges": "no-new-privileges:true" in (service.get("security_opt") or []),
    }


def resources_of(service: Service) -> dict[str, Any]:
    """Return a container's limits, as the OCI runtime specification has them; whatever else runs here goes first."""
    limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
    resources: dict[str, Any] = {"cpu": {"shares": 256}}
    if "memory" in limits:
        resources["memory"] = {"limit": int(limits["memory"])}
    if "pids" in limits:
        resources["pids"] = {"limit": limits["pids"]}
    return resources


class Containers:
    """Runs services; use as a context manager.

    Args:
        services: By name, as `docker compose config` prints them.
        stand_ins: Images to take in place of others, by the names of those, without their versions.
        folder: An empty one, for volumes, logs and what containers are started from.
        own_names: Names by which containers find this process, by network.

    Attributes:
        start_s: How long each service took until it was ready.
    """

    def __init__(
        self,
        services: Mapping[str, Service],
        stand_ins: Mapping[str, str],
        folder: Path,
        own_names: Mapping[str, str],
    ) -> None:
        self.services = services
        self.stand_ins = stand_ins
        self.folder = folder
        self.networks = Networks(services, own_names)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.start_s: dict[str, float] = {}
        self._roots: dict[str, Path] = {}
        for name in ("bundles", "logs", "volumes"):
            (folder / name).mkdir()

    def __enter__(self) -> "Containers":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for name in self._roots:
            subprocess.run(["buildah", "rm", self._container(name)], stdout=subprocess.DEVNULL, check=False)
        self.networks.remove()

    def up(self, *names: str) -> None:
        """Start services after those that they depend on, and wait until each is ready."""
        for name in names:
            if name in self.start_s:
                continue
            self.up(*self.services[name].get("depends_on", {}))
            begun = time.monotonic()
            if self.services[name].get("restart") == "no":
                self.run(name)
            else:
                self.running[name] = self._popen(name, [])
                self._wait_until_ready(name)
            self.start_s[name] = time.monotonic() - begun

    def run(self, name: str, *command: str) -> str:
        """Run a service to its end, which must be good, and return what it printed."""
        log = self._log(name)
        printed = log.stat().st_size if log.exists() else 0
        code = self._popen(name, command).wait(START_TIMEOUT_S)
        text = log.read_bytes()[printed:].decode(errors="replace")
        if code:
            raise ContainerError(f"{name} ended with status {code}:\n{text[-4000:]}")
        return text

    def volume(self, name: str) -> Path:
        return self.folder / "volumes" / name

    def stop(self) -> dict[str, int]:
        """End all services as a container engine does; returns their exit statuses."""
        for process in reversed(self.running.values()):
            process.terminate()
        statuses = {name: process.wait(START_TIMEOUT_S) for name, process in self.running.items()}
        self.running.clear()
        return statuses

    def check(self) -> None:
        """Raise `ContainerError` if a service has ended by itself."""
        for name, process in self.running.items():
            if (code := process.poll()) is not None:
                text = self._log(name).read_text(errors="replace")
                raise ContainerError(f"{name} ended with status {code}:\n{text[-4000:]}")

    def _wait_until_ready(self, name: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        probe = probe_of(self.services[name])
        while True:
            self.check()
            if probe:
                asked = ["runc", "exec", self._container(name), *probe]
                done = subprocess.run(asked, capture_output=True, text=True, check=False)
                is_ready, found = done.returncode == 0, done.stdout + done.stderr
            else:
                found = self._log(name).read_text(errors="replace")
                is_ready = READY[name] in found
            if is_ready:
                return
            if time.monotonic() > deadline:
                raise ContainerError(f"{name} isn't ready after {START_TIMEOUT_S} s:\n{found[-4000:]}")
            time.sleep(0.2)

    def _popen(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        bundle = self._bundle(name, command)
        with self._log(name).open("ab") as log:
            return subprocess.Popen(
                ["runc", "run", "--bundle", str(bundle), self._container(name)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal reaches this program only, which then stops them in order.
                start_new_session=True,
            )

    def _bundle(self, name: str, command: Sequence[str]) -> Path:
        """Write what runc starts a container from."""
        service = self.services[name]
        image = self._image(service["image"])
        bundle = self.folder / "bundles" / name
        bundle.mkdir(exist_ok=True)
        (bundle / "hosts").write_text(self.networks.hosts(name))
        specification = template()
        specification["hostname"] = service.get("hostname", name)
        specification["root"] = {
            "path": str(self._root(name, image)),
            "readonly": service.get("read_only", False),
        }
        specification["process"] = process_of(service, configuration_of(image), command)
        specification["mounts"] += [
            *self._mounts(name),
            bound(bundle / "hosts", "/etc/hosts", is_read_only=True),
        ]
        linux = specification["linux"]
        linux["resources"] |= resources_of(service)
        for namespace in linux["namespaces"]:
            if namespace["type"] == "network":
                namespace["path"] = str(self.networks.join(name))
        linux["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "0"}
        (bundle / "config.json").write_text(json.dumps(specification))
        return bundle

    def _mounts(self, name: str) -> list[dict[str, Any]]:
        service = self.services[name]
        mounts = []
        for volume in service.get("volumes", []):
            target = volume["target"]
            source = Path(volume["source"])
            if volume["type"] == "volume":
                source = self.volume(volume["source"])
                self._fill(source, self._roots[name] / target.lstrip("/"))
            mounts.append(bound(source, target, is_read_only=volume.get("read_only", False)))
        for text in service.get("tmpfs") or []:
            target, _, options = text.partition(":")
            mounts.append(
                {
                    "type": "tmpfs",
                    "source": "tmpfs",
                    "destination": target,
                    "options": ["nosuid", "nodev", "noexec", *options.split(",")],
                }
            )
        # Inner folders after those that they are in.
        return sorted(mounts, key=lambda mount: str(mount["destination"]))

    def _fill(self, volume: Path, folder: Path) -> None:
        """Make a volume, if it is new, with the contents, the owner and the rights of the image's folder."""
        if volume.exists():
            return
        if folder.is_dir():
            subprocess.run(["cp", "--archive", str(folder), str(volume)], check=True)
        else:
            volume.mkdir()

    def _image(self, name: str) -> str:
        repository = name.rpartition(":")[0]
        return self.stand_ins.get(
            repository, f"localhost/{name}" if "/" in name else f"docker.io/library/{name}"
        )

    def _root(self, name: str, image: str) -> Path:
        if name not in self._roots:
            buildah("from", "--name", self._container(name), image)
            self._roots[name] = Path(buildah("mount", self._container(name)))
        return self._roots[name]

    def _container(self, name: str) -> str:
        return f"pfl-images-{name}"

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


def template() -> dict[str, Any]:
    """Return runc's own specification, which has the usual mounts and hides the usual files of the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["runc", "spec", "--bundle", folder], check=True)
        specification: dict[str, Any] = json.loads((Path(folder) / "config.json").read_text())
    return specification


def bound(source: Path, target: str, *, is_read_only: bool) -> dict[str, Any]:
    options = ["rbind", "ro" if is_read_only else "rw"]
    return {"type": "bind", "source": str(source), "destination": target, "options": options}
