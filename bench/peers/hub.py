#!/usr/bin/env python3
"""Compares `sesame pull` and `sesame cache` with the huggingface_hub package on the same cache.

Usage: hub.py BUILD MODEL

BUILD: build folder with `sesame` and `hub_mock`; MODEL: a folder in the format of transformers. A mock of the hub on
loopback serves it. Each program downloads, the other one reads; both download at once; one continues what the other left.
Prints one line per check and exits with 1 if one fails. If transformers is installed, it opens the model, too.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.pop(0)  # tokenizers.py beside this script is not the library

FAILED = []
ID = "acme/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def report(what, ok, detail=""):
    print(f"{'ok    ' if ok else 'FAILED'}  {what}{': ' + str(detail) if detail and not ok else ''}", flush=True)
    if not ok:
        FAILED.append(what)


class Hub:
    """The mock hub; `delay` milliseconds between pieces of a file."""

    def __init__(self, build, root, delay):
        self.process = subprocess.Popen([f"{build}/hub_mock", root, str(delay)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        return self.process.stderr.read().strip()


def sesame(build, cache, url, *args):
    env = {**os.environ, "HF_HUB_CACHE": cache, "HF_ENDPOINT": url}
    env.pop("HF_HUB_OFFLINE", None)
    return subprocess.run([f"{build}/sesame", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def warnings_of(scan):
    """Older versions of huggingface_hub do not know the CACHEDIR.TAG of newer ones."""
    return [w for w in scan.warnings if "CACHEDIR.TAG" not in str(w)]


def same_files(folder, model, names):
    return all(open(f"{folder}/{n}", "rb").read() == open(f"{model}/{n}", "rb").read() for n in names)


def main():
    build, model = (os.path.abspath(p) for p in sys.argv[1:3])
    top = tempfile.mkdtemp()
    shutil.copytree(model, f"{top}/root/{ID}")
    with open(f"{top}/root/{ID}/spiece.model", "wb") as f:
        f.write(os.urandom(300000))
    os.makedirs(f"{top}/root/{ID}/1_Pooling")
    with open(f"{top}/root/{ID}/1_Pooling/config.json", "w") as f:
        f.write("{}")
    with open(f"{top}/root/{ID}/README.md", "w") as f:
        f.write("---\nlicense: mit\n---\n# tiny\n")
    hub = Hub(build, f"{top}/root", 0)
    os.environ.update(HF_ENDPOINT=hub.url, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1",
                      HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HOME=f"{top}/home")
    import huggingface_hub
    from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache
    print(f"huggingface_hub {huggingface_hub.__version__}")
    names = sorted(os.path.relpath(os.path.join(d, n), f"{top}/root/{ID}") for d, _, ns in os.walk(f"{top}/root/{ID}") for n in ns)
    source = f"{top}/root/{ID}"

    # sesame downloads, huggingface_hub reads
    ours = f"{top}/ours"
    run = sesame(build, ours, hub.url, "pull", ID, "--json")
    report("sesame pull", run.returncode == 0, run.stderr)
    folder = json.loads(run.stdout)["path"] if run.returncode == 0 else ""
    found = snapshot_download(ID, cache_dir=ours, local_files_only=True)
    report("snapshot_download without network finds it", os.path.realpath(found) == os.path.realpath(folder), found)
    report("its files are equal", same_files(found, source, names))
    report("hf_hub_download without network", all(
        open(hf_hub_download(ID, n, cache_dir=ours, local_files_only=True), "rb").read() == open(f"{source}/{n}", "rb").read()
        for n in names))
    report("try_to_load_from_cache", isinstance(try_to_load_from_cache(ID, "config.json", cache_dir=ours), str))
    scan = scan_cache_dir(ours)
    repos = list(scan.repos)
    report("scan_cache_dir: one model, no warnings", len(repos) == 1 and not warnings_of(scan) and repos[0].repo_id == ID, scan.warnings)
    report("scan_cache_dir: its branch and files", repos and set(repos[0].refs) == {"main"} and repos[0].nb_files == len(set(
        open(f"{source}/{n}", "rb").read() for n in names)))
    before = {p: os.stat(p).st_mtime_ns for d, _, ns in os.walk(f"{ours}/models--acme--tiny/blobs") for p in (f"{d}/{n}" for n in ns)}
    snapshot_download(ID, cache_dir=ours)
    report("huggingface_hub downloads nothing again", before == {p: os.stat(p).st_mtime_ns for p in before})

    # huggingface_hub downloads, sesame reads
    theirs = f"{top}/theirs"
    snapshot_download(ID, cache_dir=theirs)
    run = sesame(build, theirs, hub.url, "cache", "ls", "--json")
    listed = json.loads(run.stdout)["models"]
    report("sesame cache ls: complete", len(listed) == 1 and listed[0]["state"] == "complete" and listed[0]["refs"] == ["main"], listed)
    run = sesame(build, theirs, hub.url, "cache", "verify")
    report("sesame cache verify", run.returncode == 0, run.stdout)
    text = sesame(build, theirs, hub.url, "info", ID, "-q")
    report("sesame info", text.returncode == 0, text.stderr)
    run = sesame(build, theirs, hub.url, "pull", ID, "--json")
    report("sesame pull downloads nothing again", run.returncode == 0 and json.loads(run.stdout)["downloaded"] == 0, run.stdout)

    # a part by huggingface_hub, the rest by sesame, and the reverse
    mixed = f"{top}/mixed"
    hf_hub_download(ID, "config.json", cache_dir=mixed)
    run = sesame(build, mixed, hub.url, "info", ID)
    report("sesame reports the half snapshot", run.returncode == 3 and "sesame pull " + ID in run.stderr, run.stderr)
    run = sesame(build, mixed, hub.url, "pull", ID)
    report("sesame pull completes it", run.returncode == 0 and same_files(snapshot_download(ID, cache_dir=mixed, local_files_only=True), source, names), run.stderr)
    run = sesame(build, mixed, hub.url, "cache", "rm", ID, "--yes")
    report("sesame cache rm", run.returncode == 0 and not scan_cache_dir(mixed).repos, run.stderr)
    report("huggingface_hub downloads it again", same_files(snapshot_download(ID, cache_dir=mixed), source, names))
    hub.close()

    # both at once, on a slow hub
    hub = Hub(build, f"{top}/root", 10)
    both = f"{top}/both"
    script = (f"from huggingface_hub import snapshot_download\nsnapshot_download({ID!r}, cache_dir={both!r}, endpoint={hub.url!r})")
    env = {**os.environ, "HF_ENDPOINT": hub.url}
    results = []
    threads = [threading.Thread(target=lambda: results.append(sesame(build, both, hub.url, "pull", ID).returncode)) for _ in range(3)]
    threads += [threading.Thread(target=lambda: results.append(
        subprocess.run([sys.executable, "-c", script], env=env, stderr=subprocess.DEVNULL).returncode)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    report("three sesame pull and two snapshot_download at once", results == [0] * 5, results)
    run = sesame(build, both, hub.url, "cache", "verify")
    report("every file is right", run.returncode == 0 and not warnings_of(scan_cache_dir(both)), run.stdout)
    report("no partial file is left", not [n for n in os.listdir(f"{both}/models--acme--tiny/blobs") if "incomplete" in n])

    try:
        from transformers import AutoModel, PreTrainedTokenizerFast
        AutoModel.from_pretrained(ID, cache_dir=ours, local_files_only=True)
        PreTrainedTokenizerFast.from_pretrained(ID, cache_dir=ours, local_files_only=True)
        report("transformers opens what sesame pulled", True)
    except ImportError:
        print("skipped  transformers is not installed")
    hub.close()
    shutil.rmtree(top)
    sys.exit(1 if FAILED else 0)


main()
