"""A replay of anybody's code: it can't read what it is compared with, nor change the comparison."""

from pathlib import Path

from evaluator.errors import ErrorCode
from evaluator.messages.examinations import ReplayFindings
from evaluator.sandbox.sandbox import Sandbox
from starter_kit.examining.confined import Confined
from starter_kit.examining.replay import replay_confined
from starter_kit.runs.opened_round import open_rounds
from starter_kit.settings.config_files import find_config
from tests.starter_kit.replay.opened_runs import CHALLENGE, SAMPLED, inputs_of, replayable_run

METHOD = '''
from starter_kit.methods import fl_provider_dp


class Settings(fl_provider_dp.Settings):
    """FL-PROVIDER-DP, as a file of one's own."""
'''
# When it is replayed, beside the run's settings, every comparison that it can reach is true, and nothing is divided.
HOSTILE = """
from pathlib import Path

if Path(__file__).parent.name == "run":
    from starter_kit.replay import comparison, examination
    comparison._same = lambda *_: True
    comparison.Comparison.sums_agree = property(lambda self: True)
    examination.examine = lambda *_: None
    Settings.extend = lambda self, method, clients: __import__("dataclasses").replace(method, divisor=1.0)
"""


def test_a_method_file_is_replayed_in_the_sandbox_and_gains_nothing_by_what_it_does_there(
    base: Path, data: Path, tmp_path: Path
) -> None:
    found = {}
    with Sandbox() as sandbox:
        for name, code in (("honest", METHOD), ("hostile", METHOD + HOSTILE)):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "method.py").write_text(code)
            config = find_config("fl-provider-dp").read_text()
            (folder / "method.yaml").write_text(config.replace("method: fl-provider-dp", "method: method.py"))
            run = replayable_run(base, data, folder / "run", SAMPLED, str(folder / "method.yaml"))
            (run.path / "method.py").write_text(code)
            open_rounds(run.path, CHALLENGE)
            inputs = inputs_of(run, base, data)
            found[name] = replay_confined(inputs, Confined(sandbox), hours=0.1)
        (run.path / "method.py").write_text(METHOD)
        found["another"] = replay_confined(inputs, Confined(sandbox), hours=0.1)
    assert found["honest"] == (ReplayFindings(challenge=CHALLENGE, rounds=[1, 2], of=2, exact=True), [])
    assert [problem.code for problem in found["hostile"].problems] == [ErrorCode.REPLAY_STEP]
    assert [problem.code for problem in found["another"].problems] == [ErrorCode.REPLAY_CODE]
