"""A probe for supervisors without an HTTP client: `python -m docvqa_site.operations.probe alive|CHECK...`.

It asks the web server at `PFL_PROBE_URL` under the site's own name, prints the answer, and ends with 1 if that isn't
good. `alive` asks whether the process runs; names such as `intake` and `clock` are those of `/readyz`. It loads neither
Django nor the settings, because it runs every few seconds.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 8.0


def main(names: list[str]) -> int:
    """Return the status to exit with."""
    address = urlsplit(os.environ.get("PFL_PROBE_URL", "http://127.0.0.1:8000"))
    site = urlsplit(os.environ.get("PFL_SITE_URL", address.geturl()))
    path = "/healthz" if names == ["alive"] else f"/readyz?{urlencode([('check', name) for name in names])}"
    connection = HTTPConnection(address.hostname or "", address.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Host": site.netloc})
        response = connection.getresponse()
        sys.stdout.write(response.read().decode() + "\n")
    except (OSError, HTTPException) as error:
        sys.stdout.write(f"{address.geturl()} doesn't answer: {error}\n")
        return 1
    return 0 if response.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
