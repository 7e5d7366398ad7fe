from docvqa_site.boards.uncertainty import RankRange, RankRanges

INTERVALS = [(0.80, 0.90), (0.78, 0.88), (0.60, 0.79), (0.10, 0.20)]


def test_rows_rank_apart_where_their_intervals_do_not_overlap():
    ranges = RankRanges.among(INTERVALS)
    assert [ranges.of(*interval) for interval in INTERVALS] == [
        RankRange(1, 2),
        RankRange(1, 3),
        RankRange(2, 3),
        RankRange(4, 4),
    ]


def test_intervals_that_touch_overlap():
    ranges = RankRanges.among([(0.5, 0.6), (0.6, 0.7)])
    assert ranges.of(0.5, 0.6) == ranges.of(0.6, 0.7) == RankRange(1, 2)


def test_a_score_without_an_interval_could_have_any_rank():
    ranges = RankRanges.among([*INTERVALS, (None, None)])
    assert ranges.of(None, None) == RankRange(1, 5)


def test_a_range_is_read_as_its_ends():
    assert (str(RankRange(1, 4)), str(RankRange(2, 2))) == ("1–4", "2")


def test_ranges_are_the_same_after_a_cache():
    ranges = RankRanges.among([*INTERVALS, (None, None)])
    assert RankRanges.from_text(ranges.as_text()) == ranges
    assert RankRanges.from_text(RankRanges.among([]).as_text()) == RankRanges.among([])
