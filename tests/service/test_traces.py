"""What a real collector process prints and leaves behind: nothing of what strangers sent."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.service.plain import Client, binary, draft, http_client, wait_for
from tests.service.served import first_token, free_port
from tests.service.test_attacks import PLAIN_GET, exchange, post
from tests.service.waiting import PATIENT_SECONDS

from tacit.wire.batch import MEDIA_TYPE

MARKER = "s3cr3t-m4rk3r"


def attack_with_marker(client: Client, mine: str) -> None:
    """The marker in every place that a stranger can fill."""
    raw, text = MARKER.encode(), f'"{MARKER}"'.encode()
    good = binary(mine, bytes([1]))
    spoiled = good + raw
    twin = {"collection": mine, "batch": "0" * 32, "reports": [{"member": 0, "report": MARKER}], MARKER: MARKER}
    headers = {"User-Agent": MARKER, "Cookie": f"tacit_session={MARKER}", "Referer": f"http://{MARKER}", "X": MARKER}
    for body in (raw, spoiled, good[:36] + raw):
        for media_type in (MEDIA_TYPE, "application/json", "text/plain", MARKER):
            client.http.post(
                f"/c/{mine}/reports?{MARKER}", content=body, headers=headers | {"Content-Type": media_type}
            )
    for body in (text, json.dumps(twin).encode(), b"[" * 100_000 + text):
        client.send(mine, body, "application/json", Tacit_Invitation=MARKER, Origin=f"http://{MARKER}")
    for path in (
        f"/{MARKER}",
        f"/c/{MARKER}/reports",
        f"/c/{MARKER}",
        f"/api/v1/tokens?share={MARKER}",
        f"/js/{MARKER}",
    ):
        client.http.get(path, headers=headers | {"Authorization": f"Bearer {MARKER}"})
    client.http.post("/dashboard/login", data={"token": MARKER, "next": MARKER})
    client.api("POST", "/collections", {"title": MARKER, MARKER: 1})
    client.api("POST", "/collections", draft(title=MARKER, epsilon=MARKER))
    for data in (raw, b"GET /" + raw + b" HTTP/1.1\r\n" + raw, PLAIN_GET + b"Upgrade: " + raw + b"\r\n\r\n"):
        exchange(client, data, 0.2)
    exchange(client, post(mine, b"Content-Length: 5\r\nContent-Length: 6", raw))
    exchange(client, post(mine, b"Content-Length: 500", raw), 0.2)


def test_nothing_that_was_sent_is_ever_logged_or_kept(tmp_path: Path):
    """A real process: everything it prints, and every file it leaves."""
    port = free_port()
    command = [sys.executable, "-m", "tacit.cli", "serve", "--data", str(tmp_path / "d"), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        token = first_token(process.stdout)
        with http_client(f"http://127.0.0.1:{port}") as http:
            client = Client(http, token)
            wait_for(http)
            mine = client.publish(draft())
            attack_with_marker(client, mine)
            assert http.get("/healthz").status_code == 200
            shown = http.get("/metrics").text + json.dumps(client.status(mine))
            audit = client.api("GET", "/audit").text
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENT_SECONDS)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "d").rglob("*") if path.is_file())
    for place in (out, err, shown, audit, kept.decode("latin-1")):
        assert MARKER not in place
        assert MARKER.encode().hex() not in place
        assert "127.0.0.1:" not in place.replace(f"127.0.0.1:{port}", "")
    assert "Traceback" not in err
