#!/bin/sh
# Another prefix, or another choice of vector levels, compiles only the files that depend on it.
set -u
. tests/counted.sh

# configure OPTION...: and keeps the flags of every target, which its objects depend on
configure() {
    CMAKE_C_COMPILER_LAUNCHER='' cmake -S . -B "$tmp/build" "$@" >"$tmp/out" 2>"$tmp/err"
    rm -rf "$tmp/flags"
    for flags in "$tmp"/build/CMakeFiles/*.dir/flags.make "$tmp"/build/tests/CMakeFiles/*.dir/flags.make; do
        target=$(basename "$(dirname "$flags")" .dir)
        mkdir -p "$tmp/flags" && cp "$flags" "$tmp/flags/$target"
    done
}
# changed FOLDER: targets that exist in both and whose flags differ
changed() { diff -rq "$1" "$tmp/flags" | sed -n 's/^Files .* and .*\/\([^ ]*\) differ$/\1/p'; }

if ! configure -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$tmp/one" -G 'Unix Makefiles'; then
    that 'configures' false
    counted
    exit
fi
that 'flags of the library are there' '[ -s "$tmp/flags/sesame-objects" ] && [ -s "$tmp/flags/sesame-cli" ]'
cp -r "$tmp/flags" "$tmp/before"
cp "$tmp/build/configured.c" "$tmp/configured.c"

configure -DCMAKE_INSTALL_PREFIX="$tmp/two"
that 'another prefix changes no flags' '[ -z "$(changed "$tmp/before")" ] || { changed "$tmp/before" >"$tmp/out"; false; }'
that 'it changes one file' '! cmp -s "$tmp/configured.c" "$tmp/build/configured.c" && grep -q "$tmp/two/share/sesame/models" "$tmp/build/configured.c"'
touch -r "$tmp/build/configured.c" "$tmp/time"
configure -DCMAKE_INSTALL_PREFIX="$tmp/two"
that 'the same prefix writes nothing' '[ ! "$tmp/build/configured.c" -nt "$tmp/time" ]'

configure -DSESAME_LEVELS=native
that 'fewer levels change the flags of their users only' \
    '[ -z "$(changed "$tmp/before" | grep -Ev "^(sesame-(levels|avx.*|neon.*)|test_attention|test_gemm)$")" ] || { changed "$tmp/before" >"$tmp/out"; false; }'
if grep -q '^flags.* avx512dq' /proc/cpuinfo 2>/dev/null; then
    that 'a machine with AVX-512 compiles no kernels for AVX2' \
        'grep -q SES_WITHOUT_AVX2 "$tmp/flags/sesame-levels" && ! grep -q kernel "$tmp/build/CMakeFiles/sesame-avx2.dir/build.make"'
else
    skipped=$((skipped + 1))
fi
configure -DSESAME_LEVELS=all
that 'all levels again' '[ -z "$(changed "$tmp/before")" ]'
cmake -S . -B "$tmp/build" -DSESAME_LEVELS=sse >"$tmp/out" 2>"$tmp/err"
that 'an unknown choice is refused' '[ $? -ne 0 ] && grep -q "expected all or native" "$tmp/err"'
counted
