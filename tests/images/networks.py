"""The compose file's networks as bridges, in a network namespace of this process: only members reach each other."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAMESPACES = Path("/run/netns")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Networks:
    """A bridge for each network of `services`, at which this process has the first address.

    Args:
        services: By name, as `docker compose config` prints them.
        own_names: Names of this process, by the network in which they are known.
    """

    def __init__(self, services: Mapping[str, Mapping[str, Any]], own_names: Mapping[str, str]) -> None:
        self._members = {name: dict(service["networks"]) for name, service in services.items()}
        networks = sorted({network for members in self._members.values() for network in members})
        self._subnets = {network: f"10.77.{number}" for number, network in enumerate(networks, 1)}
        self._own_names = own_names
        self._joined: set[str] = set()
        for network in networks:
            ip("link", "add", self._bridge(network), "type", "bridge")
            ip("address", "add", f"{self.own_address(network)}/24", "dev", self._bridge(network))
            ip("link", "set", self._bridge(network), "up")

    def own_address(self, network: str) -> str:
        return f"{self._subnets[network]}.1"

    def address(self, network: str, service: str) -> str:
        return f"{self._subnets[network]}.{10 + list(self._members).index(service)}"

    def hosts(self, service: str) -> str:
        """Return the names that a service finds, as a file like /etc/hosts: of those in its networks."""
        lines = ["127.0.0.1 localhost"]
        for network in self._members[service]:
            for other, networks in self._members.items():
                if network in networks:
                    aliases = (networks[network] or {}).get("aliases", [])
                    lines.append(" ".join([self.address(network, other), other, *aliases]))
            if network in self._own_names:
                lines.append(f"{self.own_address(network)} {self._own_names[network]}")
        return "\n".join(lines) + "\n"

    def join(self, service: str) -> Path:
        """Return the network namespace of a service, which has a cable to each of its networks."""
        namespace = f"pfl-images-{service}"
        if service not in self._joined:
            ip("netns", "add", namespace)
            self._joined.add(service)
            ip("-n", namespace, "link", "set", "lo", "up")
            number = list(self._members).index(service)
            for index, network in enumerate(self._members[service]):
                cable, inside = f"pfl{number}-{index}", f"eth{index}"
                ip("link", "add", cable, "type", "veth", "peer", "name", inside, "netns", namespace)
                ip("link", "set", cable, "master", self._bridge(network), "up")
                ip("-n", namespace, "address", "add", f"{self.address(network, service)}/24", "dev", inside)
                ip("-n", namespace, "link", "set", inside, "up")
        return NAMESPACES / namespace

    def remove(self) -> None:
        """Remove the namespaces; the bridges end with this process."""
        for service in self._joined:
            ip("netns", "delete", f"pfl-images-{service}")
        self._joined.clear()

    def _bridge(self, network: str) -> str:
        return f"br{list(self._subnets).index(network)}"
