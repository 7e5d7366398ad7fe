"""The figures of made-up curves, and the curve of a real run."""

from pathlib import Path

from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.curves import (
    FIGURES,
    ROWS,
    Convergence,
    Curve,
    Curves,
    Point,
    comparisons,
    in_words,
    picture,
    pictures,
)
from tests.studies.tiny_vt5.origin import read_origin


def curve(row: str, seed: int, *scores: float) -> Curve:
    points = [Point(round=number, anls=score, accuracy=score / 2) for number, score in enumerate(scores)]
    return Curve(row=row, seed=seed, points=points, settings_sha256="a" * 64, made_with="kit 1")


def curves(*changed: Curve) -> Curves:
    """Two seeds of every row, all of which rise alike in two rounds, but for the changed ones."""
    found = {(row, seed): curve(row, seed, 0.4, 0.5, 0.6) for row in ROWS for seed in (1, 2)}
    found |= {(one.row, one.seed): one for one in changed}
    return Curves(base=read_origin(), task=FormSettings(), curves=list(found.values()))


def test_rows_are_compared_after_the_last_round_that_both_have_and_at_the_end() -> None:
    faster = [curve("fedavg-published", seed, 0.4, 0.5, 0.6, 0.8) for seed in (1, 2)]
    faster += [curve("fedshampoo", 1, 0.4, 0.5, 0.7)]
    anls = comparisons(curves(*faster))[1]
    assert anls == (
        "| A.3 | FedAvg as published < FedShampoo in ANLS | round 2: +0.0500, 1 of 2 seeds | -0.1500, 0 of 2 seeds |"
    )


def test_a_figure_is_drawn_once_all_of_its_rows_have_curves() -> None:
    found = curves()
    assert pictures(found) == list(FIGURES)
    some = [one for one in found.curves if one.row != "dp-clgecl-4"]
    assert pictures(found.model_copy(update={"curves": some})) == ["A.3", "A.5"]


def test_a_picture_says_in_words_what_it_shows_and_is_the_same_for_the_same_curves() -> None:
    found = curves(curve("dp-clgecl-8", 1, 0.4, 0.5, 0.8), curve("dp-clgecl-8", 2, 0.4, 0.5, 0.8))
    assert "DP-CLGECL, ε = 8 from 0.400 to 0.800 in 2 rounds" in in_words(found, "A.4")
    for figure, panels in FIGURES.items():
        drawn = picture(found, figure)
        assert in_words(found, figure).split(". ")[0] in drawn
        assert drawn.count('<g id="axes_') == len(panels)
    assert drawn == picture(found, figure)


def test_every_round_of_a_run_is_scored_and_no_run_is_trained_twice(tmp_path: Path) -> None:
    task = FormSettings(providers=10, clients=10, valid_forms=4, test_forms=8)
    said: list[str] = []

    def run(earlier: Curves | None) -> Curves:
        *_, found = Convergence(tmp_path, 1, rows=("dp-clgecl-1",), task=task, say=said.append).run(earlier)
        return found

    found = run(None)
    (only,) = found.curves
    assert [point.round for point in only.points] == [0, 1, 2, 3, 4]
    assert len({point.anls for point in only.points}) > 1
    assert len(said) == 1
    assert run(found) == found
    assert len(said) == 1
