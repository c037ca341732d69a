"""Types: results have the shapes, the library has the options; mypy, if it is installed."""

import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import get_args

import sesame
from common import ROOT, has, needs_models
from sesame import types

PACKAGE = Path(sesame.__file__).parent

# A program, and after each line the part of mypy's message that it must have; other lines must have none.
PROGRAM = """
from typing import assert_type
import numpy, sesame
from numpy.typing import NDArray
from sesame.types import Answer, Classification, Found, Mask, Token
classify = sesame.pipeline("sentiment-analysis")
assert_type(classify("a"), list[Classification])
assert_type(classify(["a"]), list[Classification])
assert_type(classify(["a"], top_k=None), list[list[Classification]])
assert_type(sesame.pipeline("text-classification", top_k=2)(["a"]), list[list[Classification]])
assert_type(sesame.pipeline("fill-mask", "m", threads=2)("a [MASK]"), list[Mask])
assert_type(sesame.pipeline("ner")(["a"]), list[list[Token]])
assert_type(sesame.pipeline("question-answering")(question="a", context="b"), Answer)
assert_type(sesame.pipeline("zero-shot-classification")("a", ["x"])["labels"], list[str])
assert_type(sesame.pipeline("embed")(["a"]), sesame.Array)
assert_type(sesame.SentenceTransformer().encode(["a"]), NDArray[numpy.float32])
assert_type(sesame.SentenceTransformer().encode_query("a", convert_to_numpy=False), sesame.Array)
assert_type(sesame.search("a", ["b"]), list[Found])
assert_type(sesame.search(["a"], "file"), list[list[Found]])
tokenizer = sesame.AutoTokenizer.from_pretrained("m")
assert_type(tokenizer("a").input_ids, list[int])
assert_type(tokenizer(["a"], padding=True).input_ids, list[list[int]])
out = sesame.AutoModel.from_pretrained("m")(**tokenizer(["a"], return_tensors="np"))
assert_type(out.last_hidden_state, sesame.Array)
done = sesame.finetune([("a", "b")], model="m", output="o", lr=1e-3, epochs=1, adapter="lora", lora_rank=4, labels=["a", "b"])
assert_type(done["eval_accuracy"], float)
classify("a")[0]["lable"]  # no key "lable"
sesame.finetune("f", nonsense=1)  # Unexpected keyword argument "nonsense"
sesame.finetune("f", lr="high")  # incompatible type "str"
sesame.finetune("f", optimizer="adamm")  # incompatible type
sesame.search("a", ["b"], nonsense=1)  # nonsense
sesame.pretrain("f", output="o", nonsense=1)  # Unexpected keyword argument "nonsense"
sesame.Server("m", nonsense=1)  # Unexpected keyword argument "nonsense"
"""


def options_of(name):
    tree = ast.parse((PACKAGE / "_options.pyi").read_text())
    found = next(x for x in tree.body if isinstance(x, ast.ClassDef) and x.name == name)
    return [x.target.id for x in found.body]


class Types(unittest.TestCase):
    def agrees(self, result, shape):
        """A result has the keys and types of a TypedDict."""
        self.assertLessEqual(shape.__required_keys__, set(result), shape.__name__)
        self.assertLessEqual(set(result), set(shape.__annotations__), shape.__name__)
        for key, value in result.items():
            kind = shape.__annotations__[key]
            kind = get_args(kind)[0] if getattr(kind, "__name__", "") == "NotRequired" or "NotRequired" in str(kind) else kind
            names = re.findall(r"\w+", str(kind.__name__ if isinstance(kind, type) else kind))
            name = {"NoneType": "None"}.get(type(value).__name__, type(value).__name__)
            self.assertTrue(name in names or "Literal" in names and value in get_args(kind) or name == "Records" and "list" in names,
                            f"{shape.__name__}.{key}: {value!r} is not a {kind}")

    @needs_models
    def test_results(self):
        ner = sesame.pipeline("ner")
        for result, shape in [
            (sesame.pipeline("sentiment-analysis")("a")[0], types.Classification),
            (sesame.pipeline("fill-mask")("a [MASK]")[0], types.Mask),
            (ner("Anna lives in Rome.")[0], types.Token),
            (ner("Anna lives in Rome.", aggregation_strategy="simple")[0], types.Token),
            (sesame.pipeline("question-answering")(question="Where?", context="I live in Rome."), types.Answer),
            (sesame.pipeline("zero-shot-classification")("a", ["x", "y"]), types.ZeroShot),
            (sesame.pipeline("text-generation")("The", max_new_tokens=2)[0], types.Generated),
            (sesame.pipeline("prefer")({"text": "a cat", "text_pair": "cat a"})[0], types.Preferred),
            (sesame.search("a", ["b"])[0], types.Found),
            (sesame.Model("sesame-small").info, types.ModelInfo),
        ]:
            self.agrees(result, shape)

    @needs_models
    def test_training(self):
        rows, events = [("a fine film", "good"), ("a bad film", "bad")] * 4, []
        with tempfile.TemporaryDirectory() as folder:
            done = sesame.finetune(rows, eval=rows, model="sesame-small", task="classify", adapter="lora", epochs=1,
                                   output=folder + "/o", batch_size=4, callback=events.append)
        for event in events:
            self.agrees(event, types.TrainingEvent)
        texts = ("end", "output", "train_energy_source", "eval_labels", "eval_confusion_matrix")
        self.assertEqual([x for x, value in done.items() if not isinstance(value, (int, float)) and x not in texts], [])

    def test_options(self):
        """The library knows every option of the types."""
        for name, call in (("FinetuneOptions", sesame.finetune), ("PretrainOptions", sesame.pretrain)):
            options = options_of(name)
            self.assertGreater(len(options), 50)
            self.assertNotIn("nonsense", options)
            for option in options:
                with self.assertRaises(sesame.Error) as wrong:
                    call("/no/such/file", output="/no/such/folder/out", **{option: "a\0b" if False else "?"})
                self.assertNotIn("has no option", str(wrong.exception),
                                 f"{option}: options of the command alone belong to python/backend/option_types.py")

    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_mypy(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.py")
            program.write_text(PROGRAM)
            done = subprocess.run([sys.executable, "-m", "mypy", "--check-untyped-defs", "--cache-dir", folder + "/cache",
                                   "--no-color-output", str(program), str(ROOT / "python/recipes/tutorial.py")], capture_output=True, text=True, cwd=folder,
                                  check=False, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        found = {}
        for file, line, text in re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.M):
            self.assertTrue(file.endswith("program.py"), done.stdout)
            found[int(line)] = found.get(int(line), "") + text
        for number, line in enumerate(PROGRAM.splitlines(), 1):
            code, _, expected = line.partition("  # ")
            self.assertTrue(expected in found.pop(number, "") if expected else number not in found, f"{line}: {done.stdout}")
        self.assertEqual(found, {})


if __name__ == "__main__":
    unittest.main()
