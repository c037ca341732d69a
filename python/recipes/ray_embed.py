#!/usr/bin/env python3
"""Encodes a table of texts with Ray Data, one encoder per actor.

    SESAME_MODELS=models python python/recipes/ray_embed.py [ROWS]

Checks that the vectors equal one process."""

import os
import sys

import numpy as np
import ray

import sesame

WORKERS = 2


class Encode:
    """An actor: it opens the encoder once and encodes batches."""

    def __init__(self):
        self.encoder = sesame.SentenceTransformer("sesame-embed", threads=1)

    def __call__(self, batch):
        batch["vector"] = self.encoder.encode(list(batch["text"]))
        return batch


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    texts = [f"This is text number {i}." for i in range(rows)]
    names = ("SESAME_MODELS", "PYTHONPATH")
    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, logging_level="ERROR",
             runtime_env={"env_vars": {x: os.environ[x] for x in names if x in os.environ}})
    data = ray.data.from_items([{"number": i, "text": x} for i, x in enumerate(texts)])
    result = data.map_batches(Encode, batch_size=64, concurrency=WORKERS).take_all()
    ray.shutdown()
    result.sort(key=lambda row: row["number"])
    alone = sesame.SentenceTransformer("sesame-embed", threads=1).encode(texts)
    assert np.array_equal(np.stack([row["vector"] for row in result]), alone)
    print(f"{len(result)} vectors, equal to one process")


if __name__ == "__main__":
    main()
