"""docs/images.md: what the images weigh, how long the services took to start, and the ranks. Nothing is set by hand."""

import os
import platform
from collections.abc import Iterable, Mapping
from datetime import date

from tests.images.build import Built

HEAD = """# Images

Written by `make images`, which builds the images, starts the compose file's services from them, and takes a run of each
track through the proxy to a rank; nothing is set by hand. [operations.md](operations.md#testing-the-images) says how.
"""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(built: Built, start_s: Mapping[str, float], ranks: Mapping[str, str], day: date) -> str:
    """Return the page. `start_s` are the seconds until a service was ready, `ranks` what `pfl submit` printed."""
    base = "Debian 12 by debootstrap" if built.stand_ins else "the images that the Dockerfiles name"
    others = ", ".join(sorted(built.stand_ins)) or "none"
    kernel, _, _ = platform.release().partition("-")
    return "\n".join(
        [
            HEAD,
            f"Measured on {day} on Linux {kernel}, {os.cpu_count()} cores. Base: {base}.\n"
            f"Images of others that something else stood in for: {others}.\n"
            "The kit shares the layers with torch that the worker has built.\n",
            table(
                ("image", "size", "built in"),
                (
                    (image.name.partition("/")[2], image.size, f"{image.seconds:.0f} s")
                    for image in built.images
                ),
            ),
            "From its start, a service took this long until its health check succeeded, or until it said that it was\n"
            "ready:\n",
            table(
                ("service", "ready after"), ((name, f"{seconds:.1f} s") for name, seconds in start_s.items())
            ),
            "A run of each track, trained and submitted by the kit's image, evaluated by the worker's:\n",
            table(("track", "result"), ranks.items()),
        ]
    )
