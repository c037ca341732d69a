"""Commands from Python: index, search, word vectors, the server; the same results as in a shell."""

import json
import os
import shutil
import tempfile
import unittest
import urllib.request
from pathlib import Path

import sesame
from common import SANITIZED, command, needs_models

TEXTS = ["How to cook rice", "Opening hours of the shop", "The cat sat on the mat", "Boil water and add pasta"]


@unittest.skipIf(SANITIZED, "times and signals of the command differ")
@needs_models
class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "notes.txt"
        self.file.write_text("\n".join(TEXTS) + "\n")

    def test_search(self):
        expected = command("search", "-f", self.file, "-k", 2, "--json", "cooking", "pets")
        found = sesame.search(["cooking", "pets"], self.file, top_k=2)
        self.assertEqual(found, [x["results"] for x in expected])
        self.assertEqual(sesame.search("cooking", TEXTS, top_k=2), found[0])
        self.assertIn("<th>score</th>", found._repr_html_())
        self.assertEqual(sesame.search("x", ["two\nlines", '"quoted"'], top_k=5)[0]["text"] in ("two\nlines", '"quoted"'), True)
        self.assertEqual(len(sesame.search(["-q", "--file"], TEXTS, top_k=1)), 2)
        self.assertEqual(sesame.search([], TEXTS), [])
        with self.assertRaisesRegex(sesame.Error, "no-such-file"):
            sesame.search("x", self.folder / "no-such-file")
        with self.assertRaisesRegex(sesame.UsageError, "unknown option '--nonsense'"):
            sesame.search("x", TEXTS, nonsense=1)
        with self.assertRaises(ValueError):
            sesame.search("-", TEXTS)

    def test_index(self):
        first = sesame.index(self.file)
        self.assertEqual((first["texts"], first["embedded"], first["written"]), (4, 4, True))
        self.file.write_text("\n".join([*TEXTS, "One more"]) + "\n")
        again = sesame.index(self.file)
        self.assertEqual((again["texts"], again["embedded"], again["reused"]), (5, 1, 4))
        self.assertTrue(os.path.exists(str(self.file) + ".sesame-index"))
        other = sesame.index(self.file, self.folder / "other", dtype="int8")
        self.assertEqual((other["index"], other["dtype"]), (str(self.folder / "other"), "int8"))

    def test_word_vectors(self):
        corpus = self.folder / "corpus.txt"
        corpus.write_text("the king and the queen of the land\n" * 50)
        vectors = sesame.WordVectors.train(corpus, self.folder / "vectors.txt", dim=8, min_count=1, epochs=1)
        self.assertEqual((len(vectors), vectors.info["dim"]), (6, 8))
        nearest = vectors.nearest("king", top_k=3)
        self.assertEqual(nearest, command("vectors", "nearest", vectors.path, "king", "-k", 3, "--json")[0]["nearest"])
        self.assertEqual(len(vectors.nearest("king", "queen", top_k=2)), 2)
        self.assertEqual(vectors.analogy("king", "queen", "the", top_k=2),
                         command("vectors", "analogy", vectors.path, "king", "queen", "the", "-k", 2, "--json")[0]["nearest"])
        with self.assertRaisesRegex(sesame.Error, '"nothing" is not in the vocabulary'):
            vectors.nearest("nothing")
        with self.assertRaisesRegex(sesame.Error, "no-such-file"):
            sesame.WordVectors(self.folder / "no-such-file")

    def test_any_command(self):
        shown = sesame.command("explain", "A fine film.", seed=1)
        self.assertEqual(shown, command("explain", "A fine film.", "--seed", 1, "--json"))
        self.assertEqual(len(sesame.command("fill-mask", "-", input="a [MASK]\nthe [MASK]\n", top_k=2)), 2)
        with self.assertRaisesRegex(sesame.UsageError, "^unknown command 'serch'; did you mean 'search'"):
            sesame.command("serch")

    def test_server(self):
        with sesame.Server("sesame-embed", access_log="text") as server:
            body = json.dumps({"inputs": "A text."}).encode()
            for _ in range(3):
                request = urllib.request.Request(server.url + "/embed", body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=30) as answer:
                    vector = json.load(answer)[0]
        self.assertEqual(server.process.returncode, 0)
        expected = sesame.SentenceTransformer("sesame-embed").encode(["A text."], normalize_embeddings=True)[0]
        for a, b in zip(vector, expected, strict=True):
            self.assertAlmostEqual(a, float(b), 6)
        server.close()  # again
        with self.assertRaisesRegex(sesame.Error, "no-such-model"):
            sesame.Server("no-such-model")
        with self.assertRaisesRegex(sesame.UsageError, "--port: 99999 is out of range"):
            sesame.Server("sesame-embed", port=99999)


if __name__ == "__main__":
    unittest.main()
