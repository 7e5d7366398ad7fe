"""The public pages that every site has, whatever is in its database: what search engines and the site's search list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FixedPage:
    """A page with one address.

    Attributes:
        view: The name of its address.
        about: What it shows, in the words by which people search for it.
        synonyms: Other words for it by which people search.
    """

    view: str
    heading: str
    about: str
    synonyms: str = ""


FIXED_PAGES = (
    FixedPage(
        "home",
        "Home",
        "What the benchmark is, how to take part, the leaders of both leaderboards, and news.",
    ),
    FixedPage(
        "leaderboard:index",
        "Leaderboards",
        "Ranks, scores and best methods of all tracks, with CSV and JSON downloads.",
    ),
    FixedPage(
        "challenge:list",
        "Tracks",
        "Rules, deadlines, phases, and how to take part and submit.",
    ),
    FixedPage(
        "results:list",
        "Final results",
        "Standings of closed, finished phases, with winners, snapshots, hashes and citations.",
    ),
    FixedPage(
        "downloads:data",
        "Data and downloads",
        "Download the data set, base weights and starter kit, with licenses and hashes.",
    ),
    FixedPage(
        "docs:contents",
        "Documentation",
        "Guides for participants, reviewers, organizers and method authors; references.",
    ),
    FixedPage(
        "calculator:calculator",
        "Privacy calculator",
        "Compute epsilon, ε, or the noise multiplier for a privacy budget.",
    ),
    FixedPage("news:list", "News", "Announcements and changes of rules."),
    FixedPage(
        "participation",
        "Participation statistics",
        "The numbers of participants, teams and countries; registrations, downloads and submissions by month.",
        "people registered take part",
    ),
    FixedPage(
        "about:contact",
        "Contact",
        "Who organizes this site, where to ask, and how to report vulnerabilities.",
        "organizers operators address email help support runs",
    ),
    FixedPage(
        "about:cite",
        "How to cite",
        "Citation and BibTeX of the papers, the data set, this benchmark and its results.",
    ),
    FixedPage(
        "about:privacy",
        "Privacy notice",
        "Personal data: what is stored, who sees it, how long it is kept, and your rights.",
        "GDPR cookies",
    ),
    FixedPage(
        "about:conduct",
        "Code of conduct",
        "What participants, reviewers and organizers expect of each other.",
    ),
    FixedPage(
        "api-docs",
        "API",
        "The HTTP interface for programs: endpoints, tokens and the OpenAPI schema.",
    ),
)
