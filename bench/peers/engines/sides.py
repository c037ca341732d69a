"""Contestants: processes that are asked for a round at a time. All have ready(), turn() -> seconds of a call, next(),
output() -> numbers to compare or None, peak() -> bytes of memory at most, close()."""
import json
import os
import subprocess
import time

LETTERS = 24  # of a generated text that are compared; as in worker.py
HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A side cannot be measured; the message is the reason."""


def numbers(value):
    """All numbers of a JSON value, in order."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return []
    if isinstance(value, (int, float)):
        return [float(value)]
    return [x for item in (value.values() if isinstance(value, dict) else value) for x in numbers(item)]


class Process:
    """A program that reads requests and writes responses, one per line."""

    def __init__(self, argv, env=None):
        self.errors = open("stderr.log", "a")
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=env)
        self.most = 0

    def send(self, text):
        try:
            self.p.stdin.write(text.encode())
            self.p.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"ended with status {self.p.wait()}") from None

    def line(self):
        answer = self.p.stdout.readline()
        if not answer:
            raise Failed(f"ended with status {self.p.wait()}")
        return answer

    def hear(self):
        answer = json.loads(self.line())
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def peak(self):
        try:
            with open(f"/proc/{self.p.pid}/status") as f:
                for line in f:
                    if line.startswith("VmHWM"):
                        self.most = max(self.most, 1024 * int(line.split()[1]))
        except OSError:
            pass
        return self.most

    def close(self):
        for end in (self.p.stdin, self.p.stdout):
            try:
                end.close()
            except OSError:
                pass
        try:
            self.p.wait(5)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        self.errors.close()


class Rounds(Process):
    """`sesame bench --turns` and worker.py: a line is a round."""

    def __init__(self, argv, rows, env=None):
        super().__init__(argv, env)
        self.rows, self.at = rows, 0

    def ready(self):
        """Waits until the next row is measured; rows that were not requested are skipped."""
        while True:
            names = self.hear().get("ready")
            if not names:  # a result of the row before
                continue
            if (" " + names[0]).endswith(" " + self.rows[self.at]):
                return
            self.send("next\n")

    def turn(self):
        self.send("\n")
        return self.hear()["seconds"][0]

    def next(self):
        self.at += 1
        self.send("next\n")

    def output(self):
        return None


class Bench(Rounds):
    def __init__(self, spec, rows, context):
        words = [w.format(models=context.models) for w in spec["words"]]
        argv = [context.sesame, "bench"] + words + ["--turns", "--json", "--quiet", "--threads", str(context.threads)]
        # rows of folders are called after their batch, ragged ones "480 in 32"
        ragged = {r: r.split()[2] + " in " + r.split()[0] for r in rows if "texts, " in r}
        quick = context.quick and words[0] != "gemm"  # there it leaves out sizes
        super().__init__(argv + (["--quick"] if quick else []), [ragged.get(r, r) for r in rows])
        self.context, self.words = context, words

    def output(self):
        """The last hidden states of the first load, by `sesame run`."""
        if self.words[0] != "model" or "--train" in self.words:
            return None
        load = self.words[self.words.index("--load") + 1]
        n, length = map(int, load.split("x"))
        ids = "\n".join(" ".join(str((s * length + i) * 7919 % 30522) for i in range(length)) for s in range(n))
        argv = [self.context.sesame, "run", self.words[2], "-", "--json", "--quiet", "--threads",
                str(self.context.threads)]
        if "--dtype" in self.words:
            argv += ["--dtype", self.words[self.words.index("--dtype") + 1]]
        got = subprocess.run(argv, input=ids.encode(), stdout=subprocess.PIPE, check=True).stdout
        return [x for line in got.splitlines() for x in numbers(json.loads(line)["last_hidden_state"])]


class Worker(Rounds):
    def __init__(self, spec, rows, context):
        known = dict(spec["spec"], what=spec["what"], models=context.models, threads=context.threads,
                     quick=context.quick)
        super().__init__([context.python, "-B", os.path.join(HERE, "worker.py"), json.dumps(known)], rows, context.env)

    def output(self):
        self.send("output\n")
        return numbers(self.hear()["output"])


class Pipe(Process):
    """A command of Sesame that reads texts from a pipe: lines in, answers out."""

    def __init__(self, spec, rows, context):
        words = [w.format(models=context.models) for w in spec["words"]]
        if "rounds" in spec and not os.path.exists(words[2]):
            subprocess.run([context.sesame, "quantize", os.path.join(context.models, spec["rounds"]), words[2], "--dtype",
                            "int8", "--embeddings", "int8", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        super().__init__([context.sesame] + words + ["--quiet", "--threads", str(context.threads)])
        self.words = words
        self.files = [os.path.join(context.models, "texts", f + (".txt" if words[0] in ("embed", "text-generation")
                                                                 else ".jsonl")) for f in spec["files"]]
        self.single, self.at = spec.get("single", False), 0
        self.window = 0 if words[0] == "text-generation" else 0.03 if context.quick else 0.1

    def ready(self):
        with open(self.files[self.at], "rb") as f:
            self.lines = f.read().splitlines(keepends=True)
        self.answers = self.once()

    def once(self):
        if not self.single:
            self.send(b"".join(self.lines).decode())
            return [self.line() for _ in self.lines]
        out = []
        for line in self.lines:
            self.send(line.decode())
            out.append(self.line())
        return out

    def turn(self):
        best, begin = float("inf"), time.perf_counter()
        while best == float("inf") or time.perf_counter() - begin < self.window:
            start = time.perf_counter()
            self.once()
            best = min(best, time.perf_counter() - start)
        return best / (len(self.lines) if self.single else 1)

    def next(self):
        self.at += 1

    def output(self):
        """Numbers; of generated text, its first letters."""
        answers = [json.loads(a) for a in self.answers]
        if self.words[0] != "text-generation":
            return numbers(answers)
        prompt = len(self.lines[0].decode().rstrip("\n"))
        return [ord(c) for c in answers[0][0]["generated_text"][prompt:][:LETTERS]]


class Start:
    """A whole process, from its start to its end."""

    def __init__(self, spec, rows, context):
        if "peer" in spec:
            known = dict(spec["spec"], peer=spec["peer"], models=context.models, threads=context.threads)
            self.argv, self.env = [context.python, "-B", os.path.join(HERE, "cold.py"), json.dumps(known)], context.env
        else:
            words = [w.format(models=context.models) for w in spec["words"]]
            self.argv, self.env = [context.sesame] + words + ["--quiet", "--threads", str(context.threads)], None
        self.drop = os.path.join(context.models, spec["words"][2].split("/")[-1]) if spec.get("drop") else None
        self.most, self.out = 0, b""

    def ready(self):
        self.turn()

    def turn(self):
        if self.drop:
            drop_cache(self.drop)
        start = time.perf_counter()
        p = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env)
        self.out = p.stdout.read()
        _, status, usage = os.wait4(p.pid, 0)
        seconds = time.perf_counter() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            raise Failed(f"ended with status {p.returncode}")
        self.most = max(self.most, 1024 * usage.ru_maxrss)
        return seconds

    def next(self):
        pass

    def output(self):
        return numbers(json.loads(self.out))

    def peak(self):
        return self.most

    def close(self):
        pass


def drop_cache(folder):
    """Its files leave the page cache: they are read from disk again."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


KINDS = {"bench": Bench, "worker": Worker, "pipe": Pipe, "start": Start}


def open_side(spec, rows, context):
    return KINDS[spec["kind"]](spec, rows, context)
