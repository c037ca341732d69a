"""An encoder behind FastAPI and uvicorn, as a user would write it with care: requests that wait are computed as one batch, in a
thread of its own, and answers are written by orjson.

Usage: peer_server.py sentence-transformers|onnxruntime|onnxruntime-int8 FOLDER PORT THREADS"""
import asyncio
import contextlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy
import uvicorn
from fastapi import FastAPI, Request, Response
import orjson

MAX_BATCH = 64
KIND, FOLDER, PORT, THREADS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def load_sentence_transformers():
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(THREADS)
    model = SentenceTransformer(FOLDER, device="cpu")

    def encode(texts):
        return model.encode(texts, batch_size=MAX_BATCH, show_progress_bar=False)
    return encode


def load_onnxruntime():
    import onnxruntime
    from tokenizers import Tokenizer
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    name = "int8.onnx" if KIND.endswith("int8") else "fused.onnx"
    session = onnxruntime.InferenceSession(os.path.join(FOLDER, "onnx", name), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    inputs = {i.name: numpy.int32 if i.type == "tensor(int32)" else numpy.int64 for i in session.get_inputs()}

    def encode(texts):
        rows = tokenizer.encode_batch(texts)
        given = {"input_ids": [r.ids for r in rows], "attention_mask": [r.attention_mask for r in rows],
                 "token_type_ids": [r.type_ids for r in rows]}
        return session.run(None, {k: numpy.array(given[k], dtype=t) for k, t in inputs.items()})[0]
    return encode


encode = load_sentence_transformers() if KIND == "sentence-transformers" else load_onnxruntime()
pool = ThreadPoolExecutor(1)
waiting = []
work = asyncio.Event()


async def compute():
    """Takes all texts that wait, up to a batch, as soon as the thread is free."""
    loop = asyncio.get_running_loop()
    while True:
        await work.wait()
        batch = waiting[:MAX_BATCH]
        del waiting[:MAX_BATCH]
        if not waiting:
            work.clear()
        if not batch:
            continue
        vectors = await loop.run_in_executor(pool, encode, [text for text, _ in batch])
        for (_, future), vector in zip(batch, vectors):
            if not future.done():
                future.set_result(vector)


@contextlib.asynccontextmanager
async def lifespan(app):
    task = asyncio.create_task(compute())
    yield
    task.cancel()


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health():
    return {"status": "ok"}


@app.post("/embeddings")
async def embeddings(request: Request):
    body = orjson.loads(await request.body())
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in texts]
    waiting.extend(zip(texts, futures))
    work.set()
    data = [{"object": "embedding", "index": i, "embedding": await f} for i, f in enumerate(futures)]
    answer = {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 0, "total_tokens": 0}}
    return Response(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")


uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error", access_log=False)
