from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from subprocess import Popen
from typing import Any, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy
import torch
from numpy.typing import NDArray

from ._options import (
    FinetuneOptions,
    IndexOptions,
    PretrainOptions,
    SearchOptions,
    ServeOptions,
    VectorsTrainOptions,
)
from .types import (
    Answer,
    Choice,
    Classification,
    Document,
    Found,
    Generated,
    Index,
    Mask,
    ModelInfo,
    Neighbor,
    Preferred,
    Ranked,
    Summary,
    Token,
    TrainingEvent,
    Translation,
    VectorsInfo,
    ZeroShot,
)

__version__: str

_Path = str | PathLike[str]
_Device = str | int | Device | None
_T = TypeVar("_T")
_One = TypeVar("_One", covariant=True)
_Each = TypeVar("_Each", covariant=True)

# ---- errors ----

class Error(Exception): ...
class OutOfMemoryError(Error, MemoryError): ...
class FileError(Error, OSError): ...
class FormatError(Error, ValueError): ...
class ArgumentError(Error, ValueError): ...
class UsageError(Error, ValueError): ...
class UnsupportedError(Error, NotImplementedError): ...
class ForkError(Error, RuntimeError): ...

# ---- arrays and devices ----

class Array:
    def __new__(cls, object: Any) -> Array: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def tolist(self) -> list[Any]: ...
    def numpy(self) -> NDArray[Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __buffer__(self, flags: int) -> memoryview: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __arrow_c_schema__(self) -> Any: ...

class Device:
    def __new__(cls, name: str = "cpu", threads: int = 0, dtype: str | None = None, isa: str | None = None) -> Device: ...
    @property
    def name(self) -> str: ...
    @property
    def threads(self) -> int: ...

def set_num_threads(threads: int) -> None: ...

# ---- pipelines ----

class Pipeline:
    task: str
    model: _Path
    def __init__(
        self,
        task: str,
        model: _Path | None = None,
        *,
        device: _Device = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        base_model: str | None = None,
        batch_tokens: int | None = None,
        max_seq_len: int | None = None,
        **arguments: Any,
    ) -> None: ...
    def __call__(self, inputs: Any = None, **arguments: Any) -> Any: ...
    def copy(self) -> Pipeline: ...
    @property
    def device(self) -> str: ...
    @property
    def labels(self) -> list[str | None]: ...

# The pipelines of the tasks: __call__ states the result of a text and of several. _One: the result of one text, _Each: that
# of each of several. A list of one text gives fill-mask and question-answering what one text gives, as in transformers 4.

class _Task(Pipeline, Generic[_One, _Each]):
    @overload  # type: ignore[override]
    def __call__(self, inputs: str | Mapping[str, Any], **arguments: Any) -> _One: ...
    @overload
    def __call__(self, inputs: Iterator[Any], **arguments: Any) -> Iterator[_Each]: ...
    @overload
    def __call__(self, inputs: Iterable[Any], **arguments: Any) -> list[_Each]: ...

class _TextClassification(Pipeline):
    @overload  # type: ignore[override]
    def __call__(self, inputs: str, *, top_k: int | None = 1, **arguments: Any) -> list[Classification]: ...
    @overload
    def __call__(self, inputs: Mapping[str, str], *, top_k: int | None, **arguments: Any) -> list[Classification]: ...
    @overload
    def __call__(self, inputs: Mapping[str, str], **arguments: Any) -> Classification: ...
    @overload
    def __call__(self, inputs: Iterator[Any], *, top_k: int | None, **arguments: Any) -> Iterator[list[Classification]]: ...
    @overload
    def __call__(self, inputs: Iterator[Any], **arguments: Any) -> Iterator[Classification]: ...
    @overload
    def __call__(self, inputs: Iterable[Any], *, top_k: int | None, **arguments: Any) -> list[list[Classification]]: ...
    @overload
    def __call__(self, inputs: Iterable[Any], **arguments: Any) -> list[Classification]: ...

class _QuestionAnswering(Pipeline):
    @overload  # type: ignore[override]
    def __call__(self, question: str, context: str, /, **arguments: Any) -> Answer: ...
    @overload
    def __call__(self, *, question: str, context: str, **arguments: Any) -> Answer: ...
    @overload
    def __call__(self, inputs: Mapping[str, str], /, **arguments: Any) -> Answer: ...
    @overload
    def __call__(self, *, question: Sequence[str], context: str | Sequence[str], **arguments: Any) -> list[Answer]: ...
    @overload
    def __call__(self, inputs: Iterable[Mapping[str, str]], /, **arguments: Any) -> list[Answer]: ...

class _ZeroShot(Pipeline):
    @overload  # type: ignore[override]
    def __call__(
        self, sequences: str | Mapping[str, Any], candidate_labels: str | Sequence[str] | None = None, **arguments: Any
    ) -> ZeroShot: ...
    @overload
    def __call__(
        self, sequences: Iterable[Any], candidate_labels: str | Sequence[str] | None = None, **arguments: Any
    ) -> list[ZeroShot]: ...

class _Embed(Pipeline):
    def __call__(self, inputs: str | Mapping[str, str] | Sequence[str], **arguments: Any) -> Array: ...  # type: ignore[override]

@overload
def pipeline(
    task: Literal["text-classification", "sentiment-analysis"], model: _Path | None = None, *, top_k: int | None, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Classification], list[Classification]]: ...
@overload
def pipeline(
    task: Literal["text-classification", "sentiment-analysis"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _TextClassification: ...
@overload
def pipeline(
    task: Literal["fill-mask"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Mask], list[Mask]]: ...
@overload
def pipeline(
    task: Literal["token-classification", "ner"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Token], list[Token]]: ...
@overload
def pipeline(
    task: Literal["question-answering"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _QuestionAnswering: ...
@overload
def pipeline(
    task: Literal["zero-shot-classification"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _ZeroShot: ...
@overload
def pipeline(
    task: Literal["text-generation"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Generated], list[Generated]]: ...
@overload
def pipeline(
    task: Literal["text2text-generation"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Generated], Generated]: ...
@overload
def pipeline(
    task: Literal["summarization"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Summary], Summary]: ...
@overload
def pipeline(
    task: Literal["translation"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Translation], Translation]: ...
@overload
def pipeline(
    task: Literal["multiple-choice"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Choice], list[Choice]]: ...
@overload
def pipeline(
    task: Literal["next-sentence"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Classification], list[Classification]]: ...
@overload
def pipeline(
    task: Literal["prefer"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Preferred], list[Preferred]]: ...
@overload
def pipeline(
    task: Literal["rerank"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[Ranked], list[Ranked]]: ...
@overload
def pipeline(
    task: Literal["similarity"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[float], list[float]]: ...
@overload
def pipeline(
    task: Literal["feature-extraction"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[list[list[list[float]]], list[list[list[float]]]]: ...
@overload
def pipeline(
    task: Literal["embed"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Embed: ...
@overload
def pipeline(
    task: Literal["features"], model: _Path | None = None, *, device: _Device = None, dtype: Any = None,
    torch_dtype: Any = None, threads: int | None = None, **arguments: Any,
) -> _Task[Array, Array]: ...
@overload
def pipeline(
    task: str, model: _Path | None = None, *, device: _Device = None, dtype: Any = None, torch_dtype: Any = None,
    threads: int | None = None, **arguments: Any,
) -> Pipeline: ...

# ---- tokenizers ----

class Encoding:
    @property
    def ids(self) -> list[int]: ...
    @property
    def type_ids(self) -> list[int]: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...
    @property
    def byte_offsets(self) -> list[tuple[int, int]]: ...
    @property
    def attention_mask(self) -> list[int]: ...
    @property
    def special_tokens_mask(self) -> list[int]: ...
    @property
    def word_ids(self) -> list[int | None]: ...
    @property
    def words(self) -> list[int | None]: ...
    @property
    def sequence_ids(self) -> list[int | None]: ...
    @property
    def overflowing(self) -> list[Encoding]: ...
    @property
    def n_sequences(self) -> int: ...
    def token_to_chars(self, token: int, /) -> tuple[int, int] | None: ...
    def token_to_word(self, token: int, /) -> int | None: ...
    def token_to_sequence(self, token: int, /) -> int | None: ...
    def char_to_token(self, position: int, sequence: int = 0, /) -> int | None: ...
    def char_to_word(self, position: int, sequence: int = 0, /) -> int | None: ...
    def word_to_tokens(self, word: int, sequence: int = 0, /) -> tuple[int, int] | None: ...
    def word_to_chars(self, word: int, sequence: int = 0, /) -> tuple[int, int] | None: ...
    def __len__(self) -> int: ...

class _CallOptions(TypedDict, total=False):
    add_special_tokens: bool
    padding: bool | str
    truncation: bool | str
    max_length: int | None
    stride: int
    is_split_into_words: bool
    pad_to_multiple_of: int | None
    return_token_type_ids: bool | None
    return_attention_mask: bool | None
    return_overflowing_tokens: bool
    return_special_tokens_mask: bool
    return_offsets_mapping: bool
    return_length: bool

class _Ids(dict[str, Any], Generic[_T]):
    """What a tokenizer returns; with overflowing tokens a text has a list for each part, as several texts have."""

    input_ids: _T
    token_type_ids: _T
    attention_mask: _T
    special_tokens_mask: _T

class Tokenizer:
    def __init__(self, path: _Path | None = None, *, json: str | None = None, lower: bool = False) -> None: ...
    @classmethod
    def from_file(cls, path: _Path) -> Tokenizer: ...
    @classmethod
    def from_pretrained(cls, identifier: _Path) -> Tokenizer: ...
    @classmethod
    def from_str(cls, json: str) -> Tokenizer: ...
    def save(self, path: _Path, overwrite: bool = False) -> None: ...
    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None: ...
    def no_truncation(self) -> None: ...
    def enable_padding(
        self, direction: str = "right", length: int | None = None, pad_to_multiple_of: int | None = None
    ) -> None: ...
    def no_padding(self) -> None: ...
    @property
    def truncation(self) -> dict[str, Any] | None: ...
    @property
    def padding(self) -> dict[str, Any] | None: ...
    def encode(
        self,
        sequence: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding: ...
    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]: ...
    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str: ...
    def decode_batch(self, sequences: Iterable[Any], skip_special_tokens: bool = True) -> list[str]: ...
    def batch_decode(self, sequences: Iterable[Any], skip_special_tokens: bool = True) -> list[str]: ...
    def tokenize(self, text: str, pair: str | None = None, add_special_tokens: bool = False) -> list[str]: ...
    @overload
    def __call__(self, text: Any, text_pair: Any = None, *, return_tensors: Literal["np"], **options: Unpack[_CallOptions]) -> _Ids[NDArray[numpy.int64]]: ...
    @overload
    def __call__(self, text: Any, text_pair: Any = None, *, return_tensors: Literal["pt"], **options: Unpack[_CallOptions]) -> _Ids[torch.Tensor]: ...
    @overload
    def __call__(self, text: str, text_pair: str | None = None, *, return_tensors: None = None, **options: Unpack[_CallOptions]) -> _Ids[list[int]]: ...
    @overload
    def __call__(self, text: Iterable[Any], text_pair: Iterable[Any] | None = None, *, return_tensors: None = None, **options: Unpack[_CallOptions]) -> _Ids[list[list[int]]]: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int | None: ...  # type: ignore[overload-overlap]
    @overload
    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int | None]: ...
    @overload
    def convert_ids_to_tokens(self, ids: int) -> str | None: ...
    @overload
    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str | None]: ...
    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]: ...
    def get_vocab_size(self, with_added_tokens: bool = True) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    def is_special(self, id: int) -> bool: ...
    def __len__(self) -> int: ...

# ---- models ----

class ModelOutput(dict[str, Any]):
    logits: Array
    last_hidden_state: Array
    pooler_output: Array
    hidden_states: tuple[Array, ...]
    attentions: tuple[Array, ...]
    def __getattr__(self, name: str) -> Array: ...

class Model:
    name: str
    def __init__(
        self,
        model: _Path,
        *,
        class_name: str | None = None,
        head: bool = True,
        device: _Device = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        base_model: str | None = None,
    ) -> None: ...
    @classmethod
    def from_pretrained(cls, model: _Path, **arguments: Any) -> Model: ...
    def __call__(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        decoder_input_ids: Any = None,
        *,
        decoder_attention_mask: Any = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        num_choices: int = 0,
    ) -> ModelOutput: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def info(self) -> ModelInfo: ...
    @property
    def device(self) -> str: ...

AutoTokenizer = Tokenizer

class AutoModel:
    @classmethod
    def from_pretrained(
        cls, model: _Path, *, torch_dtype: Any = None, dtype: Any = None, **arguments: Any
    ) -> Model: ...

class AutoModelForCausalLM(AutoModel): ...
class AutoModelForMaskedLM(AutoModel): ...
class AutoModelForMultipleChoice(AutoModel): ...
class AutoModelForNextSentencePrediction(AutoModel): ...
class AutoModelForPreTraining(AutoModel): ...
class AutoModelForQuestionAnswering(AutoModel): ...
class AutoModelForSeq2SeqLM(AutoModel): ...
class AutoModelForSequenceClassification(AutoModel): ...
class AutoModelForTokenClassification(AutoModel): ...

# The result of encode: NumPy's arrays, if NumPy is installed; otherwise an Array.
class _EncodeOptions(TypedDict, total=False):
    batch_size: int
    show_progress_bar: bool | None
    device: _Device
    normalize_embeddings: bool
    truncate_dim: int | None

class SentenceTransformer:
    model_name: str
    truncate_dim: int | None
    default_prompt_name: str | None
    def __init__(
        self,
        model_name_or_path: _Path = "sesame-embed",
        *,
        device: _Device = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        base_model: str | None = None,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def prompts(self) -> dict[str, str]: ...
    @property
    def max_seq_length(self) -> int: ...
    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None: ...
    @property
    def similarity_fn_name(self) -> str: ...
    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str) -> None: ...
    def get_sentence_embedding_dimension(self) -> int: ...
    def get_embedding_dimension(self) -> int: ...
    @overload
    def encode(self, inputs: str, prompt_name: str | None = None, prompt: str | None = None, *, output_value: Literal["token_embeddings"], **options: Unpack[_EncodeOptions]) -> Array: ...  # type: ignore[overload-overlap]
    @overload
    def encode(self, inputs: Iterable[str], prompt_name: str | None = None, prompt: str | None = None, *, output_value: Literal["token_embeddings"], **options: Unpack[_EncodeOptions]) -> list[Array]: ...
    @overload
    def encode(self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, *, convert_to_tensor: Literal[True], **options: Unpack[_EncodeOptions]) -> torch.Tensor: ...
    @overload
    def encode(self, inputs: str, prompt_name: str | None = None, prompt: str | None = None, *, convert_to_numpy: Literal[False], **options: Unpack[_EncodeOptions]) -> Array: ...  # type: ignore[overload-overlap]
    @overload
    def encode(self, inputs: Iterable[str], prompt_name: str | None = None, prompt: str | None = None, *, convert_to_numpy: Literal[False], **options: Unpack[_EncodeOptions]) -> list[Array]: ...
    @overload
    def encode(self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, *, precision: Literal["int8", "binary"], **options: Unpack[_EncodeOptions]) -> NDArray[numpy.int8]: ...
    @overload
    def encode(self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, *, precision: Literal["uint8", "ubinary"], **options: Unpack[_EncodeOptions]) -> NDArray[numpy.uint8]: ...
    @overload
    def encode(self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, **options: Unpack[_EncodeOptions]) -> NDArray[numpy.float32]: ...
    encode_query = encode
    encode_document = encode
    def similarity(self, embeddings1: Any, embeddings2: Any) -> NDArray[numpy.float32]: ...
    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> NDArray[numpy.float32]: ...

class _ScoreOptions(TypedDict, total=False):
    batch_size: int
    show_progress_bar: bool | None
    activation_fn: Any
    apply_softmax: bool
    convert_to_numpy: bool

class CrossEncoder:
    model_name: str
    def __init__(
        self,
        model_name_or_path: _Path,
        *,
        device: _Device = None,
        max_length: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        base_model: str | None = None,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def labels(self) -> list[str | None]: ...
    @property
    def num_labels(self) -> int: ...
    @overload
    def predict(self, inputs: tuple[str, str], *, convert_to_tensor: Literal[False] = False, **options: Unpack[_ScoreOptions]) -> numpy.float32 | NDArray[numpy.float32]: ...  # type: ignore[overload-overlap]
    @overload
    def predict(self, inputs: Any, *, convert_to_tensor: Literal[True], **options: Unpack[_ScoreOptions]) -> torch.Tensor: ...
    @overload
    def predict(self, inputs: Iterable[Sequence[str]], *, convert_to_tensor: Literal[False] = False, **options: Unpack[_ScoreOptions]) -> NDArray[numpy.float32]: ...
    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Any = None,
        apply_softmax: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
    ) -> list[Document]: ...

# ---- search, word vectors, server ----

def command(name: str, *words: _Path, input: str | None = None, **options: Any) -> list[Any]: ...
def index(file: _Path, output: _Path | None = None, **options: Unpack[IndexOptions]) -> Index: ...
@overload
def search(  # type: ignore[overload-overlap]
    queries: str, texts: _Path | Iterable[str], *, top_k: int = 5, **options: Unpack[SearchOptions]
) -> list[Found]: ...
@overload
def search(
    queries: Iterable[str], texts: _Path | Iterable[str], *, top_k: int = 5, **options: Unpack[SearchOptions]
) -> list[list[Found]]: ...

class WordVectors:
    path: str
    info: VectorsInfo
    def __init__(self, path: _Path) -> None: ...
    @classmethod
    def train(cls, corpus: _Path, output: _Path, **options: Unpack[VectorsTrainOptions]) -> WordVectors: ...
    def nearest(self, *words: str, top_k: int = 10, **options: Any) -> list[Neighbor]: ...
    def analogy(self, a: str, b: str, c: str, top_k: int = 10, **options: Any) -> list[Neighbor]: ...
    def __len__(self) -> int: ...

class Server:
    url: str
    process: Popen[str]
    def __init__(self, *models: str, port: int = 0, **options: Unpack[ServeOptions]) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Server: ...
    def __exit__(self, *error: object) -> None: ...

# ---- training ----

class _Training(dict[str, Any]):
    """end, output, and all scores by name."""

    @overload
    def __getitem__(self, key: Literal["end"]) -> Literal["complete", "stopped", "early_stopped", "was_complete"]: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Literal["output", "train_energy_source"]) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Literal["eval_labels"]) -> list[str]: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Literal["eval_confusion_matrix"]) -> list[list[int]]: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: str) -> float: ...

def finetune(
    train: _Path | Iterable[Any] | None = None,
    *,
    eval: _Path | Iterable[Any] | None = None,
    model: _Path | None = None,
    output: _Path | None = None,
    task: str | None = None,
    callback: Callable[[TrainingEvent], object] | None = None,
    device: _Device = None,
    dtype: str | None = None,
    threads: int | None = None,
    isa: str | None = None,
    **options: Unpack[FinetuneOptions],
) -> _Training: ...
def pretrain(
    corpus: _Path | Sequence[_Path],
    *,
    output: _Path,
    callback: Callable[[TrainingEvent], object] | None = None,
    device: _Device = None,
    dtype: str | None = None,
    threads: int | None = None,
    isa: str | None = None,
    **options: Unpack[PretrainOptions],
) -> _Training: ...
