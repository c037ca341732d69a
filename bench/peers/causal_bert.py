"""A BERT that Sesame has pretrained from left to right, opened by transformers: log-probabilities of texts (BertLMHeadModel) and the
scores of a classifier on its last token.

Usage: python3 -P causal_bert.py SESAME TOKENIZER TEXT WORK; SESAME: the command, TOKENIZER: a folder with BERT's tokenizer, TEXT: lines
of text, WORK: a folder for the models. Prints the largest differences and fails above 1e-5 of a log-probability (relative) or of a
probability. Needs torch, transformers and safetensors."""
import json
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file
from transformers import BertLMHeadModel, BertModel, logging

TEXTS = ["The film was good .", "it was a very long and funny film in Paris", "bad , bad film"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tokens(sesame, model, text):
    return torch.tensor([json.loads(run(sesame, "tokenize", "-m", model, "--json", text))["ids"]])


def language_model(sesame, folder):
    model, worst = BertLMHeadModel.from_pretrained(folder).eval(), 0.0
    for text in TEXTS:
        found = json.loads(run(sesame, "prefer", "-m", folder, "--json", text, "the end"))
        score = next(x["score"] for x in found if x["text"] == text)
        ids = tokens(sesame, folder, text)
        with torch.no_grad():
            p = model(ids).logits.double().log_softmax(-1)[0]
        want = sum(p[i - 1, ids[0, i]].item() for i in range(1, ids.shape[1]))
        worst = max(worst, abs(want - score) / abs(want))
    return worst


def classifier(sesame, folder):
    model, worst = BertModel.from_pretrained(folder, add_pooling_layer=False).eval(), 0.0
    head = load_file(folder + "/model.safetensors")
    labels = json.load(open(folder + "/config.json"))["id2label"]
    for text in TEXTS:
        found = json.loads(run(sesame, "text-classification", "-m", folder, "--top-k", "all", "--json", text))
        scores = {x["label"]: x["score"] for x in found}
        with torch.no_grad():
            last = model(tokens(sesame, folder, text)).last_hidden_state[0, -1]
            p = (head["sesame_head.out.weight"] @ last + head["sesame_head.out.bias"]).softmax(-1)
        worst = max(worst, *(abs(p[int(i)].item() - scores[label]) for i, label in labels.items()))
    return worst


def main(sesame, tokenizer, text, work):
    os.makedirs(work, exist_ok=True)
    logging.set_verbosity_error()
    run(sesame, "corpus", "build", "--tokenizer", tokenizer, "-o", work + "/corpus", "--overwrite", text)
    run(sesame, "pretrain", "-c", work + "/corpus", "--tokenizer", tokenizer, "--preset", "bert-tiny", "--objective", "clm", "--steps", "40",
        "--length", "64", "--batch-size", "8", "-o", work + "/ltr", "--overwrite")
    with open(work + "/train.tsv", "w") as f:
        f.write("text\tlabel\n" + "the film was good .\tpos\nit was bad\tneg\nwhat a good one\tpos\nbad , bad film\tneg\n" * 8)
    run(sesame, "finetune", "--model", work + "/ltr", "--task", "classify", "--text", "text", "--label", "label", "--train", work + "/train.tsv",
        "--steps", "20", "--lr", "1e-3", "-o", work + "/classifier", "--overwrite")
    found = [language_model(sesame, work + "/ltr"), classifier(sesame, work + "/classifier")]
    print("log-probabilities %.1e, probabilities of labels %.1e" % tuple(found))
    sys.exit(max(found) > 1e-5)


main(*sys.argv[1:])
