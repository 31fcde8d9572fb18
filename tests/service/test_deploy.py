"""What is in deploy/: settings and metrics that it names exist, and each program that is here accepts its file."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import yaml
from tests.service.memory import MemoryStore
from tests.service.plain import http_client, plain_app, wait_for, wait_until

from tacit.cli import cli
from tacit.cli.options.settings import SECRETS, variable_of
from tacit.collector.metrics import Metrics
from tacit.collector.server import make_app, running
from tacit.dashboard import routes

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def known_variables() -> set[str]:
    serve: Any = cli.get_command(click.Context(cli), "serve")
    names = {variable_of(option.opts[0]) for option in serve.params} | set(SECRETS)
    return names | {f"{name}_FILE" for name in names}


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yml", "tacit.service"])
def test_variables_that_are_set_exist(name: str) -> None:
    found = set(re.findall(r"\bTACIT_[A-Z_]+\b", read(name)))
    assert found and found <= known_variables()


def test_the_compose_file_fits_together() -> None:
    file = yaml.safe_load(read("compose.yml"))
    for service in file["services"].values():
        assert set(service.get("secrets", [])) <= file["secrets"].keys()
        assert {name for name in service["networks"]} <= file["networks"].keys()
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", []) if not volume.startswith(".")}
        assert volumes <= file["volumes"].keys()
    settings = file["services"]["tacit"]["environment"]
    assert settings["TACIT_TRUSTED_PROXIES"] == file["services"]["caddy"]["networks"]["front"]["ipv4_address"]
    for name, path in settings.items():
        assert not name.endswith("_FILE") or Path(path).name in file["services"]["tacit"]["secrets"]


def exposed() -> set[str]:
    """Every name of a metric that a collector exposes, those of counters that are still zero too."""
    text = plain_app(MemoryStore()).collector.exposition() + Metrics().text({})
    return set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)) | set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE))


def test_every_metric_of_the_dashboard_and_of_the_alerts_exists() -> None:
    names = exposed()
    for file in ("monitoring/grafana.json", "monitoring/alerts.yml"):
        asked = set(re.findall(r"\btacit_[a-z_]+", read(file)))
        assert len(asked) > 5 and asked <= names
    alerts = [rule["alert"] for rule in yaml.safe_load(read("monitoring/alerts.yml"))["groups"][0]["rules"]]
    page = (ROOT / "docs" / "howto" / "monitor.md").read_text(encoding="utf-8")
    assert all(f"`{alert}`" in page for alert in alerts)


def test_panels_have_places_of_their_own() -> None:
    panels = json.loads(read("monitoring/grafana.json"))["panels"]
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["targets"] and panel["title"] for panel in panels)


def test_metrics_are_for_whoever_shows_the_token() -> None:
    with running(make_app(MemoryStore(), metrics_token="of the watch")) as server, http_client(server.url) as http:
        assert http.get("/metrics").status_code == 401
        assert http.get("/metrics", headers={"Authorization": "Bearer of the watcher"}).status_code == 401
        assert http.get("/metrics", headers={"Authorization": "Bearer of the watch"}).status_code == 200


def need(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed here")
    return found


def accepted(*command: Any, **rest: Any) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **rest)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_prometheus_accepts_the_rules() -> None:
    accepted(need("promtool"), "check", "rules", DEPLOY / "monitoring" / "alerts.yml")
    accepted(need("promtool"), "check", "config", "--syntax-only", DEPLOY / "monitoring" / "prometheus.yml")


def test_systemd_accepts_the_unit_and_finds_little_to_attack(tmp_path: Path) -> None:
    need("systemd-analyze")
    unit = tmp_path / "tacit.service"
    unit.write_text(read("tacit.service").replace("/opt/tacit/bin/tacit", str(Path(sys.executable).with_name("tacit"))))
    accepted("systemd-analyze", "verify", unit)
    said = accepted("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert float(re.findall(r"exposure level for tacit.service: ([0-9.]+)", said)[0]) < 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def started(command: list[Any], **rest: Any) -> Iterator[None]:
    with subprocess.Popen([str(word) for word in command], **rest) as process:
        try:
            yield
        finally:
            process.terminate()


def nginx_site(folder: Path, upstream: str, port: int) -> Path:
    """The sample with another certificate, port and upstream; whatever it would write is in the folder."""
    accepted("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-subj", "/CN=collect.example.org", "-keyout", folder / "privkey.pem",
             "-out", folder / "fullchain.pem")  # fmt: skip
    site = read("nginx.conf").replace("/etc/ssl/tacit", str(folder)).replace("http://127.0.0.1:8000", upstream)
    site = re.sub(r" *listen \[::\].*\n", "", site).replace("/var/log/nginx", str(folder))
    site = site.replace("listen 443", f"listen 127.0.0.1:{port}").replace(
        "listen 80", f"listen 127.0.0.1:{free_port()}"
    )
    kept = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"daemon off; pid {folder}/pid; error_log {folder}/main.log; events {{}}"
    (folder / "nginx.conf").write_text(f"{head} http {{ access_log {folder}/access.log; {kept} {site} }}")
    return folder / "nginx.conf"


def test_nginx_passes_on_and_writes_no_address(tmp_path: Path) -> None:
    program, port = need("nginx"), free_port()
    with running(plain_app(MemoryStore())) as server:
        command = [program, "-c", nginx_site(tmp_path, server.url, port), "-p", tmp_path]
        accepted(*command, "-t")
        with started(command), httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False) as http:
            wait_for(http)
            assert http.get("/healthz").headers["strict-transport-security"]
            assert http.get("/metrics").status_code == 404
            # Nothing passes that is larger than the collector takes, and no line says who tried.
            assert http.post("/c/x/reports", content=bytes(5_000_000)).status_code == 413
    assert not any("127.0.0.1" in path.read_text() for path in tmp_path.glob("*.log"))


@contextmanager
def caddy(folder: Path, port: int, upstream: str) -> Iterator[httpx.Client]:
    """Caddy in the clear, as there is no authority that would sign for this machine; what it says is in a file."""
    program, url = need("caddy"), f"http://127.0.0.1:{port}"
    # The administration of Caddy has a port of its own, which others may use.
    (folder / "Caddyfile").write_text(read("Caddyfile").replace("{\n", "{\n\tadmin off\n", 1))
    places = {"DOMAIN": url, "UPSTREAM": upstream.removeprefix("http://"), "HOME": str(folder)}
    command = [program, "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]
    with (folder / "log").open("wb") as log, started(command, env=places, stderr=log), http_client(url) as http:
        yield http


def test_a_collector_behind_caddy(tmp_path: Path) -> None:
    need("caddy")
    port = free_port()
    app = plain_app(MemoryStore(), pages=partial(routes, public_url=f"http://127.0.0.1:{port}"))
    with running(app) as server, caddy(tmp_path, port, server.url) as http:
        wait_for(http)
        assert http.get("/metrics").status_code == 404
        assert "Sign in to Tacit" in http.get("/dashboard/login").text
        assert http.get("/healthz").headers["strict-transport-security"]


def test_caddy_writes_no_address_while_the_collector_is_away(tmp_path: Path) -> None:
    def is_refused() -> bool:
        with suppress(httpx.TransportError):
            return http.get("/readyz").status_code == 502
        return False

    with caddy(tmp_path, free_port(), f"127.0.0.1:{free_port()}") as http:
        wait_until(is_refused, "Caddy did not start")
    said = (tmp_path / "log").read_text()
    assert "serving initial configuration" in said and "remote_ip" not in said


def test_the_manifest_for_kubernetes_fits_together() -> None:
    service, collector = yaml.safe_load_all(read("kubernetes.yml"))
    pod = collector["spec"]["template"]["spec"]
    # The links of a service called tacit are variables such as TACIT_PORT, which are settings here.
    assert service["metadata"]["name"] == "tacit" and pod["enableServiceLinks"] is False
    [container] = pod["containers"]
    assert {entry["name"] for entry in container["env"]} - {"TMPDIR"} <= known_variables()
    claims = {claim["metadata"]["name"] for claim in collector["spec"]["volumeClaimTemplates"]}
    volumes = claims | {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert service["spec"]["selector"] == collector["spec"]["template"]["metadata"]["labels"]
