#!/bin/sh
# The command and the libraries are built with the protections of cmake/hardening.cmake, where the compiler has them.
set -u
. tests/counted.sh

has() { grep -q "^SESAME_HAS_$1:INTERNAL=1" "$build/CMakeCache.txt"; }
if ! command -v readelf >/dev/null || [ "$(uname -s)" != Linux ]; then
    skipped=$((skipped + 1))
    counted
    exit
fi

shared=$(find "$build" -maxdepth 1 -name 'libsesame.so.*.*')
modules=$(find "$build" -maxdepth 1 -name 'sesame-cuda.so' -o -maxdepth 1 -name '_sesame.abi3.so')
for file in "$build/sesame" $shared $modules; do
    name=$(basename "$file")
    readelf -lW "$file" >"$tmp/segments"
    readelf -dW "$file" >"$tmp/dynamic"
    that "$name: position-independent" 'readelf -hW "$file" | grep -q "Type: *DYN"'
    that "$name: addresses of functions are read-only" 'grep -q GNU_RELRO "$tmp/segments" && grep -q BIND_NOW "$tmp/dynamic"'
    that "$name: the stack is not executable" 'grep GNU_STACK "$tmp/segments" | grep -q "RW " '
    that "$name: no segment is writable and executable" '! grep LOAD "$tmp/segments" | grep -q "RWE"'
    that "$name: code needs no relocation" '! grep -q TEXTREL "$tmp/dynamic"'
    that "$name: libraries are not searched in other folders" '! grep -qE "RPATH|RUNPATH" "$tmp/dynamic"'
    that "$name: return addresses are guarded" 'readelf --dyn-syms -W "$file" | grep -q __stack_chk_fail'
done
that 'the command is an executable, not a library' 'readelf -dW "$build/sesame" | grep -q "Flags:.*PIE"'

# Objects of the library carry the mark of -fcf-protection. A program does if the C library's start files do, too.
if has fcf_protection && [ "$(uname -m)" = x86_64 ]; then
    readelf -nW "$build/libsesame.a" >"$tmp/notes" 2>/dev/null
    that 'every object: indirect branches and returns are protected' \
        '[ "$(grep -c "^File: " "$tmp/notes")" = "$(grep -c "x86 feature: IBT, SHSTK" "$tmp/notes")" ]'
    start=$(cc -print-file-name=crti.o)
    if readelf -nW "$start" 2>/dev/null | grep -q IBT; then
        that 'the command: indirect branches and returns are protected' 'readelf -nW "$build/sesame" | grep -q "IBT, SHSTK"'
    else
        skipped=$((skipped + 1))
    fi
else
    skipped=$((skipped + 1))
fi

if grep -q '^SESAME_SANITIZE:STRING=.' "$build/CMakeCache.txt" || grep -q '^CMAKE_BUILD_TYPE:STRING=Debug' "$build/CMakeCache.txt"; then
    skipped=$((skipped + 1))
else
    that 'the C library checks buffer sizes' 'readelf --dyn-syms -W "$build/sesame" | grep -q "__[a-z]*_chk@"'
    that 'the highest level that is supported' '! has FORTIFY_3 || grep -q "D_FORTIFY_SOURCE=3" "$build/compile_commands.json"'
    that 'in every source file' '[ "$(grep -c "\"command\"" "$build/compile_commands.json")" = "$(grep -c "D_FORTIFY_SOURCE=" "$build/compile_commands.json")" ]'
fi
counted
