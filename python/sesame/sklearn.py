"""Estimators of scikit-learn that read texts: SesameClassifier, SesameRegressor, SesameEmbedder, SesameTagger.

    from sesame.sklearn import SesameClassifier
    classifier = SesameClassifier(model="sesame-small", epochs=2).fit(texts, labels)
    classifier.predict(["A fine film."])

X is a sequence of str. They work in Pipeline, cross_val_score and GridSearchCV, and may be pickled with their weights.
scikit-learn 1.6 or later is needed."""

import itertools
import os
import re
import shutil
import tempfile
import weakref

try:
    import numpy as np
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.utils import check_random_state
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ImportError as error:
    raise ImportError(f"sesame.sklearn needs scikit-learn 1.6 or later: {error}") from error

from ._pipelines import pipeline
from ._sentence import SentenceTransformer
from ._training import finetune

__all__ = ["SesameClassifier", "SesameEmbedder", "SesameRegressor", "SesameTagger"]


class _Folder:
    """A temporary folder with a model. It is removed with the object; a pickle holds the files."""

    _wanted = re.compile(r"(?!trainer_state|log\.jsonl).*\.(json|safetensors|txt|model)$")

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="sesame-")
        self._remover = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __getstate__(self):
        files = {}
        for name in sorted(os.listdir(self.path)):
            file = os.path.join(self.path, name)
            if os.path.isfile(file) and self._wanted.match(name):
                with open(file, "rb") as data:
                    files[name] = data.read()
        return files

    def __setstate__(self, files):
        self.__init__()
        for name, data in files.items():
            with open(os.path.join(self.path, name), "wb") as out:
                out.write(data)


def _rows(name, values, rows):
    """A list of the rows of X or y: tables, arrays of several axes and collections without an order are refused."""
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a sequence of {rows}, not a single {type(values).__name__}")
    if getattr(values, "ndim", 1) != 1:  # a DataFrame, a column of an array, a sparse matrix, a single value
        raise ValueError(f"{name} must be a sequence of {rows}, not an array of shape {values.shape}; "
                         "select one column, as table['text'] or array[:, 0]")
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _is_missing(value):
    """Whether a value is None, NaN or a missing value of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _check_str(name, value):
    if not isinstance(value, str):
        what = f"missing ({value})" if _is_missing(value) else f"of type {type(value).__name__}, not str"
        raise ValueError(f"{name} is {what}")


def _texts(X, missing="error"):
    """A list of str. missing: "empty" makes missing values empty texts."""
    if missing not in ("error", "empty"):
        raise ValueError(f"missing must be 'error' or 'empty', not {missing!r}")
    texts = _rows("X", X, "texts")
    for i, text in enumerate(texts):
        if missing == "empty" and _is_missing(text):
            texts[i] = ""
        elif _is_missing(text):
            raise ValueError(f"X[{i}] is missing ({text}); missing='empty' reads it as an empty text")
        else:
            _check_str(f"X[{i}]", text)
    return texts


def _column(name, y, n, what):
    """The values of y for n texts, none of them missing."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    values = _rows("y", y, what)
    if len(values) != n:
        raise ValueError(f"X has {n} texts, but y has {len(values)} {what}")
    for i, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(f"y[{i}] is missing ({value})")
    return values, y


def _indicators(y, n):
    """Labels of texts as an array of 0 and 1, [texts, labels]; None: y has one label for each text."""
    if getattr(y, "ndim", 1) != 2 or y.shape[1] == 1:
        return None
    y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if type_of_target(y) != "multilabel-indicator" or not np.isin(y, (0, 1)).all():
        raise ValueError(f"y has the shape {y.shape}: several columns must be labels, each 0 or 1")
    if len(y) != n:
        raise ValueError(f"X has {n} texts, but y has {len(y)} rows of labels")
    return y.astype(int)


def _copies(weights, n, seed):
    """How often each of n texts is trained on, in place of its weight: a fraction is drawn by the seed. Weights below 1
    are scaled to a mean of 1."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have the shape ({n},), one weight for each text, not {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must be finite, not negative, and not 0 for all texts")
    if weights.max() < 1:
        weights = weights / weights.mean()
    counts = np.floor(weights)
    return (counts + (np.random.RandomState(seed).random_sample(n) < weights - counts)).astype(int)


def _labels(y, n):
    """The labels of n texts as an array of one axis."""
    labels, y = _column("SesameClassifier", y, n, "labels")
    for i, label in enumerate(labels):
        if isinstance(label, (list, tuple, set, dict)):
            raise ValueError(f"y[{i}] is a {type(label).__name__}: give several labels of a text as columns of 0 and 1, as "
                             "sklearn.preprocessing.MultiLabelBinarizer makes them")
    if len(kinds := {"str" if isinstance(label, str) else "number" for label in labels}) > 1:
        raise ValueError(f"y mixes {' and '.join(sorted(kinds))}: give all labels the same type")
    y = np.asarray(y)
    check_classification_targets(y)
    return y


class _TextEstimator(BaseEstimator):
    """Declares that X is a sequence of texts, and opens pipelines of the fitted folder."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = getattr(self, "missing", None) == "empty"
        return tags

    def _compute(self):
        return {"device": self.device, "threads": self.threads}

    def _seed(self):
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = 42 if seed is None else check_random_state(seed).randint(1 << 31)
        return int(seed)

    def _train(self, task, data, weights=None, **more):
        """Fine-tunes the model into a new folder."""
        folder, seed = _Folder(), self._seed()
        if weights is not None:
            data = [row for row, n in zip(data, _copies(weights, len(data), seed)) for _ in range(n)]
        options = {"epochs": self.epochs, "batch_size": self.batch_size, "lr": self.lr, "max_length": self.max_length,
                   "seed": seed, **more, **(self.options or {})}
        output = os.path.join(folder.path, "run")
        finetune(data, task=task, model=self.model, output=output, save_every=-1, **self._compute(), **options)
        for name in os.listdir(output):  # the model, without checkpoints and logs
            if os.path.isfile(os.path.join(output, name)):
                os.replace(os.path.join(output, name), os.path.join(folder.path, name))
        shutil.rmtree(output)
        return folder

    def _pipeline(self, task, **options):
        """The pipeline of the fitted model, opened once."""
        check_is_fitted(self, "folder_")
        cached = self.__dict__.get("_opened")
        if cached is None or cached[0] != self.folder_.path:
            cached = (self.folder_.path, pipeline(task, self.folder_.path, **self._compute(), **options))
            self.__dict__["_opened"] = cached
        return cached[1]

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_opened"}


class SesameClassifier(ClassifierMixin, _TextEstimator):
    """A text classifier: a pretrained encoder, fine-tuned by fit.

    model: folder or name of the encoder. epochs, batch_size, lr, max_length: as of `sesame finetune`. options: a dict of
    further options, as {"adapter": "lora"}. class_weight: None, "balanced", or a dict of weights. missing: "empty" reads
    missing values of X as empty texts. random_state: the seed. After fit: classes_, folder_.

    y is a label for each text, or an array of 0 and 1, [texts, labels], for texts with several labels; predict returns the
    same. class_weight enters the loss; a text of sample_weight 2 is trained on twice, and fractions are drawn by the seed."""

    def __init__(self, model="sesame-small", *, epochs=3, batch_size=32, lr=5e-5, max_length=0, options=None,
                 class_weight=None, missing="error", random_state=None, device=None, threads=None):
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.max_length = max_length
        self.options = options
        self.class_weight = class_weight
        self.missing = missing
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Trains on texts and their labels."""
        texts = _texts(X, self.missing)
        if (several := _indicators(y, len(texts))) is not None:
            return self._fit_several(texts, several, sample_weight)
        self.classes_, codes = np.unique(labels := _labels(y, len(texts)), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"SesameClassifier needs at least 2 classes, the data has {len(self.classes_)}")
        self._names, self._several = _label_names(self.classes_), False
        weights = None
        if self.class_weight is not None:
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            weights = dict(zip(self._names, weights.tolist()))
        data = [(text, self._names[code]) for text, code in zip(texts, codes)]
        self.folder_ = self._train("classify", data, sample_weight, labels=list(self._names), class_weights=weights)
        return self

    def _fit_several(self, texts, y, sample_weight):
        if self.class_weight is not None:
            raise ValueError("class_weight needs one label for each text; give sample_weight")
        self.classes_ = np.arange(y.shape[1])
        self._names, self._several = _label_names(self.classes_), True
        data = [{"text": text, "label": [name for name, x in zip(self._names, row) if x]} for text, row in zip(texts, y)]
        self.folder_ = self._train("multi_label", data, sample_weight, labels=list(self._names))
        return self

    def predict_proba(self, X):
        """Probabilities, [texts, classes], in the order of classes_."""
        classify = self._pipeline("text-classification", top_k=None)
        column = {name: i for i, name in enumerate(self._names)}
        out = np.zeros((len(texts := _texts(X, self.missing)), len(column)), dtype=np.float32)
        for i, rows in enumerate(classify(texts)):
            for row in rows:
                out[i, column[row["label"]]] = row["score"]
        return out

    def predict(self, X):
        """The most likely class of each text; with several labels 1 for probabilities above 0.5, else 0."""
        scores = self.predict_proba(X)
        return (scores > 0.5).astype(int) if self._several else self.classes_[scores.argmax(axis=1)]


class SesameRegressor(RegressorMixin, _TextEstimator):
    """A number for each text: a pretrained encoder, fine-tuned by fit to y, scaled to mean 0 and deviation 1.

    Parameters, sample_weight and missing values: as of SesameClassifier. After fit: folder_."""

    def __init__(self, model="sesame-small", *, epochs=3, batch_size=32, lr=5e-5, max_length=0, options=None,
                 missing="error", random_state=None, device=None, threads=None):
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.max_length = max_length
        self.options = options
        self.missing = missing
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def fit(self, X, y, sample_weight=None):
        """Trains on texts and their numbers."""
        texts = _texts(X, self.missing)
        if not texts:
            raise ValueError("SesameRegressor needs at least one text, X has none")
        y = np.asarray(_column("SesameRegressor", y, len(texts), "numbers")[0])
        if y.ndim != 1 or y.dtype.kind not in "iufb" or not np.isfinite(y := y.astype(np.float64)).all():
            raise ValueError("y must be finite numbers, one for each text")
        if y.min() == y.max():
            raise ValueError(f"SesameRegressor needs at least 2 different numbers, all of y are {y[0]:g}")
        self._mean, self._scale = float(y.mean()), float(y.std())
        data = list(zip(texts, ((y - self._mean) / self._scale).tolist()))
        self.folder_ = self._train("regress", data, sample_weight)
        return self

    def predict(self, X):
        """The number of each text."""
        regress = self._pipeline("text-classification", function_to_apply="none")
        scores = [row["score"] for row in regress(_texts(X, self.missing))]
        return np.array(scores, dtype=np.float64) * self._scale + self._mean


def _sentences(name, values):
    """X or y of SesameTagger: a list of lists of str without blanks."""
    rows = []
    words = "words" if name == "X" else "tags"
    for i, row in enumerate(_rows(name, values, f"lists of {words}")):
        if isinstance(row, (str, bytes, dict, set, frozenset)) or not hasattr(row, "__iter__"):
            raise ValueError(f"{name} must be a sequence of lists of {words}, but {name}[{i}] is of type "
                             f"{type(row).__name__}; an example: {name} = [['{'Anna' if name == 'X' else 'NAME'}']]")
        rows.append(list(row))
        for k, word in enumerate(rows[-1]):
            _check_str(f"{name}[{i}][{k}]", word)
            if word.split() != [word]:
                raise ValueError(f"{name}[{i}][{k}] is {word!r}: words and tags have no blanks and are not empty")
    return rows


def _tagged(X, y):
    """X and y of SesameTagger as lists, with a tag for each word."""
    sentences, tags = _sentences("X", X), _sentences("y", y)
    if len(sentences) != len(tags):
        raise ValueError(f"X has {len(sentences)} sentences, but y has {len(tags)} lists of tags")
    for i, (words, row) in enumerate(zip(sentences, tags)):
        if len(words) != len(row):
            raise ValueError(f"X[{i}] has {len(words)} words, but y[{i}] has {len(row)} tags")
    return sentences, tags


def _label_names(classes):
    """Names of labels in the model's folder: the classes as text, or their numbers if the text has separators."""
    names = [str(x) for x in classes]
    plain = len(set(names)) == len(names) and all(re.fullmatch(r"[\w .:/+-]+", name) for name in names)
    return names if plain else [str(i) for i in range(len(names))]


class SesameEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _TextEstimator):
    """Texts to vectors by a sentence encoder; fit learns nothing.

        make_pipeline(SesameEmbedder(), LogisticRegression()).fit(texts, labels)

    model: folder or name of the encoder. prompt: a text before each input. normalize: scale vectors to length 1.
    truncate_dim: numbers of a vector. missing: "empty" reads missing values as empty texts."""

    def __init__(self, model="sesame-embed", *, prompt=None, normalize=False, truncate_dim=None, missing="error", device=None,
                 threads=None):
        self.model = model
        self.prompt = prompt
        self.normalize = normalize
        self.truncate_dim = truncate_dim
        self.missing = missing
        self.device = device
        self.threads = threads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _encoder(self):
        key = (os.fspath(self.model), self.device, self.threads)
        cached = self.__dict__.get("_opened")
        if cached is None or cached[0] != key:
            cached = (key, SentenceTransformer(self.model, **self._compute()))
            self.__dict__["_opened"] = cached
        return cached[1]

    def fit(self, X, y=None):
        """Checks X; nothing is learned."""
        if not _texts(X, self.missing):
            raise ValueError("SesameEmbedder needs at least one text, X has none")
        return self

    @property
    def _n_features_out(self):
        width = self._encoder().get_sentence_embedding_dimension()
        return min(width, self.truncate_dim or width)

    def transform(self, X):
        """Vectors, float32 [texts, size]."""
        vectors = self._encoder().encode(_texts(X, self.missing), prompt=self.prompt, normalize_embeddings=self.normalize,
                                         truncate_dim=self.truncate_dim)
        return np.asarray(vectors)


class SesameTagger(_TextEstimator):
    """A tagger: X is a sequence of lists of words, y a sequence of lists of tags, one for each word.

    Parameters: as of SesameClassifier. score is the fraction of words with the right tag."""

    def __init__(self, model="sesame-small", *, epochs=3, batch_size=32, lr=5e-5, max_length=0, options=None,
                 random_state=None, device=None, threads=None):
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.max_length = max_length
        self.options = options
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def fit(self, X, y):
        """Trains on words and their tags."""
        if y is None:
            raise ValueError("SesameTagger requires y to be passed, but the target y is None")
        sentences, tags = _tagged(X, y)
        if not any(tags):
            raise ValueError("SesameTagger needs at least one word with a tag, X has none")
        self.classes_ = np.unique(list(itertools.chain(*tags)))
        with tempfile.TemporaryDirectory(prefix="sesame-") as folder:
            file = os.path.join(folder, "train.conll")
            with open(file, "w", encoding="utf-8") as out:
                for words, row in zip(sentences, tags):
                    out.writelines(f"{word}\t{tag}\n" for word, tag in zip(words, row))
                    out.write("\n")
            self.folder_ = self._train("tag", file, format="conll")
        return self

    def predict(self, X):
        """A list of tags for each list of words."""
        tagger = self._pipeline("token-classification", ignore_labels=[""])
        sentences = _sentences("X", X)
        filled = [words for words in sentences if words]
        found = iter(tagger(filled) if filled else [])
        return [self._tags(words, next(found)) if words else [] for words in sentences]

    def _tags(self, words, rows):
        """The tag of each word: that of its first token. A word without tokens gets "O", or the first class."""
        default = "O" if "O" in self.classes_ else str(self.classes_[0])
        by_start = {}
        for row in rows:
            by_start.setdefault(row["start"], row["entity"])
        starts = itertools.accumulate((len(word) + 1 for word in words[:-1]), initial=0)
        return [by_start.get(start, default) for start in starts]

    def score(self, X, y):
        """The fraction of words with the right tag."""
        sentences, tags = _tagged(X, y)
        pairs = list(zip(itertools.chain(*self.predict(sentences)), itertools.chain(*tags)))
        if not pairs:
            raise ValueError("a score needs at least one word, X has none")
        return sum(a == b for a, b in pairs) / len(pairs)
