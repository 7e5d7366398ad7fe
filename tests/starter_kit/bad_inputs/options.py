"""Options out of range, addresses, tokens and keys, names, and files in the place of folders."""

from tests.starter_kit.bad_inputs.case import (
    Bad,
    made,
    removed,
    written,
)

C = "E_CONFIGURATION"
CHECK = "check private --base base --track track-2 --clients 3"
TRAIN = "train fedavg --data data --base base --out out"
SITE = "token --site {} --token pfl_x"


def site(u):
    return SITE.format(u)


CASES = [
    *(
        Bad(f"check {o}", f"{CHECK} {o}", C, o.split()[0])
        for o in (
            "--budget nan",
            "--budget -1",
            "--budget 0",
            "--budget inf",
            "--delta nan",
            "--delta 0",
            "--delta 2",
            "--delta -1",
        )
    ),
    Bad("check track", "check private --base base --track track-9", C, "--track"),
    *(
        Bad(f"eps {o}", f"privacy epsilon {o}", C, "--")
        for o in (
            "",
            "--noise-multiplier 0",
            "--noise-multiplier nan",
            "--noise-multiplier -1",
            "--noise-multiplier inf",
            "--noise-multiplier 1e-300",
            "--noise-multiplier 1 --rounds 0",
            "--noise-multiplier 1 --rounds -3",
            "--noise-multiplier 1 --rounds 1000000000000000",
            "--noise-multiplier 1 --delta 0",
            "--noise-multiplier 1 --delta nan",
            "--noise-multiplier 1 --delta 1",
            "--noise-multiplier 1 --sampling-rate 2",
            "--noise-multiplier 1 --sampling-rate nan",
            "--noise-multiplier 1 --sampling-rate 0",
            "--noise-multiplier 1 --sampling-rate 1 --client-rate 1",
            "--noise-multiplier 1 --client-rate -1",
        )
    ),
    *(
        Bad(f"noise {o}", f"privacy noise {o}", C, "")
        for o in (
            "0",
            "-4",
            "-4 --rounds 3",
            "nan",
            "inf",
            "1e-12",
            "4 --rounds 0",
            "4 --delta 0",
            "4 --sampling-rate 0",
        )
    ),
    *(
        Bad(f"membership {o}", f"privacy membership --noise-multiplier 1 {o}", C, "--")
        for o in ("--delta 0", "--rounds 0")
    ),
    *(
        Bad(f"compare {o}", f"privacy compare --noise-multiplier 1 {o}", C, "--")
        for o in ("--tuning-runs nan", "--tuning-runs inf", "--delta 0")
    ),
    *(
        Bad(f"site {u[:24]}", site(u), C, "--site")
        for u in (
            "foo",
            "ftp://x",
            "http://",
            "http://[::1",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:abc",
            "http://..",
            "javascript:alert(1)",
            "http://127.0.0.1:1/path?x=1",
            "http://" + "a" * 300,
        )
    ),
    Bad("site none", "token", C, "--site"),
    Bad("token none", "token --site http://127.0.0.1:1", C, "--token"),
    Bad("submissions none", "submissions --site http://127.0.0.1:1", C, "--token"),
    Bad("verify foo", "verify foo", "E_SITE_UNREACHABLE", "foo"),
    Bad("challenges none", "challenges list --site http://127.0.0.1:1", C, "--token"),
    Bad("challenges explain none", "challenges explain a-token because --token pfl_x", C, "--site"),
    Bad("token umlaut", "token --site http://127.0.0.1:1 --token pfl_ä", C, "--token"),
    Bad("token greek", "token --site http://127.0.0.1:1 --token pfl_α", C, "--token"),
    Bad("train site foo", TRAIN + " --site foo --token pfl_x", C, "--site"),
    Bad("key exists", "key create --out file", "E_SIGNING_KEY", "file", written("file", "x")),
    Bad("key below file", "key create --out file/key", "E_SIGNING_KEY", "file", written("file", "x")),
    Bad("key show none", "key show --key nowhere", "E_SIGNING_KEY", "nowhere"),
    Bad("key show text", "key show --key file", "E_SIGNING_KEY", "file", written("file", "x")),
    Bad("key show folder", "key show --key data", "E_SIGNING_KEY", "data"),
    Bad("key show empty", "key show --key file", "E_SIGNING_KEY", "file", written("file", "")),
    Bad(
        "submit nothing",
        "submit nowhere --track track-1 --title x --site http://127.0.0.1:1 --token pfl_x",
        "E_ARTIFACT_MISSING",
        "nowhere",
    ),
    Bad(
        "submit proof none",
        "submit private --track track-2 --title x --proof nowhere --site http://127.0.0.1:1 --token pfl_x",
        "E_ARTIFACT_MISSING",
        "nowhere",
    ),
    Bad("submit publish", "submit private --track track-2 --title x --publish-proof", C, "--publish-proof"),
    Bad(
        "submit private key broken",
        "key register --key file --site foo --token x",
        "E_SIGNING_KEY",
        "file",
        written("file", "x"),
    ),
    *(
        Bad(f"new {n[:9]}", f"new {n}", C, "")
        for n in ("class", "3d", "a--b!", "A", "../x", "a.b", "torch", "a" * 300, "__init__", "ü")
    ),
    Bad("new exists", "new idea", "E_RUN_FOLDER", "idea.py", written("idea.py", "x")),
    Bad("new out file", "new idea --out file", "E_RUN_FOLDER", "file", written("file", "x")),
    Bad("new two", "new idea --codec --hook", C, "pfl new"),
    Bad("new private codec", "new idea --codec --private", C, "pfl new"),
    Bad("notebooks file", "notebooks file", "E_RUN_FOLDER", "file", written("file", "x")),
    Bad("notebooks below", "notebooks file/a", "E_RUN_FOLDER", "file/a", written("file", "x")),
    Bad(
        "notebooks exist",
        "notebooks out",
        "E_RUN_FOLDER",
        "own-method.ipynb",
        written("out/own-method.ipynb", "x"),
    ),
    Bad("base create exists", "base create base", "E_RUN_FOLDER", "base"),
    Bad("base create below", "base create file/a", "E_ARTIFACT_MISSING", "file/a", written("file", "x")),
    *(Bad(f"log {o}", f"{TRAIN} --log {o}", C, "--log") for o in ("board", "=x", "wandb")),
    *(Bad(f"set {o}", f"{TRAIN} --set {o}", C, "--set") for o in ("rounds", "=3", "rounds=", "local=null")),
    *(
        Bad(f"sweep {g[:12]}", f"sweep fedavg --data data --base base --out out --grid {g}", C, "--")
        for g in (
            "rounds",
            "rounds=",
            "=1",
            "rounds=a",
            "nothing=1,2",
            "rounds=[",
            "seed=" + ",".join(map(str, range(1001))),
            "rounds=1,1",
        )
    ),
    Bad(
        "sweep private",
        "sweep fl-provider-dp --data data --base base --out out --grid rounds=1,2",
        C,
        "sweep",
    ),
    Bad(
        "sweep file",
        "sweep fedavg --data data --base base --out file --grid rounds=1",
        "E_RUN_FOLDER",
        "file",
        written("file", "x"),
    ),
    Bad(
        "sweep other",
        "sweep fedavg --data data --base base --out out --grid rounds=1",
        "E_RUN_FOLDER",
        "settings.yaml",
        written("out/001/settings.yaml", "x"),
    ),
    Bad(
        "sweep empty folder",
        "sweep fedavg --data data --base base --out out --grid rounds=1",
        "E_RUN_FOLDER",
        "001",
        made("out/001"),
    ),
    Bad(
        "sweep no valid",
        "sweep fedavg --data data --base base --out out --grid rounds=1",
        "E_DATASET_FORMAT",
        "valid",
        removed("data/valid"),
    ),
    Bad(
        "sweep no base",
        "sweep fedavg --data data --base nowhere --out out --grid rounds=1",
        "E_REFERENCE_FORMAT",
        "nowhere",
    ),
    Bad("conformance nothing", "conformance nothing", C, "nothing"),
    *(
        Bad(f"node {o}", f"federate node fedavg --data data --base base {o}", C, w)
        for o, w in (
            ("--client 9", "clients of the node"),
            ("--client -1", "clients of the node"),
            ("--client 0 --client 0", "--client"),
            ("--client 0 --server foo", "address"),
            ("--client 0 --server :1", "address"),
            ("--client 0 --server a:99999", "address"),
            ("--client 0 --server 127.0.0.1:1 --authority nowhere", "authority"),
            ("--client 0 --server 127.0.0.1:1 --node-key nowhere", "node-key"),
        )
    ),
    *(
        Bad(f"server {o}", f"federate server fedavg --data data --base base --out out {o}", C, w, s)
        for o, w, s in (
            ("--certificate file", "--certificate", written("file", "x")),
            (
                "--certificate file --certificate-key file --authority file",
                "--certificate",
                written("file", "x"),
            ),
            ("--node-keys file", "--certificate", written("file", "x")),
            ("--host 0.0.0.0", "--certificate", lambda f: 0),
        )
    ),
    Bad("federate app exists", "federate app data", "E_RUN_FOLDER", "data"),
    Bad(
        "run token newline",
        "train fl-provider-dp --data data --base base --out out --run-token a\nb",
        C,
        "--run-token",
    ),
    Bad(
        "run token long",
        "train fl-provider-dp --data data --base base --out out --run-token " + "a" * 10000,
        C,
        "--run-token",
    ),
    *(
        Bad(f"devices {o}", f"train {o} --data data --base base --out out", C, "--devices")
        for o in (
            "fedavg --devices gpu",
            "fedavg --devices cpu,",
            "fedavg --devices cuda:0,cuda:1",
            "client-dp --devices cpu,cpu",
            "client-dp --devices cpu,cpu,cpu --processes 2",
        )
    ),
    Bad("run track", "train fl-provider-dp --data data --base base --out out --track T/2", C, "--track"),
    Bad(
        "run key",
        "train fl-provider-dp --data data --base base --out out --key file",
        "E_SIGNING_KEY",
        "file",
        written("file", "x"),
    ),
    Bad("official both", "train fedavg -m VT5 --data data --base base --out out", C, "CONFIG"),
    Bad("official none", "train -m VT5 --data data --base base --out out", C, "VT5"),
    Bad(
        "official empty",
        "train VT5.yml --data data --base base --out out",
        C,
        "VT5.yml",
        written("VT5.yml", "model_name: VT5\n"),
    ),
    Bad(
        "official wrong",
        "train VT5.yml --data data --base base --out out",
        C,
        "fl_parameters",
        written("VT5.yml", "model_name: VT5\nfl_parameters: 3\n"),
    ),
    Bad(
        "official other",
        "train VT5.yml --data data --base base --out out",
        C,
        "VT5.yml",
        written(
            "VT5.yml",
            "model_name: LayoutLM\nfl_parameters: {sample_clients: 2, num_rounds: 2}\n",
        ),
    ),
    Bad(
        "official total",
        "train VT5.yml --data data --base base --out out",
        C,
        "VT5.yml",
        written(
            "VT5.yml",
            "model_name: VT5\nfl_parameters: {sample_clients: two, num_rounds: 2}\n",
        ),
    ),
]
