"""The engine whose clients run apart from the server, on nodes that Flower connects: see docs/distributed.md.

Flower reports its use and looks for updates unless it is told not to before it is imported; here it is told.
"""

import os

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

os.environ.update(QUIET)
