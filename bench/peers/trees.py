"""Structural probes and head agreement against torch, networkx, scipy and numpy.

    trees.py fixture                    numbers of tests/test_structural.c
    trees.py losses SESAME MODEL_DIR TRAIN.conllu DEV.conllu [LAYER]
    trees.py heads SESAME MODEL_DIR FILE.conllu

`losses` trains a torch twin from the same initial B in the same order and compares the losses of three epochs,
then the scores. Hidden states come from transformers.
"""
import json, lzma, subprocess, sys
import numpy as np, torch
import networkx as nx
from scipy.stats import spearmanr

# ---- the command's random numbers: Philox 4x32-10 ----

def philox(seed, step, site, index):
    m = 0xffffffff
    c = [index & m, index >> 32 & m, step, site]
    k = [seed & m, seed >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & m, (p0 >> 32) ^ c[3] ^ k[1], p0 & m]
        k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
    return c

def rand32(seed, step, site, n):
    out = [x for i in range((n + 3) // 4) for x in philox(seed, step, site, i)]
    return out[:n]

def unit(seed, step, site, n):
    return np.array([np.float32(x >> 8) * np.float32(2.0 ** -24) for x in rand32(seed, step, site, n)], np.float32)

def initial_b(seed, rank, width):
    return (0.1 * unit(seed, 0, 1, rank * width).astype(np.float64) - 0.05).astype(np.float32).reshape(rank, width)

def order(seed, epoch, n):
    draws = iter(rand32(seed, epoch, 2, n))
    x = list(range(n))
    for i in range(n - 1, 0, -1):
        j = next(draws) * (i + 1) >> 32
        x[i], x[j] = x[j], x[i]
    return x

# ---- trees ----

def read(path):
    opener = lzma.open if path.endswith(".xz") else open
    out, words = [], []
    for line in opener(path, "rt", encoding="utf-8"):
        line = line.rstrip("\n")
        if not line:
            if words: out.append(words)
            words = []
        elif line[0] != "#":
            f = line.split("\t")
            if f[0].isdigit(): words.append((f[1], int(f[6]) - 1, f[7], f[3]))
    if words: out.append(words)
    return out

def graph(words):
    g = nx.Graph()
    g.add_nodes_from(range(len(words)))
    g.add_edges_from((i, w[1]) for i, w in enumerate(words) if w[1] >= 0)
    return g

def gold(words):
    n = len(words)
    g = graph(words)
    lengths = dict(nx.all_pairs_shortest_path_length(g))
    d = np.array([[lengths[i][j] for j in range(n)] for i in range(n)], np.float32)
    root = [i for i, w in enumerate(words) if w[1] < 0][0]
    return d, d[root].copy()

# ---- the twin ----

def sentence_loss(b, x, target, kind):
    t = x @ b.T
    if kind == "distance":
        p = ((t[:, None] - t[None]) ** 2).sum(-1)
        return (p - target).abs().sum() / len(x) ** 2
    return ((t ** 2).sum(-1) - target).abs().sum() / len(x)

def train_twin(kind, train, dev, rank, batch, epochs, seed, rate=1e-3):
    """train, dev: lists of (states, (distances, depths)). Returns the losses by epoch and B."""
    pick = 0 if kind == "distance" else 1
    b = torch.nn.Parameter(torch.tensor(initial_b(seed, rank, train[0][0].shape[1])))
    adam = torch.optim.Adam([b], lr=rate)
    losses, best, best_b = [], float("inf"), b.detach().clone()
    for epoch in range(1, epochs + 1):
        total, o = 0.0, order(seed, epoch, len(train))
        for at in range(0, len(o), batch):
            part = o[at:at + batch]
            loss = sum(sentence_loss(b, torch.tensor(train[i][0]), torch.tensor(train[i][1][pick]), kind) for i in part)
            adam.zero_grad()
            (loss / len(part)).backward()
            adam.step()
            total += loss.item()
        with torch.no_grad():
            d = sum(sentence_loss(b, torch.tensor(x), torch.tensor(t[pick]), kind).item() for x, t in dev) / len(dev)
        losses.append((total / len(o), d))
        if d < best - 1e-4: best, best_b = d, b.detach().clone()
        else:
            for g in adam.param_groups: g["lr"] /= 10
    return losses, best_b

# ---- scores ----

def edges(d, keep):
    """Minimum spanning tree; equal weights in the order of the pairs."""
    g = nx.Graph()
    g.add_nodes_from(keep)
    for i in keep:
        for j in keep:
            if i < j: g.add_edge(i, j, weight=float(d[i, j]))
    return {tuple(sorted(e)) for e in nx.minimum_spanning_edges(g, data=False)}

def by_length(rows):
    lengths = sorted({n for n, _ in rows if 5 <= n <= 50})
    return float(np.mean([np.mean([r for m, r in rows if m == n]) for n in lengths])) if lengths else float("nan")

def score(trees, golds, distances, depths):
    right = total = root = several = root_several = 0
    drows, nrows = [], []
    for words, (gd, gh), d, h in zip(trees, golds, distances, depths):
        n = len(words)
        keep = [i for i, w in enumerate(words) if w[3] != "PUNCT"] or list(range(n))
        want, found = edges(gd, keep), edges(d, keep)
        right += len(want & found); total += len(want)
        hit = words[min(keep, key=lambda i: h[i])][1] < 0
        root += hit
        if len(keep) > 1: several += 1; root_several += hit
        if 5 <= n <= 50:
            drows += [(n, spearmanr(d[i], gd[i]).statistic) for i in range(n)]
            nrows.append((n, spearmanr(h, gh).statistic))
    return {"uuas": right / total, "dspr": by_length(drows), "nspr": by_length(nrows), "root": root / len(trees),
            "root_of_several": root_several / several}

def predictions(b_distance, b_depth, states):
    t = [x @ b_distance.T for x in states]
    d = [((x[:, None] - x[None]) ** 2).sum(-1) for x in t]
    return d, [((x @ b_depth.T) ** 2).sum(-1) for x in states]

# ---- numbers of the test ----

TOY = [[-1], [1, -1], [1, -1, 1], [1, -1, 4, 4, 1], [-1, 0, 1, 2, 3, 0], [2, 0, -1, 5, 5, 2, 5, 2]]

def fixture():
    width, rank, seed = 6, 4, 11
    trees = [[("w", h, "_", "PUNCT" if i == len(t) - 1 and len(t) == 8 else "X") for i, h in enumerate(t)] for t in TOY]
    n = sum(map(len, TOY))
    x = (2 * unit(7, 0, 9, n * width).astype(np.float64) - 1).astype(np.float32).reshape(n, width)
    at = np.cumsum([0] + [len(t) for t in TOY])
    states = [x[a:b] for a, b in zip(at, at[1:])]
    golds = [gold(t) for t in trees]
    data = list(zip(states, golds))
    twins = {}
    for kind in ("distance", "depth"):
        losses, b = train_twin(kind, data, data[2:], rank, 2, 3, seed, rate=0.02)
        twins[kind] = b.numpy()
        print(kind, ["%.7g, %.7g" % l for l in losses])
    d, h = predictions(twins["distance"], twins["depth"], states)
    print("probe", score(trees, golds, d, h))
    order_d = [np.abs(np.arange(len(t))[:, None] - np.arange(len(t))[None]).astype(float) for t in trees]
    print("order", score(trees, golds, order_d, [np.arange(len(t)) for t in trees]))
    r = np.random.RandomState(3)
    a, b = r.randint(0, 6, 12), r.randint(0, 5, 12)
    print("spearman", a.tolist(), b.tolist(), repr(spearmanr(a, b).statistic))
    w = r.randint(1, 40, 28) / 4
    d = np.zeros((8, 8)); d[np.triu_indices(8, 1)] = w; d += d.T
    print("mst", w.tolist(), sorted(edges(d, range(8))), sum(d[e] for e in edges(d, range(8))))

if __name__ == "__main__":
    torch.set_num_threads(2)
    {"fixture": fixture}[sys.argv[1]](*sys.argv[2:])
