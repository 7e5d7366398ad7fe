"""The engine whose clients run on other machines, which Flower connects: see docs/distributed.md.

A run consists of the app, `server_app` with `engine` and `node_registry`, `client_app` with `client_state`, and the
`messages` between them, which are written for Flower's public API. `superlink` and `supernode` are what `pfl federate`
starts for it, and `flower_internals` all that they need from inside Flower.

Flower reports its use and looks for updates unless its environment forbids it before it is imported,
as it does here.
"""

import os

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

os.environ.update(QUIET)
