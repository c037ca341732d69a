"""Shared code of the checks of serve-clients: the servers, the command's results, comparisons, the list of checks."""
import base64
import http.client
import importlib
import json
import math
import os
import re
import shutil
import subprocess
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEXT = "The ferry leaves at noon."
OTHER = "The boat departs at twelve."
TEXTS = [TEXT, OTHER, "Zürich – 東京 🙂"]
PROMPT = "The old man went"


# ---- the server and the command ----


class Server:
    """`sesame serve` with options, on a free port."""

    def __init__(self, sesame, *options):
        self.process = subprocess.Popen([sesame, "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"ready .*:(\d+)$", line.strip())
            if found:
                break
        else:
            raise RuntimeError(f"the server ended with {self.process.wait()}")
        self.port = int(found.group(1))
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def post(self, path, body, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        c.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, json.loads(data)

    def stop(self):
        self.process.terminate()
        if self.process.wait(60):
            raise RuntimeError(f"the server ended with {self.process.returncode}")


class Context:
    def __init__(self, sesame, folder):
        self.sesame = sesame
        self.folder = folder
        self.seq2seq = os.path.join(folder, "t5")
        self.cross = os.path.join(ROOT, "tests", "pipelines", "bert-score")
        self.make_seq2seq()
        self.key = "k-" + base64.b16encode(os.urandom(8)).decode()
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as f:
            f.write(self.key + "\n")
        models = [x for m in ("embed", "small", "sentiment", "ner", "qa", "nli", "gpt") for x in ("-m", "sesame-" + m)]
        self.server = Server(sesame, *models, "-m", "cross=" + self.cross, "-m", "t5=" + self.seq2seq)
        self.small = Server(sesame, "-m", "sesame-gpt", "-m", "sesame-embed", "--api-key-file", keys, "--queue-inputs", "1")

    def make_seq2seq(self):
        """A small encoder-decoder of the tests, with a word-level tokenizer."""
        shutil.copytree(os.path.join(ROOT, "tests", "golden", "t5-v1.0"), self.seq2seq)
        subprocess.run(["chmod", "-R", "u+w", self.seq2seq], check=True)
        words = os.path.join(self.folder, "words.txt")
        with open(words, "w") as f:
            f.write(3 * ("the cat sat on the mat and the dog ran to the house by the old river where a man was\n"
                         "red blue green one two three four five six seven eight nine ten sun moon star sea sky\n"))
        subprocess.run([self.sesame, "train-tokenizer", "-q", "--type", "wordlevel", "--vocab-size", "60", "--special-tokens",
                        "[PAD],[UNK]", "-o", os.path.join(self.seq2seq, "tokenizer.json"), words], check=True)

    def cli(self, task, *args):
        """The command's result for one input."""
        got = subprocess.run([self.sesame, task, "--json", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if got.returncode:
            raise RuntimeError(f"sesame {task}: {got.stderr.decode()}")
        lines = got.stdout.decode().splitlines()
        return json.loads(lines[0]) if len(lines) == 1 else [json.loads(x) for x in lines]

    def stop(self):
        self.server.stop()
        self.small.stop()


# ---- comparisons ----


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}: got {short(got)}, expected {short(wanted)}")


def short(x):
    s = repr(x)
    return s if len(s) < 200 else s[:200] + "..."


def f32(x):
    import numpy
    return numpy.asarray(x, dtype=numpy.float32)


def same_numbers(got, wanted, what="", error=0.0):
    """error 0: the same bits as float32."""
    import numpy
    a, b = f32(got), f32(wanted)
    equal(a.shape, b.shape, what + ": shape")
    if error == 0 and not numpy.array_equal(a, b):
        raise AssertionError(f"{what}: the numbers differ by up to {numpy.abs(a - b).max()}")
    if error and not numpy.allclose(a, b, rtol=error, atol=error):
        raise AssertionError(f"{what}: the numbers differ by up to {numpy.abs(a - b).max()}")


def same_rows(got, wanted, keys):
    """Rows of objects of a client against dictionaries of the command."""
    equal(len(got), len(wanted), "rows")
    for g, w in zip(got, wanted):
        for k in keys:
            x = g[k] if isinstance(g, dict) else getattr(g, k)
            if isinstance(w[k], float):
                same_numbers([x], [w[k]], k)
            else:
                equal(x, w[k], k)


def normalized(v):
    n = math.sqrt(sum(x * x for x in v))
    return [x / n for x in v]


def expect(kind, call, *texts):
    try:
        got = call()
    except kind as e:
        for t in texts:
            if t not in str(e):
                raise AssertionError(f"{kind.__name__} without {t!r}: {e}") from None
        return e
    except Exception as e:
        raise AssertionError(f"expected {kind.__name__}, got {type(e).__name__}: {e}") from None
    raise AssertionError(f"expected {kind.__name__}, got {short(got)}")


# ---- checks ----

CHECKS = []


def check(client, task):
    def add(f):
        CHECKS.append((client, task, f))
        return f
    return add


class Skip(Exception):
    pass


def need(module):
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise Skip(f"not installed: {e}") from None
