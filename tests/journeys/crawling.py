"""A crawl as one of a site's people."""

import requests

from docvqa_site.calculator.presets import presets
from tests.journeys.crawl import Crawl, Fault, processor_time
from tests.journeys.sites import Site


def crawl_as(site: Site, name: str, *, each: int) -> list[Fault]:
    """Open every address that a page leads to, as one of the people or as a visitor. Returns what is broken.

    Args:
        each: How many addresses of one kind are opened.
    """
    with requests.Session() as session:
        session.cookies.update(site.cookies(name))
        # A bundle that the environment names would take the place of this one.
        session.trust_env = False
        session.verify = site.variables.get("REQUESTS_CA_BUNDLE", True)
        # The accountants are loaded for the first who asks for an ε.
        session.get(site.url + next(iter(presets().values())), timeout=60)
        cpu_s = processor_time(site.stack.processes["web"].pid)
        return Crawl(site.url, session, each=each, cpu_s=cpu_s, known=site.known).run("/")
