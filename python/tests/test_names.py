"""Names of transformers (Auto classes, dtype, device), tables in notebooks, and progress."""

import contextlib
import io
import json
import pickle
import unittest

import sesame
from common import ROOT, needs_models, needs_numpy

TEXTS = ["The cat sat.", "A dog"]


@needs_models
class Auto(unittest.TestCase):
    def test_heads(self):
        ids = sesame.AutoTokenizer.from_pretrained("sesame-small")(TEXTS, padding=True)
        masked = sesame.AutoModelForMaskedLM.from_pretrained("sesame-small", dtype="auto")
        self.assertEqual(masked(**ids).logits.tolist(), sesame.Model("sesame-small")(**ids).logits.tolist())
        self.assertEqual(sesame.AutoModelForPreTraining.from_pretrained("sesame-small").info["head"], masked.info["head"])
        plain = sesame.AutoModel.from_pretrained("sesame-small")
        self.assertEqual((plain.info["class_name"], plain.info["head"]), ("ModernBertModel", None))
        pooled = sesame.AutoModel.from_pretrained(ROOT / "tests/golden/bert-classify")([[2, 5, 3]])
        self.assertEqual(list(pooled), ["last_hidden_state", "pooler_output"])
        for name, model in [("CausalLM", "sesame-gpt"), ("TokenClassification", "sesame-ner"), ("QuestionAnswering", "sesame-qa"),
                            ("SequenceClassification", "sesame-sentiment")]:
            opened = getattr(sesame, "AutoModelFor" + name).from_pretrained(model)
            self.assertEqual(opened.info, sesame.Model(model).info, name)
        opened = sesame.AutoModelForMaskedLM.from_pretrained(ROOT / "tests/golden/bert-pretraining")
        self.assertEqual(opened.info["class_name"], "BertForMaskedLM")
        for name, folder in [("MarianMTModel", "marian-mt"), ("EncoderDecoderModel", "bert2bert")]:
            opened = sesame.AutoModelForSeq2SeqLM.from_pretrained(ROOT / "tests/golden" / folder)
            self.assertEqual(opened.info["class_name"], name)

    def test_a_head_is_never_random(self):
        with self.assertRaisesRegex(sesame.FormatError, "the checkpoint has no such head"):
            sesame.AutoModelForSequenceClassification.from_pretrained("sesame-small")
        with self.assertRaises(sesame.Error):
            sesame.AutoModelForSeq2SeqLM.from_pretrained("sesame-small")

    @needs_numpy
    def test_arrays_of_ids(self):
        import numpy

        tokenizer = sesame.AutoTokenizer.from_pretrained("sesame-small")
        ids = tokenizer(TEXTS, padding=True, return_tensors="np")
        self.assertEqual((ids.input_ids.shape, ids["attention_mask"].dtype), ((2, 6), numpy.int64))
        self.assertEqual(ids.input_ids.tolist(), tokenizer(TEXTS, padding=True).input_ids)
        self.assertEqual(tokenizer("A dog", return_tensors="np").input_ids.shape, (1, 4))
        with self.assertRaisesRegex(ValueError, "set padding=True"):
            tokenizer(TEXTS, return_tensors="np")
        with self.assertRaisesRegex(ValueError, "return_tensors must be one of 'np', 'pt', not 'tf'"):
            tokenizer(TEXTS, return_tensors="tf")

    def test_device_and_dtype(self):
        for opened in (sesame.SentenceTransformer("sesame-embed", dtype="auto"), sesame.Model("sesame-small", device=-1),
                       sesame.pipeline("sentiment-analysis", torch_dtype="torch.float32"),
                       sesame.Model("sesame-small", device=sesame.Device("cpu"))):
            self.assertEqual(opened.device, "cpu")
        encoder = sesame.SentenceTransformer("sesame-embed")
        self.assertEqual(len(encoder.encode(["a text"], device=encoder.device)), 1)
        with self.assertRaisesRegex(ValueError, "give it to SentenceTransformer"):
            encoder.encode(["a text"], device="cuda")
        plain, auto, half = (sesame.pipeline("sentiment-analysis", dtype=x)("A film.")[0]["score"]
                             for x in (None, "auto", "torch.bfloat16"))
        self.assertEqual(plain, auto)
        self.assertNotEqual(plain, half)
        with self.assertRaisesRegex(ValueError, 'dtype must be f32, f16, bf16 or int8, not "int3"'):
            sesame.pipeline("sentiment-analysis", dtype="int3")


@needs_models
class Tables(unittest.TestCase):
    def test_results(self):
        classify = sesame.pipeline("sentiment-analysis")
        results = classify(["A <b>fine</b> film.", "Dull."])
        self.assertEqual(json.loads(json.dumps(results)), results)
        self.assertEqual(pickle.loads(pickle.dumps(results)), results)
        self.assertIn("<th>label</th><th>score</th>", results._repr_html_())
        self.assertEqual(results._repr_html_().count("<tr>"), 3)
        several = classify(["A fine film.", "Dull."], top_k=None)
        self.assertIn("<th>text</th><th>label</th>", several._repr_html_())
        self.assertEqual(several._repr_html_().count("<tr>"), 5)
        self.assertIn("<th>label</th>", classify("A fine film.")._repr_html_())
        answer = sesame.pipeline("question-answering")(question="Where do I live?", context="I live in <London>.")
        self.assertIn("<td style=\"text-align:left;white-space:pre-wrap\">answer</td>", answer._repr_html_())
        self.assertNotIn("<London>", answer._repr_html_())

    def test_many(self):
        rows = sesame._results.shown([{"score": 0.5, "n": i} for i in range(80)])
        self.assertEqual(rows._repr_html_().count("<tr>"), 51)
        self.assertIn("30 more", rows._repr_html_())
        self.assertEqual(sesame._results.shown([[0.5, 1.0]]), [[0.5, 1.0]])
        self.assertIs(type(sesame._results.shown([[0.5]])), list)


@needs_models
class Progress(unittest.TestCase):
    def shown(self, terminal, texts):
        class Stream(io.StringIO):
            def isatty(self):
                return terminal

        with contextlib.redirect_stderr(Stream()) as stream:
            sesame.SentenceTransformer("sesame-embed").encode(["a text"] * texts, show_progress_bar=True)
        return stream.getvalue()

    def test_pipe(self):
        lines = self.shown(False, 300).splitlines()
        self.assertEqual(lines[-1], "texts: 300/300")
        self.assertLessEqual(len(lines), 10)
        self.assertEqual(len(set(lines)), len(lines))
        self.assertEqual(self.shown(False, 0), "")

    def test_terminal(self):
        text = self.shown(True, 300)
        self.assertTrue(text.startswith("\rtexts: ") and text.endswith("\rtexts: 300/300\n"), text)
        self.assertEqual(text.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
