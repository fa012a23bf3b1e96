"""Each checker of tools/static.py sees the fault planted for it, and one that sees nothing is reported as broken."""

import importlib.util
import pathlib

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "static.py"


def load():
    spec = importlib.util.spec_from_file_location("static", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_planted_faults(tmp_path):
    assert load().broken(tmp_path) == []


def test_blind_checker(tmp_path, monkeypatch):
    static = load()
    monkeypatch.setattr(static, "gcc_analyzer", lambda arguments, directory: [])
    assert static.broken(tmp_path) == ["gcc -fanalyzer does not report -Wanalyzer-malloc-leak"]
