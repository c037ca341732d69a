"""Builds the wheel: CMake compiles the extension and the command, this module packs them with the bundled models. No build
requirements, no network.

The version is that of include/sesame/base.h. The same sources give the same bytes. Environment:
SESAME_BUILD_DIR     a build folder whose _sesame.abi3.so and sesame are packed as they are, instead of compiling
SESAME_CMAKE_FLAGS   further arguments of cmake, as -DSESAME_PCRE2=ON
SOURCE_DATE_EPOCH    time of the files in the wheel, in seconds since 1970"""

import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import option_types  # noqa: E402

HERE = Path(__file__).resolve().parent.parent  # python/
ROOT = HERE.parent
MINIMUM = (3, 11)


def _check_python():
    if sys.version_info < MINIMUM or sys.implementation.name != "cpython":
        sys.exit("sesame needs CPython %d.%d or later; this is %s %d.%d"
                 % (*MINIMUM, sys.implementation.name, *sys.version_info[:2]))


def _version():
    text = (ROOT / "include/sesame/base.h").read_text()
    return re.search(r'#define SES_VERSION "([0-9.]+)"', text).group(1)


def _tag():
    return "cp%d%d-abi3-%s" % (*MINIMUM, re.sub(r"[-.]", "_", sysconfig.get_platform()))


# ---- the programs ----


def _ready(build):
    """A build folder with the extension and the command."""
    for name in ("_sesame.abi3.so", "sesame"):
        if not (build / name).exists():
            sys.exit(f"sesame: {build / name} does not exist: SESAME_BUILD_DIR must name a folder in which the targets "
                     "sesame-python and sesame-bin were built")
    return build


def _compile():
    """Configures and builds extension and command with the library inside; returns the build folder. Only libraries that
    every system has are linked: unusual regular expressions and compressed input need -DSESAME_PCRE2=ON and
    -DSESAME_PACKED=ON."""
    if ready := os.environ.get("SESAME_BUILD_DIR"):
        return _ready(ROOT / ready)
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        sys.exit(f"sesame: no Python.h in {include}: install the headers of Python (Debian: python3-dev)")
    if not shutil.which("cmake"):
        sys.exit("sesame: cmake is not installed; it compiles the library")
    build = ROOT / "build" / "wheel"
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DSESAME_PYTHON=ON",
                 f"-DSESAME_PYTHON_INCLUDE={include}", "-DSESAME_PCRE2=OFF", "-DSESAME_PACKED=OFF"]
    subprocess.run(configure + shlex.split(os.environ.get("SESAME_CMAKE_FLAGS", "")), check=True, stdout=sys.stderr)
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 2)
    subprocess.run(["cmake", "--build", str(build), "--parallel", jobs, "--target", "sesame-python", "sesame-bin"],
                   check=True, stdout=sys.stderr)
    return build


def _stripped(file):
    """The bytes of a program without its symbol table."""
    if not shutil.which("strip"):
        return file.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / file.name
        if subprocess.run(["strip", "-s", "-o", str(target), str(file)], check=False).returncode:
            return file.read_bytes()
        return target.read_bytes()


# ---- the wheel ----


def _metadata():
    text = [
        "Metadata-Version: 2.1",
        "Name: sesame",
        f"Version: {_version()}",
        "Summary: BERT and friends, computed by a C library: pipelines, sentence vectors, tokenizers, training",
        "Requires-Python: >=%d.%d" % MINIMUM,
        "License-File: LICENSE",
        "Provides-Extra: sklearn",
        "Requires-Dist: scikit-learn>=1.6; extra == 'sklearn'",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "docs/PYTHON.md").read_text() if (ROOT / "docs/PYTHON.md").exists() else "",
    ]
    return "\n".join(text)


def _info_files(dist_info):
    wheel = f"Wheel-Version: 1.0\nGenerator: sesame_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    return {
        f"{dist_info}/METADATA": _metadata().encode(),
        f"{dist_info}/WHEEL": wheel.encode(),
        f"{dist_info}/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{dist_info}/entry_points.txt": b"[console_scripts]\nsesame = sesame.__main__:main\n",
    }


def _record(files, name):
    rows = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*rows, f"{name},,"]) + "\n"


def _write_wheel(directory, files):
    dist_info = f"sesame-{_version()}.dist-info"
    files = {**files, **_info_files(dist_info)}
    record = f"{dist_info}/RECORD"
    files[record] = _record(files, record).encode()
    name = f"sesame-{_version()}-{_tag()}.whl"
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800))[:6]  # zip: from 1980
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path in _PROGRAMS else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=6)
    target = Path(directory) / name
    part = target.with_suffix(".part")
    part.write_bytes(memory.getvalue())
    part.replace(target)
    return name


_PROGRAMS = {"sesame/_sesame.abi3.so": "_sesame.abi3.so", "sesame/bin/sesame": "sesame"}


def _shared_files():
    """Bundled models and task files, where the command and the library look for them."""
    files = sorted(p for folder in ("models", "tasks") for p in (ROOT / folder).rglob("*") if p.is_file())
    return {"sesame/" + p.relative_to(ROOT).as_posix(): p.read_bytes() for p in files}


def _package_files():
    package = HERE / "sesame"
    files = sorted(p for p in package.rglob("*") if p.suffix in (".py", ".pyi") or p.name == "py.typed")
    return {p.relative_to(HERE).as_posix(): p.read_bytes() for p in files}


# ---- hooks of PEP 517 and PEP 660 ----


def get_requires_for_build_wheel(config_settings=None):
    _check_python()
    return []


def get_requires_for_build_editable(config_settings=None):
    _check_python()
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _check_python()
    dist_info = f"sesame-{_version()}.dist-info"
    for path, data in _info_files(dist_info).items():
        target = Path(metadata_directory) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return dist_info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _check_python()
    build = _compile()
    files = {path: _stripped(build / name) for path, name in _PROGRAMS.items()}
    files["sesame/_options.pyi"] = option_types.text_of(str(build / "sesame")).encode()
    return _write_wheel(wheel_directory, {**_package_files(), **files, **_shared_files()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A package that uses the sources in place: a .pth file, and the programs beside them."""
    _check_python()
    build = _compile().resolve()
    for path, name in _PROGRAMS.items():
        target = HERE / path
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(build / name)
    (HERE / "sesame/_options.pyi").write_text(option_types.text_of(str(build / "sesame")))
    return _write_wheel(wheel_directory, {"sesame.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("sesame has no source distribution of its own: the package is built in the source tree of "
                       "Sesame, with pip install ./python")


if __name__ == "__main__":  # sesame_build.py DIRECTORY: writes the wheel there
    directory = sys.argv[1] if len(sys.argv) > 1 else "."
    os.makedirs(directory, exist_ok=True)
    print(os.path.join(directory, build_wheel(directory)))
