"""Adds to the package the proofs of the kit's methods, and to its metadata the addresses of the project.

Only those who publish know where the source code is.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PROOFS = "starter_kit/proofs"


class Proofs(BuildHookInterface[Any]):
    """Takes `docs/proofs`, from which `pfl describe` drafts. A source distribution already has them in their place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        packed = Path(self.root) / PROOFS
        # An editable installation reads the checkout's documents.
        if version != "editable":
            source = packed if packed.exists() else Path(self.root) / "docs" / "proofs"
            build_data["force_include"][str(source)] = PROOFS


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
