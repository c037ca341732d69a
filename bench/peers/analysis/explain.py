#!/usr/bin/env python3
"""Compares `sesame explain --method ig` with captum's LayerIntegratedGradients on the word embedding layer.

Needs torch, transformers 4.x and captum. Usage: explain.py SESAME MODEL_DIR [TEXT...]
MODEL_DIR: a classifier that transformers reads (`sesame convert sesame-sentiment DIR --dtype f32`).
Prints for each text the largest difference, relative to the largest value, and the CPU seconds of both on one thread: the least of 3
runs of captum and of 5 of Sesame, whose start is subtracted (the time of a single gradient).
"""
import json
import resource
import subprocess
import sys
import time

import torch
from captum.attr import LayerIntegratedGradients
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

TEXTS = [
    "a gorgeous, witty, seductive movie",
    "the plot is dull and the actors look bored from start to finish",
    "not a bad film at all, but it could have been shorter by half an hour and funnier in its second half",
]


def child_seconds():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def main(sesame, folder, texts):
    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    embeddings = model.get_input_embeddings()
    pad = model.config.pad_token_id
    for text in texts:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        special = torch.tensor([tokenizer.get_special_tokens_mask(ids[0].tolist(), already_has_special_tokens=True)])
        special |= (ids == model.config.cls_token_id).int() | (ids == model.config.sep_token_id).int()
        base = torch.where(special.bool(), ids, torch.full_like(ids, pad))
        mask = torch.ones_like(ids)
        label = int(model(ids, attention_mask=mask).logits[0].argmax())
        ig = LayerIntegratedGradients(lambda x: model(x, attention_mask=torch.ones_like(x)).logits[:, label], embeddings)
        seconds = 1e9
        for _ in range(3):
            start = time.process_time()
            values = ig.attribute(ids, base, n_steps=50, method="gausslegendre").sum(-1)[0].detach()
            seconds = min(seconds, time.process_time() - start)
        # the time of 52 points: integrated gradients (50 and both ends) less a single gradient
        ours_seconds = [1e9, 1e9]
        for _ in range(5):
            for i, method in enumerate(("ig", "gradient")):
                start = child_seconds()
                command = [sesame, "explain", "-m", folder, text, "--json", "--threads", "1", "--method", method]
                out = subprocess.run(command, check=True, capture_output=True)
                ours_seconds[i] = min(ours_seconds[i], child_seconds() - start)
                if method == "ig":
                    result = json.loads(out.stdout)["result"]
        ours = torch.tensor([v or 0.0 for v in result["values"]])
        off = float((ours - values).abs().max() / values.abs().max())
        print(json.dumps({"tokens": ids.shape[1], "label": result["target"]["label"], "relative_difference": off,
                          "captum_cpu_seconds": round(seconds, 4), "sesame_cpu_seconds": round(ours_seconds[0] - ours_seconds[1], 4),
                          "faster": round(seconds / (ours_seconds[0] - ours_seconds[1]), 1),
                          "captum": [round(float(v), 5) for v in values]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:] or TEXTS)
