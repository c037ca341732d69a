#!/usr/bin/env python3
"""Compares `sesame map` with scikit-learn (PCA) and openTSNE (t-SNE): CPU time and divergence on the same vectors,
one thread each. The vectors are the rows of a .npy file, such as

    sesame features -f corpus.txt --layer 6 --pool tokens --format npy --to vectors.npy

Both reduce them to 50 columns by PCA, start from the first two, and use the defaults of openTSNE: perplexity 30, 250
iterations at exaggeration 12, 500 at 1. The divergence of both maps is computed here, from one P and all pairs.

Usage: map.py SESAME VECTORS.npy [--points 2000,10000,50000] [--neighbours exact|approx]
(needs numpy, scikit-learn and openTSNE)"""
import argparse
import json
import os
import resource
import subprocess
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import openTSNE
from openTSNE import affinity
from sklearn.decomposition import PCA


def sesame(command, path, method):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([command, "map", "--vectors", path, "--method", method, "--threads", "1", "--json", "-q"],
                         check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    layout = json.loads(out.stdout)["result"]["layouts"][0]
    return np.column_stack([layout["x"], layout["y"]]).astype(float), cpu, layout


def open_tsne(x, neighbours):
    start = time.process_time()
    z = PCA(50, svd_solver="covariance_eigh").fit_transform(x) if x.shape[1] > 50 else x - x.mean(axis=0)
    a = affinity.PerplexityBasedNN(z, perplexity=30, method=neighbours, n_jobs=1)
    y = z[:, :2].astype(float)
    y *= 1e-4 / np.std(y[:, 0])
    e = openTSNE.TSNEEmbedding(y, a, n_jobs=1)
    e = e.optimize(250, exaggeration=12, momentum=0.8).optimize(500, momentum=0.8)
    return np.asarray(e), time.process_time() - start, a.P


def divergence(p, y):
    """KL(P || Q) with the sum over all pairs."""
    total = 0.0
    square = (y * y).sum(axis=1)
    for i in range(0, len(y), 1000):
        d = square[i:i + 1000, None] + square[None] - 2 * y[i:i + 1000] @ y.T
        total += (1 / (1 + np.maximum(d, 0))).sum()
    total -= len(y)
    p = p.tocoo()
    d = ((y[p.row] - y[p.col]) ** 2).sum(axis=1)
    keep = p.data > 0
    return (p.data * np.log(np.where(keep, p.data, 1) * total * (1 + d)))[keep].sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sesame")
    parser.add_argument("vectors")
    parser.add_argument("--points", default="2000,10000,50000")
    parser.add_argument("--neighbours", default="exact", choices=["exact", "approx"])
    args = parser.parse_args()
    x = np.load(args.vectors).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        n = min(20000, len(x))
        np.save(path, x[:n])
        start = time.process_time()
        theirs = PCA(2).fit_transform(x[:n])
        cpu = time.process_time() - start
        ours, _, layout = sesame(args.sesame, path, "pca")
        print(f"PCA {n} x {x.shape[1]}: largest difference {np.abs(ours - theirs).max() / np.abs(theirs).max():.2g} of the "
              f"largest coordinate, variance {layout['explained_variance']:.4f}, scikit-learn {cpu:.2f} s", flush=True)
        for n in map(int, args.points.split(",")):
            np.save(path, x[:n])
            ours, cpu, layout = sesame(args.sesame, path, "tsne")
            theirs, their_cpu, p = open_tsne(x[:n], args.neighbours)
            kl, their_kl = divergence(p, ours), divergence(p, theirs)
            print(f"t-SNE {n}: CPU {cpu:.2f} s, openTSNE {their_cpu:.2f} s, ratio {their_cpu / cpu:.1f}; "
                  f"KL {kl:.4f}, openTSNE {their_kl:.4f}, ratio {kl / their_kl:.4f}; "
                  f"trustworthiness {layout['trustworthiness']:.4f}", flush=True)


main()
