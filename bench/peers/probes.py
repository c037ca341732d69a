"""Compares probes with scikit-learn and PyTorch, and prints the fixtures of tests/test_probe.c.

    bench/peers/probes.py fixtures            scikit-learn, scipy and torch on the data of the test
    bench/peers/probes.py logreg X.npy Y.txt  time of LogisticRegression on 20,000 rows of X (`sesame features`)
"""
import math
import sys
import time

import numpy as np


def data(n, width, classes):
    x = np.array([[((i * 7919 + k * 104729 + i * k * 31) % 1009) / 1009 - 0.5 for k in range(width)] for i in range(n)])
    y = np.array([(i * i + 3 * i + i // 7) % classes for i in range(n)])
    for i in range(n):
        x[i, y[i] % width] += 0.7
    return x.astype(np.float32), y


def ends(n):
    out = []
    for p in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100):
        at = n if p == 100 else math.floor(p / 100 * n)
        if at > 0 and (not out or at > out[-1]):
            out.append(at)
    return out


def code(p, n, classes):
    return math.log2((n * p + 1) / (n + classes))


def mdl():
    from sklearn.linear_model import LogisticRegression
    n, width, classes, c = 4000, 12, 5, 0.5
    x, y = data(n, width, classes)
    bits, plain, before, model = 0.0, 0.0, 0, None
    for end in ends(n):
        for i in range(before, end):
            if model is None:
                bits += math.log2(classes)
                plain += math.log2(classes)
                continue
            p = model.predict_proba(x[i:i + 1].astype(np.float64))[0]
            at = np.where(model.classes_ == y[i])[0]
            bits -= code(p[at[0]] if len(at) else 0, before, classes)
            plain -= math.log2(p[at[0]]) if len(at) else -math.inf
        if end >= 16:
            model = LogisticRegression(C=c, tol=1e-9, max_iter=10000).fit(x[:end].astype(np.float64), y[:end])
        before = end
    tx, ty = data(5000, width, classes)
    tx, ty = tx[4000:], ty[4000:]
    print("bits %.6f unsmoothed %.6f accuracy %.6f" % (bits, plain, model.score(tx.astype(np.float64), ty)))


def twin(count):
    """Trains the edge probe of the test on its first examples, and prints the losses; codes the other ones."""
    import torch
    torch.set_default_dtype(torch.float64)
    n, rows, width, layers, units, classes = 40, 120, 6, 3, 5, 4
    x = [torch.tensor([[math.sin(0.1 * (r * width + k) + l) for k in range(width)] for r in range(rows)])
         for l in range(layers)]

    def value(name, shape):
        v = [0.3 * math.sin(0.37 * j + len(name)) for j in range(int(np.prod(shape)))]
        return torch.tensor(v).reshape(shape).requires_grad_()

    shapes = {"mix": (1, layers), "up.weight": (units, 2 * units), "up.bias": (units,),
              "down.weight": (classes, units), "down.bias": (classes,)}
    for s in range(2):
        shapes["project.%d.weight" % s] = (units, width)
        shapes["project.%d.bias" % s] = (units,)
        shapes["query.%d" % s] = (1, units)
    p = {k: value(k, v) for k, v in shapes.items()}
    adam = torch.optim.AdamW(p.values(), lr=1e-2, weight_decay=0)
    begin = [[(7 * i) % 100 for i in range(n)], [(11 * i + 5) % 100 for i in range(n)]]
    length = [1 + i % 3 for i in range(n)]
    y = torch.tensor([(i * 3 + i // 5) % classes for i in range(n)])
    target = torch.nn.functional.one_hot(y, classes).double()

    def scores():
        w = torch.softmax(p["mix"], 1)[0]
        mixed = sum(w[l] * x[l] for l in range(layers))
        spans = []
        for s in range(2):
            out = []
            for i in range(n):
                h = mixed[begin[s][i]:begin[s][i] + length[i]] @ p["project.%d.weight" % s].T + p["project.%d.bias" % s]
                out.append(torch.softmax(h @ p["query.%d" % s][0], 0) @ h)
            spans.append(torch.stack(out))
        hidden = torch.tanh(torch.cat(spans, 1) @ p["up.weight"].T + p["up.bias"])
        return hidden @ p["down.weight"].T + p["down.bias"]

    for _ in range(3):
        adam.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores()[:count], target[:count])
        loss.backward()
        adam.step()
        print("loss %.9f" % loss.item())
    share = torch.sigmoid(scores()).detach()
    share = (share / share.sum(1, keepdim=True))[range(n), y].tolist()
    first = count * math.log2(classes)
    print("bits %.6f, unsmoothed %.6f" % (first - sum(code(q, count, classes) for q in share[count:]),
                                          first - sum(math.log2(q) for q in share[count:])))


def logreg(x, y):
    from sklearn.linear_model import LogisticRegression
    x, y = np.load(x)[:20000], np.loadtxt(y, dtype=int)[:20000]
    for c in (0.01, 0.1, 1):
        for tol in (1e-3, 1e-4):
            wall, cpu = time.time(), time.process_time()
            m = LogisticRegression(C=c, tol=tol, max_iter=5000).fit(x, y)
            print("C %g tol %g: %d iterations, wall %.2f s, cpu %.2f s, accuracy %.4f" %
                  (c, tol, m.n_iter_[0], time.time() - wall, time.process_time() - cpu, m.score(x, y)), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "logreg":
        logreg(*sys.argv[2:4])
    else:
        mdl()
        twin(40)
        twin(20)
