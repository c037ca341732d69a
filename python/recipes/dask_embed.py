#!/usr/bin/env python3
"""Encodes a table of texts with Dask, one encoder per worker process.

    SESAME_MODELS=models python python/recipes/dask_embed.py [ROWS]

The encoder travels to the workers by its path; each opens it once. Checks that the vectors equal one process."""

import sys

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client

import sesame

WORKERS = 2


def encode(part, encoder):
    """The rows of a partition with their vectors."""
    return part.assign(vector=list(encoder.encode(part["text"].tolist())))


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    table = pd.DataFrame({"text": [f"This is text number {i}." for i in range(rows)]})
    encoder = sesame.SentenceTransformer("sesame-embed", threads=1)
    with Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None):
        parts = dd.from_pandas(table, npartitions=2 * WORKERS)
        meta = {"text": "object", "vector": "object"}
        result = parts.map_partitions(encode, encoder, meta=meta).compute()
    alone = encoder.encode(table["text"].tolist())
    assert np.array_equal(np.stack(result["vector"].tolist()), alone)
    print(f"{len(result)} vectors, equal to one process")


if __name__ == "__main__":
    main()
