"""The package as a whole: stubs, docstrings, import time, memory, the wheel, the tutorial."""

import ast
import functools
import gc
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile
from pathlib import Path

import sesame
from common import BUILD, ROOT, SANITIZED, needs_models

PACKAGE = Path(sesame.__file__).parent


def resident_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Stubs(unittest.TestCase):
    """__init__.pyi has every public name, with the parameters that the functions have."""

    def setUp(self):
        self.tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
        self.shapes = {node.name: [x.target.id for x in node.body if isinstance(x, ast.AnnAssign)]
                       for node in self.tree.body if isinstance(node, ast.ClassDef)}

    def parameters(self, node):
        a = node.args
        names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs]
        shape = re.match(r"Unpack\[(_\w+)\]", ast.unparse(a.kwarg.annotation)) if a.kwarg and a.kwarg.annotation else None
        return {x for x in names if x not in ("self", "cls")} | set(self.shapes[shape[1]] if shape else ())

    def compare(self, where, nodes, function):
        """nodes: the definition, or all overloads, which together have all parameters."""
        try:
            actual = [x for x in inspect.signature(function).parameters.values() if x.name != "self"]
        except (ValueError, TypeError):
            return  # a function of the extension
        wanted = {x.name for x in actual if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)}
        stated = set().union(*map(self.parameters, nodes))
        if len(nodes) > 1:  # older names of a parameter; options of a task
            stated |= {"sentences"} & wanted
            stated = stated & wanted if any(x.kind == x.VAR_KEYWORD for x in actual) else stated
        self.assertEqual(stated, wanted, where)

    @staticmethod
    def functions(body):
        found = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
        return found.items()

    def test_names(self):
        public = {x for x in sesame.__all__ if not x.startswith("_")}
        found = {name for name, nodes in self.functions(self.tree.body)}
        for name, nodes in self.functions(self.tree.body):
            self.compare(name, nodes, getattr(sesame, name))
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and node.targets[0].id in public:
                found.add(node.targets[0].id)
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):  # the shape of a result
                continue
            found.add(node.name)
            for name, nodes in self.functions(node.body):
                if name in ("__new__", "__buffer__", "__iter__", "__enter__", "__exit__"):
                    continue
                value = inspect.getattr_static(getattr(sesame, node.name), name)
                if inspect.isfunction(getattr(value, "__func__", value)):
                    bound = isinstance(value, classmethod)
                    self.compare(f"{node.name}.{name}", nodes, getattr(getattr(sesame, node.name), name) if bound else value)
        self.assertEqual(found, public)
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_docstrings(self):
        for name in sesame.__all__:
            value = getattr(sesame, name)
            if name == "__version__":
                continue
            self.assertTrue(value.__doc__, name)
            for member in vars(value) if inspect.isclass(value) else ():
                if not member.startswith("_") and callable(getattr(value, member)):
                    self.assertTrue(getattr(value, member).__doc__, f"{name}.{member}")
        with self.assertRaises(AttributeError):
            sesame.nothing
        self.assertIn("SentenceTransformer", dir(sesame))


class Import(unittest.TestCase):
    @unittest.skipIf(SANITIZED, "times of a sanitizer mean nothing")
    def test_time(self):
        code = "import time; t = time.process_time(); import sesame; print(time.process_time() - t)"
        times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
                 for _ in range(5)]
        self.assertLess(min(times), 0.05)

    def test_needs_nothing(self):
        code = "import sys, sesame; print([x for x in ('numpy', 'sklearn', 'torch', 'json') if x in sys.modules])"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.strip(), "[]")

    def test_old_python(self):
        source = (PACKAGE / "__init__.py").read_text()
        source = source.replace("_sys.version_info < (3, 11)", "_sys.version_info < (99, 0)")
        with self.assertRaisesRegex(ImportError, "needs Python 3.11 or later"):
            exec(compile(source, "__init__.py", "exec"), {"__name__": "sesame"})


@unittest.skipIf(SANITIZED, "the sanitizer keeps freed memory")
@needs_models
class Memory(unittest.TestCase):
    def grows(self, call, calls=10000, warm=1500):
        """Growth in KB over many calls, after some to fill caches."""
        for _ in range(warm):
            call()
        gc.collect()
        before, objects = resident_kb(), len(gc.get_objects())
        for _ in range(calls):
            call()
        gc.collect()
        self.assertLess(abs(len(gc.get_objects()) - objects), 100)
        return resident_kb() - before

    def test_calls(self):
        tokenizer = sesame.Tokenizer("sesame-small")
        array = sesame.Array(memoryview(bytes(4000)).cast("f", (100, 10)))
        tokenizer.enable_truncation(6, stride=1)
        broken = sesame.pipeline("fill-mask", "sesame-small")

        def tokens():
            x = tokenizer.encode("one two three four five six")
            return x.ids, x.tokens, x.offsets, x.overflowing, tokenizer.decode(x.ids)

        def arrays():
            array[3].tolist(), array[1:3], memoryview(array), array.__dlpack__(max_version=(1, 0)), array.__dlpack__()
            sesame._sesame.similarity(array, array[:2], "cosine")
            array.__arrow_c_array__()

        def errors():
            try:
                broken("no mask")
            except sesame.ArgumentError:
                pass

        for call in (tokens, arrays, errors):
            self.assertLess(self.grows(call), 2000, call.__name__)

    def test_models(self):
        folder = ROOT / "tests/pipelines/bert-mask"
        fill = sesame.pipeline("fill-mask", folder, threads=1)
        model = sesame.Model(folder, threads=1)

        def compute():
            fill("a [MASK]")
            model([[2, 5, 3]], output_attentions=True)

        self.assertLess(self.grows(compute), 2000)

        def reopen():
            sesame.pipeline("fill-mask", folder, threads=1)("a [MASK]", top_k=2)
            sesame.Model(folder, threads=1)

        self.assertLess(self.grows(reopen, 300, 50), 3000)

    def test_references(self):
        texts = ["A text %d" % i for i in range(10)]
        counts = [sys.getrefcount(x) for x in texts]
        encoder = sesame.SentenceTransformer("sesame-embed")
        vectors = encoder.encode(texts, convert_to_numpy=False)
        del vectors
        self.assertEqual([sys.getrefcount(x) for x in texts], counts)


class Wheel(unittest.TestCase):
    def build(self, folder, **variables):
        environment = {**os.environ, "SESAME_BUILD_DIR": str(BUILD), "LD_PRELOAD": "", **variables}
        done = subprocess.run([sys.executable, str(ROOT / "python/backend/sesame_build.py"), folder], check=True,
                              capture_output=True, text=True, env=environment)
        return Path(done.stdout.strip())

    @unittest.skipIf(SANITIZED, "not the extension of a release")
    def test_wheel(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            wheel = self.build(first)
            self.assertRegex(wheel.name, r"^sesame-[0-9.]+-cp311-abi3-linux_\w+\.whl$")
            self.assertLess(wheel.stat().st_size, 40e6)
            self.assertEqual(wheel.read_bytes(), self.build(second).read_bytes())
            with zipfile.ZipFile(wheel) as archive:
                names = archive.namelist()
                self.assertIsNone(archive.testzip())
                metadata = next(archive.read(x).decode() for x in names if x.endswith("METADATA"))
                archive.extractall(second)
            self.assertIn("Requires-Python: >=3.11", metadata)
            self.assertIn("sesame/__init__.pyi", names)
            self.assertIn("sesame/py.typed", names)
            self.assertIn("sesame/_options.pyi", names)
            bundled = subprocess.run(["git", "ls-files", "models", "tasks"], cwd=ROOT, capture_output=True, text=True, check=False)
            for name in bundled.stdout.split():
                self.assertIn("sesame/" + name, names)
            code = "import sesame; print(sesame.__version__, sesame.__file__)"
            out = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {second!r}); {code}"],
                                 check=True, capture_output=True, text=True).stdout.split()
            self.assertEqual(out, [sesame.__version__, os.path.join(second, "sesame", "__init__.py")])

    @unittest.skipIf(SANITIZED, "not the extension of a release")
    @unittest.skipUnless(importlib.util.find_spec("ensurepip"), "Python has no pip for a virtual environment")
    @needs_models
    def test_fresh_environment(self):
        """Only the wheel: the first example of the docstring, and the command."""
        with tempfile.TemporaryDirectory() as folder:
            clean = {"PATH": "/usr/bin:/bin", "HOME": folder}
            run = functools.partial(subprocess.run, cwd=folder, capture_output=True, text=True, env=clean, check=False)
            wheel = self.build(folder)
            self.assertEqual(run([sys.executable, "-m", "venv", "v"]).returncode, 0)
            installed = run(["v/bin/python", "-m", "pip", "install", "--no-index", str(wheel)])
            self.assertEqual(installed.returncode, 0, installed.stderr)
            example = re.search(r"(?:\n    .*)+", sesame.__doc__).group()
            code = textwrap.dedent(example) + "\nprint(classify('A fine film.')[0]['label'], vectors.shape, sesame.__file__)"
            shown = run(["v/bin/python", "-c", code])
            label, *shape, file = shown.stdout.split()
            self.assertEqual((label, " ".join(shape)), ("positive", "(2, 384)"), shown.stderr)
            self.assertTrue(file.startswith(folder), file)
            for command in (["v/bin/sesame"], ["v/bin/python", "-m", "sesame"]):
                shown = run([*command, "text-classification", "--json", "A fine film."])
                self.assertEqual(json.loads(shown.stdout)[0]["label"], "positive", shown.stderr)
                failed = run([*command, "text-classification", "--no-such-option"])
                self.assertEqual((failed.returncode, failed.stderr[:7]), (2, "sesame:"))
            models = run(["v/bin/sesame", "models"])
            self.assertIn(os.path.realpath(folder), models.stdout)
            os.remove(next(Path(folder).glob("v/lib/*/site-packages/sesame/bin/sesame")))
            self.assertIn("has no command", run(["v/bin/sesame"]).stderr)

    def test_build_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(self.build(folder, PATH=folder).exists())  # without strip
            with self.assertRaises(subprocess.CalledProcessError) as wrong:
                self.build(folder, SESAME_BUILD_DIR=folder)
            self.assertRegex(wrong.exception.stderr, r"^sesame: .*_sesame.abi3.so does not exist: SESAME_BUILD_DIR must name")

    def test_source_folder(self):
        """Python in the source folder finds the package there, without the library."""
        environment = {x: os.environ[x] for x in os.environ if x != "PYTHONPATH"}
        done = subprocess.run([sys.executable, "-c", "import sesame"], cwd=ROOT / "python", capture_output=True, text=True,
                              check=False, env=environment)
        self.assertIn("ImportError: " + str(ROOT / "python/sesame") + " is the source folder", done.stderr)
        self.assertIn("pip install ./python", done.stderr)

    def test_stable_abi(self):
        """Symbols of the limited API only; _Py_NoneStruct and the like belong to it."""
        out = subprocess.run(["nm", "-D", "--undefined-only", str(PACKAGE / "_sesame.abi3.so")], capture_output=True,
                             text=True, check=False).stdout
        names = [line.split()[-1] for line in out.splitlines() if "Py" in line]
        if not names:
            self.skipTest("nm is not installed")
        private = [x for x in names if x.startswith("_Py") and not re.search("_SizeT$|Dealloc|Struct$", x)]
        self.assertEqual(private, [])


@needs_models
class Tutorial(unittest.TestCase):
    def test_document(self):
        """The Python blocks of docs/PYTHON.md, in one program."""
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/PYTHON.md").read_text(), re.M | re.S)
        self.assertEqual(len(blocks), 5)
        exec(compile("\n".join(blocks), "PYTHON.md", "exec"), {})

    def test_tutorial(self):
        done = subprocess.run([sys.executable, str(ROOT / "python/recipes/tutorial.py")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ["done"]), done.stderr)


if __name__ == "__main__":
    unittest.main()
