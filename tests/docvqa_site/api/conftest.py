import pytest


@pytest.fixture(autouse=True)
def store_folder(settings, tmp_path):
    """A store of one's own, with parts so small that a few bytes make several."""
    settings.STORE_FOLDER = tmp_path / "store"
    settings.UPLOAD_PART_SIZE_BYTES = 10
    return settings.STORE_FOLDER
