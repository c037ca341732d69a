"""The checks of scikit-learn for estimators, with texts: check_estimator itself skips estimators whose X is not an
array of numbers. Checks without data are scikit-learn's own functions; the others have the names of its checks."""

import copy
import inspect
import json
import pickle
import re
import shutil
import tempfile
import unittest
import warnings
from pathlib import Path

from common import ROOT, has, needs_models

TEXTS = ["a fine film", "bad and dull", "fine and warm", "dull and cold"] * 4
LABELS = ["good", "bad"] * 8
NUMBERS = [120.0, 80.0] * 8
SENTENCES = [["anna", "sings"], ["the", "dog", "runs"], ["the", "cat"]] * 6
TAGS = [["NAME", "VERB"], ["O", "O", "VERB"], ["O", "O"]] * 6

# ---- estimators and checks ----

CLASSIFIER, REGRESSOR, TAGGER, EMBEDDER = "SesameClassifier", "SesameRegressor", "SesameTagger", "SesameEmbedder"
ALL, SUPERVISED = (CLASSIFIER, REGRESSOR, TAGGER, EMBEDDER), (CLASSIFIER, REGRESSOR, TAGGER)
OF_TEXTS, WEIGHTED = (CLASSIFIER, REGRESSOR, EMBEDDER), (CLASSIFIER, REGRESSOR)

WITHOUT_DATA = (
    "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types", "check_estimator_repr",
    "check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_get_params_invariance",
    "check_set_params", "check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order")

CHECKS = [(kind, name) for name in WITHOUT_DATA for kind in ALL]


def of(kinds):
    """Adds a check for these estimators."""
    def add(check):
        CHECKS.extend((kind, check) for kind in kinds)
        return check
    return add


class Subject:
    """An estimator with its data."""

    def __init__(self, kind, test, trained):
        from sesame import sklearn

        self.kind, self.test, self.type = kind, test, getattr(sklearn, kind)
        self.parameters = {} if kind == EMBEDDER else trained
        self.X, self.y = (SENTENCES, TAGS) if kind == TAGGER else (TEXTS, NUMBERS if kind == REGRESSOR else LABELS)
        self._fitted = None

    def new(self, **more):
        return self.type(**{**self.parameters, **more})

    def fitted(self):
        """One that no check may change."""
        self._fitted = self._fitted or self.new().fit(self.X, self.y)
        return self._fitted

    def methods(self):
        return [name for name in ("predict", "predict_proba", "transform") if hasattr(self.type, name)]

    def refuses(self, X, y, message="", estimator=None):
        with self.test.assertRaisesRegex(ValueError, message):
            (estimator or self.new(epochs=1) if self.parameters else self.new()).fit(X, y)

    def refuses_input(self, X, message=""):
        for method in self.methods():
            with self.test.assertRaisesRegex(ValueError, message):
                getattr(self.fitted(), method)(X)


def plain(result):
    return result.tolist() if hasattr(result, "tolist") else result


def column(values):
    """An array of one axis, also of lists."""
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# ---- parameters and state ----


@of(ALL)
def fit_returns_self(s):
    estimator = s.new(epochs=1) if s.parameters else s.new()
    s.test.assertIs(estimator.fit(s.X, s.y), estimator)


@of(SUPERVISED)
def unfitted(s):
    from sklearn.exceptions import NotFittedError

    for call in ("predict", "predict_proba"):
        if hasattr(s.type, call):
            with s.test.assertRaises(NotFittedError):
                getattr(s.new(), call)(s.X)
    with s.test.assertRaises(NotFittedError):
        s.new().score(s.X, s.y)


@of([EMBEDDER])
def unfitted_stateless(s):
    s.test.assertEqual(plain(s.new().transform(s.X)), plain(s.fitted().transform(s.X)))


@of(ALL)
def fit_score_takes_y(s):
    for name in ("fit", "score", "fit_transform"):
        if hasattr(s.type, name):
            s.test.assertEqual([*inspect.signature(getattr(s.new(), name)).parameters][1], "y")


@of(ALL)
def overwrite_params(s):
    estimator = s.new(epochs=1) if s.parameters else s.new()
    before = copy.deepcopy(estimator.get_params())
    estimator.fit(s.X, s.y)
    s.test.assertEqual(estimator.get_params(), before)


@of(ALL)
def dont_overwrite_attributes(s):
    """fit adds only attributes that end or begin with an underscore."""
    estimator = s.new(epochs=1) if s.parameters else s.new()
    before = set(vars(estimator))
    estimator.fit(s.X, s.y)
    s.test.assertEqual([x for x in set(vars(estimator)) - before if not (x.endswith("_") or x.startswith("_"))], [])


@of(ALL)
def dict_unchanged(s):
    estimator = s.fitted()
    getattr(estimator, s.methods()[0])(s.X)  # opens the model
    before = dict(vars(estimator))
    for method in s.methods():
        getattr(estimator, method)(s.X)
    s.test.assertEqual(vars(estimator), before)


@of(ALL)
def input_unchanged(s):
    X, y = copy.deepcopy(s.X), copy.deepcopy(s.y)
    (s.new(epochs=1) if s.parameters else s.new()).fit(X, y)
    s.test.assertEqual((X, y), (s.X, s.y))


@of(ALL)
def clone_of_fitted(s):
    from sklearn.base import clone

    other = clone(s.fitted())
    s.test.assertEqual(other.get_params(), s.fitted().get_params())
    s.test.assertFalse([x for x in vars(other) if x.endswith("_")])


@of(ALL)
def fit_idempotent(s):
    estimator = s.new().fit(s.X, s.y)
    first = [plain(getattr(estimator, m)(s.X)) for m in s.methods()]
    estimator.fit(s.X, s.y)
    s.test.assertEqual([plain(getattr(estimator, m)(s.X)) for m in s.methods()], first)


@of(SUPERVISED)
def random_state(s):
    import numpy as np

    made = [s.new(epochs=1, random_state=state).fit(s.X, s.y) for state in (7, 7, np.random.RandomState(7), None)]
    weights = [Path(e.folder_.path, "model.safetensors").read_bytes() for e in made]
    s.test.assertEqual(weights[0], weights[1])
    s.test.assertNotEqual(weights[0], weights[3])


@of(ALL)
def pickling(s):
    estimator = s.fitted()
    for again in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        for method in s.methods():
            s.test.assertEqual(plain(getattr(again, method)(s.X)), plain(getattr(estimator, method)(s.X)))


@of(SUPERVISED)
def n_features_in(s):
    """Texts have no features, so nothing states a number or names of them."""
    s.test.assertFalse(hasattr(s.fitted(), "n_features_in_") or hasattr(s.fitted(), "feature_names_in_"))


# ---- predictions ----


@of(ALL)
def methods_sample_order_invariance(s):
    order = list(range(len(s.X)))[::-1]
    for method in s.methods():
        call = getattr(s.fitted(), method)
        s.test.assertEqual([plain(call(s.X))[i] for i in order], plain(call([s.X[i] for i in order])))


@of(ALL)
def methods_subset_invariance(s):
    for method in s.methods():
        call = getattr(s.fitted(), method)
        s.test.assertEqual([plain(call([x]))[0] for x in s.X], plain(call(s.X)))


@of(ALL)
def one_sample(s):
    for method in s.methods():
        s.test.assertEqual(len(getattr(s.fitted(), method)(s.X[:1])), 1)


@of(ALL)
def no_sample(s):
    for method in s.methods():
        s.test.assertEqual(len(getattr(s.fitted(), method)(s.X[:0])), 0)


@of([CLASSIFIER])
def classifiers_classes(s):
    import numpy as np

    for y in (LABELS, np.array(LABELS), np.array(LABELS, dtype=object), [3, 7] * 8, np.array([-1, 1] * 8, dtype=np.int8),
              [True, False] * 8, [1.0, 2.0] * 8):
        estimator = s.new(epochs=1).fit(s.X, y)
        classes = np.unique(y)
        s.test.assertEqual((estimator.classes_.tolist(), estimator.classes_.dtype), (classes.tolist(), classes.dtype))
        found = estimator.predict(s.X)
        s.test.assertEqual((found.dtype, found.shape), (estimator.classes_.dtype, (16,)))
        s.test.assertTrue(set(found.tolist()) <= set(classes.tolist()))


@of([CLASSIFIER])
def classifiers_train(s):
    s.test.assertEqual(s.fitted().score(s.X, s.y), 1.0)


@of([REGRESSOR])
def regressors_train(s):
    import numpy as np

    s.test.assertGreater(s.fitted().score(s.X, s.y), 0.9)
    for y in (np.array(s.y), np.array(s.y, dtype=np.float32), [int(x) for x in s.y]):
        found = s.new().fit(s.X, y).predict(s.X)
        s.test.assertEqual((found.dtype, found.tolist()), (np.dtype(np.float64), s.fitted().predict(s.X).tolist()))


@of([REGRESSOR])
def regressors_of_other_scales(s):
    """Numbers are scaled before training: another unit gives the same predictions in this unit."""
    found = s.new().fit(s.X, [1000 * x + 5 for x in s.y]).predict(s.X)
    for a, b in zip(found, s.fitted().predict(s.X)):
        s.test.assertAlmostEqual(a, 1000 * b + 5, delta=1)


@of([REGRESSOR])
def regressors_targets(s):
    s.refuses(s.X, ["good"] * 16, "y must be finite numbers")
    s.refuses(s.X, [float("inf")] * 16, "y must be finite numbers")
    s.refuses(s.X, [3.0] * 16, "at least 2 different numbers, all of y are 3")
    s.refuses(s.X, [[1.0, 2.0]] * 16, "y must be finite numbers|shape")


@of([TAGGER])
def taggers_train(s):
    s.test.assertEqual((s.fitted().score(s.X, s.y), s.fitted().classes_.tolist()), (1.0, ["NAME", "O", "VERB"]))
    s.test.assertEqual([len(x) for x in s.fitted().predict(s.X)], [len(x) for x in s.X])


@of([CLASSIFIER])
def decision_proba_consistency(s):
    import numpy as np

    for labels in (LABELS, ["a", "b", "c", "d"] * 4):
        estimator = s.new(epochs=1).fit(s.X, labels)
        proba = estimator.predict_proba(s.X)
        s.test.assertEqual(proba.shape, (16, len(set(labels))))
        s.test.assertEqual(proba.dtype, np.float32)
        s.test.assertTrue(np.allclose(proba.sum(axis=1), 1, atol=1e-6) and (proba >= 0).all())
        s.test.assertEqual(estimator.classes_[proba.argmax(axis=1)].tolist(), estimator.predict(s.X).tolist())


@of([EMBEDDER])
def transformer_general(s):
    import numpy as np

    vectors = s.new().fit_transform(s.X, s.y)
    s.test.assertEqual((vectors.dtype, vectors.ndim, len(vectors)), (np.dtype(np.float32), 2, 16))
    s.test.assertEqual(vectors.tolist(), s.new().fit(s.X, s.y).transform(s.X).tolist())


@of([EMBEDDER])
def transformer_get_feature_names_out(s):
    names = s.fitted().get_feature_names_out()
    s.test.assertEqual((len(names), names[0]), (s.fitted().transform(s.X).shape[1], "sesameembedder0"))


# ---- X ----


@of(ALL)
def kinds_of_sequences(s):
    """A list, a tuple, an array of objects and one that cannot be written give the same."""
    frozen = column(s.X)
    frozen.setflags(write=False)
    expected = [plain(getattr(s.fitted(), m)(s.X)) for m in s.methods()]
    for X in (tuple(s.X), column(s.X), frozen):
        s.test.assertEqual([plain(getattr(s.fitted(), m)(X)) for m in s.methods()], expected)
        (s.new(epochs=1) if s.parameters else s.new()).fit(X, s.y)


@of(OF_TEXTS)
def arrays_of_str(s):
    import numpy as np

    for method in s.methods():
        s.test.assertEqual(plain(getattr(s.fitted(), method)(np.array(s.X))), plain(getattr(s.fitted(), method)(s.X)))


@of(ALL)
def fit2d(s):
    """An array of two axes is refused, with the way to select one."""
    X = column(s.X).reshape(-1, 1)
    s.refuses(X, s.y, r"shape \(\d+, 1\)")
    s.refuses_input(X, r"shape \(\d+, 1\)")
    s.refuses(X.reshape(1, -1), s.y, "shape")


@of(ALL)
def one_value(s):
    import numpy as np

    for X in ("a fine film", b"a fine film", np.array("a fine film"), 3, None):
        s.refuses(X, s.y, "X must be a sequence of")
        s.refuses_input(X, "X must be a sequence of")


@of(ALL)
def without_order(s):
    for X in ({"a fine film": 1, "bad": 2}, {"a fine film", "bad"}):
        s.refuses(X, s.y[:2], "X must be a sequence of")
        s.refuses_input(X, "X must be a sequence of")


@of(ALL)
def missing_values(s):
    """None and NaN in X, with the position."""
    for missing in (None, float("nan")):
        X = [list(x) for x in s.X] if s.kind == TAGGER else list(s.X)
        if s.kind == TAGGER:
            X[3][1] = missing
            s.refuses(X, s.y, r"X\[3\]\[1\] is missing")
            s.refuses_input(X, r"X\[3\]\[1\] is missing")
        else:
            X[3] = missing
            s.refuses(X, s.y, r"X\[3\] is missing")
            s.refuses_input(X, r"X\[3\] is missing")


@of(ALL)
def numbers(s):
    import numpy as np

    for X in ([1.5] * len(s.X), np.ones(len(s.X)), np.ones(len(s.X), dtype=complex), [b"bytes"] * len(s.X)):
        s.refuses(X, s.y, "X")
        s.refuses_input(X, "X")


@of(ALL)
def sparse(s):
    from scipy import sparse

    for X in (sparse.csr_matrix((16, 2)), sparse.csr_array((16, 2))):
        s.refuses(X, s.y, "X must be a sequence of")
        s.refuses_input(X, "X must be a sequence of")


@of(ALL)
def empty_data_messages(s):
    s.refuses(s.X[:0], s.y[:0], "needs at least")


@of(ALL)
def data_frames(s):
    """A column of a table is read; a table, whose sequence is the names of its columns, is refused."""
    if not has("pandas"):
        s.test.skipTest("pandas is not installed")
    import pandas

    table = pandas.DataFrame({"text": column(s.X), "label": column(s.y)})
    estimator = (s.new(epochs=1) if s.parameters else s.new()).fit(table["text"], table["label"])
    s.test.assertFalse(hasattr(estimator, "feature_names_in_"))
    s.refuses(table[["text"]], s.y, "table\\['text'\\]")
    s.refuses_input(table, "table\\['text'\\]")
    for method in s.methods():
        s.test.assertEqual(plain(getattr(s.fitted(), method)(table["text"])), plain(getattr(s.fitted(), method)(s.X)))
    if s.kind != TAGGER:
        s.refuses(pandas.Series([*s.X[:-1], None], dtype="string"), s.y, r"X\[15\] is missing")


# ---- y ----


@of(SUPERVISED)
def requires_y_none(s):
    s.refuses(s.X, None, "requires y to be passed, but the target y is None")


@of(SUPERVISED)
def lengths(s):
    for X, y in ((s.X, s.y[:-1]), (s.X[:-1], s.y)):
        s.refuses(X, y, "X has 1[5678] .* y has 1[5678]")


@of([TAGGER])
def lengths_of_rows(s):
    s.refuses([["a", "b"]], [["X"]], r"X\[0\] has 2 words, but y\[0\] has 1 tags")
    s.refuses([["a", "b"]], ["XY"], r"y\[0\] is of type str")
    for y in (s.y[:-1], [*s.y[:-1], ["O"]]):
        with s.test.assertRaisesRegex(ValueError, "has . words|has 18 sentences"):
            s.fitted().score(s.X, y)


@of([CLASSIFIER])
def classifiers_one_label(s):
    s.refuses(s.X, ["a"] * 16, "at least 2 classes")


@of([CLASSIFIER])
def classifiers_regression_target(s):
    s.refuses(s.X, [0.5 + i for i in range(16)], "continuous")


@of(SUPERVISED)
def supervised_y_no_nan(s):
    for missing in (None, float("nan")):
        y = [list(x) for x in s.y] if s.kind == TAGGER else list(s.y)
        if s.kind == TAGGER:
            y[3][1] = missing
            s.refuses(s.X, y, r"y\[3\]\[1\] is missing")
        else:
            y[3] = missing
            s.refuses(s.X, y, r"y\[3\] is missing")
            s.refuses(s.X, column(y), r"y\[3\] is missing")


@of([CLASSIFIER])
def supervised_y_2d(s):
    """A column of labels is one axis, with the warning of scikit-learn; more columns and lists are refused."""
    import numpy as np
    from sklearn.exceptions import DataConversionWarning

    with s.test.assertWarns(DataConversionWarning):
        estimator = s.new().fit(s.X, np.array(s.y).reshape(-1, 1))
    s.test.assertEqual(estimator.predict(s.X).tolist(), s.fitted().predict(s.X).tolist())
    s.refuses(s.X, np.full((16, 2), 7), "shape")
    s.refuses(s.X, np.array([s.y, s.y]).T, "shape")
    s.refuses(s.X, [["good", "long"], ["bad"]] * 8, r"y\[0\] is a list")


@of(WEIGHTED)
def sample_weight_equivalence(s):
    """A weight of 2 is a text twice, one of 0 none; weights below 1 count in relation to each other."""
    import numpy as np

    counts = np.array([0, 1, 2, 1] * 4)
    repeated = s.new(epochs=2).fit(np.repeat(s.X, counts), np.repeat(s.y, counts)).predict(s.X)
    if s.kind == REGRESSOR:  # scaled by all numbers
        repeated = s.new(epochs=2).fit(s.X, s.y, sample_weight=counts.astype(int)).predict(s.X)
    s.test.assertEqual(plain(s.new(epochs=2).fit(s.X, s.y, sample_weight=counts.tolist()).predict(s.X)), plain(repeated))
    one = s.new(epochs=2).fit(s.X, s.y).predict(s.X)
    s.test.assertEqual(plain(s.new(epochs=2).fit(s.X, s.y, [1 / 16] * 16).predict(s.X)), plain(one))


@of(WEIGHTED)
def sample_weight_is_used(s):
    """Of texts with two answers the heavier one is learned; a fraction is drawn."""
    import numpy as np

    first = np.array([x == s.y[0] for x in s.y])
    X, y = ["a film"] * 16, s.y
    for weights, expected in ((np.where(first, 5.5, 0.5), s.y[0]), (np.where(first, 0.5, 5.5), s.y[1])):
        found = s.new().fit(X, y, weights).predict(X[:1])[0]
        if s.kind == REGRESSOR:
            s.test.assertLess(abs(found - expected), 15)
        else:
            s.test.assertEqual(found, expected)


@of(WEIGHTED)
def sample_weights_shape(s):
    for weights in ([1] * 15, [[1]] * 16, [-1] * 16, [0] * 16, [float("nan")] * 16, 3):
        with s.test.assertRaisesRegex(ValueError, "sample_weight must"):
            s.new(epochs=1).fit(s.X, s.y, sample_weight=weights)


@of([CLASSIFIER])
def class_weight_classifiers(s):
    """One text with two labels: the probability of a label is its part of the weights."""
    X, y, whole = ["a film"] * 16, ["good"] * 14 + ["bad"] * 2, {"batch_size": 16, "epochs": 80}
    for weights, expected in ((None, 1 / 8), ({"good": 1, "bad": 21}, 3 / 4), ("balanced", 1 / 2)):
        proba = s.new(class_weight=weights, **whole).fit(X, y).predict_proba(X[:1])[0]
        s.test.assertAlmostEqual(float(proba[0]), expected, delta=0.1)
    s.refuses(s.X, s.y, "class_weight", s.new(class_weight="heavy"))


@of([CLASSIFIER])
def classifiers_multilabel_output(s):
    import numpy as np
    from scipy.sparse import csr_matrix

    y = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 0], [0, 1, 0]] * 4)
    estimator = s.new(epochs=40).fit(s.X, y)
    found, proba = estimator.predict(s.X), estimator.predict_proba(s.X)
    s.test.assertEqual((found.shape, proba.shape, estimator.score(s.X, y)), ((16, 3), (16, 3), 1.0))
    s.test.assertEqual(found.tolist(), (proba > 0.5).astype(int).tolist())
    s.test.assertEqual(estimator.fit(s.X, csr_matrix(y)).predict(s.X).tolist(), found.tolist())
    s.test.assertEqual(pickle.loads(pickle.dumps(estimator)).predict(s.X).tolist(), found.tolist())
    s.test.assertTrue(estimator.__sklearn_tags__().classifier_tags.multi_label)
    s.refuses(s.X, y[:-1], "X has 16 texts, but y has 15 rows")
    s.refuses(s.X, y, "one label for each text", s.new(class_weight="balanced"))


@of(OF_TEXTS)
def missing_values_as_empty_texts(s):
    import numpy as np

    estimator = (s.new(missing="empty", epochs=1) if s.parameters else s.new(missing="empty"))
    s.test.assertTrue(estimator.__sklearn_tags__().input_tags.allow_nan)
    X = [None, float("nan"), *s.X[2:]]
    estimator.fit(X, s.y)
    for method in s.methods():
        rows = plain(getattr(estimator, method)(np.array(X, dtype=object)))
        s.test.assertEqual(rows, plain(getattr(estimator, method)(["", "", *s.X[2:]])))
    with s.test.assertRaisesRegex(ValueError, "missing must be"):
        s.new(missing="drop").fit(s.X, s.y)


@of([CLASSIFIER])
def mixed_labels(s):
    s.refuses(s.X, ["good", 1] * 8, "y mixes")


# ---- with other parts of scikit-learn ----


@of(ALL)
def pipeline_consistency(s):
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline("passthrough", s.new()).fit(s.X, s.y)
    for method in s.methods():
        s.test.assertEqual(plain(getattr(pipeline, method)(s.X)), plain(getattr(s.new().fit(s.X, s.y), method)(s.X)))


@of(SUPERVISED)
def grid_search(s):
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(s.new(), {"lr": [0.0, 0.003]}, cv=2, error_score="raise").fit(s.X, s.y)
    s.test.assertEqual(search.best_params_, {"lr": 0.003})
    s.test.assertEqual(plain(search.predict(s.X)), plain(search.best_estimator_.predict(s.X)))


@of([EMBEDDER])
def grid_search_of_a_pipeline(s):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(s.new(), LogisticRegression())
    search = GridSearchCV(pipeline, {"sesameembedder__truncate_dim": [2, None]}, cv=2, error_score="raise").fit(s.X, s.y)
    s.test.assertEqual(search.score(s.X, s.y), 1.0)


@of(SUPERVISED)
def cross_validation(s):
    from sklearn.model_selection import cross_val_score

    scores = cross_val_score(s.new(epochs=1), s.X, s.y, cv=2, error_score="raise")
    s.test.assertTrue(((scores >= 0) & (scores <= 1)).all() or s.kind == REGRESSOR)


@of([CLASSIFIER])
def predictions_of_folds(s):
    from sklearn.model_selection import cross_val_predict

    proba = cross_val_predict(s.new(epochs=1), s.X, s.y, cv=2, method="predict_proba")
    s.test.assertEqual(proba.shape, (16, 2))


# ---- the test ----


@unittest.skipUnless(has("sklearn") and has("numpy"), "scikit-learn is not installed")
@needs_models
class Checks(unittest.TestCase):
    def subjects(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        config = folder / "config.json"
        config.write_text(json.dumps({
            "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 8192, "hidden_size": 16,
            "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}))
        start = {"config": str(config), "tokenizer": str(ROOT / "models/sesame-small")}
        trained = {"model": None, "lr": 0.003, "batch_size": 4, "epochs": 20, "options": start, "random_state": 1}
        return {kind: Subject(kind, self, trained) for kind in ALL}

    def test_checks(self):
        from sklearn.utils import estimator_checks

        subjects = self.subjects()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kind, check in CHECKS:
                name = check if isinstance(check, str) else check.__name__
                with self.subTest(kind=kind, check=name):
                    if isinstance(check, str):
                        getattr(estimator_checks, check)(kind, subjects[kind].type())
                    else:
                        check(subjects[kind])

    def test_documented_number(self):
        text = (ROOT / "docs/PYTHON.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(\d+) checks", text), [str(len(CHECKS))])


if __name__ == "__main__":
    unittest.main()
