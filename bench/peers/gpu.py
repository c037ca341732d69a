"""The rows of `sesame bench model --device cuda` with PyTorch: torch.compile, SDPA, fused AdamW, bf16 autocast, dropout
0.1, the vocabulary's loss on labeled rows only; inference as a CUDA graph in bf16. A JSON object a row: name, ms."""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, EVERY = 30522, 7


class Layer(nn.Module):
    def __init__(self, width, heads, causal, drop):
        super().__init__()
        self.heads, self.causal, self.p = heads, causal, drop
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(drop)

    def attend(self, x):
        b, n, c = x.shape
        q, k, v = (y.view(b, n, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, n, c)))

    def forward(self, x):
        if self.causal:
            x = x + self.attend(self.norm1(x))
            return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))


class Model(nn.Module):
    def __init__(self, layers, width, heads, length, causal):
        super().__init__()
        vocab = 50257 if causal else VOCAB
        self.causal = causal
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer(width, heads, causal, 0.1) for _ in range(layers))
        self.dense, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def body(self, ids):
        x = self.token(ids) + self.place.weight[: ids.shape[1]]
        x = self.drop(x if self.causal else self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) if self.causal else x

    def forward(self, ids, rows, labels):
        x = self.body(ids).flatten(0, 1)
        if self.causal:
            return F.cross_entropy(x @ self.token.weight.t(), labels)
        x = self.head_norm(F.gelu(self.dense(x[rows])))
        return F.cross_entropy(F.linear(x, self.token.weight, self.bias), labels)


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


def train(layers, width, heads, seqs, length, causal):
    model = Model(layers, width, heads, length, causal).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, VOCAB, (seqs, length), device="cuda")
    rows = torch.arange(0, seqs * length, EVERY, device="cuda")
    labels = ids.flatten() if causal else ids.flatten()[rows]
    compiled = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, rows, labels)
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    return fastest(step)


def infer(layers, width, heads, seqs, length, causal):
    model = Model(layers, width, heads, length, causal).cuda().bfloat16().eval()
    ids = torch.randint(0, VOCAB, (seqs, length), device="cuda")
    compiled = torch.compile(model.body, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            compiled(ids)
        return fastest(lambda: compiled(ids))


ROWS = [
    ("bert-base", train, 12, 768, 12, 256, 128, False),
    ("bert-base", train, 12, 768, 12, 64, 512, False),
    ("bert-large", train, 24, 1024, 16, 128, 128, False),
    ("bert-256", train, 12, 256, 4, 512, 128, False),
    ("gpt2", train, 12, 768, 12, 32, 1024, True),
    ("bert-base", infer, 12, 768, 12, 1, 128, False),
    ("bert-base", infer, 12, 768, 12, 32, 128, False),
    ("bert-base", infer, 12, 768, 12, 256, 128, False),
    ("bert-base", infer, 12, 768, 12, 64, 512, False),
    ("bert-large", infer, 24, 1024, 16, 64, 128, False),
]
for name, how, layers, width, heads, seqs, length, causal in ROWS[: int(sys.argv[1]) if len(sys.argv) > 1 else None]:
    torch._dynamo.reset()
    ms = how(layers, width, heads, seqs, length, causal)
    kind = "model.train" if how is train else "model.forward"
    print(json.dumps({"bench": kind, "shape": f"{name} {seqs}x{length}", "ms": ms}), flush=True)
