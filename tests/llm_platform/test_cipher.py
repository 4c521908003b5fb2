"""What is encrypted at rest can be read back by whoever has the secret, and by nobody else."""

import asyncio
import stat
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from moot.modules.llm_platform.domain.model_config import SecretUnreadable
from moot.modules.llm_platform.infrastructure.config_repository import Cipher, cipher_for
from moot.shared.domain.errors import Unavailable

NO_SECRET = SecretStr("")
CANARY = "canary-of-the-cipher-0001"


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize("secret", ["x", "口令", "a passphrase with spaces", "k" * 500])
def test_any_text_is_a_secret(secret):
    token = Cipher(secret).encrypt(CANARY)
    assert CANARY not in token
    assert Cipher(secret).decrypt(token) == CANARY


def test_the_same_text_is_never_encrypted_to_the_same_token():
    cipher = Cipher("one")
    assert cipher.encrypt(CANARY) != cipher.encrypt(CANARY)


@pytest.mark.parametrize("token", ["", "not a token", "口令", Cipher("another").encrypt(CANARY)])
def test_what_another_secret_encrypted_says_what_to_do(token):
    with pytest.raises(SecretUnreadable) as refused:
        Cipher("one").decrypt(token)
    assert isinstance(refused.value, Unavailable)
    assert "MOOT_SECRET_KEY" in refused.value.in_locale("en-US")
    assert "MOOT_SECRET_KEY" in refused.value.in_locale("zh-CN")


def test_an_empty_secret_is_none():
    with pytest.raises(ValueError, match="empty"):
        Cipher("").encrypt(CANARY)


def test_a_secret_of_the_settings_leaves_no_file(bare_home):
    token = cipher_for(SecretStr("given"), bare_home).encrypt(CANARY)
    assert Cipher("given").decrypt(token) == CANARY
    assert list(bare_home.iterdir()) == []


def test_without_one_a_file_is_made_when_it_is_first_needed(home):
    place = home / "new" / "place"
    cipher = cipher_for(NO_SECRET, place)
    assert not place.exists()
    token = cipher.encrypt(CANARY)
    assert [file.name for file in place.iterdir()] == ["secret.key"]
    assert mode(place / "secret.key") == 0o600
    assert len((place / "secret.key").read_text()) >= 40
    assert cipher_for(NO_SECRET, place).decrypt(token) == CANARY


async def test_however_many_make_it_at_once_there_is_one_secret(bare_home):
    ciphers = [cipher_for(NO_SECRET, bare_home) for _ in range(16)]
    tokens = await asyncio.gather(*(asyncio.to_thread(cipher.encrypt, CANARY) for cipher in ciphers))
    assert [Cipher((bare_home / "secret.key").read_text()).decrypt(token) for token in tokens] == [
        CANARY
    ] * 16
    assert [file.name for file in bare_home.iterdir()] == ["secret.key"]


def test_one_who_comes_second_takes_what_the_first_one_made(home, monkeypatch):
    """The file appears after the look and before the link."""
    (home / "secret.key").write_text("made by the first")
    monkeypatch.setattr(Path, "exists", lambda self: False)
    token = cipher_for(NO_SECRET, home).encrypt(CANARY)
    assert Cipher("made by the first").decrypt(token) == CANARY


def test_a_file_others_can_read_is_closed_to_them(home):
    file = home / "secret.key"
    file.write_text("kept before\n")
    file.chmod(0o644)
    with capture_logs() as logs:
        token = cipher_for(NO_SECRET, home).encrypt(CANARY)
    assert mode(file) == 0o600
    assert Cipher("kept before").decrypt(token) == CANARY
    assert [line["log_level"] for line in logs] == ["warning"]
    assert "kept before" not in str(logs)


def test_an_empty_file_is_not_taken_for_a_secret(home):
    (home / "secret.key").touch(mode=0o600)
    with pytest.raises(Unavailable, match="is empty"):
        cipher_for(NO_SECRET, home).encrypt(CANARY)


def test_a_home_that_is_no_folder_says_so(home):
    (home / "file").write_text("")
    with pytest.raises(Unavailable, match=r"secret\.key: .*MOOT_SECRET_KEY"):
        cipher_for(NO_SECRET, home / "file").encrypt(CANARY)
