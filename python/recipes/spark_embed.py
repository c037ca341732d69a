#!/usr/bin/env python3
"""Encodes a table of texts with Spark (mapInPandas), one encoder per Python worker.

    SESAME_MODELS=models python python/recipes/spark_embed.py [ROWS]

Needs pyspark, pandas, pyarrow and Java. Checks that the vectors equal one process."""

import os
import sys

import numpy as np
from pyspark.sql import SparkSession

import sesame

WORKERS = 2


def encode(parts):
    """Parts of a partition, as tables of pandas; the encoder is opened once for all of them."""
    import sesame

    encoder = sesame.SentenceTransformer("sesame-embed", threads=1)
    for part in parts:
        yield part.assign(vector=[x.tolist() for x in encoder.encode(part["text"].tolist())])


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    texts = [f"This is text number {i}." for i in range(rows)]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    table = spark.createDataFrame(list(enumerate(texts)), "number long, text string").repartition(2 * WORKERS)
    result = table.mapInPandas(encode, "number long, text string, vector array<float>").orderBy("number").collect()
    spark.stop()
    alone = sesame.SentenceTransformer("sesame-embed", threads=1).encode(texts)
    assert np.array_equal(np.array([row["vector"] for row in result], dtype=np.float32), alone)
    print(f"{len(result)} vectors, equal to one process")


if __name__ == "__main__":
    main()
