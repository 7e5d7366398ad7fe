"""The compose file as Docker Compose itself reads it, with values for all that it requires."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import compose

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker" / "compose.yaml"
# The wheel's wrapper always ends with 0; the program itself doesn't.
PROGRAM = Path(compose.__file__).parent / "docker-compose"
VALUES = {
    "PFL_SITE_HOST": "benchmark.test",
    "PFL_TLS": "internal",
    "PFL_SECRET_KEY": "Xk3vTq9ZrB5nLw8sYd2hJm6cPf4gAe7uQx1iNo0t-KbVyRzWjHdUlMsGpEaFhC9T",
    "POSTGRES_PASSWORD": "postgres-password",
    "BROKER_SITE_PASSWORD": "site-password",
    "BROKER_WORKER_PASSWORD": "worker-password",
    "PFL_BROKER_URL": "redis://site:site-password@redis:6379/0",
    "PFL_WORKER_BROKER_URL": "redis://worker:worker-password@redis:6379/0",
    "PFL_SMTP_URL": "smtp+plain://mail:25",
    "PFL_FROM_EMAIL": "Benchmark <site@benchmark.test>",
    "PFL_CONTACT": "mailto:organizers@example.org",
    "PFL_ORGANIZERS": "The Example Lab",
    "PFL_CONTROLLER": "The Example Lab, 1 Example Street",
    "PFL_LEGAL_BASIS": "The participants' consent (Article 6(1)(a) of the GDPR).",
    "PFL_SOURCE_URL": "https://code.example.org/pfl",
    "PFL_DATA_URL": "https://data.example.org/pfl-docvqa",
    "PFL_METRICS_TOKEN": "metrics-token",
}


def run_compose(*arguments: str, **values: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), "--file", str(FILE), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **VALUES, **values},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def configuration(**values: str) -> dict[str, Any]:
    """Everything, with all profiles and variables filled in."""
    result = run_compose("--profile", "*", "config", "--format", "json", **values)
    assert result.returncode == 0, result.stderr
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed
