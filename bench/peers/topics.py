#!/usr/bin/env python3
"""Compares `sesame topics` with scikit-learn and gensim: singular values, bounds, coherence, time.

Usage: topics.py SESAME TEXTS.tsv [COLUMN] [TOPICS]
Needs numpy, scipy, scikit-learn and gensim. LDA starts from the same topics in all programs.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
from scipy.sparse.linalg import svds
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

sesame, table = sys.argv[1:3]
column = sys.argv[3] if len(sys.argv) > 3 else "text"
topics = int(sys.argv[4]) if len(sys.argv) > 4 else 20
folder = tempfile.mkdtemp()
with open(table, encoding="utf-8") as f:
    names = f.readline().rstrip("\n").split("\t")
    texts = [line.rstrip("\n").split("\t")[names.index(column)] for line in f]
texts = [t for t in texts if t]


def cpu(fn):
    before = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.time()
    out = fn()
    after = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, sum(a.ru_utime - b.ru_utime for a, b in zip(after, before)), time.time() - start


def train(name, *options):
    out = os.path.join(folder, name)
    line = [sesame, "topics", "train", "-q", "-t", "1", "-k", str(topics), "--overwrite", "--text-column", column]
    line += ["--json", "--output", out, *options, table]
    return json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)["result"], out


def perplexity(model):
    run = subprocess.run([sesame, "topics", "infer", "--json", "--text-column", column, model, table], check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)["perplexity"]


class FromOnes(LatentDirichletAllocation):
    """scikit-learn's LDA with given initial topics, and gamma from ones in training as in transform."""

    def _init_latent_vars(self, n_features, dtype=np.float64):
        super()._init_latent_vars(n_features, dtype=dtype)
        self.components_ = self.start.astype(dtype)
        from sklearn.decomposition._lda import _dirichlet_expectation_2d

        self.exp_dirichlet_component_ = np.exp(_dirichlet_expectation_2d(self.components_))

    def _e_step(self, X, cal_sstats, random_init, parallel=None):
        return super()._e_step(X, cal_sstats, False, parallel)


def relative(a, b):
    return abs(a - b) / abs(b)


result, lsa = train("lsa", "--method", "lsa")
vocab = open(os.path.join(lsa, "vocab.txt"), encoding="utf-8").read().split("\n")[:-1]
counts = CountVectorizer(vocabulary=vocab, dtype=np.float64).fit_transform(texts)
print(f"{counts.shape[0]} texts, {counts.shape[1]} words, {int(counts.sum())} tokens")
tf_idf = TfidfTransformer().fit_transform(counts)
values = np.array([t["singular_value"] for t in result["topics"]])
wanted = np.sort(svds(tf_idf, k=topics, tol=1e-12, return_singular_vectors=False))[::-1]
print(f"LSA, TF-IDF: largest relative difference of singular values from svds {np.max(np.abs(values / wanted - 1)):.1e}")
result, _ = train("lsa", "--method", "lsa", "--weights", "count")
values = np.array([t["singular_value"] for t in result["topics"]])
wanted = np.sort(svds(counts, k=topics, tol=1e-12, return_singular_vectors=False))[::-1]
print(f"LSA, counts: largest relative difference of singular values from svds {np.max(np.abs(values / wanted - 1)):.1e}")

start = np.random.RandomState(1).gamma(100, 0.01, (topics, counts.shape[1])).astype(np.float32)
np.save(os.path.join(folder, "start.npy"), start)
begin = ["--start", os.path.join(folder, "start.npy")]
for method, passes in (("batch", 3), ("online", 2)):
    model = FromOnes(topics, learning_method=method, learning_decay=0.5, learning_offset=1, max_iter=passes, batch_size=500,
                     evaluate_every=0, max_doc_update_iter=50, mean_change_tol=0.001, total_samples=counts.shape[0])
    model.start = start
    (_, peer_cpu, _) = cpu(lambda: model.fit(counts))
    options = ["--update", method, "--passes", str(passes), "--offset", "2", "--chunk", "500", *begin]
    ((_, folder_of), own_cpu, _) = cpu(lambda: train("lda", *options))
    a, b = perplexity(folder_of), model.perplexity(counts)
    print(f"LDA {method}, {passes} passes: perplexity {a:.6f}, scikit-learn {b:.6f}: bound differs by "
          f"{relative(np.log(a), np.log(b)):.1e}; CPU {own_cpu:.2f} s (with reading and writing), scikit-learn {peer_cpu:.2f} s: "
          f"{peer_cpu / own_cpu:.1f} x")

from gensim.matutils import Sparse2Corpus
from gensim.models import LdaModel
from gensim.models.coherencemodel import CoherenceModel
from gensim.corpora import Dictionary

bags = list(Sparse2Corpus(counts, documents_columns=False))
bags = [[(i, int(n)) for i, n in bag] for bag in bags]
dictionary = Dictionary()
dictionary.token2id = {w: i for i, w in enumerate(vocab)}
dictionary.id2token = dict(enumerate(vocab))
peer = LdaModel(None, id2word=dictionary.id2token, num_topics=topics, dtype=np.float64, random_state=1, chunksize=2000,
                decay=0.5, offset=1, iterations=50, gamma_threshold=0.001)
peer.state.sstats[:] = start.astype(np.float64) - peer.eta
peer.sync_state()


class Ones(np.random.RandomState):
    """gensim draws the initial gamma; here it starts from ones, too."""

    def gamma(self, shape, scale=1.0, size=None):
        return np.ones(size)


peer.random_state = Ones()
(_, peer_cpu, _) = cpu(lambda: peer.update(bags, passes=1, eval_every=None, chunks_as_numpy=False, update_every=1))
((result, folder_of), own_cpu, _) = cpu(lambda: train("lda", "--passes", "1", *begin))
a, b = np.log(perplexity(folder_of)), -peer.bound(bags) / counts.sum()
print(f"LDA, one pass with gensim's defaults: bound per word {-a:.6f}, gensim {-b:.6f}: differs by {relative(a, b):.1e}; "
      f"CPU {own_cpu:.2f} s, gensim {peer_cpu:.2f} s: {peer_cpu / own_cpu:.1f} x")
words = [[w["word"] for w in t["words"]] for t in result["topics"]]
scores = CoherenceModel(topics=words, corpus=bags, dictionary=dictionary, coherence="u_mass", topn=10).get_coherence_per_topic()
print(f"UMass: largest difference from gensim {max(abs(a - t['umass']) for a, t in zip(scores, result['topics'])):.1e}")
