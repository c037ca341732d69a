"""SentenceTransformer and CrossEncoder with the methods of sentence-transformers."""

import array
import math
import os
import sys

from . import _sesame
from ._devices import Reopened, device_name
from ._pipelines import Pipeline, check_sequence
from ._results import shown

_STEP = 256  # pairs between two lines of progress
_PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _float32(x):
    """An object with the buffer protocol that holds float32."""
    if isinstance(x, (list, tuple)):
        numpy = _numpy()
        if numpy is None:
            raise TypeError("a list of vectors needs NumPy; give an Array")
        return numpy.ascontiguousarray(numpy.stack([numpy.asarray(row) for row in x]), dtype=numpy.float32)
    if not isinstance(x, _sesame.Array) and hasattr(x, "__dlpack__") and not hasattr(x, "__buffer__") \
            and hasattr(x, "detach"):  # a tensor of PyTorch
        return x.detach().cpu().numpy()
    return x


def _progress(wanted, total):
    """A function that shows how many texts are done: one line that changes on a terminal, elsewhere a line for each tenth.
    None: nothing to show."""
    stream, last = sys.stderr, 0
    if not wanted or not total or stream is None:
        return None
    terminal = stream.isatty()

    def show(done):
        nonlocal last
        step = done if terminal else 10 * done // total
        if step > last:
            last = step
            stream.write(("\r" if terminal else "") + f"texts: {done}/{total}" + ("\n" if done >= total or not terminal else ""))
            stream.flush()

    return show


class SentenceTransformer(Reopened):
    """One vector for each text: a folder of sentence-transformers, or any encoder with mean pooling.

        encoder = SentenceTransformer("sesame-embed")
        vectors = encoder.encode(["A text.", "Another one."])        # [2, size]
        encoder.similarity(vectors, vectors)

    Results are NumPy arrays if NumPy is installed, otherwise Arrays. One encoder computes one call at a time."""

    def __init__(self, model_name_or_path="sesame-embed", *, device=None, prompts=None, default_prompt_name=None,
                 similarity_fn_name=None, truncate_dim=None, dtype=None, threads=None, isa=None, base_model=None):
        self.model_name = os.fspath(model_name_or_path)
        self._device_arguments = {"device": device, "dtype": dtype, "threads": threads, "isa": isa}
        self._base_model = base_model
        self.truncate_dim = truncate_dim
        self._similarity = similarity_fn_name
        self._max_seq_length = None
        self._prompts = prompts
        self.default_prompt_name = default_prompt_name
        self._handle  # opens it
        if default_prompt_name is not None and default_prompt_name not in self.prompts:
            raise ValueError(f"{default_prompt_name!r} is not one of the prompts: {sorted(self.prompts)}")

    def _open(self):
        made = Pipeline("embed", self.model_name, base_model=self._base_model, **self._device_arguments)
        if self._max_seq_length is not None:
            made._handle.max_seq_len = self._max_seq_length
        return made

    # ---- properties ----

    @property
    def _encoder(self):
        return self._handle._handle.encoder

    @property
    def prompts(self):
        """Texts that are put before the input, by name."""
        return {**self._encoder["prompts"], **(self._prompts or {})}

    @property
    def max_seq_length(self):
        """Maximum length of a text in tokens; longer texts are truncated."""
        return self._handle._handle.max_seq_len

    @max_seq_length.setter
    def max_seq_length(self, tokens):
        self._handle._handle.max_seq_len = tokens
        self._max_seq_length = tokens
        self._handle._limits["max_seq_len"] = tokens

    @property
    def similarity_fn_name(self):
        """The function of `similarity`: cosine, dot, euclidean or manhattan."""
        return self._similarity or self._encoder["similarity"]

    @similarity_fn_name.setter
    def similarity_fn_name(self, name):
        self._similarity = name

    def get_sentence_embedding_dimension(self):
        """Size of a vector."""
        width = self._encoder["width"]
        return min(width, self.truncate_dim or width)

    get_embedding_dimension = get_sentence_embedding_dimension

    # ---- encoding ----

    def _prompt(self, prompt_name, prompt):
        if prompt is not None:
            return prompt
        name = prompt_name if prompt_name is not None else self.default_prompt_name
        if name is None:
            return None  # the folder's default prompt
        if name not in self.prompts:
            raise ValueError(f"Prompt name {name!r} not found in the configured prompts dictionary with keys "
                             f"{sorted(self.prompts)!r}.")
        return self.prompts[name]

    def encode(self, inputs=None, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None,
               output_value="sentence_embedding", precision="float32", convert_to_numpy=True, convert_to_tensor=False,
               device=None, normalize_embeddings=False, truncate_dim=None, *, sentences=None):
        """Vectors of texts: an array [texts, size], or [size] for one text.

        prompt_name, prompt: a text that is put before each input, by its name in the folder or as it is.
        batch_size: accepted, but batches are filled by tokens; results do not depend on it.
        output_value: "sentence_embedding", or "token_embeddings": a list of arrays [tokens, size].
        precision: "float32", "int8", "uint8", "binary", "ubinary".
        convert_to_numpy: False gives a list of Arrays. convert_to_tensor: a tensor of PyTorch.
        normalize_embeddings: scale vectors to length 1. truncate_dim: keep this many numbers of each vector."""
        inputs = inputs if inputs is not None else sentences
        if inputs is None:
            raise TypeError("encode() needs texts")
        if device is not None and device_name(device) != self.device:
            raise ValueError("device: give it to SentenceTransformer; encode() computes where the model is")
        if batch_size <= 0:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size}.")
        if precision not in _PRECISIONS:
            raise ValueError(f"Precision {precision!r} is not supported, must be one of {_PRECISIONS}")
        check_sequence(inputs)
        if isinstance(inputs, (dict, bytes)):
            raise TypeError(f"encode() reads texts, not {type(inputs).__name__}")
        single = isinstance(inputs, str)
        texts = [inputs] if single else inputs.tolist() if hasattr(inputs, "tolist") else list(inputs)
        prompt = self._prompt(prompt_name, prompt)
        if prompt is not None and not isinstance(prompt, str):
            raise TypeError(f"prompt must be a str, not {type(prompt).__name__}")
        size = truncate_dim if truncate_dim is not None else self.truncate_dim
        if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or size < 1):
            raise ValueError(f"truncate_dim must be an integer of at least 1, not {size!r}")
        if output_value == "token_embeddings":
            if normalize_embeddings or truncate_dim is not None or precision != "float32" or convert_to_tensor:
                raise ValueError("token embeddings are float32 Arrays: other formats are not supported")
            rows = self._tokens(texts, prompt)
            return rows[0] if single else rows
        if output_value != "sentence_embedding":
            raise ValueError('output_value must be "sentence_embedding" or "token_embeddings"')
        show = _progress(show_progress_bar, len(texts))
        vectors = self._core(prompt, normalize_embeddings and size is None).vectors(texts, show)
        if show:
            show(len(texts))
        if size is not None:
            vectors = _sesame.trim(vectors, size or 0, normalize_embeddings)
        if precision != "float32":
            vectors = _sesame.quantize(vectors, precision)
        return self._converted(vectors, single, convert_to_numpy, convert_to_tensor)

    @staticmethod
    def _converted(vectors, single, to_numpy, to_tensor):
        if to_tensor:
            import torch

            return torch.from_dlpack(vectors[0] if single else vectors)
        if not to_numpy:
            return vectors[0] if single else list(vectors)
        numpy = _numpy()
        if numpy is not None:
            vectors = numpy.asarray(vectors)
        return vectors[0] if single else vectors

    def _core(self, prompt, normalize=False):
        arguments = {} if prompt is None else {"prompt": prompt}
        if normalize and not self._encoder["normalizes"]:
            arguments["normalize"] = True
        return self._handle._core(arguments)

    def _tokens(self, texts, prompt):
        """The last hidden states of each text."""
        core = self._core(prompt)
        made = _sesame.Pipeline("feature-extraction", None, core.device, (), parent=core)
        made.max_seq_len = self.max_seq_length
        prefix = prompt if prompt is not None else self._encoder["default_prompt"] or ""
        return made.run([prefix + x for x in texts] if prefix else texts, arrays=True)

    def encode_query(self, inputs=None, prompt_name=None, prompt=None, **arguments):
        """`encode` for queries, with the prompt "query" of the folder if it has one."""
        if prompt_name is None and prompt is None and "query" in self.prompts:
            prompt_name = "query"
        return self.encode(inputs, prompt_name, prompt, **arguments)

    def encode_document(self, inputs=None, prompt_name=None, prompt=None, **arguments):
        """`encode` for texts to be found, with the prompt "document", "passage" or "corpus" of the folder."""
        if prompt_name is None and prompt is None:
            prompt_name = next((x for x in ("document", "passage", "corpus") if x in self.prompts), None)
        return self.encode(inputs, prompt_name, prompt, **arguments)

    # ---- similarity ----

    def similarity(self, embeddings1, embeddings2):
        """The similarity of each row of the first array with each row of the second one, [n, m]."""
        return self._compare(embeddings1, embeddings2, False)

    def similarity_pairwise(self, embeddings1, embeddings2):
        """The similarity of row i of the first array with row i of the second one, [n]."""
        return self._compare(embeddings1, embeddings2, True)

    def _compare(self, first, second, pairwise):
        result = _sesame.similarity(_float32(first), _float32(second), self.similarity_fn_name, pairwise)
        numpy = _numpy()
        return result if numpy is None else numpy.asarray(result)

    def __repr__(self):
        return f"<sesame.SentenceTransformer {self.model_name!r}>"


class CrossEncoder(Reopened):
    """Scores pairs of texts with a model that reads both together.

        scorer = CrossEncoder("path/of/a/model")
        scorer.predict([("How many people live in Berlin?", "Berlin has 3.5 million inhabitants.")])
        scorer.rank("How many people live in Berlin?", documents, top_k=3)"""

    def __init__(self, model_name_or_path, *, device=None, max_length=None, dtype=None, threads=None, isa=None,
                 base_model=None):
        self.model_name = os.fspath(model_name_or_path)
        self._device_arguments = {"device": device, "dtype": dtype, "threads": threads, "isa": isa}
        self._base_model = base_model
        self._max_length = max_length
        self._handle  # opens it

    def _open(self):
        classifier = Pipeline("text-classification", self.model_name, base_model=self._base_model,
                              max_seq_len=self._max_length, **self._device_arguments)
        core = classifier._handle
        if len(core.labels) > 1:
            return classifier
        scorer = _sesame.Pipeline("rerank", self.model_name, core.device, (), parent=core, base_model=self._base_model)
        raw = _sesame.Pipeline("rerank", self.model_name, core.device, (("raw_scores", "true"),), parent=core,
                               base_model=self._base_model)
        scorer.max_seq_len = raw.max_seq_len = core.max_seq_len
        return scorer, raw

    @property
    def labels(self):
        """Names of the scores; one score has none."""
        return [] if isinstance(self._handle, tuple) else self._handle.labels

    @property
    def num_labels(self):
        """Number of scores of a pair."""
        return len(self.labels) or 1

    # ---- scores ----

    @staticmethod
    def _run(core, items, show):
        """The results of items; `show` receives how many are done."""
        step = _STEP if show else max(len(items), 1)
        for first in range(0, len(items), step):
            yield from core.run(items[first:first + step], first=first)
            if show:
                show(min(first + step, len(items)))

    def _one_score(self, pairs, raw, show):
        results = self._run(self._handle[1 if raw else 0], [(query, None, (text,)) for query, text in pairs], show)
        return _sesame.Array(array.array("f", [x[0]["score"] for x in results]))

    def _several_scores(self, pairs, function, show):
        core = self._handle._core({"top_k": None, "function_to_apply": function})
        column = {label: i for i, label in enumerate(self.labels)}
        rows = array.array("f", bytes(4 * len(pairs) * len(column)))
        for i, result in enumerate(self._run(core, [(query, text, None) for query, text in pairs], show)):
            for row in result:
                rows[i * len(column) + column[row["label"]]] = row["score"]
        if not pairs:
            return _sesame.Array(rows)
        return _sesame.Array(memoryview(rows).cast("B").cast("f", (len(pairs), len(column))))

    def predict(self, inputs=None, batch_size=32, show_progress_bar=None, activation_fn=None, apply_softmax=False,
                convert_to_numpy=True, convert_to_tensor=False, *, sentences=None):
        """Scores of pairs of texts, [pairs], or [pairs, labels] for a model with several labels; of one pair its score.

        activation_fn: "sigmoid", "identity" or a module of PyTorch of this name; None: the one that the folder names,
        otherwise a sigmoid for one score and none for several. apply_softmax: for several labels."""
        inputs = inputs if inputs is not None else sentences
        if inputs is None:
            raise TypeError("predict() needs pairs of texts")
        if hasattr(inputs, "columns"):  # a DataFrame, whose sequence is the names of its columns
            raise TypeError("predict() reads pairs of texts, not a table: give table.values.tolist()")
        single = not isinstance(inputs, str) and len(inputs) == 2 and all(isinstance(x, str) for x in inputs)
        pairs = [tuple(inputs)] if single else list(inputs)
        for i, pair in enumerate(pairs):
            if isinstance(pair, (str, bytes, dict)):
                raise TypeError(f"item {i}: a pair must be a list or tuple of two texts, not {type(pair).__name__}")
            if len(pair) != 2:
                raise ValueError(f"a pair has 2 texts, not {len(pair)}")
        function = _activation(activation_fn)
        show = _progress(show_progress_bar, len(pairs))
        if isinstance(self._handle, tuple):
            scores = self._one_score(pairs, function is not None, show)
            if function == "sigmoid":
                scores = _sesame.Array(array.array("f", [1 / (1 + math.exp(-x)) for x in scores]))
        else:
            scores = self._several_scores(pairs, "softmax" if apply_softmax else function or "none", show)
        result = SentenceTransformer._converted(scores, False, convert_to_numpy, convert_to_tensor)
        return result[0] if single else result

    def rank(self, query, documents, top_k=None, return_documents=False, batch_size=32, show_progress_bar=None,
             activation_fn=None, apply_softmax=False, convert_to_numpy=True, convert_to_tensor=False):
        """Documents by their score with a query, best first: [{"corpus_id", "score", "text"?}, ...]."""
        if not isinstance(self._handle, tuple):
            raise ValueError("CrossEncoder.rank() only works for models with num_labels=1. Consider using "
                             "CrossEncoder.predict() with input pairs instead.")
        if isinstance(documents, (str, bytes, dict, set)):
            raise TypeError(f"documents must be a list of texts, not {type(documents).__name__}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {top_k}")
        scores = self.predict([(query, text) for text in documents], show_progress_bar=show_progress_bar,
                              activation_fn=activation_fn)
        order = sorted(range(len(documents)), key=lambda i: -scores[i])[:top_k]
        return shown([{"corpus_id": i, "score": scores[i], **({"text": documents[i]} if return_documents else {})}
                      for i in order])

    def __repr__(self):
        return f"<sesame.CrossEncoder {self.model_name!r}>"


def _activation(fn):
    """The function_to_apply of a pipeline, from a name or a module of PyTorch; None: the default."""
    if fn is None:
        return None
    name = fn if isinstance(fn, str) else type(fn).__name__
    if name.lower() in ("identity", "none"):
        return "none"
    if name.lower() == "sigmoid":
        return "sigmoid"
    raise ValueError(f"activation_fn must be sigmoid or identity, not {name!r}")
