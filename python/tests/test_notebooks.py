"""The notebooks run, and give the stored outputs: by nbclient, if it is installed, otherwise their cells in a program."""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from common import ROOT, SANITIZED, has, needs_models

FOLDER = ROOT / "python/notebooks"
NOTEBOOKS = ("classify", "inside", "search")


def texts_of(notebook):
    """The text of each output, numbers without their digits, which depend on the processor."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            found.append(re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", "".join(text)))
    return found


@unittest.skipIf(SANITIZED, "the kernel is not instrumented")
@needs_models
class Notebooks(unittest.TestCase):
    def stored(self, name):
        return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))

    def test_outputs_are_stored(self):
        self.assertEqual(sorted(x.stem for x in FOLDER.glob("*.ipynb")), list(NOTEBOOKS))
        for name in NOTEBOOKS:
            cells = [x for x in self.stored(name)["cells"] if x["cell_type"] == "code"]
            self.assertEqual([x["execution_count"] for x in cells], list(range(1, len(cells) + 1)), name)
            self.assertGreater(sum(bool(x["outputs"]) for x in cells), len(cells) / 2)
            self.assertNotIn("error", [y["output_type"] for x in cells for y in x["outputs"]])
            self.assertNotIn(str(ROOT), json.dumps(cells))

    @unittest.skipUnless(has("nbclient") and has("ipykernel"), "nbclient and ipykernel are not installed")
    def test_run(self):
        for name in NOTEBOOKS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                copy = os.path.join(folder, name + ".ipynb")
                with open(copy, "w", encoding="utf-8") as out:
                    json.dump(self.stored(name), out)
                done = subprocess.run([sys.executable, "-W", "ignore", str(FOLDER / "run.py"), copy], capture_output=True,
                                      text=True, check=False, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(copy, encoding="utf-8") as made:
                    self.assertEqual(texts_of(json.load(made)), texts_of(self.stored(name)))

    @unittest.skipIf(has("nbclient") and has("ipykernel"), "test_run runs them")
    def test_cells(self):
        for name in NOTEBOOKS:
            code = "\n".join("".join(x["source"]) for x in self.stored(name)["cells"] if x["cell_type"] == "code")
            with self.subTest(name), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(ast.parse(code), name, "exec"), {"__name__": "notebook"})


if __name__ == "__main__":
    unittest.main()
