"""The participant's own files of a run: that of the method, and those of plug-ins."""

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.own_files import OwnFile, file_of
from starter_kit.plugin import plugins_in
from starter_kit.settings.run_settings import RunSettings


def own_file(settings: type[RunSettings]) -> OwnFile | None:
    """Return the file that defines the class `settings`; None for one of the kit's methods."""
    return file_of(settings)


def own_files(settings: RunSettings) -> list[OwnFile]:
    """Return the files that the settings name, each once.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Two of them have the same name, by which a run stores them.
    """
    files: dict[str, OwnFile] = {}
    for known in (type(settings), *(type(plugin) for _, plugin in plugins_in(settings))):
        if (file := file_of(known)) is None:
            continue
        if files.setdefault(file.path.name, file).sha256 != file.sha256:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=str(file.path),
                expected="files of different names, as a run folder keeps a copy of each",
                found=f"another {file.path.name} in {files[file.path.name].path.parent}",
                next_step="Rename one of them.",
            )
    return list(files.values())
