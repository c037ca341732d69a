"""The rows of `sesame bench model --device cuda` with PyTorch: torch.compile, SDPA, fused AdamW, bf16 autocast, dropout
0.1, the vocabulary's loss on labeled rows only; inference as a CUDA graph in bf16. A JSON object a row: name, ms."""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, EVERY = 30522, 7

# Lengths as `sesame bench model` has them; PyTorch pads them to the longest.
SENTENCES = [7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 23, 24, 25, 26, 27, 27, 28, 30, 31, 33, 34, 35,
             37, 39, 42, 49]
DOCUMENTS = [17, 19, 21, 23, 26, 29, 32, 36, 40, 45, 50, 56, 62, 69, 77, 86, 96, 107, 119, 132, 147, 164, 183, 204, 227,
             253, 282, 314, 350, 390, 435, 485]


class Layer(nn.Module):
    def __init__(self, width, heads, causal, drop):
        super().__init__()
        self.heads, self.causal, self.p = heads, causal, drop
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(drop)

    def attend(self, x, mask):
        b, n, c = x.shape
        q, k, v = (y.view(b, n, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=self.p if self.training else 0.0, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, n, c)))

    def forward(self, x, mask):
        if self.causal:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))


class Model(nn.Module):
    def __init__(self, layers, width, heads, length, causal, vocab, drop=0.1):
        super().__init__()
        self.causal = causal
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(drop)
        self.layers = nn.ModuleList(Layer(width, heads, causal, drop) for _ in range(layers))
        self.dense, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def body(self, ids, mask):
        x = self.token(ids) + self.position.weight[: ids.shape[1]]
        x = self.drop(x if self.causal else self.norm(x))
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) if self.causal else x

    def logits(self, x):
        return F.linear(self.head_norm(F.gelu(self.dense(x))), self.token.weight, self.bias)

    def forward(self, ids, mask, rows, labels):
        x = self.body(ids, mask).flatten(0, 1)
        if self.causal:
            return F.cross_entropy(x @ self.token.weight.t(), labels)
        return F.cross_entropy(self.logits(x[rows]), labels)


def fastest(step, rounds=5, calls=5):
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            step()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1e3 * best


def batch(seqs, length, ragged, vocab):
    """Tokens, which keys are there (None: all), and the positions of real tokens."""
    ids = torch.randint(0, vocab, (seqs, length), device="cuda")
    if not ragged:
        return ids, None, torch.arange(seqs * length, device="cuda")
    lengths = torch.tensor([ragged[i * 13 % len(ragged)] for i in range(seqs)], device="cuda")
    there = torch.arange(length, device="cuda") < lengths[:, None]
    return ids, there[:, None, None, :].expand(seqs, 1, length, length).contiguous(), there.flatten().nonzero()[:, 0]


def train(layers, width, heads, seqs, length, causal, vocab, ragged):
    model = Model(layers, width, heads, length, causal, vocab).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids, mask, real = batch(seqs, length, ragged, VOCAB if causal else vocab)
    rows = real[::EVERY]
    labels = ids.flatten() if causal else ids.flatten()[rows]
    compiled = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, mask, rows, labels)
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    return fastest(step)


def infer(layers, width, heads, seqs, length, causal, vocab, ragged):
    model = Model(layers, width, heads, length, causal, vocab).cuda().bfloat16().eval()
    ids, mask, _ = batch(seqs, length, ragged, vocab)
    compiled = torch.compile(model.body, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            compiled(ids, mask)
        return fastest(lambda: compiled(ids, mask))


ROWS = [
    ("bert-base", train, 12, 768, 12, 256, 128, False),
    ("bert-base", train, 12, 768, 12, 64, 512, False),
    ("bert-large", train, 24, 1024, 16, 128, 128, False),
    ("bert-256", train, 12, 256, 4, 512, 128, False),
    ("bert-384", train, 12, 384, 6, 512, 128, False, 16384),
    ("gpt2", train, 12, 768, 12, 32, 1024, True, 50257),
    ("bert-base", infer, 12, 768, 12, 1, 128, False),
    ("bert-base", infer, 12, 768, 12, 32, 128, False),
    ("bert-base", infer, 12, 768, 12, 256, 128, False),
    ("bert-base", infer, 12, 768, 12, 64, 512, False),
    ("bert-large", infer, 24, 1024, 16, 64, 128, False),
    ("bert-base", train, 12, 768, 12, 1024, 49, False, VOCAB, SENTENCES),
    ("bert-base", train, 12, 768, 12, 192, 485, False, VOCAB, DOCUMENTS),
    ("bert-base", infer, 12, 768, 12, 1024, 49, False, VOCAB, SENTENCES),
    ("bert-base", infer, 12, 768, 12, 192, 485, False, VOCAB, DOCUMENTS),
]


def main():
    chosen = [ROWS[int(i)] for i in sys.argv[1:]] or ROWS
    for name, how, layers, width, heads, seqs, length, causal, *more in chosen:
        vocab, ragged = (more + [VOCAB, None][len(more):])[:2]
        torch._dynamo.reset()
        ms = how(layers, width, heads, seqs, length, causal, vocab, ragged)
        kind = "model.train" if how is train else "model.forward"
        tokens = f"{sum(ragged[i * 13 % len(ragged)] for i in range(seqs))} in {seqs}" if ragged else f"{seqs}x{length}"
        print(json.dumps({"bench": kind, "shape": f"{name} {tokens}", "ms": ms}), flush=True)


if __name__ == "__main__":
    main()
