"""The environment of a test run, set before Django reads its settings (loaded with `-p tests.environment`).

One PostgreSQL server serves the whole run; every pytest process makes its own test database on it.
"""

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Generator

import hypothesis
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from whitenoise.middleware import WhiteNoiseMiddleware

from tests.services.postgres import Postgres

_home = tempfile.mkdtemp(prefix="pfl-tests-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)

os.environ["PFL_HOME"] = _home
os.environ["PFL_KEY"] = f"{_home}/team_key.pem"  # never the user's own
os.environ["PFL_SITE_URL"] = "http://127.0.0.1:8000"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
# No test cuts the power of the disk, and to wait for it is a third of a short training run.
os.fsync = lambda fd: None
# Playwright's driver runs an event loop in the test's thread, and the test still asks the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
# To be slow is all that the other million iterations are for.
PBKDF2PasswordHasher.iterations = 1
for _name in ("SECRET_KEY", "BROKER_URL", "DEBUG", "SMTP_URL", "TOKEN", "SITE", "RUN_TOKEN"):
    os.environ.pop(f"PFL_{_name}", None)

_find_static_files = WhiteNoiseMiddleware.add_files_from_finders
_static_files: dict[str, object] = {}


def _add_static_files(middleware: WhiteNoiseMiddleware) -> None:
    """Add the site's static files, which are looked for once: every test's client makes a middleware of its own."""
    if not _static_files:
        _find_static_files(middleware)
        _static_files.update(middleware.files)
    middleware.files.update(_static_files)


WhiteNoiseMiddleware.add_files_from_finders = _add_static_files

# What is imported and collected stays to the end: more than a million objects, among which there is no garbage to find.
gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests, and leave all that exists then out of the garbage collections to come."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # What tests leave is found as well by a twentieth of the collections.
        gc.set_threshold(20_000, 20, 20)


# How long an example takes says more about the machine than about the code. The same examples are tried each time, so
# that a commit always passes or never does.
hypothesis.settings.register_profile("pfl", deadline=None, derandomize=True)
hypothesis.settings.load_profile("pfl")

if "PYTEST_XDIST_WORKER" not in os.environ:
    _postgres = Postgres()
    atexit.register(_postgres.stop)
    os.environ["PFL_DATABASE_URL"] = os.environ["PFL_TEST_POSTGRES_URL"] = _postgres.url
