"""Plots as pages have them: lines, marks and a level where the axes say, and everything in words and numbers too."""

import re
from itertools import combinations, pairwise
from math import dist

from docvqa_site.ui.axes import linear, logarithmic, stretch
from docvqa_site.ui.labels import Box, text_width
from docvqa_site.ui.plots import CAP, TARGET, TICK_GAP, Level, Line, Mark, Plot, draw

FIELDS: dict[str, object] = {
    "name": "bytes",
    "title": "Bytes against rounds",
    "x": logarithmic("rounds", [1, 100]),
    "y": linear("bytes", [0, 1]),
    "columns": ["Rounds", "Bytes"],
    "rows": [("1", "0.5"), ("100", "<1>")],
}


def plot(**parts: object) -> str:
    return " ".join(draw(Plot(**(FIELDS | parts))).split())  # type: ignore[arg-type]


def test_a_line_has_its_corners_in_the_area_and_its_label_in_the_key() -> None:
    html = plot(lines=[Line("front", [(1, 0), (100, 1)], "best")])
    assert '<polyline class="plot-line plot-front" points="58.0,274.0 524.0,30.0"/>' in html
    assert "</svg>best</li>" in html
    assert "Line: best." in html


def test_a_stepped_line_keeps_each_value_until_the_next_one_and_the_last_to_the_end() -> None:
    html = plot(lines=[Line("front", [(1, 0), (10, 1)], is_stepped=True)])
    assert 'points="58.0,274.0 291.0,274.0 291.0,30.0 524,30.0"' in html
    assert 'points="54.0,244.0 185.0,244.0 185.0,30.0 316,30.0"' in html


def test_lines_of_one_label_are_once_in_the_key() -> None:
    assert (
        plot(lines=[Line("thin", [(1, 0), (2, 1)], "one line per method")] * 3).count(
            "one line per method</li>"
        )
        == 1
    )


def test_a_mark_with_an_address_is_a_link_and_others_are_not() -> None:
    linked = plot(marks=[Mark((1, 0.5), "front", "A & B", "/a/", "A", is_hollow=True)])
    assert '<svg class="plot-wide" role="group"' in linked
    assert '<a href="/a/" aria-label="A &amp; B"><title>A &amp; B</title>' in linked
    assert 'plot-hollow" cx="58.0" cy="152.0"' in linked
    assert ">A</text>" in linked
    plain = plot(marks=[Mark((1, 0.5), "front")])
    assert '<svg class="plot-wide" role="img"' in plain
    assert "<a " not in plain


def test_targets_are_24_wide_and_none_overlaps_another() -> None:
    marks = [Mark((10 ** (step / 40), 0.5), "front", f"Run {step}", f"/{step}/") for step in range(80)]
    for drawing in Plot(**FIELDS, marks=marks).drawings:  # type: ignore[arg-type]
        places = [target.place for target in drawing.targets]
        assert 5 < len(places) < 80
        assert min(dist(one, other) for one, other in combinations(places, 2)) >= TARGET
        assert sum(len(target.marks) for target in drawing.targets) == 80
    assert plot(marks=marks).count(f'r="{TARGET // 2}"') > 5


def test_names_cover_neither_each_other_nor_a_mark_and_stay_inside() -> None:
    marks = [
        Mark((10 ** (step / 5), (step % 5) / 5), "front", f"Method {step}", f"/{step}/", f"Method {step}")
        for step in range(11)
    ]
    for drawing in Plot(**FIELDS, marks=marks).drawings:  # type: ignore[arg-type]
        labels = drawing.labels
        boxes = [one.box for one in labels]
        assert len(boxes) >= 3
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        dots = [Box.around(place, mark.radius) for mark, place in drawing.circles]
        assert not any(box.overlaps(dot) for box in boxes for dot in dots)
        assert all(box.left >= drawing.frame.left and box.right <= drawing.frame.width for box in boxes)


def test_a_name_ends_beside_its_mark_where_it_is_left_of_it_and_off_its_interval() -> None:
    lines = [Line("whisker", [(100, 0.3), (100, 0.7)], "95% interval", is_interval=True)]
    marks = [Mark((100, 0.5), "front", "", "/a/", "A method of two teams")]
    for drawing in Plot(**FIELDS, lines=lines, marks=marks).drawings:  # type: ignore[arg-type]
        [label], [(_, (x, _))] = drawing.labels, drawing.circles
        assert label.anchor == "end"
        # Past the end of the interval, with the border of the letters.
        assert x - 14 <= label.x < x - CAP - 2
    assert f'x="{label.x}" y="{label.y}" text-anchor="end"' in plot(lines=lines, marks=marks)


def test_a_name_lies_across_no_line_as_long_as_it_has_room_elsewhere() -> None:
    lines = [Line("thin", [(10, 0.5), (100, 0.6)], "one line per method")]
    named = Mark((10, 0.45), "front", "", "/a/", "A method")
    for drawing in Plot(**FIELDS, lines=lines, marks=[named]).drawings:  # type: ignore[arg-type]
        [label], [(_, (start, end))] = drawing.labels, drawing.lines
        assert not label.box.is_crossed(start, end)


def test_ticks_without_room_are_left_out_in_the_narrow_drawing() -> None:
    x = stretch("day", range(8), "{:d} November 2026".format)
    wide, narrow = Plot(**(FIELDS | {"x": x})).drawings  # type: ignore[arg-type]
    assert len(list(narrow.x_ticks)) < len(list(wide.x_ticks)) < 8


def test_the_text_of_a_tick_stays_in_sight_at_the_edge_of_a_phone() -> None:
    x = stretch("day", [0, 1], "Nov {:02d}, 13:26".format)
    for drawing in Plot(**(FIELDS | {"x": x})).drawings:  # type: ignore[arg-type]
        *_, last = drawing.x_ticks
        assert last.text_at + text_width(last.text) / 2 <= drawing.frame.width + TICK_GAP
        assert last.text_at <= last.at < drawing.right


def test_a_level_lies_across_with_its_text_and_shades_the_area_below_it() -> None:
    html = plot(level=Level(0.5, "half", is_shaded=True))
    assert 'x1="58" x2="524" y1="152.0" y2="152.0"' in html
    assert 'height="122.0"' in html
    assert "Horizontal line: half." in html


def test_a_table_has_the_numbers() -> None:
    html = plot()
    assert re.findall(
        r"<th scope=\"row\">([^<]+)</th><td class=\"num\" data-label=\"[^\"]+\">([^<]+)</td>", html
    ) == [
        ("1", "0.5"),
        ("100", "&lt;1&gt;"),
    ]


def test_without_plots_nothing_is_drawn() -> None:
    assert draw() == draw(None) == ""


def test_marks_that_share_a_target_are_named_together_as_far_as_there_is_room() -> None:
    marks = [
        Mark((10, 0.5), "front", name, f"/{name}/", name)
        for name in ("FedAvg", "A method with a long name", "Another with a long name")
    ]
    wide, narrow = Plot(**FIELDS, marks=marks).drawings  # type: ignore[arg-type]
    assert [label.text for label in wide.labels] == [", ".join(mark.name for mark in marks)]
    assert [label.text for label in narrow.labels] == ["FedAvg +2"]


def test_the_ends_of_an_interval_reach_past_the_mark_that_covers_it() -> None:
    html = plot(
        lines=[Line("whisker", [(10, 0.49), (10, 0.51)], "95% interval", is_interval=True)],
        marks=[Mark((10, 0.5), "front")],
    )
    corners = [
        tuple(map(float, corner.split(",")))
        for corner in re.findall(r'plot-whisker" points="([^"]+)"', html)[0].split()
    ]
    mark = Mark((10, 0.5), "front")
    at = re.search(r'plot-front" cx="([\d.]+)"', html)
    assert at
    for end in {y for _, y in corners}:
        across = [x for x, y in corners if y == end]
        assert min(across) < float(at[1]) - mark.radius - 1
        assert max(across) > float(at[1]) + mark.radius + 1


def test_the_text_of_a_level_is_where_neither_a_line_nor_a_mark_is() -> None:
    level = Level(0.5, "budget, ε = 1")
    rising = Line("two-stage", [(1, 0), (100, 0.6)])
    for lines, point in (([], (100, 0.5)), ([rising], (80, 0.52)), ([], (1, 0.5))):
        marks = [Mark(point, "two-stage")]
        for drawing in Plot(**FIELDS, lines=lines, marks=marks, level=level).drawings:  # type: ignore[arg-type]
            label = drawing.level_label
            assert label
            assert label.anchor == ("start" if point[0] > 1 else "end")
            ((_, place),) = drawing.circles
            assert not label.box.overlaps(Box.around(place, marks[0].radius))
            for _, corners in drawing.lines:
                assert not any(label.box.is_crossed(*part) for part in pairwise(corners))
