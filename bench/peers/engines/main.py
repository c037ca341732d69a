"""Sesame and the engines a user could pick instead, in turns. Standard library only; the engines run in processes of their
own, by the virtual environment's Python."""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

import jobs
import sides

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))

# Packages, installed one by one. PyTorch exports the models.
PACKAGES = ["torch", "transformers", "onnx", "onnxruntime", "openvino", "nncf", "sentence-transformers",
            "llama-cpp-python", "gguf", "ctranslate2"]
MODULES = {"torch": ["torch", "transformers"], "onnxruntime": ["onnxruntime", "tokenizers"],
           "openvino": ["openvino", "tokenizers"], "sentence-transformers": ["sentence_transformers"],
           "llama.cpp": ["llama_cpp"], "ctranslate2": ["ctranslate2", "tokenizers"]}
FILES = {"torch": [], "sentence-transformers": [], "llama.cpp": ["q8_0.gguf"],
         "ctranslate2": ["ctranslate2"],
         "onnxruntime": ["model.onnx", "fused.onnx"], "openvino": ["model.onnx", "openvino.xml"]}
INT8 = {"onnxruntime": ["int8.onnx"], "openvino": ["openvino8.xml"]}


def report(text):
    print(text, file=sys.stderr, flush=True)


# ---- the environment ----


def make_venv(folder):
    report(f"creating a virtual environment in {folder}")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for package in PACKAGES:
        if subprocess.run([os.path.join(folder, "bin", "pip"), "install", "-q", package]).returncode:
            report(f"{package} cannot be installed")


def found(python, env):
    """Modules that are there, and versions of packages."""
    code = ("import importlib.util as u, importlib.metadata as m, json; "
            "mods = ['torch', 'transformers', 'onnxruntime', 'openvino', 'tokenizers', 'sentence_transformers', "
            "'llama_cpp', 'nncf', 'onnx', 'gguf', 'ctranslate2']; v = {}\n"
            "for d in m.distributions(): v[d.metadata['Name'].lower().replace('_', '-')] = d.version\n"
            "print(json.dumps([[x for x in mods if u.find_spec(x)], {k: v[k] for k in ('torch', 'transformers', "
            "'tokenizers', 'onnxruntime', 'openvino', 'nncf', 'sentence-transformers', 'llama-cpp-python', 'ctranslate2') if k in v}]))")
    got = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, env=env, check=True).stdout
    return json.loads(got)


def files_of(group, without):
    """Files that must exist before the group can run."""
    out = []
    for spec in group.sides.values():
        words = spec.get("words", []) if "rounds" not in spec else []  # such a folder is made by its side
        out += [w.replace("{models}/", "") + "/done" for w in words if w.startswith("{models}/")]
        inner = spec.get("spec", {})
        if "model" not in inner:
            continue
        peer = peer_of(spec)
        if peer in without:
            continue
        extra = INT8.get(peer, []) if inner.get("dtype") == "int8" else []
        out += [inner["model"] + "/" + f for f in ["done"] + FILES[peer] + extra]
    return out


def prepare(context, groups, args):
    wanted = list(dict.fromkeys(f for g in groups for f in files_of(g, context.without)))
    missing = [f for f in wanted if not os.path.exists(os.path.join(context.models, f))]
    if not missing and os.path.exists(os.path.join(context.models, "texts", "prompt.txt")):
        return
    os.makedirs(context.models, exist_ok=True)
    subprocess.run([context.python, "-B", os.path.join(HERE, "prepare.py"), context.models, args.vocab, args.data]
                   + missing, env=context.env, check=True)


# ---- measuring ----


class Context:
    pass


def loops(context, seconds):
    """GFLOP/s of multiply-adds in registers and GB/s read from memory, on as many threads."""
    got = subprocess.run([context.sesame, "doctor", "--json", "--seconds", str(seconds), "--threads",
                          str(context.threads)], stdout=subprocess.PIPE, check=True).stdout
    speed = {s["what"]: s["value"] for s in json.loads(got)["speed"]}  # the last of each: all threads
    context.fma = max(context.fma, 1e9 * speed["multiply-add"])
    context.read = max(context.read, 1e9 * speed["memory read"])


def agree(got, want):
    """‖got - want‖ / ‖want‖, or None where lengths differ."""
    if len(got) != len(want) or not want:
        return None
    error = sum((a - b) ** 2 for a, b in zip(got, want))
    return (error / max(sum(b * b for b in want), 1e-30)) ** 0.5


def peer_of(spec):
    return (spec.get("peer") or spec.get("spec", {}).get("peer", "-")).split()[0]


class Contest:
    """A running group: its remaining sides, and the reasons for the excluded ones."""

    def __init__(self, group, context):
        self.group, self.context, self.sides, self.out = group, context, {}, {}
        for name, spec in group.sides.items():
            peer = peer_of(spec)
            if peer in context.without:
                continue
            lacks = [m for m in MODULES.get(peer, []) if m not in context.modules]
            if lacks:
                self.out[name] = "not installed: " + ", ".join(lacks)
                continue
            self.attempt(name, lambda: self.sides.__setitem__(
                name, sides.open_side(spec, [r.name for r in group.rows], context)))

    def attempt(self, name, do):
        """The group is measured without a peer that fails, and the run then ends with an error. A failure of Sesame ends the group."""
        try:
            return do()
        except (sides.Failed, OSError, subprocess.CalledProcessError, json.JSONDecodeError) as e:
            if name == "sesame":
                raise
            self.out[name] = str(e)
            side = self.sides.pop(name, None)
            if side:
                side.close()
            return None

    def each(self, do):
        return {name: self.attempt(name, lambda: do(side)) for name, side in list(self.sides.items())}

    def check(self):
        """Compares outputs with Sesame's; a side with different outputs is excluded."""
        limits = self.group.check
        if not limits:
            return {}
        outputs = self.each(lambda side: side.output())
        errors = {name: agree(outputs[name], outputs["sesame"]) for name in self.sides if name != "sesame"}
        for name, error in errors.items():
            limit = limits.get(name, 1e-4)
            if error is None or error > limit:
                self.out[name] = f"its output differs by {error if error is None else f'{error:.1e}'}, allowed {limit:g}"
                self.sides.pop(name).close()
        return errors

    def rounds(self):
        times = {name: [] for name in self.sides}
        for _ in range(self.context.rounds):
            took = self.each(lambda side: (time.sleep(0.02), side.turn())[1])  # threads that spin have parked by then
            for name in list(times):
                if took.get(name) is None:
                    times.pop(name)
                else:
                    times[name].append(took[name])
        return times

    def close(self):
        for side in self.sides.values():
            side.close()


def result(group, row, times, peaks, errors, context):
    ours = statistics.median(times["sesame"])
    peers = {}
    for name, took in times.items():
        if name != "sesame":
            peers[name] = {"seconds": statistics.median(took), "error": errors.get(name), "peak": peaks.get(name),
                           "ratio": statistics.median(t / s for t, s in zip(took, times["sesame"])),
                           "best": min(took) / min(times["sesame"])}
    real = [p["ratio"] for name, p in peers.items() if "sesame" not in name] or [p["ratio"] for p in peers.values()]
    return {"group": group.name, "title": group.title, "wanted": group.wanted, "row": row.name, "unit": row.unit,
            "seconds": ours, "best": min(times["sesame"]), "rate": row.calls / ours, "ratio": min(real) if real else None, "peers": peers,
            "fma": row.flops / ours / context.fma / row.faster if row.flops else None,
            "read": row.bytes / ours / context.read if row.bytes else None, "peak": peaks["sesame"],
            "rounds": times}


def measure(group, context):
    contest, out = Contest(group, context), []
    try:
        errors = {}
        for i, row in enumerate(group.rows):
            contest.each(lambda side: side.ready())
            if not i:
                errors = contest.check()
            times = contest.rounds()
            peaks = {name: side.peak() for name, side in contest.sides.items()}
            r = result(group, row, times, peaks, errors, context)
            r["growth"] = out[0]["rate"] / r["rate"] if out and not r["peers"] else None
            r["good"] = row.good(r) if row.good else None
            out.append(r)
            report("  " + line_of(r))
            contest.each(lambda side: side.next())
    finally:
        contest.close()
    for name, why in contest.out.items():
        report(f"  {name} not measured: {why}")
    return out, contest.out


# ---- showing ----


def time_of(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def percent(x):
    return "" if x is None else f"{x:.2f}"


def peers_of(r):
    """Each peer's median, the median of ratios to Sesame's, and that of both sides' fastest rounds."""
    if r["growth"]:
        return f"{r['growth']:.2f}x the time a {r['unit']} of the first row"
    return "; ".join(f"{n} {time_of(p['seconds'])} ({p['ratio']:.2f}x, best {p['best']:.2f}x)"
                     for n, p in r["peers"].items())


def line_of(r):
    return f"{r['row']}: {time_of(r['seconds'])}, best {time_of(r['best'])}, {r['rate']:.4g} {r['unit']}s/s" + \
        (f", {r['fma']:.2f} of peak" if r["fma"] else "") + "; " + peers_of(r)


def memory_of(r):
    parts = [f"{r['peak'] / 1e6:.0f}"] + [f"{n} {p['peak'] / 1e6:.0f}" for n, p in r["peers"].items() if p["peak"]]
    return "; ".join(parts)


def table(results, left_out, context):
    lines = [f"{context.threads} threads, {context.fma / 1e9:.0f} GFLOP/s of multiply-adds in registers, "
             f"{context.read / 1e9:.1f} GB/s read, {context.rounds} rounds in turns, medians; "
             + ", ".join(f"{k} {v}" for k, v in context.versions.items()) + ".", ""]
    for name in dict.fromkeys(r["group"] for r in results):
        rows = [r for r in results if r["group"] == name]
        lines += [f"**{rows[0]['title']}** (wanted: {rows[0]['wanted']})", "",
                  "| | Sesame | a second | of FMA/VNNI | of memory | peers: time (times Sesame's) | reached |",
                  "|---|---|---|---|---|---|---|"]
        for r in rows:
            reached = "" if r["good"] is None else "yes" if r["good"] else "no"
            lines.append(f"| {r['row']} | {time_of(r['seconds'])} | {r['rate']:.4g} {r['unit']}s | {percent(r['fma'])} | "
                         f"{percent(r['read'])} | {peers_of(r)} | {reached} |")
        if name in ("finetune", "cold") or name.startswith("mlm"):
            lines += ["", "Peak memory, MB: " + memory_of(rows[-1]) + "."]
        out = left_out.get(name, {})
        lines += [""] + [f"Not measured: {n}: {why}." for n, why in out.items()] + ([""] if out else [])
    measured = {r["group"] for r in results}
    for name, out in left_out.items():
        if name not in measured:
            lines += [f"Not measured: {name}: {'; '.join(out.values())}."]
    return "\n".join(lines)


def arguments():
    p = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__)
    p.add_argument("--list", action="store_true", help="list the jobs")
    p.add_argument("--jobs", default="", help="measure these alone, by name, with commas between")
    p.add_argument("--rounds", type=int, default=5, help="turns of each side (5)")
    p.add_argument("--quick", action="store_true", help="shorter turns, and three of them")
    p.add_argument("--minutes", type=float, default=10, help="start no job after N minutes (10)")
    p.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of every side")
    p.add_argument("--without", default="", metavar="PEER,...", help="peers that are not compared; any other that cannot be measured is an error")
    p.add_argument("--venv", help="virtual environment: used as it is, or made (build/peers/venv)")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "peers"), help="folder for models and results")
    p.add_argument("--sesame", default=os.path.join(ROOT, "build", "sesame"), help="the program")
    p.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"), help="folder with glue/")
    p.add_argument("--vocab", default=os.path.join(ROOT, "..", "shared", "vocab"), help="folder of vocabularies")
    p.add_argument("--accuracy", nargs=3, metavar=("DIR", "TASK", "FILE"),
                   help="in place of jobs: what int8 costs this checkpoint on sst2 or stsb, engine by engine")
    p.add_argument("--prepare", action="store_true", help="make models and environment, measure nothing")
    return p.parse_args()


def choose(names):
    known = {g.name: g for g in jobs.GROUPS}
    wrong = [n for n in names if n not in known]
    if wrong:
        sys.exit(f"bench/peers/run: unknown job {', '.join(wrong)}; see --list")
    return [known[n] for n in names] or jobs.GROUPS


def main():
    args = arguments()
    groups = choose([n for n in args.jobs.split(",") if n])
    if args.list:
        for g in groups:
            print(f"{g.name:12} {g.title}: {', '.join(r.name for r in g.rows)}; against "
                  f"{', '.join(n for n in g.sides if n != 'sesame') or 'itself'}; wanted: {g.wanted}")
        return
    context = Context()
    context.sesame, context.threads, context.quick = os.path.abspath(args.sesame), args.threads, args.quick
    context.without = [n for n in args.without.split(",") if n]
    wrong = [n for n in context.without if n not in MODULES]
    if wrong:
        sys.exit(f"bench/peers/run: --without: unknown peer {', '.join(wrong)}; known: {', '.join(MODULES)}")
    context.rounds = 3 if args.quick else args.rounds
    context.models = os.path.join(os.path.abspath(args.work), "models")
    venv = os.path.abspath(args.venv or os.path.join(args.work, "venv"))
    context.python = os.path.join(venv, "bin", "python")
    context.env = dict(os.environ, PATH=os.path.join(venv, "bin") + os.pathsep + os.environ.get("PATH", ""))
    if not os.access(context.sesame, os.X_OK):
        sys.exit(f"bench/peers/run: {context.sesame} is not there: make, or --sesame FILE")
    if not os.path.exists(context.python):
        make_venv(venv)
    context.modules, context.versions = found(context.python, context.env)
    if args.accuracy:
        sys.exit(subprocess.run([context.python, "-B", os.path.join(HERE, "accuracy.py"), context.sesame]
                                + args.accuracy, env=context.env).returncode)
    prepare(context, groups, args)
    if args.prepare:
        return
    run_all(groups, context, args)


def run_all(groups, context, args):
    context.fma = context.read = 0
    results, left_out, begin = [], {}, datetime.datetime.now()
    os.chdir(args.work)
    for g in groups:
        if (datetime.datetime.now() - begin).total_seconds() > 60 * args.minutes:
            left_out[g.name] = {"all": f"{args.minutes:g} minutes were over"}
            report(f"{g.name} skipped: {args.minutes:g} minutes have passed")
            continue
        loops(context, 0.4)
        report(f"{g.name}: {g.title}")
        try:
            rows, left_out[g.name] = measure(g, context)
            results += rows
        except (sides.Failed, OSError, subprocess.CalledProcessError) as e:
            report(f"  failed: {e}")
            left_out[g.name] = {"sesame": str(e)}
        except KeyboardInterrupt:
            report("stopped; the measurements are kept")
            break
    text = table(results, left_out, context)
    with open("results.json", "w") as f:
        json.dump({"date": begin.isoformat(timespec="seconds"), "threads": context.threads, "fma": context.fma,
                   "read": context.read, "versions": context.versions, "results": results, "left_out": left_out}, f, indent=1)
    with open("results.md", "w") as f:
        f.write(text + "\n")
    print(text)
    took = (datetime.datetime.now() - begin).seconds
    report(f"{took // 60}m{took % 60:02}s; {os.path.join(args.work, 'results.json')} and results.md")
    for group, out in left_out.items():
        for name, why in out.items():
            report(f"bench/peers/run: {group}: {name} was not measured: {why}")
    if any(left_out.values()):
        sys.exit(1)


main()
