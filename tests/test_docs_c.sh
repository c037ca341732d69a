#!/bin/sh
# The C examples of the documents and of sesame.h compile.
set -u
cc=${CC-cc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
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
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
