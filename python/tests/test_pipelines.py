"""Pipelines equal the command line and have the result shapes of transformers."""

import json
import os
import pickle
import signal
import threading
import time
import unittest

import sesame
from common import ROOT, SANITIZED, command, needs_models

TEXTS = ["A fine film.", "A waste of time", "It was acceptable, by and large: naïve but warm."]


@needs_models
class EqualsTheCommand(unittest.TestCase):
    def compare(self, task, texts, **arguments):
        options = []
        for name, value in arguments.items():
            name = "--" + name.replace("_", "-")
            options += [name] if value is True else [name, value]
        lines = "".join(json.dumps(x) + "\n" for x in texts)
        expected = command(task, *options, "--json", "--jsonl", "-", stdin=lines)
        pipe = sesame.pipeline(task, **arguments)
        self.assertEqual(pipe._handle.run([pipe._item(x) for x in texts]), expected)

    def test_text_classification(self):
        self.compare("text-classification", TEXTS)
        self.compare("text-classification", TEXTS, top_k=2, function_to_apply="none")

    def test_fill_mask(self):
        self.compare("fill-mask", ["The [MASK] sat.", "[MASK] and [MASK]"], top_k=3)

    def test_token_classification(self):
        texts = ["Angela Merkel lives in Berlin.", "Nobody here"]
        self.compare("token-classification", texts)
        self.compare("token-classification", texts, aggregation_strategy="average")

    def test_question_answering(self):
        items = [{"question": "Where do I live?", "context": "I live in London, near the river."}]
        self.compare("question-answering", items, top_k=2)

    def test_zero_shot(self):
        self.compare("zero-shot-classification", TEXTS, candidate_labels="praise,blame", multi_label=True)

    def test_text_generation(self):
        self.compare("text-generation", ["Once upon a time", "The cat"], max_new_tokens=5)

    def test_similarity(self):
        self.compare("similarity", [{"source_sentence": "a dog", "sentences": ["a puppy", "a train"]}])

    def test_embed(self):
        expected = command("embed", "--json", *TEXTS)
        got = sesame.pipeline("embed")(TEXTS)
        self.assertEqual(got.shape, (3, len(expected[0])))
        self.assertEqual([[float32(x) for x in row] for row in expected], got.tolist())

    def test_feature_extraction(self):
        expected = command("feature-extraction", "--json", "A text")
        got = sesame.pipeline("feature-extraction")("A text")
        self.assertEqual([[float32(x) for x in row] for row in expected[0]], got[0])


def float32(x):
    import struct

    return struct.unpack("f", struct.pack("f", x))[0]


@needs_models
class ShapesOfTransformers(unittest.TestCase):
    def test_text_classification(self):
        classify = sesame.pipeline("text-classification")
        one = classify("fine")
        self.assertEqual([set(x) for x in one], [{"label", "score"}])
        self.assertEqual(classify(["fine"]), one)
        self.assertEqual(classify({"text": "fine"}), one[0])
        self.assertEqual(classify("fine", top_k=1), one)
        every = classify(["fine", "bad"], top_k=None)
        self.assertEqual([len(x) for x in every], [2, 2])
        self.assertEqual(sesame.pipeline("sentiment-analysis", top_k=1)("fine"), [one])

    def test_fill_mask(self):
        fill = sesame.pipeline("fill-mask", top_k=2)
        one = fill("The [MASK] sat.")
        self.assertEqual(set(one[0]), {"score", "token", "token_str", "sequence"})
        self.assertEqual(fill(["The [MASK] sat."]), one)
        two = fill(["The [MASK] sat.", "[MASK] and [MASK]"])
        self.assertEqual([len(two), len(two[1]), len(two[1][0])], [2, 2, 2])
        self.assertEqual([x["token_str"] for x in fill("A [MASK].", targets=["dog"])], ["dog"])

    def test_token_classification(self):
        ner = sesame.pipeline("ner")
        text = "Angela Merkel lives in Berlin."
        found = ner(text)
        self.assertEqual(set(found[0]), {"entity", "score", "index", "word", "start", "end"})
        group = ner([text], aggregation_strategy="simple")[0]
        self.assertEqual([(x["entity_group"], text[x["start"]:x["end"]]) for x in group],
                         [("PER", "Angela Merkel"), ("LOC", "Berlin")])
        self.assertEqual(ner(text, grouped_entities=True), group)
        words = ner(["Angela", "Merkel"], is_split_into_words=True, aggregation_strategy="simple")
        self.assertEqual(words[0]["word"], "angela merkel")

    def test_question_answering(self):
        answer = sesame.pipeline("question-answering")
        context = "My name is Sarah and I live in London."
        one = answer(question="Where do I live?", context=context)
        self.assertEqual((one["answer"], context[one["start"]:one["end"]]), ("London", "London"))
        self.assertEqual(answer("Where do I live?", context), one)
        self.assertEqual(answer({"question": "Where do I live?", "context": context}), one)
        self.assertEqual(answer([{"question": "Where do I live?", "context": context}]), one)
        two = answer(question=["Where do I live?", "Who am I?"], context=context)
        self.assertEqual([x["answer"] for x in two], ["London", two[1]["answer"]])
        self.assertEqual(len(answer(question="Where do I live?", context=context, top_k=2)), 2)
        with self.assertRaisesRegex(ValueError, "same lengths"):
            answer(question=["a", "b"], context=["c"])
        with self.assertRaisesRegex(ValueError, "empty"):
            answer(question="", context="x")

    def test_zero_shot(self):
        classify = sesame.pipeline("zero-shot-classification")
        one = classify("A trip", candidate_labels=["travel, far", "cooking"])
        self.assertEqual(set(one), {"sequence", "labels", "scores"})
        self.assertIn("travel, far", one["labels"])
        self.assertEqual(classify(["A trip"], "travel,cooking")[0]["sequence"], "A trip")
        self.assertEqual(classify("A trip", "travel, cooking", multi_label=True)["sequence"], "A trip")

    def test_generation(self):
        generate = sesame.pipeline("text-generation", max_new_tokens=4)
        one = generate("Once upon")
        self.assertEqual([set(x) for x in one], [{"generated_text"}])
        self.assertEqual(generate(["Once upon", "The"])[0], one)
        new = generate("Once upon", return_full_text=False)[0]["generated_text"]
        self.assertEqual("Once upon" + new, one[0]["generated_text"])
        pieces = []
        generate("Once upon", streamer=pieces.append)
        self.assertEqual("".join(pieces), one[0]["generated_text"])

    def test_iterators(self):
        classify = sesame.pipeline("text-classification")
        texts = ["fine %d" % i for i in range(300)]
        results = classify(x for x in texts)
        self.assertEqual(next(results), classify(texts[0])[0])
        self.assertEqual(len(list(results)), 299)


@needs_models
class BadInput(unittest.TestCase):
    def test_collections(self):
        """Sequences that are not lists of texts: tables, arrays of several axes, sets, strings."""
        class Table(dict):
            ndim, shape, columns = 2, (2, 2), ["text", "label"]

        class Value:  # an array of one value
            ndim, shape = 0, ()

        class String(str):  # a string of NumPy
            ndim, shape = 0, ()

        classify, encoder = sesame.pipeline("text-classification"), sesame.SentenceTransformer("sesame-embed")
        zero = sesame.pipeline("zero-shot-classification")
        table = Table(text=["a", "b"], label=["x", "y"])
        for call in (classify, encoder.encode, lambda x: zero(x, candidate_labels=["x"])):
            with self.assertRaisesRegex(TypeError, r"shape \(2, 2\); select one column"):
                call(table)
            with self.assertRaisesRegex(TypeError, "select one column"):
                call(Value())
            with self.assertRaisesRegex(TypeError, "a set, which has no order"):
                call({"a", "b"})
        self.assertEqual(classify(String("good")), classify("good"))
        self.assertEqual(encoder.encode(String("good")).tolist(), encoder.encode("good").tolist())
        self.assertEqual(zero(String("good"), candidate_labels=["x"]), zero("good", candidate_labels=["x"]))
        with self.assertRaisesRegex(TypeError, "reads texts, not dict"):
            encoder.encode({"a": 1})
        with self.assertRaisesRegex(TypeError, "prompt must be a str, not list"):
            encoder.encode("a", prompt=["x"])
        for size in (-1, 0, True, float("nan"), 1.5):
            with self.assertRaisesRegex(ValueError, "truncate_dim must be an integer of at least 1"):
                encoder.encode("a", truncate_dim=size)
        scorer = sesame.CrossEncoder(ROOT / "tests/pipelines/bert-score")
        for pairs in ("ab", ["ab", "cd", "ef"], table):
            with self.assertRaises(TypeError):
                scorer.predict(pairs)
        with self.assertRaisesRegex(TypeError, "must be a list of texts, not str"):
            scorer.rank("q", "abc")
        with self.assertRaisesRegex(ValueError, "top_k must be at least 1"):
            scorer.rank("q", ["a", "b"], top_k=-1)
        with self.assertRaisesRegex(TypeError, "a list of texts, not a single str"):
            sesame.Tokenizer.from_pretrained("sesame-small").encode_batch("ab")

    def test_errors(self):
        classify = sesame.pipeline("text-classification")
        with self.assertRaisesRegex(sesame.UsageError, "did you mean 'top_k'"):
            classify("x", topk=1)
        for wrong in (3, None, b"x"):
            with self.assertRaisesRegex(TypeError, f"must be str or dict, not {type(wrong).__name__}"):
                classify(wrong)
        with self.assertRaisesRegex(TypeError, "item 1: .*not int"):
            classify(["x", 3])
        with self.assertRaisesRegex(TypeError, "item 300: .*not int"):
            list(classify(3 if i == 300 else "x" for i in range(400)))
        with self.assertRaisesRegex(TypeError, "item 1: a text must be str, not int"):
            sesame.SentenceTransformer("sesame-embed").encode(["x", 3])
        with self.assertRaisesRegex(ValueError, "unknown task 'nothing'; expected one of .*fill-mask"):
            sesame.pipeline("nothing")
        with self.assertRaisesRegex(ValueError, "surrogates"):
            classify("\ud800")
        with self.assertRaisesRegex(ValueError, "unknown key"):
            classify({"txt": "x"})
        with self.assertRaisesRegex(OSError, "no such folder"):
            sesame.pipeline("fill-mask", "no-such-model")
        with self.assertRaisesRegex(sesame.UnsupportedError, "does not support"):
            sesame.pipeline("question-answering", "sesame-sentiment")
        with self.assertRaisesRegex(sesame.Error, "did you mean"):
            sesame.pipeline("fil-mask", "sesame-small")
        with self.assertRaisesRegex(ValueError, "no bundled model"):
            sesame.pipeline("summarization")
        with self.assertRaisesRegex(ValueError, "dtype must be"):
            sesame.pipeline("fill-mask", dtype="f8")

    def test_failed_items(self):
        fill = sesame.pipeline("fill-mask")
        texts = ["A [MASK].", "none", "[MASK]!"]
        with self.assertRaisesRegex(ValueError, "^item 1: no mask"):
            fill(texts)
        with self.assertRaisesRegex(ValueError, "^item 300: no mask"):  # an iterator is read in chunks
            list(fill("none" if i == 300 else "A [MASK]." for i in range(310)))
        kept = fill(texts, keep_going=True)
        self.assertIsInstance(kept[1], sesame.ArgumentError)
        self.assertEqual(kept[2], fill(texts[2]))

    def test_arguments_without_effect_are_refused(self):
        for argument in ({"tokenizer": "other"}, {"clean_up_tokenization_spaces": True}, {"return_text": False}):
            with self.assertRaises(ValueError):
                sesame.pipeline("text-classification", **argument)
        with self.assertRaises(ValueError):
            sesame.SentenceTransformer().encode("a", device="cuda:3")

    def test_exceptions_of_callbacks(self):
        generate = sesame.pipeline("text-generation", max_new_tokens=20)

        def fail(piece):
            raise KeyError(piece)

        with self.assertRaises(KeyError):
            generate("Once upon", streamer=fail)
        with self.assertRaisesRegex(RuntimeError, "in use"):
            generate("Once", streamer=lambda piece: generate("x", batch_tokens=1, max_new_tokens=20))
        self.assertEqual(len(generate("Once upon", max_new_tokens=1)), 1)


@needs_models
class ProcessesAndThreads(unittest.TestCase):
    def test_pickle(self):
        classify = sesame.pipeline("text-classification", top_k=2)
        again = pickle.loads(pickle.dumps(classify))
        self.assertEqual(again("fine"), classify("fine"))

    def test_fork(self):
        classify = sesame.pipeline("text-classification")
        expected = classify("fine")
        core = classify._handle
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                try:
                    core.run(["fine"])
                    answer = b"computed"
                except sesame.ForkError:
                    answer = b"refused" if classify("fine") == expected else b"differs"
                os.write(write, answer)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 100), b"refused")
        os.close(read)
        os.close(write)

    def test_threads(self):
        classify = sesame.pipeline("text-classification")
        expected = classify(TEXTS)
        results = []
        other = classify.copy()
        work = [threading.Thread(target=lambda p=p: results.append(p(TEXTS * 20))) for p in (classify, other, classify)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        self.assertEqual(results, [expected * 20] * 3)

    def test_other_threads_run(self):
        embed = sesame.pipeline("embed", threads=1)
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        embed(["a somewhat longer text, to take some time " * 8] * 60)
        done.set()
        thread.join()
        self.assertGreater(len(ticks), 3)

    def test_interrupt(self):
        for task, texts, arguments in [
            ("embed", ["a somewhat longer text, to take some time " * 8] * 20000, {}),
            ("text-generation", "Once upon", {"max_new_tokens": 200, "num_beams": 8}),
        ]:
            pipe = sesame.pipeline(task, **arguments)
            timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
            timer.start()
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    pipe(texts)
            self.assertLess(time.monotonic() - begin, 60 if SANITIZED else 20)
            timer.join()
            pipe("a") if task == "embed" else pipe("a", max_new_tokens=1)


if __name__ == "__main__":
    unittest.main()
