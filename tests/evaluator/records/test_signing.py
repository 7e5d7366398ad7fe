"""Keys: made once, private, and distinguished from anything else."""

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.signing import create_key, is_public_key, load_key, public_key_of, sign, verifies

HEAD = "ab" * 32


def test_a_key_is_loaded_as_it_was_made_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "key.pem"
    before = os.umask(0)
    try:
        key = create_key(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public_key_of(load_key(path)) == public_key_of(key)
    assert path.read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    create_key(path)
    kept = path.read_bytes()
    with pytest.raises(ProblemError) as rejected:
        create_key(path)
    assert rejected.value.problem.code is ErrorCode.SIGNING_KEY
    assert path.read_bytes() == kept


@pytest.mark.parametrize(
    "y",
    [0, 1, 2**255 - 20, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7, 2**255 - 19],
)
def test_a_key_for_which_anybody_can_sign_is_none(y: int) -> None:
    assert not is_public_key(y.to_bytes(32, "little").hex())
    signature = (1).to_bytes(32, "little") + bytes(32)
    assert not verifies(y.to_bytes(32, "little").hex(), HEAD, signature.hex())


def other_keys() -> dict[str, bytes]:
    curve = ec.generate_private_key(ec.SECP256R1())
    encrypted = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")
    )
    return {
        "nothing": b"",
        "a letter": b"Dear Sir",
        "binary": bytes(range(256)) * 100,
        "another curve": curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "encrypted": encrypted,
    }


@pytest.mark.parametrize("kind", ["nothing", "a letter", "binary", "another curve", "encrypted"])
def test_what_is_no_key_is_rejected(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(other_keys()[kind])
    with pytest.raises(ProblemError) as rejected:
        load_key(path)
    assert rejected.value.problem.code is ErrorCode.SIGNING_KEY


def test_a_missing_file_or_folder_is_rejected_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for use, path in ((load_key, tmp_path / "key.pem"), (create_key, tmp_path / "file" / "key.pem")):
        with pytest.raises(ProblemError) as rejected:
            use(path)
        assert rejected.value.problem.code is ErrorCode.SIGNING_KEY
        assert "key.pem" in rejected.value.problem.where


def test_a_signature_is_for_one_key_one_head_and_records_only() -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    signature = sign(key, HEAD)
    assert verifies(public_key_of(key), HEAD, signature)
    assert not verifies(public_key_of(other), HEAD, signature)
    assert not verifies(public_key_of(key), "cd" * 32, signature)
    bare = key.sign(bytes.fromhex(HEAD)).hex()
    assert not verifies(public_key_of(key), HEAD, bare)
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key_of(key)))
    public.verify(bytes.fromhex(signature), b"pfl-dp-record/3 signature\n" + bytes.fromhex(HEAD))
