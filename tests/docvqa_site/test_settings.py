"""The settings of a public site, each read by a process of its own."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.worker.home import broker_url, evaluator_home

ROOT = Path(__file__).parents[2]
SAFE = {
    "PFL_SITE_URL": "https://benchmark.example.org",
    "PFL_SECRET_KEY": secrets.token_urlsafe(50),
    "PFL_DATABASE_URL": "postgres://u@127.0.0.1/x",
    "PFL_BROKER_URL": "redis://127.0.0.1:1/0",
    "PFL_SMTP_URL": "smtp://user:p%40ss%2Fw%3Aord@mail.example.org:2525",
    "PFL_FROM_EMAIL": "Benchmark <benchmark@example.org>",
    "PFL_CONTACT": "mailto:organizers@example.org",
    "PFL_ORGANIZERS": "The Example Lab",
    "PFL_CONTROLLER": "The Example Lab, 1 Example Street",
    "PFL_LEGAL_BASIS": "The participants' consent (Article 6(1)(a) of the GDPR).",
    "PFL_SOURCE_URL": "https://code.example.org/pfl",
    "PFL_DATA_URL": "https://data.example.org/pfl-docvqa",
}
NAMES = [
    "EMAIL_HOST_PASSWORD",
    "EMAIL_HOST_USER",
    "SECURE_HSTS_INCLUDE_SUBDOMAINS",
    "SECURE_HSTS_PRELOAD",
    "ALLAUTH_TRUSTED_PROXY_COUNT",
    "SECURITY_CONTACT",
    "SESSION_COOKIE_AGE",
    "SECRET_KEY_FALLBACKS",
    "MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN",
    "SOCIALACCOUNT_PROVIDERS",
    "CONTENT_SECURITY_POLICY",
]
READ = f"{{name: getattr(settings, name) for name in {NAMES}}}"
PRINT = f"import json\nfrom docvqa_site import settings\nprint(json.dumps({READ}))"


def read(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PFL_")}
    environment |= {"PYTHONPATH": f"{ROOT}/platform:{ROOT}", "PFL_HOME": str(home), **SAFE, **variables}
    return subprocess.run(
        [sys.executable, "-c", PRINT], env=environment, text=True, capture_output=True, check=False
    )


def test_a_safe_site_starts_with_these_values(tmp_path: Path) -> None:
    found = json.loads(read(tmp_path).stdout)
    # A URL writes the password `p@ss/w:ord` so.
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("user", "p@ss/w:ord")
    assert found["SECURITY_CONTACT"] == "mailto:benchmark@example.org"
    assert found["ALLAUTH_TRUSTED_PROXY_COUNT"] == 1
    assert found["SESSION_COOKIE_AGE"] == 24 * 3600
    assert not found["SECURE_HSTS_INCLUDE_SUBDOMAINS"]
    assert not found["MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN"]
    assert found["SOCIALACCOUNT_PROVIDERS"] == {}
    assert found["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]["form-action"] == ["'self'"]


def test_the_owner_of_the_domain_chooses_the_rest(tmp_path: Path) -> None:
    found = json.loads(
        read(
            tmp_path,
            PFL_HSTS_SUBDOMAINS="1",
            PFL_HSTS_PRELOAD="1",
            PFL_TRUSTED_PROXIES="2",
            PFL_SECURITY_CONTACT="https://example.org/security",
            PFL_SESSION_HOURS="8",
            PFL_SECRET_KEY_FALLBACKS="older oldest",
            PFL_ORCID_CLIENT_ID="APP-1",
            PFL_ORCID_CLIENT_SECRET="secret",
            PFL_ORCID_DOMAIN="sandbox.orcid.org",
            PFL_GITHUB_CLIENT_ID="without a secret",
        ).stdout
    )
    assert found["SECURE_HSTS_INCLUDE_SUBDOMAINS"]
    assert found["SECURE_HSTS_PRELOAD"]
    assert found["ALLAUTH_TRUSTED_PROXY_COUNT"] == 2
    assert found["SECURITY_CONTACT"] == "https://example.org/security"
    assert found["SESSION_COOKIE_AGE"] == 8 * 3600
    assert found["SECRET_KEY_FALLBACKS"] == ["older", "oldest"]
    assert list(found["SOCIALACCOUNT_PROVIDERS"]) == ["orcid"]
    # A browser follows no form elsewhere.
    form_action = found["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]["form-action"]
    assert form_action == ["'self'", "https://sandbox.orcid.org"]


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"PFL_ALLOWED_HOSTS": "*"}, "PFL_ALLOWED_HOSTS"),
        ({"PFL_SECRET_KEY": "a" * 62}, "PFL_SECRET_KEY"),
        ({"PFL_SECRET_KEY": "change-me-please-" * 4}, "PFL_SECRET_KEY"),
        ({"PFL_SECRET_KEY": secrets.token_urlsafe(20)}, "PFL_SECRET_KEY"),
        # One process starts and names all of them.
        (
            {
                "PFL_CONTACT": "",
                "PFL_ORGANIZERS": " ",
                "PFL_CONTROLLER": "",
                "PFL_LEGAL_BASIS": "",
                "PFL_PRIVACY_CONTACT": "us",
                "PFL_SOURCE_URL": "",
                "PFL_DATA_URL": "ftp://example.org",
            },
            "PFL_CONTACT must say how people reach the organizers: a mailto: or https: address\n"
            "  PFL_ORGANIZERS must name who runs the benchmark, with affiliations\n"
            "  PFL_CONTROLLER must name who is responsible for people's data, with a postal address\n"
            "  PFL_LEGAL_BASIS must say on which legal basis the site stores people's data\n"
            "  PFL_PRIVACY_CONTACT must say whom to ask about data: a mailto: or https: address\n"
            "  PFL_SOURCE_URL must be the https: address that the site's pages link to\n"
            "  PFL_DATA_URL",
        ),
    ],
)
def test_an_unsafe_value_stops_the_start(tmp_path: Path, variables: dict[str, str], reason: str) -> None:
    stopped = read(tmp_path, **variables)
    assert stopped.returncode != 0
    assert reason in stopped.stderr


def test_the_home_is_for_the_account_and_its_group_alone(tmp_path: Path) -> None:
    new, open_to_all = tmp_path / "new", tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    for home in (new, open_to_all):
        assert read(home).returncode == 0
    assert new.stat().st_mode & 0o777 == 0o700
    assert open_to_all.stat().st_mode & 0o777 == 0o750


def test_a_worker_of_the_same_home_has_the_sites_broker_and_base_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PFL_BROKER_URL", "PFL_EVALUATOR_HOME", "PFL_REFERENCES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PFL_HOME", str(tmp_path))
    script = "from docvqa_site import settings; print(settings.BROKER_URL, settings.REFERENCES_FOLDER)"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PFL_")},
        "PYTHONPATH": f"{ROOT}/platform:{ROOT}",
        "PFL_HOME": str(tmp_path),
    }
    site = subprocess.run(
        [sys.executable, "-c", script], env=environment, text=True, capture_output=True, check=True
    )
    assert site.stdout.split() == [broker_url(), str(evaluator_home() / "references")]
