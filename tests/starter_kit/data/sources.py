"""Small sources for the importers, with what goes wrong in real ones."""

import json
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

COMPANIES = [f"COMPANY {letter} SDN BHD" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"]


@dataclass
class ReceiptFolder:
    """A folder in SROIE layout under construction."""

    path: Path

    def __post_init__(self) -> None:
        for name in ("img", "box", "key"):
            (self.path / name).mkdir(parents=True)

    def add(
        self,
        name: str,
        company: str | None = "COMPANY A SDN BHD",
        box: bytes | None = None,
        key: dict[str, object] | bytes | None = None,
        image: bytes | None = None,
    ) -> None:
        """A receipt of 100 by 200 pixels; what is given replaces what a sound receipt would have."""
        values = {"company": company, "date": "01/02/2018", "address": "1, JALAN SATU, IPOH", "total": "9.00"}
        if key is None:
            key = {k: v for k, v in values.items() if v is not None}
        if box is None:
            lines = [str(company), "01/02/2018", "1, JALAN SATU, IPOH", "TOTAL 9.00"]
            box = "".join(
                f"10,{20 * n},90,{20 * n},90,{20 * n + 10},10,{20 * n + 10},{line}\r\n"
                for n, line in enumerate(lines, 1)
            ).encode()
        if image is None:
            Image.new("RGB", (100, 200), "white").save(self.path / "img" / f"{name}.jpg")
        else:
            (self.path / "img" / f"{name}.jpg").write_bytes(image)
        (self.path / "box" / f"{name}.csv").write_bytes(box)
        content = key if isinstance(key, bytes) else json.dumps(key).encode()
        (self.path / "key" / f"{name}.json").write_bytes(content)


def sound_receipts(path: Path) -> ReceiptFolder:
    """48 sound receipts: one of each of 24 companies, and 24 more of the first six."""
    folder = ReceiptFolder(path)
    for number, company in enumerate(COMPANIES + 4 * COMPANIES[:6]):
        folder.add(f"{number:03d}", company)
    return folder
