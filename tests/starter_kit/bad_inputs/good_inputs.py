"""The good inputs that the bad ones are copies of."""

import shutil
from pathlib import Path

from starter_kit.data.imdb_export import export_imdb
from starter_kit.data.parquet_files import export_parquet
from tests.starter_kit.data.sources import sound_documents, sound_receipts
from tests.starter_kit.training_runs import trained


def make_good_inputs(folder: Path, data: Path, base: Path) -> Path:
    """Write one of each input below `folder`, and return it.

    data and base are what a run reads; private and adapters are runs, with a training record and with LoRA; imdb,
    parquet, receipts and docile are what `pfl data` imports.
    """
    shutil.copytree(data, folder / "data")
    shutil.copytree(base, folder / "base")
    trained("fl-provider-dp", base, data, folder / "private", ["rounds=1"])
    trained("lora", base, data, folder / "adapters", ["rounds=1", "clients_per_round=1"])
    export_imdb(data, folder / "imdb")
    export_parquet(data, folder / "parquet")
    sound_receipts(folder / "receipts")
    sound_documents(folder / "docile")
    return folder
