#!/usr/bin/env python3
"""Compares the Python package with transformers and sentence-transformers, and times the encoding of 2,000 short texts.

    SESAME_MODELS=models python bench/peers/python.py [--threads 2] [--no-time]

Needs sesame, torch, transformers and sentence-transformers in one environment. The models are random, with the sizes of
BERT-mini and all-MiniLM-L6, and the tokenizer of sesame-small. Prints the largest difference of each comparison; the
exit status is 1 if one exceeds its limit."""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.pop(0)  # tokenizers.py beside this script is not the library

import numpy as np
import torch
import transformers

import sesame

TEXTS = ["A fine film.", "The quick brown fox jumps over the lazy dog.", "Berlin", "naïve café, 3.5 % of it!",
         "one two three four five six seven eight nine ten " * 6]
failed = False


def report(name, difference, limit):
    global failed
    good = difference <= limit
    failed |= not good
    print(f"{'ok    ' if good else 'FAILED'} {name:40} {difference:.2e}  (limit {limit:.0e})")


def tokenizer_files():
    return Path(os.environ["SESAME_MODELS"]) / "sesame-small"


def make(folder, kind, layers, hidden, heads, **more):
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=8192, hidden_size=hidden, num_hidden_layers=layers,
                                     num_attention_heads=heads, intermediate_size=4 * hidden, pad_token_id=0, **more)
    getattr(transformers, kind)(config).eval().save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer_files() / "tokenizer.json"), unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]", model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    fast.save_pretrained(folder)
    return str(folder)


def scores(results, key="score"):
    """All numbers of a nested result."""
    if isinstance(results, dict):
        value = results.get("scores", results.get(key))
        return list(np.ravel(value))
    return [x for one in results for x in scores(one, key)]


def without_scores(results):
    if isinstance(results, dict):
        return {k: v for k, v in results.items() if k not in ("score", "scores")}
    return [without_scores(x) for x in results]


def compare_pipelines(root):
    labels = {"id2label": {0: "O", 1: "B-PER", 2: "I-PER"}, "label2id": {"O": 0, "B-PER": 1, "I-PER": 2}}
    nli = {"id2label": {0: "entailment", 1: "neutral", 2: "contradiction"},
           "label2id": {"entailment": 0, "neutral": 1, "contradiction": 2}}
    cases = [
        ("text-classification", "BertForSequenceClassification", labels, [(TEXTS, {}), (TEXTS, {"top_k": None})]),
        ("text-classification", "BertForSequenceClassification", labels, [(TEXTS[0], {}), (TEXTS[0], {"top_k": 2})]),
        ("token-classification", "BertForTokenClassification", labels,
         [(TEXTS[:4], {"aggregation_strategy": x}) for x in ("none", "simple", "first", "average", "max")]),
        ("fill-mask", "BertForMaskedLM", {}, [("The [MASK] sat.", {"top_k": 3}),
                                              (["A [MASK].", "[MASK] and [MASK]"], {"top_k": 2})]),
        ("zero-shot-classification", "BertForSequenceClassification", nli,
         [(TEXTS[:2], {"candidate_labels": ["praise", "blame"]}),
          (TEXTS[0], {"candidate_labels": "praise, blame", "multi_label": True})]),
        ("feature-extraction", "BertModel", {}, [(TEXTS[0], {}), (TEXTS[:2], {})]),
    ]
    if int(transformers.__version__.split(".")[0]) < 5:  # the last versions with this pipeline
        asked = {"question": "Who jumps over the dog?", "context": TEXTS[1]}
        cases.append(("question-answering", "BertForQuestionAnswering", {},
                      [(asked, {}), (asked, {"top_k": 3}), ([asked, asked], {"handle_impossible_answer": True})]))
    for number, (task, kind, more, calls) in enumerate(cases):
        folder = make(root / f"p{number}", kind, 4, 256, 4, **more)
        ours, theirs = sesame.pipeline(task, folder), transformers.pipeline(task, folder, device=-1)
        for inputs, arguments in calls:
            a, b = ours(inputs, **arguments), theirs(inputs, **arguments)
            name = f"{task} {arguments or ''}"[:40]
            if task == "feature-extraction":
                flat = lambda x: np.concatenate([np.ravel(np.array(y)) for y in x])
                report(name, float(np.abs(flat(a) - flat(b)).max()), 2e-5)
                continue
            if without_scores(a) != without_scores(b):
                print(f"FAILED {name}: the results differ:\n  {without_scores(a)}\n  {without_scores(b)}")
                report(name, float("inf"), 0)
                continue
            report(name, float(np.abs(np.array(scores(a)) - np.array(scores(b), dtype=float)).max()), 1e-5)


def compare_model(root):
    folder = make(root / "m", "BertForMaskedLM", 4, 256, 4)
    model = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    batch = fast(TEXTS, padding=True, return_tensors="pt")
    ours = sesame.Tokenizer(folder)(TEXTS, padding=True)
    assert ours["input_ids"] == batch["input_ids"].tolist() and ours["attention_mask"] == batch["attention_mask"].tolist()
    with torch.no_grad():
        b = model(**batch, output_hidden_states=True, output_attentions=True)
    a = sesame.Model(folder)(**{k: v.numpy() for k, v in batch.items()}, output_hidden_states=True,
                             output_attentions=True)
    mask = batch["attention_mask"].numpy()
    report("Model: logits", float(np.abs((np.asarray(a.logits) - b.logits.numpy()) * mask[:, :, None]).max()), 2e-5)
    for name, x, y in (("hidden_states", a.hidden_states, b.hidden_states), ("attentions", a.attentions, b.attentions)):
        keep = mask[:, :, None] if name == "hidden_states" else mask[:, None, :, None]
        report(f"Model: {name}", max(float(np.abs((np.asarray(p) - q.numpy()) * keep).max()) for p, q in zip(x, y)), 2e-5)


def encoders(root, threads):
    from sentence_transformers import SentenceTransformer

    folder = make(root / "e", "BertModel", 6, 384, 12)
    theirs = SentenceTransformer(folder, device="cpu")
    theirs.max_seq_length = 256
    theirs.save(str(root / "st"))
    return sesame.SentenceTransformer(str(root / "st"), threads=threads), theirs


def compare_encoders(ours, theirs):
    for arguments in ({}, {"normalize_embeddings": True}, {"truncate_dim": 64}, {"prompt": "query: "},
                      {"truncate_dim": 64, "normalize_embeddings": True}):
        a, b = ours.encode(TEXTS, **arguments), theirs.encode(TEXTS, **arguments)
        report(f"encode {arguments or ''}", float(np.abs(a - b).max()), 2e-5)
    for precision in ("int8", "uint8", "binary", "ubinary"):
        a, b = ours.encode(TEXTS, precision=precision), theirs.encode(TEXTS, precision=precision)
        assert a.dtype == b.dtype and a.shape == b.shape
        same = float((a != b).mean())  # a rounding difference may change a bucket
        report(f"encode {precision}: fraction that differs", same, 2e-2)
    x = theirs.encode(TEXTS)
    report("similarity", float(np.abs(ours.similarity(x, x) - theirs.similarity(x, x).numpy()).max()), 2e-6)
    a, b = ours.encode("one", output_value="token_embeddings"), theirs.encode("one", output_value="token_embeddings")
    report("token_embeddings", float(np.abs(np.asarray(a) - b.numpy()).max()), 2e-5)


def time_encoders(ours, theirs, threads):
    torch.set_num_threads(threads)
    words = "the cat sat on a mat and saw many fine films about trains in Berlin".split()
    texts = [" ".join(words[(i * 7 + k) % len(words)] for k in range(4 + i % 9)) for i in range(2000)]
    runs = {"sesame": ours, "sentence-transformers": theirs}
    times = {name: [] for name in runs}
    for _ in range(3):
        for name, encoder in runs.items():
            begin = time.perf_counter()
            encoder.encode(texts, batch_size=32)
            times[name].append(time.perf_counter() - begin)
    best = {name: statistics.median(x) for name, x in times.items()}
    for name, seconds in best.items():
        print(f"       2,000 texts, {threads} threads: {name:22} {seconds:6.2f} s")
    print(f"       {best['sentence-transformers'] / best['sesame']:.2f} times as fast")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-time", action="store_true")
    a = parser.parse_args()
    print(f"sesame {sesame.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        compare_pipelines(root)
        compare_model(root)
        try:
            ours, theirs = encoders(root, a.threads)
        except ImportError:
            print("skipped: sentence-transformers is not installed")
            return failed
        compare_encoders(ours, theirs)
        if not a.no_time:
            time_encoders(ours, theirs, a.threads)
    return failed


if __name__ == "__main__":
    sys.exit(main())
