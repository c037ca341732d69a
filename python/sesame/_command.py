"""Commands of `sesame` from Python: command, index, search, WordVectors, Server."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import weakref

from . import _sesame
from ._results import shown
from ._settings import settings_of

_QUERIES = 500  # of one process


def command_file():
    """The command of this package, otherwise the installed one."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "sesame")
    found = own if os.path.exists(own) else shutil.which("sesame")
    if found is None:
        raise _sesame.FileError(f"this installation of the Python package has no command: {own} does not exist")
    return found


def _arguments(words, options):
    """The arguments of the command: True is an option without a value, False and None are left out."""
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    rest = {name: value for name, value in options.items() if not isinstance(value, bool)}
    pairs = [f"--{name.replace('_', '-')}={text}" for name, text in settings_of(rest)]
    return [*flags, *pairs, "--", *map(os.fspath, words)]


def _raise(code, text):
    """The exception of an exit code with the lines of standard error."""
    lines = [line for line in text.strip().splitlines() if not line.startswith("Try 'sesame ")]
    message = "\n".join(lines).removeprefix("sesame: ") or f"the command ended with exit code {code}"
    raise (_sesame.UsageError if code == 2 else _sesame.Error)(message)


def _run(name, words, options, input=None):
    made = [command_file(), *name.split(), *_arguments(words, options)]
    done = subprocess.run(made, input=input or "", capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        _raise(done.returncode, done.stderr)
    return done.stdout


def command(name, *words, input=None, **options):
    """Runs any command and returns what it prints with --json: a list, one result for each line.

        sesame.command("explain", "A fine film.")[0]["result"]["values"]
        sesame.command("vectors info", "vectors.bin")

    name: the command, with its action. words: its arguments. input: the text of its standard input. options: as in
    `sesame NAME --help`, with underscores; True for an option without a value."""
    text, found, at = _run(name, words, {**options, "json": True}, input), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(shown(value))
    return found


def index(file, output=None, **options):
    """Builds or updates the index of a file of texts, so that `search` finds its texts at once; returns a dict with the
    numbers of texts that were embedded and reused.

    file: lines of texts, a table (column=NAME) or JSON lines (jsonl=KEY). output: the index, by default
    FILE.sesame-index. options: as in `sesame index --help`: model, dtype, rebuild, ..."""
    return command("index", file, output=output, quiet=True, **options)[0]


def search(queries, texts, *, top_k=5, **options):
    """The texts that are closest in meaning to a query: [{"index", "score", "text"}, ...], best first; of a list of queries
    a list of such lists.

    texts: a file, whose index is kept as FILE.sesame-index, or texts in memory, which are embedded anew. options: as in
    `sesame search --help`: model, column, jsonl, rerank, output, ..."""
    single = isinstance(queries, str)
    queries = [queries] if single else list(queries)
    if any(query == "-" for query in queries):
        raise ValueError("a query must not be \"-\"")
    with tempfile.TemporaryDirectory(prefix="sesame-") as folder:
        if not isinstance(texts, (str, os.PathLike)):
            file, options["jsonl"] = os.path.join(folder, "texts.jsonl"), "text"
            with open(file, "w", encoding="utf-8") as out:
                out.writelines(json.dumps({"text": text}) + "\n" for text in texts)
            texts = file
        found = []
        for first in range(0, len(queries), _QUERIES):
            part = queries[first:first + _QUERIES]
            found += command("search", *part, file=texts, top_k=top_k, quiet=True, **options)
    results = shown([x["results"] for x in found])
    return results[0] if single else results


class WordVectors:
    """Static word vectors: files of word2vec, fastText, GloVe and gensim, and folders.

        vectors = WordVectors.train("corpus.txt", "vectors.txt", dim=100)
        vectors.nearest("king")
        vectors.analogy("man", "king", "woman")"""

    def __init__(self, path):
        self.path = os.fspath(path)
        self.info = command("vectors info", self.path)[0]

    @classmethod
    def train(cls, corpus, output, **options):
        """Trains vectors on a text; options as in `sesame vectors train --help`: model, dim, epochs, min_count, ..."""
        _run("vectors train", [corpus], {"output": output, "quiet": True, **options})
        return cls(output)

    def nearest(self, *words, top_k=10, **options):
        """The words nearest to the sum of words, by cosine: [{"word", "cosine"}, ...]."""
        return shown(command("vectors nearest", self.path, " ".join(words), top_k=top_k, **options)[0]["nearest"])

    def analogy(self, a, b, c, top_k=10, **options):
        """The words that are to c as b is to a: [{"word", "cosine"}, ...]."""
        return shown(command("vectors analogy", self.path, a, b, c, top_k=top_k, **options)[0]["nearest"])

    def __len__(self):
        return self.info["words"]

    def __repr__(self):
        return f"<sesame.WordVectors {self.path!r}: {self.info['words']} words, {self.info['dim']} dimensions>"


class Server:
    """`sesame serve` in a process of its own, which ends with the object or the `with` block.

        with sesame.Server("sesame-embed") as server:
            urllib.request.urlopen(server.url + "/v1/models")

    models: folders or names, or NAME=FOLDER; none: the bundled ones. port: 0: any free one. options: as in
    `sesame serve --help`. url: its address."""

    def __init__(self, *models, port=0, **options):
        made = [command_file(), "serve", *_arguments([], {"model": list(models), "port": port, **options})[:-1]]
        self.process = subprocess.Popen(made, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        self._stop = weakref.finalize(self, _terminate, self.process)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if ready := re.search(r"ready .*at (\S+)", line):
                self.url = ready.group(1)
                break
        else:
            self.process.stderr.close()
            _raise(self.process.wait(), "".join(lines))
        threading.Thread(target=_drain, args=(self.process.stderr,), daemon=True).start()

    def close(self):
        """Ends the server after the requests it answers."""
        self._stop()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __repr__(self):
        return f"<sesame.Server at {self.url}>"


def _drain(stream):
    """Reads what the server reports, so that it never waits for its reader."""
    with stream:
        for _ in stream:
            pass


def _terminate(process):
    process.terminate()
    process.wait()
