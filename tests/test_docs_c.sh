#!/bin/sh
# The C examples of the documents and of sesame.h compile; the program of docs/FEATURES.md has at most 15 lines and prints the label.
set -u
build=${1-build}
cc=${CC-cc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
that() { if eval "$2"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $1"; fi; }
if ! command -v "$cc" >/dev/null 2>&1; then
    echo "skipped: no C compiler"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
for doc in README.md docs/*.md; do
    awk -v out="$tmp/$(basename "$doc" .md)" '
        /^```/ { if (file) { close(file); file = "" } else if ($0 == "```c") file = out "-" ++n ".c"; next }
        file { print >file }' "$doc"
done
sed -n 's/^ \* \{4\}//p' include/sesame/sesame.h >"$tmp/sesame-h.c"
for example in "$tmp"/*.c; do
    [ -e "$example" ] || continue
    grep -q 'int main' "$example" || continue # a fragment
    if "$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iinclude "$example"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $(basename "$example")"
    fi
done
that 'FEATURES.md has 15 lines of C' '[ "$(wc -l <"$tmp/FEATURES-1.c")" -le 15 ]'
if [ -d models ] && [ -e "$build/libsesame.so" ] && ! grep -qs '^SESAME_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    lib=$(cd "$build" && pwd)
    that 'the program of docs/FEATURES.md links' \
        '"$cc" -std=c11 -Iinclude -o "$tmp/readme" "$tmp/FEATURES-1.c" "$lib/libsesame.so" -Wl,-rpath,"$lib"'
    that 'it classifies' 'SESAME_MODELS=models "$tmp/readme" | grep -q "^positive 0\.99"'
else
    skipped=2
fi
printf '%d passed, %d failed%s\n' $passed $failed "$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ $failed -eq 0 ]
