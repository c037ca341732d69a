#!/bin/sh
# `make install` gives a tree that a program can be built and linked against, and that reads well.
set -u
. tests/counted.sh

cmake --install "$build" --prefix "$tmp/usr" >"$tmp/log" 2>&1 || cat "$tmp/log"
lib=$(find "$tmp/usr" -name libsesame.a)
pc=$(find "$tmp/usr" -name sesame.pc)
that 'the command runs' '"$tmp/usr/bin/sesame" --version | grep -q "^sesame "'
that 'library' '[ -n "$lib" ]'
that 'pkg-config file' '[ -n "$pc" ]'
for header in include/sesame/*.h; do
    that "$header" '[ -f "$tmp/usr/$header" ]'
done
that 'manual' '[ -s "$tmp/usr/share/man/man1/sesame.1" ] && [ -s "$tmp/usr/share/man/man1/sesame-doctor.1" ]'
that 'bash completion' '[ -s "$tmp/usr/share/bash-completion/completions/sesame" ]'
that 'zsh completion' '[ -s "$tmp/usr/share/zsh/site-functions/_sesame" ]'
that 'fish completion' '[ -s "$tmp/usr/share/fish/vendor_completions.d/sesame.fish" ]'
if [ -d models ]; then
    that 'models' '[ "$("$tmp/usr/bin/sesame" models | wc -l)" -gt 1 ] && [ -s "$tmp/usr/share/sesame/models/sesame-small/config.json" ]'
else
    skipped=$((skipped + 1))
fi
that 'nothing is outside the prefix' '! grep -q "Installing: /usr" "$tmp/log"'

# Every public header stands alone in C, and is in sesame.h, which C++ takes too.
cc=$(command -v cc || command -v gcc || command -v clang)
for header in include/sesame/*.h; do
    echo "#include <sesame/$(basename "$header")>" >"$tmp/one.c"
    that "$header alone" '"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$tmp/usr/include" -fsyntax-only "$tmp/one.c"'
done
for header in include/sesame/*.h; do
    name=$(basename "$header")
    [ "$name" = sesame.h ] || that "$name is in sesame.h" 'grep -q "\"sesame/$name\"" include/sesame/sesame.h'
done
cxx=$(command -v c++ || command -v clang++)
if [ -n "$cxx" ]; then
    printf '#include <sesame/sesame.h>\nint main() { return ses_fail(nullptr, SES_OK, "x"); }\n' >"$tmp/one.cc"
    that 'sesame.h in C++' '"$cxx" -std=c++17 -Wall -Werror -I"$tmp/usr/include" -fsyntax-only "$tmp/one.cc"'
else
    skipped=$((skipped + 1))
fi

cat >"$tmp/use.c" <<'C'
#include <sesame/sesame.h>
#include <stdio.h>
int main(void)
{
    ses_err e = { 0 };
    ses_fail(&e, SES_EARG, "works");
    return puts(e.msg) < 0;
}
C
if grep -qs '^SESAME_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    skipped=$((skipped + 1))
else
    if command -v pkg-config >/dev/null 2>&1; then
        flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=pcfiledir="$(dirname "$pc")" --cflags --libs sesame)
    else
        flags="-I$tmp/usr/include -L$(dirname "$lib") -lsesame -lm -pthread"
    fi
    # shellcheck disable=SC2086  # several flags
    that 'a program links' '"$cc" "$tmp/use.c" -o "$tmp/use" $flags && [ "$("$tmp/use")" = works ]'
fi

counted
