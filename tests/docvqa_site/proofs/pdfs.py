"""PDF files for tests, some of them hostile; written by hand, so that they hold what no library would write."""

import zlib

FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>"


def make_pdf(*texts, media_box=b"0 0 595 842", catalog=b"", page=b"", trailer=b"", objects=()):
    """A PDF with one page for each text; the other parts are added to its objects."""
    kids = b" ".join(b"%d 0 R" % (10 + 2 * index) for index in range(len(texts)))
    numbered = {
        1: b"<</Type/Catalog/Pages 2 0 R" + catalog + b">>",
        2: b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % len(texts),
        3: FONT,
        **dict(objects),
    }
    for index, text in enumerate(texts):
        number = 10 + 2 * index
        content = text if isinstance(text, bytes) else b"BT /F1 24 Tf 50 700 Td (%s) Tj ET" % text.encode()
        numbered[number] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[" + media_box + b"]/Contents %d 0 R" % (number + 1)
            + b"/Resources<</Font<</F1 3 0 R>>/XObject<</Im 5 0 R>>>>" + page + b">>"
        )  # fmt: skip
        numbered[number + 1] = stream(content)
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % item for item in numbered.items())
    return b"%PDF-1.7\n" + body + b"trailer<</Root 1 0 R" + trailer + b">>\n%%EOF"


def stream(content, entries=b""):
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), entries, content)


def encrypted():
    """One that can't be opened without its password."""
    entries = b"<</Filter/Standard/V 1/R 2/P -4/O(%s)/U(%s)>>" % (b"o" * 32, b"u" * 32)
    return make_pdf("secret", objects={6: entries}, trailer=b"/Encrypt 6 0 R/ID[(a)(a)]")


def with_count(count):
    """One that says that it has so many pages, whatever it has."""
    return make_pdf("one").replace(b"/Count 1", b"/Count %d" % count)


def image_bomb(side=30_000):
    """A few kilobytes that decompress into a picture of almost a gigabyte."""
    deflate = zlib.compressobj(9)
    packed = b"".join([*(deflate.compress(bytes(side)) for _ in range(side)), deflate.flush()])
    entries = b"/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8" % (side, side)
    picture = stream(packed, entries + b"/ColorSpace/DeviceGray/Filter/FlateDecode")
    return make_pdf(b"500 0 0 500 0 0 cm /Im Do", objects={5: picture})


def endless_form():
    """One whose content draws itself, again and again."""
    form = stream(
        b"/Im Do /Im Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</Im 5 0 R>>>>"
    )
    return make_pdf(b"/Im Do", objects={5: form})


def nested_forms(depth=30):
    """One whose forms draw each other ten times on each level: 10 to the power of `depth` drawings."""
    objects = {}
    for level in range(depth):
        number, content = (
            5 if level == 0 else 1000 + level,
            b"/Im Do " * 10 if level < depth - 1 else b"0 0 1 1 re f",
        )
        resources = b"/Resources<</XObject<</Im %d 0 R>>>>" % (1001 + level)
        objects[number] = stream(content, b"/Type/XObject/Subtype/Form/BBox[0 0 900 900]" + resources)
    return make_pdf(b"/Im Do", objects=objects)


def slow_page(fills=100_000):
    """One whose page is filled from edge to edge again and again: a minute of computing in little memory."""
    return make_pdf(b"0 0 9999 9999 re f\n" * fills)


def endless_pages():
    """One whose tree of pages leads back to its root."""
    return make_pdf("one").replace(b"/Kids[10 0 R]/Count 1", b"/Kids[2 0 R 2 0 R]/Count 50")


def with_actions():
    """One that wants to run a script and a program, and to open a page, when it is opened or looked at."""
    script = b"<</S/JavaScript/JS(app.alert\\(1\\))>>"
    launch = b"<</S/Launch/F(/bin/sh)/Next<</S/URI/URI(http://127.0.0.1:1/)>>>>"
    return make_pdf(
        "harmless",
        catalog=b"/OpenAction " + script + b"/Names<</JavaScript<</Names[(a) " + script + b"]>>>>",
        page=b"/AA<</O " + launch + b">>",
    )
