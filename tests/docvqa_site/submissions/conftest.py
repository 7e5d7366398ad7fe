import pytest

from tests.docvqa_site.factories import make_run, make_submission, make_team


@pytest.fixture(autouse=True)
def store_folder(settings, tmp_path):
    """A store of one's own, with parts so small that a few bytes make several."""
    settings.STORE_FOLDER = tmp_path / "store"
    settings.UPLOAD_PART_SIZE_BYTES = 10
    return settings.STORE_FOLDER


@pytest.fixture
def draft(live_server):
    return make_run(make_submission(make_team(), title="FedAvg")).submission


@pytest.fixture
def complaints():
    return []


@pytest.fixture
def open_page(browser, live_server, client, draft, complaints):
    """Opens the draft as a member of its team; what the browser complains about is collected."""
    client.force_login(draft.created_by)
    contexts = []

    def open_it(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        session = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = context.new_page()
        # Before anything is pressed, the browser reports its file choosers instead of opening them.
        page.on("filechooser", lambda _: None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: "Content Security" in line.text and complaints.append(line.text))
        page.goto(live_server.url + draft.get_absolute_url())
        return page

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def member(team, client):
    client.force_login(team.memberships.get().user)
    return client
