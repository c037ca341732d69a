"""The estimators of scikit-learn: results, Pipeline, GridSearchCV, pickles. test_sklearn_checks.py has their checks."""

import json
import os
import pickle
import shutil
import tempfile
import unittest
from pathlib import Path

from common import ROOT, has, needs_models

CLASSIFIED = (["a fine film", "bad and dull", "fine and warm", "dull and cold"] * 4, ["good", "bad"] * 8)
TAGGED = ([["anna", "sings"], ["the", "dog", "runs"], []] * 6, [["NAME", "VERB"], ["O", "O", "VERB"], []] * 6)


@unittest.skipUnless(has("sklearn") and has("numpy"), "scikit-learn is not installed")
@needs_models
class Estimators(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 8192, "hidden_size": 16,
            "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}))
        start = {"config": str(config), "tokenizer": str(ROOT / "models/sesame-small")}
        self.small = {"model": None, "lr": 0.003, "batch_size": 4, "epochs": 20, "options": start, "random_state": 1}

    def test_parameters(self):
        from sesame.sklearn import SesameClassifier, SesameEmbedder, SesameTagger
        from sklearn.base import clone
        from sklearn.exceptions import NotFittedError

        for kind in (SesameClassifier, SesameEmbedder, SesameTagger):
            estimator = kind(threads=2)
            self.assertEqual(clone(estimator).get_params(), estimator.get_params())
            self.assertEqual(estimator.set_params(threads=1).threads, 1)
        with self.assertRaises(NotFittedError):
            SesameClassifier().predict(["a"])

    def test_classifier(self):
        import numpy as np
        from sesame.sklearn import SesameClassifier

        X, y = CLASSIFIED
        c = SesameClassifier(**self.small).fit(X, y)
        self.assertEqual((c.classes_.tolist(), c.score(X, y)), (["bad", "good"], 1.0))
        proba = c.predict_proba(np.array(X))
        self.assertEqual(proba.shape, (16, 2))
        self.assertTrue(np.allclose(proba.sum(axis=1), 1, atol=1e-5))
        again = pickle.loads(pickle.dumps(c))
        folder = c.folder_.path
        del c
        self.assertFalse(os.path.exists(folder))  # removed with the object
        self.assertTrue(np.array_equal(again.predict_proba(X), proba))
        numbers = SesameClassifier(**self.small).fit(X, [7 if x == "good" else 3 for x in y])
        self.assertEqual(set(numbers.predict(X).tolist()), {3, 7})
        for wrong in (("text", y), ([1] * 16, y), (X, y[:3]), (X, ["a"] * 16), (X, None), (X, [0.5, 1.25] * 8),
                      (X, [float("nan"), 1.0] * 8)):
            with self.assertRaises(ValueError):
                SesameClassifier(**self.small).fit(*wrong)

    def test_search(self):
        from sesame.sklearn import SesameClassifier
        from sklearn.model_selection import GridSearchCV

        X, y = CLASSIFIED
        search = GridSearchCV(SesameClassifier(**self.small), {"lr": [0.0, 0.003]}, cv=2).fit(X, y)
        self.assertEqual(search.best_params_, {"lr": 0.003})
        self.assertEqual(len(search.predict(X)), 16)

    def test_embedder(self):
        import numpy as np
        import sesame
        from sesame.sklearn import SesameEmbedder
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        X, y = CLASSIFIED
        vectors = SesameEmbedder().fit_transform(X[:2])
        self.assertTrue(np.array_equal(vectors, sesame.SentenceTransformer("sesame-embed").encode(X[:2])))
        short = SesameEmbedder(truncate_dim=8, normalize=True, prompt="x ")
        self.assertEqual((short.transform(X).shape, len(short.get_feature_names_out())), ((16, 8), 8))
        model = make_pipeline(SesameEmbedder(), LogisticRegression()).fit(X, y)
        self.assertEqual(model.score(X, y), 1.0)
        self.assertEqual(pickle.loads(pickle.dumps(model)).predict(X).tolist(), y)

    def test_tagger(self):
        from sesame.sklearn import SesameTagger
        from sklearn.model_selection import cross_val_score

        X, y = TAGGED
        tagger = SesameTagger(**self.small).fit(X, y)
        self.assertEqual(tagger.predict(X), y)
        self.assertEqual((tagger.score(X, y), tagger.classes_.tolist()), (1.0, ["NAME", "O", "VERB"]))
        self.assertEqual(pickle.loads(pickle.dumps(tagger)).predict(X[:3]), y[:3])
        long = tagger.predict([[word for words in X * 40 for word in words]])[0]  # several windows
        self.assertEqual(set(long[-100:]), {"NAME", "O", "VERB"})
        self.assertEqual(tagger.predict([["\u200b"]]), [["O"]])
        self.assertEqual(len(cross_val_score(SesameTagger(**{**self.small, "epochs": 1}), X, y, cv=2)), 2)
        for wrong in (["a b"], "a b", [3]):
            with self.assertRaisesRegex(ValueError, "lists of words"):
                tagger.predict(wrong)
        with self.assertRaisesRegex(ValueError, "lists of words"):
            SesameTagger(**self.small).fit(["ab"], [["X", "Y"]])
        with self.assertRaises(ValueError):
            SesameTagger(**self.small).fit([["a b"]], [["X"]])
        with self.assertRaises(ValueError):
            SesameTagger(**self.small).fit([["a", "b"]], [["X"]])


if __name__ == "__main__":
    unittest.main()
