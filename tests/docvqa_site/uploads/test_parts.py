from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.parts import MAX_PARTS, Part, as_ranges, missing_parts, part_size_bytes


@given(size=st.integers(1, 10**15), smallest=st.integers(1, 10**9))
def test_no_file_has_more_than_ten_thousand_parts(size, smallest):
    part = part_size_bytes(size, smallest)
    assert part >= smallest
    assert -(-size // part) <= MAX_PARTS
    assert part == smallest or -(-size // (part // 2)) > MAX_PARTS  # and none is larger than it has to be


@given(size=st.integers(1, 10**7), part=st.integers(1, 10**6))
def test_the_parts_of_an_upload_add_up_to_the_file(size, part):
    upload = Upload(size_bytes=size, part_size_bytes=part)
    first, last = upload.part_size(1), upload.part_size(upload.parts_total)
    assert (upload.parts_total - 1) * part + last == size
    assert 0 < last <= part
    assert upload.parts_total == 1 or first == part


def test_a_part_of_another_size_counts_as_missing():
    stored = [Part(1, 10, ""), Part(2, 9, ""), Part(4, 3, "")]
    assert missing_parts([10, 10, 10, 3], stored) == [2, 3]


def test_numbers_are_shown_as_ranges():
    assert as_ranges([1, 2, 3, 7, 9, 10]) == "1–3, 7, 9–10"
