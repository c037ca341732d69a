"""Shapes of results, for annotations: `from sesame.types import Classification`."""

from typing import Literal, NotRequired, TypedDict


class Classification(TypedDict):
    label: str
    score: float
    layers: NotRequired[int]  # of a model with exits


class Mask(TypedDict):
    score: float
    token: int
    token_str: str
    sequence: str


class Token(TypedDict):
    """entity and index, or entity_group where tokens are joined."""

    entity: NotRequired[str]
    entity_group: NotRequired[str]
    score: float
    index: NotRequired[int]
    word: str
    start: int
    end: int


class Answer(TypedDict):
    score: float
    start: int
    end: int
    answer: str


class ZeroShot(TypedDict):
    sequence: str
    labels: list[str]
    scores: list[float]


class Generated(TypedDict):
    generated_text: str


class Summary(TypedDict):
    summary_text: str


class Translation(TypedDict):
    translation_text: str


class Choice(TypedDict):
    index: int
    score: float
    choice: str


class Preferred(TypedDict):
    text: str
    score: float
    index: int


class Ranked(TypedDict):
    index: int
    score: float


class Document(TypedDict):
    corpus_id: int
    score: float
    text: NotRequired[str]


class Found(TypedDict):
    index: int
    score: float
    text: str


class Index(TypedDict):
    index: str
    texts: int
    dim: int
    dtype: str
    embedded: int
    reused: int
    written: bool


class Neighbor(TypedDict):
    word: str
    cosine: float


class VectorsInfo(TypedDict):
    format: str
    words: int
    dim: int
    bytes: int
    subwords: bool
    first_words: list[str]


class ModelInfo(TypedDict):
    model_type: str
    class_name: str
    head: str | None
    max_tokens: int
    vocab_size: int
    layers: int
    parameters: int
    dtype: str


class TrainingEvent(TypedDict):
    kind: Literal["started", "step", "evaluating", "evaluated", "notice"]
    update: NotRequired[int]
    updates: NotRequired[int]
    loss: NotRequired[float | None]
    epoch: NotRequired[float]
    lr: NotRequired[float | None]
    grad_norm: NotRequired[float | None]
    tokens: NotRequired[int]
    done: NotRequired[int]
    total: NotRequired[int]
    metric: NotRequired[float | None]
    scores: NotRequired[dict[str, float]]
    is_best: NotRequired[bool]
    text: NotRequired[str]
    is_warning: NotRequired[bool]
