#!/bin/sh
# The Python package: python/tests with the extension of this build. Skipped without Python 3.11 or its headers.
set -u
build=$(cd "${1-build}" && pwd)
python=${PYTHON-python3}
if [ ! -e "$build/_sesame.abi3.so" ]; then
    echo 'skipped: no headers of Python 3.11 or later when the build was configured'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
if grep -qs '^SESAME_SANITIZE:.*=.*thread' "$build/CMakeCache.txt"; then
    echo 'skipped: Python itself is not instrumented for the thread sanitizer'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/sesame/bin"
cp python/sesame/*.py* python/sesame/py.typed "$tmp/sesame/"
cp "$build/_sesame.abi3.so" "$tmp/sesame/"
ln -s "$build/sesame" "$tmp/sesame/bin/sesame"
"$python" python/backend/option_types.py "$build/sesame" "$tmp/sesame/_options.pyi" || exit 1
if grep -qs '^SESAME_SANITIZE:.*=.*address' "$build/CMakeCache.txt"; then # Python itself frees little at its end
    LD_PRELOAD=$(cc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-} PYTHONMALLOC=malloc
    export LD_PRELOAD ASAN_OPTIONS PYTHONMALLOC
fi
export SESAME_TEST_BUILD="$build" PYTHONPATH="$tmp:$PWD/python/tests" PYTHONDONTWRITEBYTECODE=1
"$python" -X faulthandler -W error::ResourceWarning -m unittest discover -s python/tests >"$tmp/log" 2>&1
code=$?
ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$tmp/log")
failed=$(sed -n 's/^FAILED.*failures=\([0-9]*\).*/\1/p; s/^FAILED.*errors=\([0-9]*\).*/\1/p' "$tmp/log" | head -n 1)
skipped=$(sed -n 's/^[A-Z].*skipped=\([0-9]*\).*/\1/p' "$tmp/log")
[ $code -eq 0 ] || { cat "$tmp/log"; failed=${failed:-1}; }
: "${ran:=0}" "${failed:=0}" "${skipped:=0}"
printf '%d passed, %d failed%s\n' $((ran - failed - skipped)) "$failed" "$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ $code -eq 0 ]
