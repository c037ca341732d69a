from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from subprocess import Popen
from typing import Any, Literal, TypedDict, overload

__version__: str

_Path = str | PathLike[str]
_Device = str | int | Device | None
_Event = dict[str, Any]

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
    def tolist(self) -> Any: ...
    def numpy(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __buffer__(self, flags: int) -> memoryview: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
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

def pipeline(
    task: str,
    model: _Path | None = None,
    *,
    device: _Device = None,
    dtype: Any = None,
    torch_dtype: Any = None,
    threads: int | None = None,
    **arguments: Any,
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
    def __call__(
        self,
        text: Any,
        text_pair: Any = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        return_tensors: Literal["np", "pt"] | None = None,
    ) -> ModelOutput: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> Any: ...
    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> Any: ...
    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]: ...
    def get_vocab_size(self, with_added_tokens: bool = True) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    def is_special(self, id: int) -> bool: ...
    def __len__(self) -> int: ...

# ---- models ----

class ModelOutput(dict[str, Any]):
    def __getattr__(self, name: str) -> Any: ...

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
    def info(self) -> dict[str, Any]: ...
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
    def encode(
        self,
        inputs: str | Iterable[str] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding", "token_embeddings"] = "sentence_embedding",
        precision: Literal["float32", "int8", "uint8", "binary", "ubinary"] = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        *,
        sentences: str | Iterable[str] | None = None,
    ) -> Any: ...
    def encode_query(
        self,
        inputs: str | Iterable[str] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        **arguments: Any,
    ) -> Any: ...
    def encode_document(
        self,
        inputs: str | Iterable[str] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        **arguments: Any,
    ) -> Any: ...
    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any: ...
    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any: ...

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
    def predict(
        self,
        inputs: Any = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Any = None,
        apply_softmax: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        *,
        sentences: Any = None,
    ) -> Any: ...
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
    ) -> list[dict[str, Any]]: ...

# ---- search, word vectors, server ----

class _SearchResult(TypedDict):
    index: int
    score: float
    text: str

class _IndexResult(TypedDict):
    index: str
    texts: int
    dim: int
    dtype: str
    embedded: int
    reused: int
    written: bool

class _Neighbor(TypedDict):
    word: str
    cosine: float

class _VectorsInfo(TypedDict):
    format: str
    words: int
    dim: int
    bytes: int
    subwords: bool
    first_words: list[str]

def command(name: str, *words: _Path, input: str | None = None, **options: Any) -> list[Any]: ...
def index(file: _Path, output: _Path | None = None, **options: Any) -> _IndexResult: ...
@overload
def search(
    queries: str, texts: _Path | Iterable[str], *, top_k: int = 5, **options: Any
) -> list[_SearchResult]: ...
@overload
def search(
    queries: Iterable[str], texts: _Path | Iterable[str], *, top_k: int = 5, **options: Any
) -> list[list[_SearchResult]]: ...

class WordVectors:
    path: str
    info: _VectorsInfo
    def __init__(self, path: _Path) -> None: ...
    @classmethod
    def train(cls, corpus: _Path, output: _Path, **options: Any) -> WordVectors: ...
    def nearest(self, *words: str, top_k: int = 10, **options: Any) -> list[_Neighbor]: ...
    def analogy(self, a: str, b: str, c: str, top_k: int = 10, **options: Any) -> list[_Neighbor]: ...
    def __len__(self) -> int: ...

class Server:
    url: str
    process: Popen[str]
    def __init__(self, *models: str, port: int = 0, **options: Any) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Server: ...
    def __exit__(self, *error: object) -> None: ...

# ---- training ----

def finetune(
    train: _Path | Iterable[Any] | None = None,
    *,
    eval: _Path | Iterable[Any] | None = None,
    model: _Path | None = None,
    output: _Path | None = None,
    task: str | None = None,
    callback: Callable[[_Event], Any] | None = None,
    device: _Device = None,
    dtype: str | None = None,
    threads: int | None = None,
    isa: str | None = None,
    **options: Any,
) -> dict[str, Any]: ...
def pretrain(
    corpus: _Path | Sequence[_Path],
    *,
    output: _Path,
    callback: Callable[[_Event], Any] | None = None,
    device: _Device = None,
    dtype: str | None = None,
    threads: int | None = None,
    isa: str | None = None,
    **options: Any,
) -> dict[str, Any]: ...
