import pytest

from starter_kit.data.folding import fold_company, squeeze


@pytest.mark.parametrize(
    "spelling",
    [
        "Kedai Ah Kow Sdn Bhd",
        "KEDAI AH KOW SDN. BHD.",
        "KEDAI AH KOW S/B",
        "KEDAI  AH-KOW SDN.BHD",
        "KEDAI AH KOW SB",
    ],
)
def test_spellings_of_one_company_fold_alike(spelling: str) -> None:
    assert fold_company(spelling) == fold_company("KEDAI AH KOW SDN BHD")


@pytest.mark.parametrize(
    "other",
    [
        "KEDAI AH KOW BHD",
        "KEDAI AH KOW",
        "KEDAI AH KOM SDN BHD",
        "KEDAI AH KOW (M) SDN BHD",
        "KEDAI AH KOWSB",
    ],
)
def test_another_company_stays_another(other: str) -> None:
    assert fold_company(other) != fold_company("KEDAI AH KOW SDN BHD")


def test_unicode_forms_of_one_name_fold_alike_and_vowel_signs_count() -> None:
    assert fold_company("Cafe\u0301 ＡＢ") == fold_company("CAFÉ AB")
    assert fold_company("कि") != fold_company("की")


def test_a_name_of_punctuation_alone_is_kept() -> None:
    assert fold_company("***") == "***"


def test_squeezing_ignores_case_and_white_space_only() -> None:
    assert squeeze(" Jalan  ÄÖ\t1 ") == "jalanäö1"
    assert squeeze("1,2") != squeeze("12")
