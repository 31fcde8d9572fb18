"""What is in deploy/: settings and metrics that it names exist, and each program that is here accepts its file."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import yaml
from tests.service.memory import MemoryStore
from tests.service.plain import http_client, plain_app, wait_for

from tacit.cli import cli
from tacit.cli.options.settings import variable_of
from tacit.collector.metrics import Metrics
from tacit.collector.server import make_app, running
from tacit.dashboard import routes

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SECRETS = {"TACIT_ADMIN_TOKEN", "TACIT_METRICS_TOKEN", "TACIT_OIDC_CLIENT_SECRET"}


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def known_variables() -> set[str]:
    serve: Any = cli.get_command(click.Context(cli), "serve")
    names = {variable_of(option.opts[0]) for option in serve.params} | SECRETS
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
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **rest)
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


def test_nginx_accepts_the_site(tmp_path: Path) -> None:
    program = need("nginx")
    accepted("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-subj", "/CN=collect.example.org", "-keyout", tmp_path / "privkey.pem",
             "-out", tmp_path / "fullchain.pem")  # fmt: skip
    site = read("nginx.conf").replace("/etc/ssl/tacit", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ {site} }}")
    accepted(program, "-t", "-c", tmp_path / "nginx.conf", "-p", tmp_path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def behind_caddy(tmp_path: Path) -> Iterator[httpx.Client]:
    """A collector behind Caddy, in the clear, as there is no authority that would sign for this machine."""
    program, port = need("caddy"), free_port()
    url = f"http://127.0.0.1:{port}"
    # The administration of Caddy has a port of its own, which others may use.
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + read("Caddyfile"))
    app = plain_app(MemoryStore(), pages=partial(routes, public_url=url))
    with running(app) as server:
        places = {"DOMAIN": url, "UPSTREAM": server.url.removeprefix("http://"), "HOME": str(tmp_path)}
        command = [program, "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
        with subprocess.Popen(command, env=places, stderr=subprocess.DEVNULL) as process, http_client(url) as http:
            try:
                wait_for(http)
                yield http
            finally:
                process.terminate()


def test_a_collector_behind_caddy(behind_caddy: httpx.Client) -> None:
    assert behind_caddy.get("/metrics").status_code == 404
    assert "Sign in to Tacit" in behind_caddy.get("/dashboard/login").text
    assert behind_caddy.get("/healthz").headers["strict-transport-security"]
