"""Fine-tuning and pretraining: the same bits as the command, callbacks, stops and errors."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import sesame
from common import COMMAND, ROOT, command, needs_models

EXAMPLES = [("a fine film", "good"), ("a bad film", "bad"), ("fine and warm", "good"), ("dull and cold", "bad")] * 4


@needs_models
class Training(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps({
            "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 8192, "hidden_size": 16,
            "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}))
        self.tokenizer = ROOT / "models/sesame-small"

    def finetune(self, output, **options):
        return sesame.finetune(options.pop("train", EXAMPLES), task="classify", config=self.config,
                               tokenizer=self.tokenizer, output=self.folder / output, epochs=2, batch_size=4, lr=1e-3,
                               **options)

    def test_equals_the_command(self):
        table = self.folder / "train.csv"
        table.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in EXAMPLES))
        result = self.finetune("ours", train=table, eval=table)
        self.assertEqual((result["end"], result["output"]), ("complete", str(self.folder / "ours")))
        self.assertGreaterEqual(result["eval_accuracy"], 0.5)
        subprocess.run([COMMAND, "finetune", "-T", "classify", "--config", self.config, "--tokenizer", self.tokenizer,
                        "--train", table, "--eval", table, "-o", self.folder / "theirs", "--epochs", "2", "-b", "4",
                        "--lr", "1e-3", "-q"], check=True, capture_output=True)
        self.assertEqual((self.folder / "ours/model.safetensors").read_bytes(),
                         (self.folder / "theirs/model.safetensors").read_bytes())
        label = sesame.pipeline("text-classification", self.folder / "ours")("a fine film")[0]["label"]
        self.assertIn(label, ("good", "bad"))

    def test_adapter(self):
        self.finetune("base")
        result = sesame.finetune(EXAMPLES, task="classify", model=self.folder / "base", output=self.folder / "prefix",
                                 adapter="prefix", virtual_tokens=4, epochs=2, batch_size=4, lr=1e-2)
        self.assertEqual(result["end"], "complete")
        config = json.loads((self.folder / "prefix/adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["num_virtual_tokens"]), ("PREFIX_TUNING", 4))
        shown = command("text-classification", "-m", self.folder / "base", "--adapter", self.folder / "prefix",
                        "--json", "a fine film")[0]
        for pipe in (sesame.pipeline("text-classification", self.folder / "prefix"),
                     sesame.pipeline("text-classification", self.folder / "prefix",
                                     base_model=str(self.folder / "base"))):
            got = pipe("a fine film")[0]
            self.assertEqual(got["label"], shown[0]["label"])
            self.assertAlmostEqual(got["score"], shown[0]["score"], 6)

    def test_method(self):
        """Other kinds of models: the same bytes as the command's."""
        table = self.folder / "train.csv"
        table.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in EXAMPLES))
        result = sesame.finetune(EXAMPLES, eval=EXAMPLES, task="classify", method="logreg", output=self.folder / "ours")
        self.assertEqual((result["end"], result["eval_accuracy"]), ("complete", 1.0))
        subprocess.run([COMMAND, "finetune", "-T", "classify", "--method", "logreg", "--train", table, "-o", self.folder / "theirs",
                        "-q"], check=True, capture_output=True)
        self.assertEqual((self.folder / "ours/model.safetensors").read_bytes(),
                         (self.folder / "theirs/model.safetensors").read_bytes())
        with self.assertRaisesRegex(sesame.UsageError, "logrek"):
            sesame.finetune(EXAMPLES, task="classify", method="logrek", output=self.folder / "wrong")
        with self.assertRaisesRegex(ValueError, "has no events"):
            sesame.finetune(EXAMPLES, task="classify", method="logreg", output=self.folder / "wrong", callback=print)

    def test_class_weights(self):
        """A dict equals the file of the command, and balanced its own weights."""
        examples = [("a film", "good")] * 6 + [("a book", "bad")] * 2
        weights = {"good": 8 / 12, "bad": 8 / 4}
        file = self.folder / "weights.json"
        file.write_text(json.dumps(weights))
        models = []
        for i, given in enumerate((weights, file, "balanced", None)):
            self.finetune(f"weights{i}", train=examples, class_weights=given)
            models.append((self.folder / f"weights{i}/model.safetensors").read_bytes())
        self.assertEqual(models[0], models[1])
        self.assertEqual(models[0], models[2])
        self.assertNotEqual(models[0], models[3])

    def test_events(self):
        events = []
        result = self.finetune("events", eval=EXAMPLES, callback=events.append)
        kinds = [x["kind"] for x in events]
        self.assertEqual((kinds.count("started"), kinds.count("step"), kinds.count("evaluated")), (1, 8, 2))
        last = [x for x in events if x["kind"] == "step"][-1]
        self.assertEqual((last["update"], last["updates"], last["epoch"]), (8, 8, 2))
        self.assertEqual([x for x in events if x["kind"] == "evaluated"][-1]["scores"]["accuracy"],
                         result["eval_accuracy"])

    def test_stop_and_resume(self):
        whole = self.finetune("whole")
        self.assertEqual(whole["end"], "complete")
        stopped = self.finetune("part", callback=lambda x: x.get("update", 0) < 3)
        self.assertEqual(stopped["end"], "stopped")
        self.assertFalse((self.folder / "part/model.safetensors").exists())
        resumed = self.finetune("part", resume=True)
        self.assertEqual(resumed["end"], "complete")
        self.assertEqual((self.folder / "whole/model.safetensors").read_bytes(),
                         (self.folder / "part/model.safetensors").read_bytes())
        self.assertEqual(self.finetune("part", resume=True)["end"], "was_complete")

    def test_exceptions(self):
        def fail(event):
            raise KeyError("stop")

        with self.assertRaises(KeyError):
            self.finetune("raised", callback=fail)

        def interrupt(event):
            if event["kind"] == "step":
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            self.finetune("interrupted", callback=interrupt)
        self.assertTrue(list((self.folder / "interrupted").glob("checkpoint-*")))

    def test_errors(self):
        for options, error, message in [
            ({"learning_rate": 1}, sesame.UsageError, "finetune has no option"),
            ({"seed": -1}, sesame.UsageError, "seed"),
            ({"train": "no/such/file.csv"}, OSError, "no/such/file.csv"),
            ({"train": [3]}, TypeError, "dict or"),
            ({"train": [("a", "x")] * 4}, sesame.Error, ""),
            ({"model": "sesame-small"}, sesame.UsageError, "either model"),
        ]:
            with self.assertRaisesRegex(error, message, msg=str(options)):
                self.finetune("errors", **options)
        self.assertFalse((self.folder / "errors").exists())
        with self.assertRaises(TypeError):
            sesame.finetune(model="sesame-small")

    def test_pretrain(self):
        text = self.folder / "text.txt"
        text.write_text("\n\n".join("The cat sat on the mat. A dog ran far away. Number %d." % i for i in range(40)))
        subprocess.run([COMMAND, "corpus", "build", text, "-o", self.folder / "c.ids", "--tokenizer", self.tokenizer,
                        "-q"], check=True, capture_output=True)
        options = {"config": self.config, "tokenizer": self.tokenizer, "length": 32, "steps": 3, "batch_size": 4}
        steps = []
        result = sesame.pretrain(self.folder / "c.ids", output=self.folder / "ours", callback=steps.append, **options)
        self.assertEqual(result["end"], "complete")
        self.assertEqual(len([x for x in steps if x["kind"] == "step"]), 3)
        subprocess.run([COMMAND, "pretrain", "-c", self.folder / "c.ids", "-o", self.folder / "theirs", "--config",
                        self.config, "--tokenizer", self.tokenizer, "-n", "32", "--steps", "3", "-b", "4", "-q"],
                       check=True, capture_output=True)
        self.assertEqual((self.folder / "ours/model.safetensors").read_bytes(),
                         (self.folder / "theirs/model.safetensors").read_bytes())
        with self.assertRaisesRegex(sesame.UsageError, "did you mean 'length'"):
            sesame.pretrain(self.folder / "c.ids", output=self.folder / "x", lenght=3)


if __name__ == "__main__":
    unittest.main()
