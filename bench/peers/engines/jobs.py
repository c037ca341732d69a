"""The measurements: groups of processes that take turns on a list of rows. Standard library only."""
from collections import namedtuple

# calls: units of work per call; flops and bytes of a call, if known; faster: peak operations per second of its
# instructions, relative to the FMA loop; good: whether a result reaches its goal (see result() in main.py), None if the
# row has no goal.
Row = namedtuple("Row", "name good calls unit flops bytes faster", defaults=(None, 1, "call", 0, 0, 1))

# sides: name -> what starts it (see sides.py); the first is Sesame. check: how far each peer's output on the first row may
# be from Sesame's, relative to its norm; empty: nothing to compare.
Group = namedtuple("Group", "name title wanted rows sides check", defaults=({},))

BERT = dict(layers=12, hidden=768)
MINILM = dict(layers=6, hidden=384)
DISTIL = dict(layers=6, hidden=768)
MINI = dict(layers=4, hidden=256)
SMALL = dict(layers=4, hidden=512)
VOCAB = 30522
EVERY = 7  # one token in EVERY has a label in masked-LM training


def forward_flops(shape, lengths, read=None):
    """Multiply-adds of the layers' products and of attention, twice. read: number of rows of the last layer that are computed,
    of keys and values of all."""
    C, L, T = shape["hidden"], shape["layers"], sum(lengths)
    read = read or T
    rows = T * 12 * (L - 1) + T * 2 + read * 10
    return 2 * rows * C * C + sum(4 * n * n * C for n in lengths) * (L - 1 + read / T)


def layer_bytes(shape, size):
    return 12 * shape["hidden"] ** 2 * shape["layers"] * size


def lengths_of(load):
    if "x" in load:
        n, length = map(int, load.split("x"))
        return [length] * n
    return [int(n) for n in load.split("+")]


def ratio(least, share=None):
    """So many times as fast as the fastest peer; or that share of the FMA peak, whichever is less."""
    return lambda r: r["ratio"] is not None and r["ratio"] >= least or bool(share and r["fma"] and r["fma"] >= share)


def rate(least):
    return lambda r: r["rate"] >= least


def grown(most):
    return lambda r: r["growth"] is None or r["growth"] <= most


def bench(*words):
    return {"kind": "bench", "words": list(words)}


def pipe(*words, **more):
    return dict({"kind": "pipe", "words": list(words)}, **more)


def worker(what, **spec):
    return {"kind": "worker", "what": what, "spec": spec}


# ---- kinds of groups: one function each ----


def linear(name, title, wanted, ours, theirs, sizes, least, dtype_bytes, rival=None):
    """Products of BERT's shapes: rows of `sesame bench gemm` against PyTorch's linear layer over oneDNN."""
    shapes = [(3072, 768), (768, 3072)] if "cold" in ours else [(768, 768), (3072, 768), (768, 3072)]
    rows = [Row(f"{m}x{n}x{k}", ratio(least), 1, "product", 2 * m * n * k, n * k * dtype_bytes,
                4 if dtype_bytes == 1 else 1)
            for n, k in shapes for m in sizes]
    sides = {"sesame": dict(bench("gemm", "--only", ours + " "), bench=ours)}
    if rival:
        sides["sesame f32"] = dict(bench("gemm", "--only", rival + " "), bench=rival)
    for peer in theirs:
        sides[peer] = worker("linear", peer=peer, act="gelu" in ours, cold="cold" in ours, rows=[r.name for r in rows])
    return Group(name, title, wanted, rows, sides)


def forward(name, title, wanted, model, shape, loads, dtype, peers, least, check):
    """Passes over batches of made-up ids."""
    size = {"f32": 4, "int8": 1}[dtype]
    good = ratio(least, 0.8 if dtype == "f32" else None)
    rows = [Row(load, good, len(lengths_of(load)), "text", forward_flops(shape, lengths_of(load)),
                layer_bytes(shape, size), 4 // size) for load in loads]
    words = ["model", "--model", "{models}/" + model, "--dtype", dtype]
    for load in loads:
        words += ["--load", load]
    sides = {"sesame": bench(*words)}
    for peer in peers:
        sides[peer] = worker("forward", peer=peer, model=model, dtype=dtype, rows=loads)
    return Group(name, title, wanted, rows, sides, check)


def texts(name, title, wanted, task, model, file, count, peers, least, check, dtype="f32"):
    """Lines of a file in, answers out, tokenization included; each engine at its best batch size."""
    row = Row(file, ratio(least), count, "text")
    words = [task, "-m", "{models}/" + model, "--json", "--dtype", dtype] + (["--jsonl"] if task != "embed" else [])
    sides = {"sesame": pipe(*words, files=[file])}
    for peer in peers:
        sides[peer] = worker("texts", peer=peer, model=model, task=task, dtype=dtype, rows=[file])
    return Group(name, title, wanted, [row], sides, check)


def requests(name, title, wanted, model, dtype, files, peers):
    """One text, its answer, the next text. files: name -> requests a second that are wanted."""
    rows = [Row(file, rate(least), 1, "request") for file, least in files.items()]
    files = list(files)
    sides = {"sesame": pipe("text-classification", "-m", "{models}/" + model, "--json", "--jsonl", "--dtype", dtype,
                            files=files, single=True)}
    for peer in peers:
        sides[peer] = worker("texts", peer=peer, model=model, task="text-classification", single=True,
                             dtype=dtype, rows=files)
    return Group(name, title, wanted, rows, sides)


def generate(name, title, wanted, model, tokens, peers, least):
    """Sesame with all matrices in 8 bits, as llama.cpp's file has them, and once more with its usual tables."""
    row = Row(f"{tokens} tokens", ratio(least), tokens, "token", 0, 124e6)
    how = ["--json", "--do-sample", "false", "--max-new-tokens", str(tokens), "--min-new-tokens", str(tokens)]
    sides = {"sesame": pipe("text-generation", "-m", "{models}/" + model + "-int8", *how, files=["prompt"], rounds=model),
             "sesame, tables in f16": pipe("text-generation", "-m", "{models}/" + model, "--dtype", "int8", *how,
                                           files=["prompt"])}
    for peer in peers:
        sides[peer] = worker("generate", peer=peer, model=model, tokens=tokens, rows=[row.name])
    return Group(name, title, wanted, [row], sides, {peer: 0 for peer in sides})


def train(name, title, wanted, model, shape, load, head, peers, least):
    """Steps of training: forward, backward, AdamW, dropout 0.1; a head on labeled rows alone on both sides."""
    lengths, C = lengths_of(load), shape["hidden"]
    labeled = (sum(lengths) + EVERY - 1) // EVERY if head == "mlm" else 0
    flops = 3 * (forward_flops(shape, lengths, labeled or len(lengths)) + 2 * labeled * (C * C + C * VOCAB))
    short = load if "x" in load else f"{len(lengths)} texts, {sum(lengths)} tokens"
    row = Row(short, ratio(least), len(lengths), "example", flops)
    sides = {"sesame": bench("model", "--model", "{models}/" + model, "--train", "--load", load)}
    for peer in peers:
        sides[peer] = worker("train", peer=peer, model=model, head=head, load=load, rows=[short])
    return Group(name, title, wanted, [row], sides)


def cold(name, title, wanted, model, peers):
    """A process started, one sentence answered, the process ended."""
    text = "A fine and moving film, from the first scene to the last."
    sides = {"sesame": {"kind": "start", "words": ["text-classification", "-m", "{models}/" + model, "--json", text]},
             "sesame, cache dropped": {"kind": "start", "drop": True,
                                       "words": ["text-classification", "-m", "{models}/" + model, "--json", text]}}
    for peer in peers:
        sides[peer] = {"kind": "start", "peer": peer, "spec": dict(model=model, text=text)}
    return Group(name, title, wanted, [Row("first answer", rate(10), 1, "start")], sides)


def growth(name, title, wanted, model, shape, loads):
    """Sesame alone. loads: batch -> how much longer a token may take there than in the first."""
    rows = [Row(load, grown(most), sum(lengths_of(load)), "token", forward_flops(shape, lengths_of(load)))
            for load, most in loads.items()]
    words = ["model", "--model", "{models}/" + model]
    for load in loads:
        words += ["--load", load]
    return Group(name, title, wanted, rows, {"sesame": bench(*words)})


# Lengths of 32 sentences of SST-2's training set, [CLS] and [SEP] included, as tokenized by bert-base-uncased.
SST2_LENGTHS = "10+33+12+3+21+21+5+48+5+16+14+7+9+5+18+10+6+11+10+13+7+34+8+7+3+5+17+7+4+4+20+5"

F32 = {"torch": 1e-4, "onnxruntime": 1e-4, "openvino": 1e-4, "sentence-transformers": 1e-4}
F32_TEXT = dict(F32, **{"onnxruntime sorted": 1e-4, "openvino sorted": 1e-4, "torch sorted": 1e-4})
INT8 = {"onnxruntime": 0.2, "openvino": 0.2}
INT8_TEXT = {"onnxruntime sorted": 0.2, "openvino sorted": 0.4}  # one score of random weights, with fixed scales

GROUPS = [
    linear("linear", "linear + bias + GELU, fp32", "1.05x oneDNN; 0.80 of FMA peak", "gemm_gelu",
           ["torch oneDNN packed", "torch"], (32, 128, 512), 1.05, 4),
    linear("linear-int8", "linear int8, dynamic quantization", "0.70 of VNNI peak; 3.3x own fp32", "gemm_i8", [],
           (32, 128, 512), 3.3, 1, "gemm"),
    linear("linear-cold", "linear, M <= 8, cold weights, f16-stored", "2x oneDNN fp32", "gemm_f16_cold",
           ["torch oneDNN packed", "torch"], (1, 8), 2.0, 2),
    forward("bert-f32", "BERT-base forward, fp32", "1.3x the best, or 0.80 of FMA peak", "bert-base", BERT,
            ["1x8", "1x128", "8x128", "1x512"], "f32", ["onnxruntime", "openvino", "torch"], 1.3, F32),
    forward("bert-int8", "BERT-base forward, int8", "1.3x the best int8", "bert-base", BERT,
            ["1x8", "1x128", "8x128", "1x512"], "int8", ["onnxruntime", "openvino"], 1.3, INT8),
    forward("minilm-f32", "MiniLM-L6 forward, fp32", "1.3x the best, or 0.80 of FMA peak", "minilm", MINILM,
            ["1x128", "32x32"], "f32", ["onnxruntime", "openvino", "torch"], 1.3, F32),
    forward("minilm-int8", "MiniLM-L6 forward, int8", "1.3x the best int8", "minilm", MINILM, ["1x128", "32x32"],
            "int8", ["onnxruntime", "openvino"], 1.3, INT8),
    texts("sst2", "BERT-base, SST-2 sentences, file to labels", "2x the best peer", "text-classification",
          "bert-base-sst2", "sst2", 64, ["onnxruntime", "onnxruntime sorted", "openvino sorted", "torch sorted"], 2.0,
          F32_TEXT),
    texts("stsb", "BERT-base, STS-B pairs, file to scores", "2x the best peer", "text-classification",
          "bert-base-stsb", "stsb", 64, ["onnxruntime", "onnxruntime sorted", "openvino sorted", "torch sorted"], 2.0,
          F32_TEXT),
    texts("sst2-int8", "BERT-base int8, SST-2 sentences, file to labels", "2x the best peer", "text-classification",
          "bert-base-sst2", "sst2", 64, ["onnxruntime sorted", "openvino sorted"], 2.0, INT8_TEXT, "int8"),
    texts("stsb-int8", "BERT-base int8, STS-B pairs, file to scores", "2x the best peer", "text-classification",
          "bert-base-stsb", "stsb", 64, ["onnxruntime sorted", "openvino sorted"], 2.0, INT8_TEXT, "int8"),
    texts("embed", "MiniLM-L6 embeddings of short texts", "2x the best peer", "embed", "minilm", "short", 256,
          ["sentence-transformers", "onnxruntime sorted"], 2.0, F32_TEXT),
    texts("embed-int8", "MiniLM-L6 int8, embeddings of short texts", "2x the best peer", "embed", "minilm", "short", 256,
          ["onnxruntime sorted", "openvino sorted"], 2.0, INT8_TEXT, "int8"),
    requests("requests", "DistilBERT, int8, one text at a time", "350 requests/s of 8 tokens, 80 of 128", "distilbert",
             "int8", {"tokens8": 350, "tokens128": 80}, ["onnxruntime", "openvino"]),
    generate("gpt2", "GPT-2 124M generation, int8, batch 1", "1.2x llama.cpp's Q8_0 and CTranslate2; 2x PyTorch", "gpt2", 64,
             ["llama.cpp", "ctranslate2", "torch"], 1.2),
    train("finetune", "fine-tuning BERT-base, SST-2 lengths", "2x PyTorch; less memory", "bert-base-sst2", BERT,
          SST2_LENGTHS, "classify", ["torch"], 2.0),
    train("mlm-mini", "MLM pretraining, bert-mini", "1.5x PyTorch", "bert-mini-mlm", MINI, "8x128", "mlm", ["torch"], 1.5),
    train("mlm-small", "MLM pretraining, bert-small", "1.5x PyTorch", "bert-small-mlm", SMALL, "8x128", "mlm", ["torch"],
          1.5),
    train("mlm-base", "MLM pretraining, bert-base", "1.5x PyTorch; 0.65 of FMA peak", "bert-base-mlm", BERT, "4x128",
          "mlm", ["torch"], 1.5),
    cold("cold", "cold start to first answer, BERT-base", "100 ms; peak memory under 1.15x the weights",
         "bert-base-sst2", ["torch", "onnxruntime"]),
    growth("growth", "cost growth, MiniLM-L6, fp32", "within 10 % from 8x128 on; 2x512 at most 1.25x a token", "minilm",
           MINILM, {"8x128": 1, "64x128": 1.1, "32x128": 1.1, "2x512": 1.25}),
]
