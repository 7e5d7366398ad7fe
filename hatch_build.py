"""Adds the addresses of the project to the metadata. Only those who publish know where the source code is."""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """Reads `PFL_SOURCE_URL`, as the site does; without it, the metadata has no addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = {}
        if source := os.environ.get("PFL_SOURCE_URL", "").rstrip("/"):
            tag = f"v{metadata['version']}"
            metadata["urls"] = {
                "Source": source,
                "Documentation": f"{source}/tree/{tag}/docs",
                "Changelog": f"{source}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{source}/issues",
            }
