"""The Auto classes of transformers: names of Tokenizer, and of Model with a head."""

import re

from ._model import Model
from ._sesame import FormatError
from ._tokenizer import Tokenizer

AutoTokenizer = Tokenizer


class AutoModel:
    """from_pretrained opens a Model without its head, as AutoModel of transformers does."""

    _endings = ()  # of the classes with this head; the first one is that of most models

    @classmethod
    def from_pretrained(cls, model, *, torch_dtype=None, dtype=None, **arguments):
        """Opens a model by path or name; device, dtype, threads, ... as of Model. Weights that a folder lacks are an error:
        a head is never random."""
        arguments["dtype"] = torch_dtype if dtype is None else dtype
        if not cls._endings:
            plain = Model(model, head=False, **arguments)
            try:  # with the pooler, if the folder has one
                return Model(model, class_name=plain.info["class_name"], **arguments)
            except FormatError:
                return plain
        opened = Model(model, **arguments)
        name = opened.info["class_name"]
        if name.endswith(cls._endings):
            return opened
        stem = re.sub(r"(For[A-Z]|(With)?LMHead|Model$).*", "", name)
        return Model(model, class_name=stem + cls._endings[0], **arguments)


class AutoModelForMaskedLM(AutoModel):
    """from_pretrained opens a Model that predicts masked tokens."""

    _endings = ("ForMaskedLM", "WithLMHeadModel")


class AutoModelForCausalLM(AutoModel):
    """from_pretrained opens a Model that predicts the next token."""

    _endings = ("ForCausalLM", "LMHeadModel")


class AutoModelForSeq2SeqLM(AutoModel):
    """from_pretrained opens a Model with encoder and decoder."""

    _endings = ("ForConditionalGeneration", "MarianMTModel", "EncoderDecoderModel")


class AutoModelForPreTraining(AutoModel):
    """from_pretrained opens a Model with the heads of its pretraining."""

    _endings = ("ForPreTraining", "ForMaskedLM", "LMHeadModel", "ForCausalLM", "ForConditionalGeneration")


class AutoModelForSequenceClassification(AutoModel):
    """from_pretrained opens a Model that classifies texts."""

    _endings = ("ForSequenceClassification",)


class AutoModelForTokenClassification(AutoModel):
    """from_pretrained opens a Model that classifies tokens."""

    _endings = ("ForTokenClassification",)


class AutoModelForQuestionAnswering(AutoModel):
    """from_pretrained opens a Model that finds answers in a context."""

    _endings = ("ForQuestionAnswering", "ForQuestionAnsweringSimple")


class AutoModelForMultipleChoice(AutoModel):
    """from_pretrained opens a Model that chooses an answer."""

    _endings = ("ForMultipleChoice",)


class AutoModelForNextSentencePrediction(AutoModel):
    """from_pretrained opens a Model that compares two sentences."""

    _endings = ("ForNextSentencePrediction",)
