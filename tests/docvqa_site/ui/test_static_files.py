"""Static files of a public site: hashed names, compressed, and served from where they were collected."""

import os
import subprocess
import sys
from pathlib import Path

SHOW = (
    "import django; django.setup(); from django.templatetags.static import static; "
    "from django.test import Client; path = static('ui/site.css'); "
    "answer = Client(headers={'Accept-Encoding': 'gzip'}).get(path); "
    "print(path, answer['Content-Encoding'], answer['Cache-Control'])"
)


def test_collected_files_have_hashed_names_and_are_compressed(tmp_path: Path) -> None:
    environment = {**os.environ, "PFL_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "docvqa_site.settings"}
    collect = [sys.executable, "-m", "django", "collectstatic", "--noinput", "-v", "0"]
    subprocess.run(collect, env=environment, check=True)
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, check=True, text=True, capture_output=True
    ).stdout
    path, encoding, *caching = shown.split()
    assert path.startswith("/static/ui/site.")
    assert path != "/static/ui/site.css"
    assert encoding == "gzip"
    assert "immutable" in caching
