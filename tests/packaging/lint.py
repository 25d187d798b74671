"""Checks what is packaged with the linter of each kind: `make packaging-lint` installs them and calls this.

What a machine lacks (systemd, promtool, Caddy) is named at the end and not checked.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import helm_python
import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
CHART = PACKAGING / "helm" / "hotline"
KUBERNETES = "1.31"

failures = []
missing = []


def check(what, command, **more):
    """Runs a linter; what it prints is shown when it finds something."""
    if shutil.which(command[0]) is None:
        missing.append(command[0])
        return
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    print(f"{'ok  ' if result.returncode == 0 else 'FAIL'} {what}")
    if result.returncode != 0:
        failures.append(f"{what}:\n{result.stdout}{result.stderr}")


def fail(what, why):
    print(f"FAIL {what}")
    failures.append(f"{what}: {why}")


def unit():
    """The unit, with a program that exists in the place of Hotline's."""
    text = (PACKAGING / "systemd" / "hotline.service").read_text()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "hotline.service"
        copy.write_text(text.replace("/usr/bin/hotline", "/bin/true"))
        check("systemd-analyze verify", ["systemd-analyze", "verify", "--man=no", copy])
        check("systemd-analyze security", ["systemd-analyze", "security", "--offline=yes", "--threshold=25", copy])


def render(values_file):
    """The manifests of the chart with these values, each with its name."""
    values = yaml.safe_load(values_file.read_text())
    with helm_python.Chart.load(str(CHART)) as chart:
        rendered = chart.render(values, name="support", namespace="hotline")
    for path, text in rendered.items():
        if path.endswith(".yaml"):
            for document in yaml.safe_load_all(text):
                if document:
                    yield f"{values_file.name} {document['kind']} {document['metadata']['name']}", document


def check_options(values_file, documents):
    """Commands in the pod have the options of the service: each is a variable, and none an argument of `serve` alone."""
    values = yaml.safe_load(values_file.read_text())
    container = documents["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    expected = {f"HOTLINE_{name.replace('-', '_').upper()}": str(value).lower() if isinstance(value, bool) else str(value)
                for name, value in values.get("options", {}).items()}
    if values.get("keyFile"):
        expected["HOTLINE_KEY_FILE"] = "/etc/hotline/keys/secrets.key"
    wrong = {name: variables.get(name) for name, value in expected.items() if variables.get(name) != value}
    if wrong or container["args"] != ["serve"]:
        fail(f"{values_file.name} options as variables", f"{wrong}, {container['args']}")
    else:
        print(f"ok   {values_file.name} options as variables")


def check_ports(values_file, documents):
    """Metrics, which need no token, are never a port of the Service that may be public."""
    services = [document for document in documents if document["kind"] == "Service"]
    ports = {port["name"]: service for service in services for port in service["spec"]["ports"]}
    metrics, public = ports["metrics"], ports["http"]
    if metrics is public or metrics["spec"]["type"] != "ClusterIP":
        fail(f"{values_file.name} metrics within the cluster", metrics["metadata"]["name"])
    else:
        print(f"ok   {values_file.name} metrics within the cluster")


def chart():
    """The chart: by Helm's linter, then each manifest by the schemas of Kubernetes."""
    for values_file in sorted((CHART / "ci").glob("*.yaml")):
        found = helm_python.lint(str(CHART), values=yaml.safe_load(values_file.read_text()))
        messages = [message for message in found.get("messages", []) if message.get("severity") not in ("INFO", 1)]
        if messages:
            fail(f"helm lint {values_file.name}", messages)
        else:
            print(f"ok   helm lint {values_file.name}")
        rendered = list(render(values_file))
        check_options(values_file, {document["kind"]: document for _, document in rendered})
        check_ports(values_file, [document for _, document in rendered])
        for name, document in rendered:
            if document["kind"] == "ServiceMonitor":
                continue
            try:
                kubernetes_validate.validate(document, KUBERNETES, strict=True)
                print(f"ok   {name}")
            except kubernetes_validate.ValidationError as error:
                fail(name, error)
    for what, values in [
        ("without a database", {}),
        ("several replicas without a bucket", {"replicaCount": 2, "database": {"existingSecret": "database"}}),
    ]:
        try:
            with helm_python.Chart.load(str(CHART)) as loaded:
                loaded.render(values, name="support", namespace="hotline")
            fail(f"helm template {what}", "it is accepted")
        except helm_python.HelmError:
            print(f"ok   {what} it is refused")


def main():
    check("hadolint", ["hadolint", PACKAGING / "docker" / "Dockerfile"])
    plain = [path for path in sorted(PACKAGING.rglob("*.y*ml")) if "templates" not in path.parts]
    check("yamllint", ["yamllint", "--strict", "-c", ROOT / "tests" / "packaging" / "yamllint.yml", *plain])
    check("compose file", ["npx", "--yes", "dclint@3.1.0", "-c", ROOT / "tests" / "packaging" / "dclint.yml",
                           PACKAGING / "docker" / "compose.yml"])
    environment = dict(os.environ, PATH=f"{os.environ['PATH']}:/usr/sbin")
    check("Caddyfile", ["caddy", "validate", "--adapter", "caddyfile", "--config", PACKAGING / "caddy" / "Caddyfile"],
          env=environment)
    rules = sorted((PACKAGING / "prometheus").glob("*.rules.yml"))
    if rules:
        check("promtool check rules", ["promtool", "check", "rules", *rules])
    with tempfile.TemporaryDirectory() as folder:
        scrape = Path(folder) / "prometheus.yml"
        scrape.write_text((PACKAGING / "docker" / "prometheus.yml").read_text())
        check("promtool check config", ["promtool", "check", "config", "--syntax-only", scrape])
    unit()
    chart()
    if missing:
        print(f"not installed, so not checked: {', '.join(sorted(set(missing)))}")
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
