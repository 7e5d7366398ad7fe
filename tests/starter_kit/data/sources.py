"""Small sources for the importers, with what goes wrong in real ones."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


# Of the pages of DocILE's layout.
SIZE = (60, 80)


class DocileFolder:
    """A folder in DocILE's layout under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name in ("annotations", "ocr", "pdfs"):
            (path / name).mkdir(parents=True)

    def add(
        self,
        name: str,
        *pages: dict[str, str | list[str]],
        vendor: str | None = None,
        cluster: int | None = 1,
    ) -> None:
        """A document with the texts of each page's fields, all of which are among its words."""
        fields: list[dict[str, Any]] = []
        for number, texts in enumerate(pages):
            for key, values in (texts | ({"vendor_name": vendor} if vendor and not number else {})).items():
                for text in [values] if isinstance(values, str) else values:
                    box = [0.1, 0.1, 0.5, 0.2]
                    fields.append({"fieldtype": key, "page": number, "text": text, "bbox": box})
        metadata = {
            "page_count": len(pages),
            "page_sizes_at_200dpi": [SIZE for _ in pages],
            "cluster_id": cluster,
            "document_type": "tax_invoice",
        }
        self.write(f"annotations/{name}.json", {"field_extractions": fields, "metadata": metadata})
        words = [
            [word for one in fields if one["page"] == number for word in one["text"].split()]
            for number in range(len(pages))
        ]
        self.write(
            f"ocr/{name}.json", {"pages": [ocr_page(number, some) for number, some in enumerate(words)]}
        )
        images = [Image.new("RGB", SIZE, "white") for _ in pages]
        images[0].save(self.path / "pdfs" / f"{name}.pdf", save_all=True, append_images=images[1:])

    def write(self, name: str, content: object) -> None:
        (self.path / name).write_text(json.dumps(content))

    def change(self, name: str, **metadata: object) -> None:
        annotation = json.loads((self.path / "annotations" / f"{name}.json").read_text())
        annotation["metadata"] |= metadata
        self.write(f"annotations/{name}.json", annotation)


def ocr_page(number: int, words: list[str]) -> dict[str, object]:
    line = [
        {"value": word, "geometry": [[0.1, 0.1 + place / 100], [0.3, 0.11 + place / 100]]}
        for place, word in enumerate(words)
    ]
    return {"page_idx": number, "blocks": [{"lines": [{"words": line}]}]}


def sound_documents(path: Path) -> DocileFolder:
    """24 documents in DocILE's layout, of as many vendors, each with its number, and a list of all."""
    folder = DocileFolder(path)
    for number in range(24):
        folder.add(f"d{number}", {"document_id": f"INV-{number}"}, vendor=f"Vendor {number}", cluster=number)
    folder.write("all.json", [f"d{number}" for number in range(24)])
    return folder
