"""Oblivious HTTP: the example of RFC 9458, constant sizes, and what must not open."""

import json
from pathlib import Path

import pytest

from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.errors import InvalidSpec, OpenFailed, ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse, padded, write_integer
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.ohttp import (
    OVERHEAD,
    Gateway,
    KeyConfig,
    encapsulate,
    read_keys,
    request_enc,
    write_keys,
)

RFC: dict[str, str] = json.loads((Path(__file__).parents[4] / "spec/vectors/ohttp.json").read_text())["rfc"]


def as_coins(content: str) -> ScriptedCoins:
    raw = bytes.fromhex(content)
    return ScriptedCoins([int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)])


def test_the_example_of_the_rfc():
    gateway = Gateway(1, HpkeKey(bytes.fromhex(RFC["sk_r"])))
    config = KeyConfig.from_bytes(bytes.fromhex(RFC["key_config"]))
    assert config == gateway.config
    request = BinaryRequest("GET", "https", "example.com", "/")
    # The RFC's message is cut off after the path: what follows would be empty.
    assert BinaryRequest.from_bytes(bytes.fromhex(RFC["request"])) == request
    assert request.to_bytes(multiple=1).hex() == RFC["request"] + "000000"
    sent, waiting = encapsulate(config, bytes.fromhex(RFC["request"]), as_coins(RFC["sk_e"]))
    assert sent.hex() == RFC["encapsulated_request"]
    opened, answer = gateway.open(sent)
    assert opened.hex() == RFC["request"]
    sealed = answer.seal(bytes.fromhex(RFC["response"]), as_coins(RFC["response_nonce"]))
    assert sealed.hex() == RFC["encapsulated_response"]
    assert BinaryResponse.from_bytes(waiting.open(sealed)) == BinaryResponse(200)
    assert request_enc(sent).hex() == RFC["pk_e"]


def test_key_lists_are_read_and_written():
    configs = [KeyConfig(i, HpkeKey.draw(ReplayCoins(bytes([i]))).public) for i in (1, 255)]
    written = write_keys(configs)
    assert read_keys(written) == configs and len(written) == 2 * (2 + 41)
    foreign = bytes([7]) + b"\x00\x10" + bytes(36) + b"\x00\x04\x00\x01\x00\x01"
    assert read_keys(len(foreign).to_bytes(2, "big") + foreign + written) == configs
    with pytest.raises(InvalidSpec, match="cut off"):
        read_keys(written[:-1])
    with pytest.raises(InvalidSpec, match="X25519"):
        KeyConfig.from_bytes(foreign)
    assert KeyConfig.from_bytes(bytes.fromhex(RFC["key_config"])).key_id == 1


def test_requests_of_one_size_stay_of_one_size():
    gateway = Gateway(3, HpkeKey.draw(ReplayCoins(b"g")))
    coins = ReplayCoins(b"c")
    most = 384 - len(request(b"").to_bytes(multiple=1)) - 1
    bodies = [request(bytes(size)).to_bytes() for size in range(most - 63, most + 1)]
    sizes = {len(encapsulate(gateway.config, body, coins)[0]) for body in bodies}
    assert len(sizes) == 1 and (sizes.pop() - OVERHEAD) % 64 == 0
    assert len(padded(b"")) == 0 and len(padded(b"x" * 65)) == 128


def request(content: bytes) -> BinaryRequest:
    return BinaryRequest("POST", "https", "shuffler.example", "/uploads", {"Content-Type": "text/plain"}, content)


def test_rejects_and_accepts_have_one_size():
    coins, gateway = ReplayCoins(b"c"), Gateway(3, HpkeKey.draw(ReplayCoins(b"g")))
    sizes: set[int] = set()
    for _ in range(3):
        _, answer = gateway.open(encapsulate(gateway.config, b"x", coins)[0])
        sizes.add(len(answer.seal(BinaryResponse(202).to_bytes(), coins)))
    assert sizes == {16 + 64 + 16}


def test_altered_requests_and_responses_do_not_open():
    gateway, coins = Gateway(3, HpkeKey.draw(ReplayCoins(b"g"))), ReplayCoins(b"c")
    sent, waiting = encapsulate(gateway.config, b"x", coins)
    for i in range(0, len(sent), 5):
        altered = sent[:i] + bytes([sent[i] ^ 1]) + sent[i + 1 :]
        with pytest.raises(OpenFailed):
            gateway.open(altered)
    for cut in (0, 6, 7, 39, 54):
        with pytest.raises(OpenFailed):
            gateway.open(sent[:cut])
    _, answer = gateway.open(sent)
    sealed = answer.seal(b"y", coins)
    _, other = encapsulate(gateway.config, b"x", coins)
    for waits, content in ((waiting, sealed[:-1]), (other, sealed), (waiting, b"")):
        with pytest.raises(OpenFailed, match="another request"):
            waits.open(content)


def test_binary_messages_survive_and_are_padded():
    sent = request(b"content" * 30)
    again = BinaryRequest.from_bytes(sent.to_bytes())
    assert again.headers == {"content-type": "text/plain"} and again.content == sent.content
    response = BinaryResponse(202, {"x": "y"}, b"z")
    assert BinaryResponse.from_bytes(response.to_bytes()) == response
    assert [len(write_integer(value)) for value in (63, 64, 16383, 16384, 1 << 30)] == [1, 2, 2, 4, 8]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x02",  # indeterminate length
        b"\x00\x03GE",
        b"\x00\x03GET\x05https\x01a\x01/\x03\x01a\x05",  # a field beyond its section
        b"\x00\x03GET\x05https\x01a\x01/\x08\x01a\x01b\x01a\x01c",  # a field twice
        b"\x00\x03GET\x05https\x01a\x01/\x00\x00\x00\x01",  # something after the padding began
        b"\x00\x03GET\x05https\x01a\x01/\x00\x00\x04\x01a\x01b",  # trailers
    ],
)
def test_what_is_no_request_is_refused(message: bytes):
    with pytest.raises(ReportRejected, match="binary HTTP"):
        BinaryRequest.from_bytes(message)


@pytest.mark.parametrize("message", [b"\x00", b"\x01\x40\x64", b"\x01"])
def test_what_is_no_final_response_is_refused(message: bytes):
    with pytest.raises(ReportRejected, match="binary HTTP"):
        BinaryResponse.from_bytes(message)
