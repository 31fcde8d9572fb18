"""The Helm chart: what it renders is the plain manifest, and what its values cannot mean is refused by name."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.service.test_deploy import DEPLOY, known_variables, read

CHART = DEPLOY / "helm"
SEVERAL = ["--set", "postgresql=true,replicas=2,storage.claim=rows,ingress.enabled=true,ingress.tlsSecret=tls"]


def helm(folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """Run helm with nothing but this folder to write to."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not installed here")
    homes = {f"HELM_{name}_HOME": str(folder) for name in ("CACHE", "CONFIG", "DATA")}
    command = [program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=homes)


def rendered(folder: Path, *words: str) -> dict[str, Any]:
    """What a release called tacit consists of, by kind."""
    done = helm(folder, "template", "tacit", CHART, *words)
    assert done.returncode == 0, done.stderr
    return {part["kind"]: part for part in yaml.safe_load_all(done.stdout)}


def container_of(parts: dict[str, Any]) -> Any:
    return parts["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]


def test_every_value_has_a_rule() -> None:
    values, rules = yaml.safe_load(read("helm/values.yaml")), json.loads(read("helm/values.schema.json"))
    assert values.keys() == rules["properties"].keys() - {"global"}
    for name, value in values.items():
        inner = rules["properties"][name].get("properties")
        assert inner is None or inner.keys() == value.keys()


def test_helm_finds_nothing_wrong(tmp_path: Path) -> None:
    done = helm(tmp_path, "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout


def test_the_default_is_the_plain_manifest(tmp_path: Path) -> None:
    parts = rendered(tmp_path, "--set", "image.tag=x")
    container = container_of(parts)
    assert container.pop("image") == "tacit:x" and container.pop("imagePullPolicy") == "IfNotPresent"
    plain = {part["kind"]: part for part in yaml.safe_load_all(read("kubernetes.yml"))}
    assert container_of(plain).pop("image") == "tacit"
    assert parts == plain


def test_several_collectors_share_a_database_and_a_folder(tmp_path: Path) -> None:
    parts = rendered(tmp_path, *SEVERAL, "--set-json", 'env=[{"name": "TACIT_RATE", "value": "50"}]')
    settings = {entry["name"]: entry["value"] for entry in container_of(parts)["env"]}
    assert settings.keys() - {"TMPDIR"} <= known_variables() and settings["TACIT_RATE"] == "50"
    assert settings["TACIT_DATABASE_FILE"] == "/run/secrets/tacit/database" and settings["TACIT_DATA_FOLDER"] == ""
    assert "volumeClaimTemplates" not in parts["StatefulSet"]["spec"]
    [rule], [tls] = parts["Ingress"]["spec"]["rules"], parts["Ingress"]["spec"]["tls"]
    assert rule["host"] == "collect.example.org" and tls == {"hosts": ["collect.example.org"], "secretName": "tls"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("replicas=2", "several collectors share a PostgreSQL database"),
        ("replicas=2,postgresql=true", "name a claim that all of them can mount"),
        ("publicURL=https://a.example", "publicURL"),
        ("publicUrl=https://a.example/", "publicUrl"),
        ("storage.accessMode=Anything", "accessMode"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(tmp_path: Path, values: str, said: str) -> None:
    done = helm(tmp_path, "template", "tacit", CHART, "--set", values)
    assert done.returncode != 0 and said in done.stderr
