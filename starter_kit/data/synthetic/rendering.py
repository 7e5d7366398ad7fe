"""An invoice drawn on a page, with the box of every word.

The words are what is drawn: each is put on the page by `Sheet.write`, which records its box at the same time.
Pillow's own font has no letters beyond ASCII, so accents are drawn onto their base letters here.
"""

import unicodedata
from dataclasses import dataclass, field

from PIL import Image, ImageDraw, ImageFont

from evaluator.docvqa.dataset import Box
from starter_kit.data.images import font_of
from starter_kit.data.synthetic.invoices import Invoice
from starter_kit.data.synthetic.providers import Rgb, Style

MARGIN = 14


@dataclass
class Sheet:
    """A page while it is drawn. `words` and `boxes` (relative, in [0, 1]) grow with everything written."""

    width: int
    height: int
    paper: Rgb
    words: list[str] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = Image.new("RGB", (self.width, self.height), self.paper)
        self.pen = ImageDraw.Draw(self.image)

    def write(self, text: str, x: float, y: float, size_px: int, ink: Rgb, align: str = "left") -> float:
        """Write `text` with its start, center or end at `x` and its top at `y`; return where it ends."""
        font = font_of(size_px)
        gap = font.getlength(" ") + 2  # the font's own spaces are too narrow to tell words apart
        words = [unicodedata.normalize("NFC", word) for word in text.split()]
        widths = [font.getlength(_base(word)) for word in words]
        total = sum(widths) + gap * (len(words) - 1)
        x -= {"left": 0.0, "center": total / 2, "right": total}[align]
        for word, width in zip(words, widths, strict=True):
            self._write_word(word, round(x), y, font, ink)
            x += width + gap
        return x - gap

    def _write_word(self, word: str, x: float, y: float, font: ImageFont.FreeTypeFont, ink: Rgb) -> None:
        base = _base(word)
        self.pen.text((x, y), base, fill=ink, font=font)
        x0, y0, x1, y1 = self.pen.textbbox((x, y), base, font=font)
        for position, letter in enumerate(word):
            for mark in unicodedata.normalize("NFD", letter)[1:]:
                left = x + font.getlength(base[:position])
                glyph = self.pen.textbbox((left, y), base[position], font=font)
                y0 = min(y0, self._accent(mark, (glyph[0] + glyph[2]) / 2, glyph[1], ink))
        self.words.append(word)
        self.boxes.append(
            (
                round(x0 / self.width, 4),
                round(y0 / self.height, 4),
                round(x1 / self.width, 4),
                round(y1 / self.height, 4),
            )
        )

    def _accent(self, mark: str, x: float, top: float, ink: Rgb) -> float:
        """Draw a combining mark over a letter whose top center is given; return the mark's top."""
        strokes = ACCENTS[mark]
        for dx0, dy0, dx1, dy1 in strokes:
            self.pen.line((x + dx0, top + dy0, x + dx1, top + dy1), fill=ink, width=1)
        return top + min(min(dy0, dy1) for _, dy0, _, dy1 in strokes)

    def rule(self, y: float, ink: Rgb) -> None:
        """Draw a horizontal line between the margins."""
        self.pen.line((MARGIN, y, self.width - MARGIN, y), fill=ink, width=1)


# Combining marks as strokes (x0, y0, x1, y1), in pixels from the middle of the letter's top.
ACCENTS: dict[str, tuple[tuple[int, int, int, int], ...]] = {
    "\u0300": ((-2, -4, 0, -2),),  # grave
    "\u0301": ((2, -4, 0, -2),),  # acute
    "\u0302": ((-2, -2, 0, -4), (0, -4, 2, -2)),  # circumflex
    "\u0303": ((-3, -2, -1, -3), (-1, -3, 1, -2), (1, -2, 3, -3)),  # tilde
    "\u0308": ((-2, -3, -2, -2), (2, -3, 2, -2)),  # diaeresis
    "\u030a": ((-1, -4, 1, -4), (-1, -2, 1, -2), (-2, -3, -2, -3), (2, -3, 2, -3)),  # ring
    "\u030c": ((-2, -4, 0, -2), (0, -2, 2, -4)),  # caron
}


def _base(word: str) -> str:
    """`word` with a base letter in the place of each accented one; of the same length."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in word)


def draw_invoice(invoice: Invoice, width: int, height: int) -> Sheet:
    """Draw the invoice in its provider's layout; the words of the sheet are in reading order."""
    style = invoice.provider.style
    sheet = Sheet(width, height, style.paper)
    y = _header(sheet, invoice)
    y = _title(sheet, style, y)
    y = _fields(sheet, invoice, y)
    y = _items(sheet, invoice, y)
    _total(sheet, invoice, y)
    if style.contact_in_footer:
        _contact(sheet, invoice, height - MARGIN - 3 * _line(style), "center")
    return sheet


def _line(style: Style) -> int:
    return style.font_px + 4


def _header(sheet: Sheet, invoice: Invoice) -> float:
    style, provider = invoice.provider.style, invoice.provider
    anchor = {"left": MARGIN, "center": sheet.width // 2, "right": sheet.width - MARGIN}[style.header]
    logo_left = {"left": anchor, "center": anchor - style.logo_px // 2, "right": anchor - style.logo_px}
    _logo(sheet, style, logo_left[style.header], MARGIN)
    y = MARGIN + style.logo_px + 8.0
    sheet.write(provider.name, anchor, y, style.font_px + 3, style.accent, style.header)
    y += _line(style) + 4
    sheet.write(provider.address, anchor, y, style.font_px, style.ink, style.header)
    y += _line(style)
    if not style.contact_in_footer:
        y = _contact(sheet, invoice, y, style.header)
    return y + 6


def _contact(sheet: Sheet, invoice: Invoice, y: float, align: str) -> float:
    style, values = invoice.provider.style, invoice.values
    anchor = {"left": MARGIN, "center": sheet.width // 2, "right": sheet.width - MARGIN}[align]
    for text in (
        values["provider_email"],
        f"{style.labels['phone']} {values['phone']}",
        f"{style.labels['tax_number']} {values['tax_number']}",
    ):
        sheet.write(text, anchor, y, style.font_px, style.ink, align)
        y += _line(style)
    return y


def _title(sheet: Sheet, style: Style, y: float) -> float:
    if style.rules:
        sheet.rule(y, style.accent)
        y += 5
    sheet.write(style.title, MARGIN, y, style.font_px + 5, style.accent)
    return y + style.font_px + 14


def _fields(sheet: Sheet, invoice: Invoice, y: float) -> float:
    """Number, dates and terms: as running rows, as a table with aligned values, or in two columns."""
    style = invoice.provider.style
    for number, key in enumerate(style.order):
        label, value = style.labels[key], invoice.values[key]
        if style.arrangement == "columns":
            x = MARGIN + (number % 2) * (sheet.width // 2)
            sheet.write(label, x, y, style.font_px, style.accent)
            sheet.write(value, x, y + _line(style), style.font_px, style.ink)
            if number % 2 or number == len(style.order) - 1:
                y += 2 * _line(style) + 3
        else:
            end = sheet.write(label, MARGIN, y, style.font_px, style.accent)
            start = end + 6 if style.arrangement == "rows" else sheet.width // 2
            sheet.write(value, start, y, style.font_px, style.ink)
            y += _line(style)
    return y + 6


def _items(sheet: Sheet, invoice: Invoice, y: float) -> float:
    style = invoice.provider.style
    for article, amount in invoice.items:
        sheet.write(article, MARGIN, y, style.font_px, style.ink)
        sheet.write(amount, sheet.width - MARGIN, y, style.font_px, style.ink, "right")
        y += _line(style)
    return y


def _total(sheet: Sheet, invoice: Invoice, y: float) -> None:
    style, values = invoice.provider.style, invoice.values
    if style.rules:
        sheet.rule(y + 2, style.accent)
        y += 4
    parts = [values["currency"], values["total_amount"]]
    if not style.currency_first:
        parts.reverse()
    sheet.write(style.labels["total_amount"], MARGIN, y + 3, style.font_px + 1, style.accent)
    sheet.write(" ".join(parts), sheet.width - MARGIN, y + 3, style.font_px + 1, style.ink, "right")


def _logo(sheet: Sheet, style: Style, x: int, y: int) -> None:
    """The provider's sign, a square of `logo_px` pixels with its corner at (x, y)."""
    side, color, pen = style.logo_px, style.accent, sheet.pen
    right, bottom, half, third = x + side, y + side, side // 2, side // 3
    match style.logo:
        case "disc":
            pen.ellipse((x, y, right, bottom), fill=color)
        case "ring":
            pen.ellipse((x, y, right, bottom), outline=color, width=5)
        case "square":
            pen.rectangle((x, y, right, bottom), fill=color)
        case "diamond":
            pen.polygon([(x + half, y), (right, y + half), (x + half, bottom), (x, y + half)], fill=color)
        case "bars":
            for left in range(x, right, 9):
                pen.rectangle((left, y, left + 4, bottom), fill=color)
        case "triangle":
            pen.polygon([(x + half, y), (right, bottom), (x, bottom)], fill=color)
        case "cross":
            pen.rectangle((x + third, y, right - third, bottom), fill=color)
            pen.rectangle((x, y + third, right, bottom - third), fill=color)
        case "steps":
            for step in range(3):
                pen.rectangle(
                    (x + step * third, y + step * third, x + (step + 1) * third, bottom), fill=color
                )
