"""Loss of score by int8 quantization of a trained checkpoint, for each engine: the task's score in f32 and in int8.
Usage: accuracy.py SESAME FOLDER TASK FILE, TASK sst2 or stsb. Folder as `sesame finetune` or transformers writes
it; ONNX and OpenVINO files are made in it. Run by the virtual environment's Python: see bench/peers/run --accuracy."""
import csv
import json
import os
import subprocess
import sys

sys.path.append(sys.path.pop(0))
import numpy as np
from tokenizers import Tokenizer

import prepare

COLUMNS = {"sst2": ("sentence", None, "label"), "stsb": ("sentence1", "sentence2", "score")}
SCORE = {"sst2": "accuracy", "stsb": "pearson"}
sesame, folder, task, file = sys.argv[1:5]


def read():
    text, pair, label = COLUMNS[task]
    with open(file, encoding="utf-8") as f:
        rows = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [r[text] if pair is None else (r[text], r[pair]) for r in rows], [float(r[label]) for r in rows]


def batches(texts, size=32):
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tok.no_padding()
    for at in range(0, len(texts), size):
        some = tok.encode_batch(texts[at : at + size])
        width = max(len(e.ids) for e in some)
        stack = lambda rows: np.array([r + [0] * (width - len(r)) for r in rows], np.int64)
        yield {"input_ids": stack([e.ids for e in some]), "attention_mask": stack([e.attention_mask for e in some]),
               "token_type_ids": stack([e.type_ids for e in some])}


def score(outputs, labels):
    """Of 100."""
    out = np.concatenate(outputs)
    if task == "sst2":
        return 100 * float(np.mean(out.argmax(1) == np.array(labels)))
    return 100 * float(np.corrcoef(out[:, 0], labels)[0, 1])


def onnx(path):
    import onnxruntime
    session = onnxruntime.InferenceSession(os.path.join(folder, path), providers=["CPUExecutionProvider"])
    kinds = {i.name: np.int32 if "int32" in i.type else np.int64 for i in session.get_inputs()}
    return lambda x: session.run(None, {k: x[k].astype(t) for k, t in kinds.items()})[0]


def openvino(path):
    import openvino
    model = openvino.Core().compile_model(os.path.join(folder, path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda x: model({i.get_any_name(): x[i.get_any_name()] for i in model.inputs})[0].copy()


def pytorch():
    import torch
    import transformers
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return lambda x: model(**{k: torch.from_numpy(v) for k, v in x.items()})[0].detach().numpy()


def ours(dtype):
    got = subprocess.run([sesame, "eval", folder, file, "--task", task, "--dtype", dtype, "--json", "--quiet"],
                         stdout=subprocess.PIPE, check=True).stdout
    return 100 * find(json.loads(got), SCORE[task])


def find(value, name):
    """The first member of this name, or that ends with it, in a JSON value."""
    if isinstance(value, dict):
        for k, v in value.items():
            if k.endswith(name) and isinstance(v, (int, float)):
                return v
        value = list(value.values())
    for v in value if isinstance(value, list) else []:
        got = find(v, name)
        if got is not None:
            return got
    return None


def main():
    texts, labels = read()
    for name, make in (("model.onnx", prepare.make_onnx), ("fused.onnx", prepare.make_fused),
                       ("int8.onnx", prepare.make_int8), ("openvino.xml", prepare.make_openvino),
                       ("openvino8.xml", lambda f, n: prepare.make_openvino8(f, n, texts[:: len(texts) // 64]))):
        if not os.path.exists(os.path.join(folder, name)):
            make(folder, task)
    measured = lambda run: score([run(x) for x in batches(texts)], labels)
    rows = [("Sesame", ours("f32"), ours("int8")),
            ("ONNX Runtime, dynamic", measured(onnx("fused.onnx")), measured(onnx("int8.onnx"))),
            ("OpenVINO, static (nncf)", measured(openvino("openvino.xml")), measured(openvino("openvino8.xml"))),
            ("PyTorch", measured(pytorch()), None)]
    print(f"{task}, {len(texts)} examples, {SCORE[task]} of 100:\n\n| | f32 | int8 | drop |\n|---|---|---|---|")
    for name, full, small in rows:
        print(f"| {name} | {full:.2f} | " + ("| |" if small is None else f"{small:.2f} | {full - small:.2f} |"))


main()
