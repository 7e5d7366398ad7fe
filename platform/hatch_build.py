"""Adds to the site's packages the documents of their version and the addresses of the project."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = "docvqa_site/docs/pages"


class Documents(BuildHookInterface[Any]):
    """Takes `docs/` from beside this folder. A source distribution already has the documents in their place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        packed = root / PAGES
        # An editable installation reads the checkout's documents.
        if version != "editable":
            build_data["force_include"][str(packed if packed.exists() else root.parent / "docs")] = PAGES


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
