"""`distlearn doctor`: what it says is what is there."""

import importlib.metadata
import json
import re
import sys

import pytest

from distlearn import extras
from distlearn.cli import machine
from distlearn.extras import install_command


def test_report_of_this_machine(cli):
    result = cli("doctor", "--json")
    data = json.loads(result.stdout)
    assert data["ok"] is (result.exit_code == 0)
    found = {name: {f["name"]: f for f in data[name]}
             for name in ("system", "packages", "engines", "sandbox")}
    assert found["packages"]["numpy"]["detail"] == importlib.metadata.version("numpy")
    assert found["system"]["Python"]["detail"].startswith(".".join(map(str, sys.version_info[:3])))
    assert set(found["engines"]) == {"virtual", "mpi", "torch", "cuda"}
    assert all(f["ok"] or f["remedy"] for part in found.values() for f in part.values())
    needed = {line for line in importlib.metadata.requires("distlearn") if "extra" not in line}
    assert {f["name"] for f in data["packages"] if f["required"]} \
        == {re.match(r"[\w.-]+", line)[0] for line in needed}


def test_a_missing_requirement_is_code_1_and_says_how_to_get_it(cli, monkeypatch):
    monkeypatch.setattr(machine, "sandbox", tuple)
    real = machine._version
    monkeypatch.setattr(machine, "_version", lambda name: None if name == "numpy" else real(name))
    result = cli("doctor")
    assert result.exit_code == 1
    assert result.stderr == "error: required and missing: numpy\n"
    assert "MISSING" in result.stdout and "pip install 'numpy>=" in result.stdout


def test_an_old_version_counts_as_missing(monkeypatch):
    real = machine._version
    monkeypatch.setattr(machine, "_version", lambda name: "1.9" if name == "numpy" else real(name))
    (numpy,) = [f for f in machine.packages() if f.name == "numpy"]
    assert not numpy.ok and numpy.detail.startswith("1.9, needs >=")


@pytest.mark.parametrize(("version", "rule", "ok"), [
    ("2.0", ">=2.0", True), ("2.10", ">=2.9", True), ("2.0", ">=2.0.1", False),
    ("13.7.1", ">=13.7", True), ("1.2.3+cpu5", ">=1.2.3", True), ("0.1", "", True),
    ("9", ">=9", True), ("1.9.9", ">=2", False), ("2.1", ">=2.0,<3", True),
])
def test_versions(version, rule, ok):
    assert machine._satisfies(version, rule) is ok


def test_sandbox_features_are_tried_for_real():
    """What is reported as there holds in a process of its own."""
    found = {f.name: f for f in machine.sandbox()}
    assert found["child processes"].ok
    if sys.platform.startswith("linux"):
        assert found["resource limits"].ok, found["resource limits"]


def test_machine_without_torch_or_mpi(monkeypatch):
    monkeypatch.setattr(machine, "_version", lambda name: None)
    monkeypatch.setattr(machine, "_torch_cuda", lambda: None)
    monkeypatch.setattr(machine, "_cuda_devices", lambda: 0)
    engines = {f.name: f for f in machine.engines()}
    assert engines["virtual"].ok and not engines["mpi"].ok
    assert engines["torch"].remedy == install_command("torch")
    assert "NVIDIA" in engines["cuda"].remedy


def test_an_extra_is_installed_from_the_checkout_one_is_in(monkeypatch, tmp_path):
    """Else pip would look for the package by name, where it may be another one or none."""
    root = tmp_path / "my checkout"
    (root / "distlearn").mkdir(parents=True)
    monkeypatch.setattr(extras, "__file__", str(root / "distlearn" / "extras.py"))
    assert install_command("torch") == "pip install 'distlearn[torch]'"
    (root / "pyproject.toml").touch()
    assert install_command("torch") == f"pip install -e '{root}[torch]'"
    monkeypatch.chdir(root)
    assert install_command("torch") == "pip install -e '.[torch]'"
