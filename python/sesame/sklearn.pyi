from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self

import numpy
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin

_Model = str | PathLike[str] | None
_Texts = Iterable[str | None]
_Missing = Literal["error", "empty"]

class SesameClassifier(ClassifierMixin, BaseEstimator):
    classes_: NDArray[Any]
    def __init__(
        self, model: _Model = "sesame-small", *, epochs: float = 3, batch_size: int = 32, lr: float = 5e-5, max_length: int = 0,
        options: Mapping[str, Any] | None = None, class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        missing: _Missing = "error", random_state: Any = None, device: str | int | None = None, threads: int | None = None,
    ) -> None: ...
    def fit(self, X: _Texts, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def predict(self, X: _Texts) -> NDArray[Any]: ...
    def predict_proba(self, X: _Texts) -> NDArray[numpy.float32]: ...

class SesameRegressor(RegressorMixin, BaseEstimator):
    def __init__(
        self, model: _Model = "sesame-small", *, epochs: float = 3, batch_size: int = 32, lr: float = 5e-5, max_length: int = 0,
        options: Mapping[str, Any] | None = None, missing: _Missing = "error", random_state: Any = None,
        device: str | int | None = None, threads: int | None = None,
    ) -> None: ...
    def fit(self, X: _Texts, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def predict(self, X: _Texts) -> NDArray[numpy.float64]: ...

class SesameEmbedder(TransformerMixin, BaseEstimator):
    def __init__(
        self, model: str | PathLike[str] = "sesame-embed", *, prompt: str | None = None, normalize: bool = False,
        truncate_dim: int | None = None, missing: _Missing = "error", device: str | int | None = None,
        threads: int | None = None,
    ) -> None: ...
    def fit(self, X: _Texts, y: Any = None) -> Self: ...
    def transform(self, X: _Texts) -> NDArray[numpy.float32]: ...

class SesameTagger(BaseEstimator):
    classes_: NDArray[numpy.str_]
    def __init__(
        self, model: _Model = "sesame-small", *, epochs: float = 3, batch_size: int = 32, lr: float = 5e-5, max_length: int = 0,
        options: Mapping[str, Any] | None = None, random_state: Any = None, device: str | int | None = None,
        threads: int | None = None,
    ) -> None: ...
    def fit(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> Self: ...
    def predict(self, X: Iterable[Sequence[str]]) -> list[list[str]]: ...
    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> float: ...
