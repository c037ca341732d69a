"""Structural probes and head agreement against torch, networkx, scipy and numpy.

    trees.py fixture                            numbers of tests/test_structural.c
    trees.py compare SESAME TOKENIZER_DIR TREES.conllu [SENTENCES]
    trees.py untrained SESAME MODEL_DIR TRAIN.conllu DEV.conllu

`compare` makes a small BERT with random weights, reads its hidden states and attention with transformers, and compares:
the losses of three epochs with a torch twin that starts from the same map and takes the sentences in the same order; the
scores with networkx and scipy on the twin's predictions; the hits of each head and relation with numpy. Exit status 1 if a
difference is above its tolerance.

`untrained` saves two models with the initial weights of transformers, one with the config of MODEL_DIR and a BERT of the same
size, and prints their structural probes beside the probes of the command's random weights.
"""
import json, lzma, os, shutil, subprocess, sys, tempfile
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

# ---- the command against transformers ----

def make_model(tokenizer_dir, folder):
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if os.path.exists(os.path.join(tokenizer_dir, name)): shutil.copy(os.path.join(tokenizer_dir, name), folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
    torch.manual_seed(1)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=96, initializer_range=0.3, attn_implementation="eager")
    model = BertModel(config).eval()
    model.save_pretrained(folder)
    return model, tokenizer

def read_model(model, tokenizer, words):
    """Hidden states by word (the mean of the tokens) and weights between words of every layer and head."""
    x = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        out = model(input_ids=x["input_ids"], output_hidden_states=True, output_attentions=True)
    ids = x.word_ids(0)
    of = np.zeros((len(words), len(ids)))
    for token, word in enumerate(ids):
        if word is not None: of[word, token] = 1
    mean = of / np.maximum(of.sum(1, keepdims=True), 1)
    states = [(mean @ h[0].double().numpy()).astype(np.float32) for h in out.hidden_states]
    return states, [[mean @ head.double().numpy() @ of.T for head in layer[0]] for layer in out.attentions]

def run(sesame, *args):
    out = subprocess.run([sesame, *args], capture_output=True, text=True)
    if out.returncode: sys.exit(f"sesame {' '.join(args)}: {out.stderr}")
    return json.loads(out.stdout)["result"]

def count_hits(trees, maps):
    """hits[relation][direction][layer][head]"""
    hits = {}
    for words, layers in zip(trees, maps):
        for i, (_, head, relation, _) in enumerate(words):
            if head < 0: continue
            for name in ("all", relation):
                of = hits.setdefault(name, np.zeros((2, len(layers), len(layers[0])), int))
                for l, heads in enumerate(layers):
                    for h, m in enumerate(heads):
                        for d, row in enumerate((m[i].copy(), m[:, i].copy())):
                            row[i] = -1
                            of[d, l, h] += np.argmax(row) == head
    return hits

def compare_heads(sesame, folder, path, trees, maps):
    ours = run(sesame, "heads", path, "-m", folder, "--json", "--distance-texts", "0")["syntax"]
    theirs, wrong, total = count_hits(trees, maps), 0, 0
    for head in ours["hits"]:
        for k, relation in enumerate(ours["relations"]):
            for d, name in enumerate(("from_dependent", "from_head")):
                want = theirs[relation["relation"]][d, head["layer"] - 1, head["head"] - 1]
                wrong += abs(int(want) - head[name][k])
                total += int(want)
    print(f"heads: {total} hits, {wrong} differ")
    return wrong == 0

def compare_losses(sesame, folder, paths, sets, golds, states, layer, rank):
    ours = run(sesame, "probe", "tree", *paths, "-m", folder, "--layers", str(layer), "--rank", str(rank), "--no-random",
               "--tree-epochs", "3", "--json")["layers"]
    ours = next(x for x in ours if x["layer"] == layer)
    ok, maps = True, {}
    data = [list(zip(s, g)) for s, g in zip(states, golds)]
    for kind in ("distance", "depth"):
        losses, maps[kind] = train_twin(kind, data[0], data[1], rank, 20, 3, 42)
        worst = max(abs(a - b) / b for k, key in enumerate(("train_loss", "dev_loss"))
                    for a, b in zip(ours[kind][key], [l[k] for l in losses]))
        print(f"layer {layer} {kind}: losses {[round(l[0], 5) for l in losses]}, largest relative difference {worst:.2e}")
        ok &= worst < 1e-4
    d, h = predictions(maps["distance"].numpy(), maps["depth"].numpy(), states[1])
    theirs = score(sets[1], golds[1], d, h)
    for key, want in theirs.items():
        print(f"layer {layer} {key}: {ours[key]:.6f}, {want:.6f}")
        ok &= abs(ours[key] - want) < 2e-3
    return ok

def compare(sesame, tokenizer_dir, path, sentences="400"):
    trees = [t for t in read(path) if len(t) <= 60][:int(sentences)]
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = make_model(tokenizer_dir, folder)
        sets = [trees[:len(trees) * 3 // 4], trees[len(trees) * 3 // 4:]]
        paths = [os.path.join(folder, name) for name in ("train.conllu", "dev.conllu")]
        for name, part in zip(paths, sets):
            with open(name, "w", encoding="utf-8") as f:
                for words in part:
                    for i, (form, head, relation, upos) in enumerate(words):
                        f.write(f"{i + 1}\t{form}\t_\t{upos}\t_\t_\t{head + 1}\t{relation}\t_\t_\n")
                    f.write("\n")
        seen = [[read_model(model, tokenizer, [w[0] for w in words]) for words in part] for part in sets]
        golds = [[gold(words) for words in part] for part in sets]
        ok = compare_heads(sesame, folder, paths[0], sets[0], [m for _, m in seen[0]])
        for layer in (0, 3):
            states = [[s[layer] for s, _ in part] for part in seen]
            ok &= compare_losses(sesame, folder, paths, sets, golds, states, layer, 32)
    sys.exit(0 if ok else 1)

def untrained(sesame, model_dir, train, dev):
    from transformers import AutoConfig, AutoModel, BertConfig
    config = AutoConfig.from_pretrained(model_dir)
    if hasattr(config, "quantization_config"): del config.quantization_config
    config.dtype = torch.float32
    bert = BertConfig(vocab_size=config.vocab_size, hidden_size=config.hidden_size, num_hidden_layers=config.num_hidden_layers,
                      num_attention_heads=config.num_attention_heads, intermediate_size=4 * config.hidden_size, pad_token_id=0)
    torch.manual_seed(1)
    for c in (config, bert):
        with tempfile.TemporaryDirectory() as folder:
            AutoModel.from_config(c).float().save_pretrained(folder)
            for name in ("tokenizer.json", "tokenizer_config.json"): shutil.copy(os.path.join(model_dir, name), folder)
            got = run(sesame, "probe", "tree", train, dev, "-m", folder, "--rank", "64", "--layers", "0,1,7", "--random-all",
                      "--draw", "0", "--json")
        for who, key in (("transformers", "layers"), ("random weights", "random_weights")):
            for x in got[key]:
                print(c.model_type, who, "layer %d: UUAS %.3f DSpr %.3f root %.3f NSpr %.3f" %
                      (x["layer"], x["uuas"], x["dspr"], x["root_of_several"], x["nspr"]), flush=True)

if __name__ == "__main__":
    torch.set_num_threads(2)
    {"fixture": fixture, "compare": compare, "untrained": untrained}[sys.argv[1]](*sys.argv[2:])
