"""Shared by the tests: the command to compare with, and the models of the source tree."""

import json
import os
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("SESAME_TEST_BUILD", ROOT / "build")).resolve()
COMMAND = BUILD / "sesame"

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")

os.environ.setdefault("SESAME_MODELS", str(ROOT / "models"))


def command(*arguments, stdin=""):
    """Lines of the command's standard output, parsed as JSON."""
    done = subprocess.run([str(COMMAND), *map(str, arguments)], input=stdin, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def models_present():
    return (ROOT / "models" / "sesame-small" / "config.json").exists()


needs_models = unittest.skipUnless(models_present(), "the bundled models are absent")


def has(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


needs_numpy = unittest.skipUnless(has("numpy"), "NumPy is not installed")
