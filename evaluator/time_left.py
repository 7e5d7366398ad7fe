"""How long a step still takes, in words: the site and `pfl submit --wait` say it alike."""

MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400


def in_words(remaining_s: float | None) -> str:
    """Such as "about 4 min left", no finer than such an estimate is good for; nothing where it is not known."""
    if remaining_s is None:
        return ""
    if remaining_s < MINUTE_S:
        return "less than a minute left"
    minutes = round(remaining_s / MINUTE_S)
    if minutes < 60:
        return f"about {minutes} min left"
    hours, tens = divmod(round(remaining_s / (10 * MINUTE_S)), 6)
    if hours < 10:
        return f"about {hours} h {f'{tens}0 min ' if tens else ''}left"
    hours = round(remaining_s / HOUR_S)
    return f"about {hours} h left" if hours < 48 else f"about {round(remaining_s / DAY_S)} days left"
