"""Masked language modeling with PyTorch as fast as it goes, beside `sesame pretrain`: bench/peers/race.sh runs both.
Usage: race.py CORPUS.ids VALID.ids SECONDS LR DROPOUT: a BERT of 12 layers x 384, rows of 128 tokens, 512 of them an update,
15 % masked anew each time, bf16 autocast, torch.compile, fused AdamW; the rate rises for 5 % of the
updates and falls to 0 within SECONDS (compilation and the first timing not counted). Prints a JSON object."""
import json
import sys
import time

import numpy as np
import torch

from gpu import Model

CLS, SEP, MASK, SPECIAL = 2, 3, 4, 5  # ids of `sesame train-tokenizer --type wordpiece`
LENGTH, ROWS, MASKED = 128, 512, 19  # of a row, rows an update, asked about in a row
WARM, TIMED = 20, 60
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rows(path):
    """All documents of a token file (src/data/corpus_file.h), [SEP] between them, split into [CLS] 126 tokens [SEP]."""
    data = np.memmap(path, np.uint8, "r")
    id_bytes, (vocab, documents, _, tokens) = int(data[12]), np.frombuffer(data[16:48], np.uint64).astype(int)
    ids = np.frombuffer(data[256:256 + tokens * id_bytes], np.uint16 if id_bytes == 2 else np.uint32)
    starts = np.frombuffer(data[len(data) - 24 * documents:], np.uint64).reshape(-1, 3)[1:, 0].astype(int)
    stream = np.insert(ids.astype(np.int32), starts, SEP)
    rows = stream[: len(stream) // (LENGTH - 2) * (LENGTH - 2)].reshape(-1, LENGTH - 2)
    out = np.pad(rows, ((0, 0), (1, 1)))
    out[:, 0], out[:, -1] = CLS, SEP
    return torch.from_numpy(out).to(DEVICE), int(vocab)


def mask(ids, vocab, draw):
    """Masked input, positions to predict and their labels: 80 % masks, 10 % random tokens, 10 % unchanged."""
    score = torch.rand(ids.shape, device=DEVICE, generator=draw).masked_fill_(ids < SPECIAL, -1.0)
    column = score.topk(MASKED, 1).indices
    position = (column + torch.arange(len(ids), device=DEVICE)[:, None] * LENGTH).flatten()
    flat = ids.flatten().clone()
    label = flat[position]
    kind = torch.rand(len(position), device=DEVICE, generator=draw)
    other = torch.randint(SPECIAL, vocab, (len(position),), device=DEVICE, dtype=flat.dtype, generator=draw)
    flat[position] = torch.where(kind < 0.8, MASK, torch.where(kind < 0.9, other, label))
    return flat.view_as(ids).long(), position, label.long()


def initialize(model):
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.02)
        else:
            torch.nn.init.constant_(weight, 0.0 if name.endswith("bias") else 1.0)


def trainer(model, compiled):
    """A function of a batch (ids, positions, labels) and a rate that makes an update."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=DEVICE == "cuda")

    def update(batch, rate):
        ids, position, label = batch
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = compiled(ids, None, position, label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return update


def clock():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def held_out(model, valid, vocab):
    draw = torch.Generator(DEVICE).manual_seed(1)
    loss = right = count = 0.0
    model.eval()
    for begin in range(0, len(valid) // ROWS * ROWS, ROWS):
        ids, position, label = mask(valid[begin:begin + ROWS], vocab, draw)
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
            logits = model.logits(model.body(ids, None).flatten(0, 1)[position]).float()
        loss += torch.nn.functional.cross_entropy(logits, label, reduction="sum").item()
        right += (logits.argmax(1) == label).sum().item()
        count += len(label)
    return loss / count, right / count


def main():
    seconds, peak, drop = map(float, sys.argv[3:6])
    torch.manual_seed(42)
    torch.set_float32_matmul_precision("high")
    (train, vocab), (valid, _) = rows(sys.argv[1]), rows(sys.argv[2])
    draw = torch.Generator(DEVICE).manual_seed(42)
    order = torch.empty(0, dtype=torch.long, device=DEVICE)

    def batch():
        nonlocal order
        if len(order) < ROWS:
            order = torch.randperm(len(train), device=DEVICE)
        chosen, order = order[:ROWS], order[ROWS:]
        return mask(train[chosen], vocab, draw)

    model = Model(12, 384, 6, LENGTH, False, vocab, drop).to(DEVICE)
    initialize(model)
    compiled = torch.compile(model) if DEVICE == "cuda" else model
    update, begin = trainer(model, compiled), clock()
    for i in range(WARM + TIMED):
        if i == WARM:
            compiling, begin = clock() - begin, clock()
        update(batch(), 1e-4)
    updates = max(1, int(seconds * TIMED / (clock() - begin)))
    initialize(model)
    update, begin = trainer(model, compiled), clock()
    for i in range(updates):
        update(batch(), peak * min((i + 1) / (0.05 * updates), (updates - i) / (0.95 * updates)))
    took = clock() - begin
    loss, accuracy = held_out(model, valid, vocab)
    tokens = updates * ROWS * LENGTH
    print(json.dumps({"side": "PyTorch", "updates": updates, "tokens": tokens, "seconds": took, "tokens_per_second": tokens / took,
                      "compiling": compiling, "loss": loss, "accuracy": accuracy}), flush=True)


main()
