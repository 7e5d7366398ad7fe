"""The kit as a Flower app: a folder of small files, for `flwr run`.

The app holds no code but two imports: server and nodes run the kit that is installed on their own machines.
"""

import errno
from pathlib import Path

_PROJECT = """\
[project]
name = "pfl-federation"
version = "1.0.0"
description = "Training on document VQA across clients, with the kit that each party has installed"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41,<1.42"]

[tool.flwr.app]
publisher = "pfl"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "pfl_federation.server:app"
clientapp = "pfl_federation.client:app"

# What the server trains with, and on its machine the run folder that it writes. `set` changes settings, as in
# "rounds=5;local.max_steps=1".
[tool.flwr.app.config]
config = "fedavg"
set = ""
data = "data/public"
base = "base"
out = "run"
wait-s = 600.0
timeout-s = 600.0
"""

FILES = {
    "pyproject.toml": _PROJECT,
    "LICENSE": "SPDX-License-Identifier: Apache-2.0\n",
    "pfl_federation/__init__.py": "",
    "pfl_federation/server.py": "from starter_kit.engines.flower.server_app import app\n\n__all__ = ['app']\n",
    "pfl_federation/client.py": "from starter_kit.engines.flower.client_app import app\n\n__all__ = ['app']\n",
}


def write_app(folder: Path) -> None:
    """Write the app into `folder`. Raises OSError where that can't be done or something is there."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(errno.EEXIST, "a folder that holds something", str(folder))
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
