"""One engine on one model, with the line protocol of `sesame bench --turns`: it prints {"ready": [ROW]} when a row can
be measured. An empty line requests a round, answered by {"seconds": [fastest call]}; "output" requests the model's output;
"next" continues with the next row. The argument is a JSON object: what, peer, model, models, threads, rows, ..."""
import json
import os
import sys
import time

sys.path.append(sys.path.pop(0))
SPEC = json.loads(sys.argv[1])
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(SPEC["threads"])
os.environ["TOKENIZERS_PARALLELISM"] = "false" if SPEC["threads"] == 1 else "true"
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", RAYON_NUM_THREADS=str(SPEC["threads"]))

import numpy as np

EVERY, LETTERS = 7, 24
FOLDER = os.path.join(SPEC["models"], SPEC.get("model", ""))
PEER, SORTED = SPEC["peer"].split()[0], SPEC["peer"].endswith("sorted")


def made_up_ids(lengths, vocab):
    ids = np.arange(sum(lengths), dtype=np.int64) * 7919 % vocab
    return np.split(ids, np.cumsum(lengths)[:-1])


def lengths_of(load):
    if "x" in load:
        n, length = map(int, load.split("x"))
        return [length] * n
    return [int(n) for n in load.split("+")]


def padded(rows, pad=0):
    out = np.full((len(rows), max(map(len, rows))), pad, np.int64)
    for i, r in enumerate(rows):
        out[i, : len(r)] = r
    return out


def torch_ready():
    import torch
    torch.set_num_threads(SPEC["threads"])
    torch.manual_seed(1)
    return torch


# ---- engines: a function from ids, mask and types (each [texts, tokens]) to an array ----


def torch_engine(head):
    torch = torch_ready()
    import transformers as tf
    cls = tf.AutoModelForSequenceClassification if head else tf.AutoModel
    model = cls.from_pretrained(FOLDER, attn_implementation="sdpa").eval()

    def run(ids, mask, types):
        with torch.inference_mode():
            given = {"input_ids": torch.from_numpy(ids)}
            if not mask.all():  # a full batch needs none, and is faster without
                given["attention_mask"] = torch.from_numpy(mask)
            if types is not None and types.any():
                given["token_type_ids"] = torch.from_numpy(types)
            return model(**given)[0].numpy()

    return run


def onnxruntime_engine(head):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = SPEC["threads"]
    options.inter_op_num_threads = 1
    file = "int8.onnx" if SPEC.get("dtype") == "int8" else "fused.onnx"
    session = ort.InferenceSession(os.path.join(FOLDER, file), options, providers=["CPUExecutionProvider"])
    wants = [i.name for i in session.get_inputs()]

    def run(ids, mask, types):
        given = {"input_ids": ids, "attention_mask": mask,
                 "token_type_ids": np.zeros_like(ids) if types is None else types}
        given = {k: given[k] for k in wants}
        if session.get_inputs()[0].type == "tensor(int32)":
            given = {k: v.astype(np.int32) for k, v in given.items()}
        return session.run(None, given)[0]

    return run


def openvino_engine(head):
    import openvino as ov
    core = ov.Core()
    small = SPEC.get("dtype") == "int8"
    settings = {"INFERENCE_NUM_THREADS": SPEC["threads"], "PERFORMANCE_HINT": "LATENCY"}
    if not small:
        settings["INFERENCE_PRECISION_HINT"] = "f32"  # else bf16 where the processor has it
    model = core.compile_model(os.path.join(FOLDER, "openvino8.xml" if small else "openvino.xml"), "CPU", settings)
    request = model.create_infer_request()
    wants = [i.get_any_name() for i in model.inputs]

    def run(ids, mask, types):
        given = {"input_ids": ids, "attention_mask": mask,
                 "token_type_ids": np.zeros_like(ids) if types is None else types}
        request.infer({k: given[k] for k in wants}, share_inputs=True)
        return request.get_output_tensor(0).data.copy()

    return run


ENGINES = {"torch": torch_engine, "onnxruntime": onnxruntime_engine, "openvino": openvino_engine}


# ---- kinds of work: a function from a row's name to (call, output) ----


def forward():
    run = ENGINES[PEER](False)

    def row(name):
        ids = padded(made_up_ids(lengths_of(name), 30522))
        mask, types = np.ones_like(ids), np.zeros_like(ids)
        return (lambda: run(ids, mask, types)), (lambda: run(ids, mask, types).tolist())

    return row


def linear():
    """A linear layer of PyTorch: as users call it, or with the weight in oneDNN's own order and GELU in its epilogue."""
    torch = torch_ready()
    packed, act = "packed" in SPEC["peer"], SPEC["act"]
    mkldnn = torch.ops.mkldnn

    def row(name):
        m, n, k = map(int, name.split("x"))
        copies = (128 << 20) // (4 * n * k) + 1 if SPEC["cold"] else 1
        x, bias, at = torch.rand(m, k) - 0.5, torch.rand(n), [0]
        weights = [torch.rand(n, k) - 0.5 for _ in range(copies)]
        if packed:
            weights = [mkldnn._reorder_linear_weight(w, m) for w in weights]

        def call():
            at[0] = (at[0] + 1) % copies
            w = weights[at[0]]
            with torch.inference_mode():
                if packed:
                    return mkldnn._linear_pointwise(x, w, bias, "gelu" if act else "none", [], "none")
                y = torch.nn.functional.linear(x, w, bias)
                return torch.nn.functional.gelu(y) if act else y

        return call, None

    return row


def read_lines(name):
    for end in (".jsonl", ".txt"):
        path = os.path.join(SPEC["models"], "texts", name + end)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return [json.loads(line) if end == ".jsonl" else {"text": line.rstrip("\n")} for line in f]
    raise FileNotFoundError(name)


def answers(task, out, mask):
    """Result of the task's pipeline: probability of the predicted label, a number, a vector."""
    if task == "embed":
        mean = (out * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)
    if out.shape[1] == 1:
        return out
    p = np.exp(out - out.max(1, keepdims=True))
    return (p / p.sum(1, keepdims=True)).max(1)


def engine_texts(task):
    """Tokenizer and engine; lines -> results, in batches of `batch`."""
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
    tok.no_padding()
    run = ENGINES[PEER](task != "embed")

    def pass_(name, batch):
        lines = read_lines(name)  # the file is part of the work
        encoded = tok.encode_batch([(x["text"], x["text_pair"]) if "text_pair" in x else x["text"] for x in lines])
        order = sorted(range(len(lines)), key=lambda i: len(encoded[i].ids)) if SORTED else range(len(lines))
        order, out = list(order), [None] * len(lines)
        for at in range(0, len(order), batch):
            some = [encoded[i] for i in order[at : at + batch]]
            ids = padded([e.ids for e in some])
            mask = padded([e.attention_mask for e in some])
            types = padded([e.type_ids for e in some])
            for i, a in zip(order[at : at + batch], answers(task, run(ids, mask, types), mask)):
                out[i] = a
        return out

    return pass_


def sentence_texts(task):
    torch_ready()
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(FOLDER, device="cpu")

    def pass_(name, batch):
        lines = [x["text"] for x in read_lines(name)]
        return model.encode(lines, batch_size=batch, show_progress_bar=False)

    return pass_


def texts():
    pass_ = (sentence_texts if PEER == "sentence-transformers" else engine_texts)(SPEC["task"])

    def row(name):
        single, chosen = SPEC.get("single"), []

        def call():
            if not chosen:  # when asked for the output, alone: others may be starting until then
                chosen.append(1 if single else best_batch(pass_, name))
            return pass_(name, chosen[0])

        pass_(name, 1 if single else 8)
        return call, (lambda: np.asarray(call()).tolist()), len(read_lines(name)) if single else 1

    return row


def best_batch(pass_, name):
    """Found once and kept beside the texts."""
    path = os.path.join(SPEC["models"], f"batch-{SPEC['peer']}-{SPEC['model']}-{SPEC['dtype']}-{SPEC['threads']}.txt".replace(" ", ""))
    if os.path.exists(path):
        with open(path) as f:
            return int(f.read())
    pass_(name, 8)
    took = {}
    for _ in range(2):
        for batch in (1, 8, 32):
            start = time.perf_counter()
            pass_(name, batch)
            took[batch] = min(took.get(batch, 1e9), time.perf_counter() - start)
    best = min(took, key=took.get)
    with open(path, "w") as f:
        f.write(f"{best}\n")
    return best


def generate():
    with open(os.path.join(SPEC["models"], "texts", "prompt.txt")) as f:
        prompt = f.read().strip()
    run = {"llama.cpp": llama_generate, "ctranslate2": ctranslate2_generate, "torch": torch_generate}[PEER](prompt)
    # first letters of the generated text, for the comparison: later ones may differ by rounding
    return lambda name: (lambda: run(SPEC["tokens"]), lambda: [ord(c) for c in run(16)][:LETTERS])


def llama_generate(prompt):
    import llama_cpp
    model = llama_cpp.Llama(os.path.join(FOLDER, "q8_0.gguf"), n_ctx=512, n_threads=SPEC["threads"],
                            n_threads_batch=SPEC["threads"], verbose=False)

    def run(tokens):
        model.reset()
        out = []
        for token in model.generate(model.tokenize(prompt.encode(), add_bos=False), temp=0.0, repeat_penalty=1.0):
            out.append(token)
            if len(out) == tokens:
                return model.detokenize(out).decode()

    return run


def ctranslate2_generate(prompt):
    import ctranslate2
    from tokenizers import Tokenizer
    model = ctranslate2.Generator(os.path.join(FOLDER, "ctranslate2"), device="cpu", inter_threads=1,
                                  intra_threads=SPEC["threads"], compute_type="int8")
    tok = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
    start = tok.encode(prompt).tokens

    def run(tokens):
        out = model.generate_batch([start], max_length=tokens, min_length=tokens, sampling_topk=1,
                                   include_prompt_in_result=False)
        return tok.decode(out[0].sequences_ids[0])

    return run


def torch_generate(prompt):
    torch = torch_ready()
    import transformers as tf
    model = tf.AutoModelForCausalLM.from_pretrained(FOLDER).eval()
    tok = tf.AutoTokenizer.from_pretrained(FOLDER)
    given = tok(prompt, return_tensors="pt")

    def run(tokens):
        with torch.inference_mode():
            out = model.generate(**given, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                                 pad_token_id=50256)
            return tok.decode(out[0][given["input_ids"].shape[1]:])

    return run


def train():
    torch = torch_ready()
    import transformers as tf
    mlm = SPEC["head"] == "mlm"
    cls = tf.AutoModelForMaskedLM if mlm else tf.AutoModelForSequenceClassification
    model = cls.from_pretrained(FOLDER, attn_implementation="sdpa").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    lengths = lengths_of(SPEC["load"])
    parts = made_up_ids(lengths, model.config.vocab_size)
    ids = torch.from_numpy(padded(parts))
    mask = torch.from_numpy(padded([np.ones(n, np.int64) for n in lengths]))
    given = {"input_ids": ids} if mask.all() else {"input_ids": ids, "attention_mask": mask}
    rows = torch.arange(0, ids.numel(), EVERY)  # masked-LM loads are not ragged
    labels = ids.flatten()[rows] if mlm else torch.arange(len(lengths)) % 2

    def loss():
        if not mlm:
            return model(**given, labels=labels).loss
        x = model.bert(**given).last_hidden_state.flatten(0, 1)[rows]
        return torch.nn.functional.cross_entropy(model.cls(x), labels)

    def call():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return lambda name: (call, None)


# ---- turns ----


def fastest(call, window):
    best, begin = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - begin < window:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def respond(**values):
    print(json.dumps(values), flush=True)


def serve():
    make = {"forward": forward, "linear": linear, "texts": texts, "generate": generate, "train": train}[SPEC["what"]]()
    window = 0.03 if SPEC["quick"] else 0.1
    for name in SPEC["rows"]:
        call, output, *pieces = make(name)
        for _ in range(0 if SPEC["what"] == "texts" else 2):
            call()
        respond(ready=[name])
        for line in sys.stdin:
            if line == "next\n":
                break
            if line == "output\n":
                respond(output=output() if output else [])
            else:
                respond(seconds=[fastest(call, window) / (pieces[0] if pieces else 1)])


try:
    serve()
except Exception as e:
    respond(failed=f"{type(e).__name__}: {str(e)[:300]}")
