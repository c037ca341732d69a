"""Adapters that Sesame has trained, opened by peft: probabilities of both for a few texts.

Usage: python3 -P peft_load.py SESAME TOKENIZER.json WORK; SESAME: the command, WORK: a folder for the models. Prints the largest
difference of each kind and fails above 1e-5. Needs torch, transformers and peft."""
import json
import os
import subprocess
import sys

import torch
from peft import PeftModel
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

KINDS = {"lora": [], "ia3": [], "prompt": ["--virtual-tokens", "4"], "ptuning": ["--virtual-tokens", "4", "--projection", "16"],
         "prefix": ["--virtual-tokens", "4"], "prefix-projection": ["--virtual-tokens", "4", "--projection", "16"]}
TEXTS = ["the film was good .", "it was bad", "anna saw a very long and funny film in paris"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(sesame, tokenizer, work):
    os.makedirs(work, exist_ok=True)
    config = dict(model_type="bert", architectures=["BertForSequenceClassification"], vocab_size=8192, hidden_size=32, num_hidden_layers=2,
                  num_attention_heads=4, intermediate_size=64, max_position_embeddings=64, num_labels=2)
    json.dump(config, open(work + "/tiny.json", "w"))
    with open(work + "/train.tsv", "w") as f:
        f.write("text\tlabel\n" + "the film was good .\tpos\nit was bad\tneg\nwhat a good one\tpos\nbad , bad film\tneg\n" * 8)
    data = ["--task", "classify", "--text", "text", "--label", "label", "--train", work + "/train.tsv", "--threads", "1", "--overwrite"]
    run(sesame, "finetune", "--config", work + "/tiny.json", "--tokenizer", tokenizer, *data, "--steps", "10", "--lr", "1e-3", "-o", work + "/base")
    t = PreTrainedTokenizerFast(tokenizer_file=tokenizer)
    worst = 0.0
    for name, options in KINDS.items():
        out = f"{work}/{name}"
        run(sesame, "finetune", "--model", work + "/base", *data, "--adapter", name.split("-")[0], *options, "--steps", "20", "--lr", "3e-2", "-o", out)
        model = PeftModel.from_pretrained(BertForSequenceClassification.from_pretrained(work + "/base"), out).eval()
        found = [json.loads(line) for line in run(sesame, "text-classification", "-m", out, "--top-k", "all", "--json", *TEXTS).splitlines()]
        difference = 0.0
        for text, labels in zip(TEXTS, found):
            ids = torch.tensor([t(text)["input_ids"]])
            with torch.no_grad():
                p = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.softmax(-1)[0]
            scores = {x["label"]: x["score"] for x in (labels if isinstance(labels, list) else labels.get("labels", [labels]))}
            for i, label in model.config.id2label.items():
                difference = max(difference, abs(p[int(i)].item() - scores[label]))
        print(f"{name:18} {difference:.1e}")
        worst = max(worst, difference)
    sys.exit(worst > 1e-5)


main(*sys.argv[1:])
