"""A form's picture: every word where its box is, on a sheet in its provider's color.

The tiny VT5's image tower isn't trained and reads no letter at the size that it sees; the pictures are for people.
"""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from evaluator.docvqa.dataset import Box
from starter_kit.data.images import font_of

Color = tuple[int, int, int]

WIDTH_PX, HEIGHT_PX = 300, 400
JPEG_QUALITY = 80
FONT_PX = 10  # letters of which are narrower than a box gives them room
HEAD_PX = 24
MARGIN_PX = 24
COLORS: tuple[Color, ...] = (
    (33, 82, 144),
    (150, 52, 46),
    (36, 110, 74),
    (120, 78, 150),
    (176, 104, 22),
    (60, 66, 78),
)
PAPER: Color = (252, 251, 247)
INK: Color = (30, 30, 34)
RULE: Color = (214, 214, 208)


def draw_form(words: Sequence[str], boxes: Sequence[Box], color: Color, logo: str = "") -> Image.Image:
    """The picture of a form whose lines each begin with a label, printed in `color`, with a `logo` at its head."""
    sheet = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.rectangle((0, 0, WIDTH_PX, HEAD_PX), fill=color)
    pen.ellipse((8, 4, 8 + HEAD_PX - 8, HEAD_PX - 4), fill=PAPER)
    pen.text((HEAD_PX + 8, HEAD_PX / 2), logo, fill=PAPER, font=font_of(FONT_PX), anchor="lm")
    line_start = min(box[0] for box in boxes)
    for word, (left, top, _, bottom) in zip(words, boxes, strict=True):
        is_label = left == line_start
        place = (left * WIDTH_PX, (top + bottom) / 2 * HEIGHT_PX)
        pen.text(place, word, fill=color if is_label else INK, font=font_of(FONT_PX), anchor="lm")
        if is_label:
            below = bottom * HEIGHT_PX + 8
            pen.line((MARGIN_PX, below, WIDTH_PX - MARGIN_PX, below), fill=RULE)
    return sheet
