"""Tokenizer, Model, SentenceTransformer and CrossEncoder, compared with the command."""

import array
import contextlib
import io
import json
import os
import pickle
import shutil
import tempfile
import unittest
from pathlib import Path

import sesame
from common import ROOT, command, needs_models, needs_numpy

SCORER = ROOT / "tests/pipelines/bert-score"


def lists(x):
    return x.tolist()


def f32(x):
    return array.array("f", [x])[0]


@needs_models
class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokenizer = sesame.Tokenizer.from_pretrained("sesame-small")

    def test_equals_the_command(self):
        text = "Unbelievable, wörld! It's 3.5."
        expected = command("tokenize", "--json", "-m", "sesame-small", text)[0]
        x = self.tokenizer.encode(text)
        self.assertEqual(x.ids, expected["ids"])
        self.assertEqual(x.tokens, expected["tokens"])
        self.assertEqual([list(span) for span in x.offsets], expected["offsets"])

    def test_encoding(self):
        x = self.tokenizer.encode("Hello wörld", "pair")
        self.assertEqual(len(x), len(x.ids))
        self.assertEqual((x.tokens[0], x.tokens[-1]), ("[CLS]", "[SEP]"))
        self.assertEqual((x.word_ids[0], x.sequence_ids[0], x.special_tokens_mask[0]), (None, None, 1))
        self.assertEqual((x.n_sequences, x.sequence_ids[-2], set(x.attention_mask)), (2, 1, {1}))
        word = x.char_to_token(7)
        self.assertEqual((x.token_to_chars(word), x.token_to_word(word), x.token_to_sequence(word)), ((6, 11), 1, 0))
        self.assertEqual((x.char_to_word(7), x.word_to_chars(1), x.word_to_tokens(1)), (1, (6, 11), (word, word + 1)))
        self.assertEqual(x.byte_offsets[word], (6, 12))
        self.assertIsNone(x.char_to_token(100))
        with self.assertRaises(IndexError):
            x.token_to_chars(100)
        with self.assertRaises(TypeError):
            sesame.Encoding()

    def test_truncation_and_padding(self):
        t = sesame.Tokenizer.from_pretrained("sesame-small")
        t.enable_truncation(5, stride=1)
        x = t.encode("one two three four five six")
        self.assertEqual(len(x), 5)
        self.assertEqual([len(part) for part in x.overflowing], [5, 4])
        self.assertEqual(x.overflowing[0].ids[1], x.ids[-2])
        t.no_truncation()
        t.enable_padding()
        a, b = t.encode_batch(["one", "one two three"])
        self.assertEqual((len(a), a.attention_mask), (5, [1, 1, 1, 0, 0]))
        t.enable_padding(length=8, direction="left")
        self.assertEqual(t.encode("one").attention_mask, [0] * 5 + [1] * 3)
        self.assertEqual(pickle.loads(pickle.dumps(t)).encode("one").ids, t.encode("one").ids)

    def test_words_and_pairs(self):
        t = self.tokenizer
        self.assertEqual(t.encode(["one", "two"], is_pretokenized=True).word_ids, [None, 0, 1, None])
        a, b = t.encode_batch(["one", ("one", "two")])
        self.assertEqual(b.ids, t.encode("one", "two").ids)
        self.assertEqual(t.encode("one two", add_special_tokens=False).ids, t.encode("one two").ids[1:-1])

    def test_call(self):
        out = self.tokenizer(["one", "one two three"], padding=True, truncation=True, max_length=4)
        self.assertEqual(set(out), {"input_ids", "token_type_ids", "attention_mask"})
        self.assertEqual([len(x) for x in out["input_ids"]], [4, 4])
        parts = self.tokenizer("one two three four", truncation=True, max_length=4, stride=1,
                               return_overflowing_tokens=True, return_offsets_mapping=True)
        self.assertEqual(parts["overflow_to_sample_mapping"], [0, 0, 0])
        self.assertEqual(parts["offset_mapping"][0][1], (0, 3))
        self.assertEqual(self.tokenizer("one")["input_ids"], self.tokenizer.encode("one").ids)

    def test_vocabulary(self):
        t = self.tokenizer
        self.assertEqual(t.id_to_token(t.token_to_id("[MASK]")), "[MASK]")
        self.assertEqual((t.token_to_id("no such token"), t.id_to_token(1 << 30), t.id_to_token(-1)), (None, None, None))
        self.assertEqual(t.get_vocab()["[MASK]"], t.token_to_id("[MASK]"))
        self.assertEqual((t.get_vocab_size(), len(t)), (t.vocab_size, t.vocab_size))
        self.assertTrue(t.is_special(t.token_to_id("[MASK]")))
        ids = t.encode("Hello world.").ids
        self.assertEqual(t.decode(ids), "hello world.")
        self.assertEqual(t.decode_batch([ids, ids], skip_special_tokens=False), ["[CLS] hello world. [SEP]"] * 2)

    def test_errors(self):
        t = self.tokenizer
        with self.assertRaisesRegex(TypeError, "is_pretokenized"):
            t.encode(["a"])
        with self.assertRaises(ValueError):
            t.decode([1 << 40])
        with self.assertRaises(sesame.Error):
            t.decode([1 << 30])
        with self.assertRaises(OSError):
            sesame.Tokenizer.from_file("no/such/file.json")
        with self.assertRaises(sesame.FormatError):
            sesame.Tokenizer.from_str("{")
        with self.assertRaises(ValueError):
            t.enable_truncation(5, strategy="first")

    def test_fork(self):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, repr(self.tokenizer.encode("one").ids).encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 100).decode(), repr(self.tokenizer.encode("one").ids))
        os.close(read)
        os.close(write)


@needs_models
class Models(unittest.TestCase):
    def test_outputs(self):
        t, model = sesame.Tokenizer("sesame-small"), sesame.Model.from_pretrained("sesame-small")
        texts = ["the cat sat on the mat", "a dog"]
        batch = t(texts, padding=True)
        out = model(**batch, output_hidden_states=True, output_attentions=True)
        tokens, layers = len(batch["input_ids"][0]), model.info["layers"]
        self.assertEqual(out.logits.shape, (2, tokens, model.info["vocab_size"]))
        self.assertEqual((len(out.hidden_states), len(out.attentions)), (layers + 1, layers))
        self.assertEqual(out.attentions[0].shape[2:], (tokens, tokens))
        # a sequence alone, without padding, gives the same bits
        alone = model(t(texts[1])["input_ids"], output_attentions=True)
        n = alone.logits.shape[1]
        self.assertEqual(alone.logits[0].tolist(), out.logits[1, :n].tolist())
        self.assertEqual(set(out.logits[1, n].tolist()), {0.0})
        head = alone.attentions[-1][0, 0].tolist()
        self.assertEqual([row[:n] for row in out.attentions[-1][1, 0].tolist()[:n]], head)
        self.assertAlmostEqual(sum(head[0]), 1, 5)
        with self.assertRaisesRegex(AttributeError, "logits"):
            out.nothing

    def test_equals_the_command(self):
        t, model = sesame.Tokenizer("sesame-sentiment"), sesame.Model("sesame-sentiment")
        ids = t("A fine film.")["input_ids"]
        line = command("run", "--json", "sesame-sentiment", "--ids", ",".join(map(str, ids)))[0]
        logits = model([ids]).logits.tolist()[0]
        self.assertEqual([f32(x) for x in line["logits"]], logits)
        states = sesame.pipeline("feature-extraction", "sesame-sentiment")("A fine film.")
        self.assertEqual(sesame.Model("sesame-sentiment", head=False)([ids]).last_hidden_state.tolist(), states)

    def test_errors(self):
        model = sesame.Model("sesame-small")
        for wrong, error in [([], ValueError), ([[]], ValueError), ("text", TypeError), ([[1 << 40]], ValueError),
                             ([["a"]], TypeError), ([[1 << 80]], ValueError), (None, TypeError), ([[[1]]], TypeError),
                             ([[1], 2], TypeError), ([[1 << 20]], sesame.ArgumentError), ([[-1]], sesame.ArgumentError)]:
            with self.assertRaises(error, msg=repr(wrong)):
                model(wrong)
        with self.assertRaisesRegex(ValueError, "shape of"):
            model([[1, 2]], token_type_ids=[[1]])
        with self.assertRaises(OSError):
            sesame.Model("no-such-model")
        with self.assertRaises(sesame.Error):
            sesame.Model("sesame-small", class_name="BertForNothing")

    @needs_numpy
    def test_numpy_input(self):
        import numpy

        model = sesame.Model("sesame-small")
        ids = numpy.array([[2, 40, 3]])
        self.assertEqual(model(ids).logits.tolist(), model([[2, 40, 3]]).logits.tolist())
        for same in (ids.astype(">i8"), numpy.asfortranarray(ids), numpy.repeat(ids, 2, 1)[:, ::2], list(ids)):
            self.assertEqual(model(same).logits.tolist(), model(ids).logits.tolist())
        self.assertEqual(model(ids, attention_mask=ids > 0).logits.tolist(), model(ids).logits.tolist())
        for wrong in (ids.astype("float32"), ids > 0, ids.astype("object"), [ids[0].astype("float32")]):
            with self.assertRaisesRegex(TypeError, "must be integers, not .*astype"):
                model(wrong)


@needs_models
class Sentences(unittest.TestCase):
    texts = ["A cat sat.", "Dogs bark", "The quick brown fox, naïvely, jumps over the lazy dog again and again."]

    def test_encode(self):
        encoder = sesame.SentenceTransformer("sesame-embed")
        expected = [[f32(x) for x in row] for row in command("embed", "--json", *self.texts)]
        self.assertEqual(lists(encoder.encode(self.texts)), expected)
        self.assertEqual(lists(encoder.encode(self.texts[0])), expected[0])
        self.assertEqual(lists(encoder.encode(sentences=self.texts, batch_size=1)), expected)
        scaled = [[f32(x) for x in row] for row in command("embed", "--normalize", "--json", *self.texts)]
        self.assertEqual(lists(encoder.encode(self.texts, normalize_embeddings=True)), scaled)
        self.assertEqual([len(x) for x in encoder.encode(self.texts, truncate_dim=8)], [8] * 3)
        self.assertEqual([x.tolist() for x in encoder.encode(self.texts, convert_to_numpy=False)], expected)
        self.assertEqual(len(encoder.encode([])), 0)
        states = encoder.encode(self.texts[1], output_value="token_embeddings").tolist()
        self.assertEqual([states], sesame.pipeline("feature-extraction", "sesame-embed")(self.texts[1]))
        self.assertEqual(encoder.get_sentence_embedding_dimension(), len(expected[0]))

    def test_prompts(self):
        parent = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, parent)
        (parent / "sesame-small").symlink_to(ROOT / "models/sesame-small")  # the base model of the adapter
        folder = parent / "embed"
        folder.mkdir()
        for file in (ROOT / "models/sesame-embed").iterdir():
            (folder / file.name).symlink_to(file)
        settings = folder / "config_sentence_transformers.json"
        settings.unlink(missing_ok=True)
        settings.write_text(json.dumps({"prompts": {"query": "find: ", "passage": "text: "}}))
        encoder = sesame.SentenceTransformer(folder)
        self.assertEqual(encoder.prompts, {"query": "find: ", "passage": "text: "})
        named = encoder.encode("a b", prompt_name="query").tolist()
        self.assertEqual(named, encoder.encode("a b", prompt="find: ").tolist())
        self.assertEqual(named, encoder.encode("find: a b").tolist())
        self.assertEqual(named, encoder.encode_query("a b").tolist())
        self.assertEqual(encoder.encode_document("a b").tolist(), encoder.encode("text: a b").tolist())
        shown = command("embed", "-m", folder, "--prompt-name", "query", "--json", "a b")[0]
        self.assertEqual([f32(x) for x in shown], named)
        own = sesame.SentenceTransformer(folder, prompts={"query": "b "}, default_prompt_name="query")
        self.assertEqual(own.encode("a").tolist(), own.encode("a", prompt="b ").tolist())
        states = encoder.encode("a", prompt_name="query", output_value="token_embeddings").tolist()
        self.assertEqual(states, encoder.encode("find: a", output_value="token_embeddings").tolist())
        with self.assertRaisesRegex(ValueError, "not found in the configured prompts"):
            encoder.encode("a", prompt_name="nothing")

    def test_similarity(self):
        encoder = sesame.SentenceTransformer("sesame-embed")
        x = encoder.encode(self.texts)
        scores = encoder.similarity(x, x)
        self.assertEqual(scores.shape, (3, 3))
        self.assertAlmostEqual(float(scores[1, 1]), 1, 5)
        shown = command("similarity", "--json", *self.texts)[0]
        for i, score in enumerate(shown):
            self.assertAlmostEqual(float(scores[0, i + 1]), score, 6)
        self.assertEqual(encoder.similarity_pairwise(x, x).shape, (3,))

    def test_limits(self):
        encoder = sesame.SentenceTransformer("sesame-embed")
        whole = encoder.encode("one two three four").tolist()
        encoder.max_seq_length = 4
        self.assertEqual(encoder.max_seq_length, 4)
        self.assertEqual(encoder.encode("one two three four").tolist(), encoder.encode("one two").tolist())
        self.assertNotEqual(encoder.encode("one two three four").tolist(), whole)
        self.assertEqual(encoder.encode("two three", prompt="one ").tolist(), encoder.encode("one two").tolist())

    def test_errors(self):
        encoder = sesame.SentenceTransformer("sesame-embed")
        for arguments in ({"precision": "int4"}, {"batch_size": 0}, {"output_value": "x"}):
            with self.assertRaises(ValueError):
                encoder.encode("a", **arguments)
        with self.assertRaises(TypeError):
            encoder.encode([3])
        self.assertEqual(pickle.loads(pickle.dumps(encoder)).encode("a").tolist(), encoder.encode("a").tolist())

    def test_cross_encoder(self):
        scorer = sesame.CrossEncoder(SCORER)
        pairs = [("a", "b"), ("a", "c"), ("a", "the")]
        shown = command("rerank", "-m", SCORER, "--json", "a", "b", "c", "the")[0]
        ranked = scorer.rank("a", ["b", "c", "the"], return_documents=True)
        self.assertEqual([x["corpus_id"] for x in ranked], [x["index"] for x in shown])
        self.assertEqual([float(x["score"]) for x in ranked], [f32(x["score"]) for x in shown])
        self.assertEqual([x["text"] for x in ranked], [["b", "c", "the"][x["corpus_id"]] for x in ranked])
        self.assertEqual(len(scorer.rank("a", ["b", "c"], top_k=1)), 1)
        self.assertEqual(scorer.predict(pairs).tolist()[0], float(scorer.predict(pairs[0])))
        raw = scorer.predict(pairs, activation_fn="identity").tolist()
        for score, logit in zip(scorer.predict(pairs, activation_fn="sigmoid").tolist(), raw):
            self.assertAlmostEqual(score, 1 / (1 + 2.718281828459045**-logit), 6)
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(scorer.predict(pairs * 100, show_progress_bar=True).tolist()[:3], scorer.predict(pairs).tolist())
        self.assertEqual(err.getvalue(), "texts: 256/300\ntexts: 300/300\n")
        several = sesame.CrossEncoder("sesame-nli")
        self.assertEqual(several.predict(pairs).shape, (3, 3))
        self.assertAlmostEqual(sum(several.predict(pairs[0], apply_softmax=True).tolist()), 1, 5)
        with self.assertRaisesRegex(ValueError, "num_labels=1"):
            several.rank("a", ["b"])


if __name__ == "__main__":
    unittest.main()
