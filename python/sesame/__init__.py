"""Sesame: BERT and friends, computed by a C library.

    import sesame
    classify = sesame.pipeline("sentiment-analysis")
    classify("A fine film.")                      # [{'label': 'positive', 'score': 0.99...}]
    encoder = sesame.SentenceTransformer("sesame-embed")
    vectors = encoder.encode(["A text.", "Another one."])

Names, arguments and results equal transformers, sentence-transformers and tokenizers. NumPy is not needed: arrays are
sesame.Array objects, which NumPy, PyTorch and Arrow read without a copy. docs/PYTHON.md describes threads, processes and
errors."""

import sys as _sys

if _sys.version_info < (3, 11):
    raise ImportError("sesame needs Python 3.11 or later, this is %d.%d" % _sys.version_info[:2])

try:
    from ._sesame import version as __version__
except ModuleNotFoundError as error:
    if error.name != __name__ + "._sesame":
        raise
    raise ImportError(f"{__path__[0]} is the source folder, without the compiled library: run \"pip install ./python\" in "
                      "the source tree, and Python in another folder") from None

from ._sesame import (  # noqa: E402
    ArgumentError,
    Array,
    Device,
    Encoding,
    Error,
    FileError,
    ForkError,
    FormatError,
    OutOfMemoryError,
    UnsupportedError,
    UsageError,
)
from ._devices import set_num_threads  # noqa: E402
from ._pipelines import Pipeline, pipeline  # noqa: E402

# What is used less often is imported on first use.
_lazy = {
    "Tokenizer": "._tokenizer",
    "Model": "._model",
    "ModelOutput": "._model",
    "SentenceTransformer": "._sentence",
    "CrossEncoder": "._sentence",
    "command": "._command",
    "index": "._command",
    "search": "._command",
    "Server": "._command",
    "WordVectors": "._command",
    "finetune": "._training",
    "pretrain": "._training",
    **{name: "._auto" for name in (
        "AutoTokenizer", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForMultipleChoice",
        "AutoModelForNextSentencePrediction", "AutoModelForPreTraining", "AutoModelForQuestionAnswering", "AutoModelForSeq2SeqLM",
        "AutoModelForSequenceClassification", "AutoModelForTokenClassification")},
}

__all__ = [
    "ArgumentError", "Array", "Device", "Encoding", "Error", "FileError", "ForkError", "FormatError",
    "OutOfMemoryError", "Pipeline", "UnsupportedError", "UsageError", "__version__", "pipeline", "set_num_threads",
    *_lazy,
]


def __getattr__(name):
    module = _lazy.get(name)
    if module is None:
        raise AttributeError(f"module 'sesame' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_lazy))
