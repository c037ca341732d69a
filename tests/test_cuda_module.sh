#!/bin/sh
# The CUDA module is found in its folders, and a module of another version is refused with one line.
set -u
. tests/counted.sh

fake=$build/fake-cuda
if [ ! -e "$fake/current/sesame-cuda.so" ]; then
    skipped=$((skipped + 1))
    counted
    exit
fi
unset SESAME_CUDA_MODULE SESAME_DEVICE
mkdir -p "$tmp/bin"
cp "$build/sesame" "$tmp/bin/command" # "sesame" is a folder below
sesame=$tmp/bin/command

# fails MODULE TEXT: opening the GPU with this module fails with a line that has TEXT
fails() {
    SESAME_CUDA_MODULE=$1 "$sesame" selftest --device cuda >"$tmp/out" 2>"$tmp/err"
    [ $? -ne 0 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -qF "$2" "$tmp/err" || { cat "$tmp/err"; false; }
}
module_of() { "$1" doctor --json --quick | sed -n 's/^ *"module": "\{0,1\}\([^"]*\)"\{0,1\},$/\1/p'; }

if [ "$(module_of "$sesame")" = null ]; then
    that 'no module: the message names the package' 'fails "" "install the package sesame-cuda"'
    that 'no module: doctor names the package' '"$sesame" doctor --quick | grep -q "^CUDA module .*not found: install"'
else # one is installed on this machine
    skipped=$((skipped + 2))
fi
that 'the driver is reported' '"$sesame" doctor --quick | grep -q "^NVIDIA driver"'
that 'the CPU needs no module' '"$sesame" --version >"$tmp/out"'
that 'a file that does not exist' 'fails "$tmp/none.so" "$tmp/none.so: cannot open shared object file"'
echo text >"$tmp/text.so"
that 'a file that is not a library' 'fails "$tmp/text.so" "$tmp/text.so: file too short"'
that 'another library' 'fails "$build/fake-nvml/libnvidia-ml.so.1" "not a CUDA module of sesame"'
that 'a module of another version' 'fails "$fake/other/sesame-cuda.so" "built for another sesame (0.0.9-0123456789ab, this is "'
that 'doctor shows it' 'SESAME_CUDA_MODULE=$fake/other/sesame-cuda.so "$sesame" doctor --quick | tr -s "\n " "  " | grep -q "built for another"'
that 'a module of this version' 'fails "$fake/current/sesame-cuda.so" "the simulated GPU computes nothing"'
that 'GPUs are numbered from 0' 'SESAME_CUDA_MODULE=$fake/current/sesame-cuda.so "$sesame" selftest --device cuda:1 2>&1 | grep -q "no such GPU"'
that 'doctor lists its GPU' 'SESAME_CUDA_MODULE=$fake/current/sesame-cuda.so "$sesame" doctor --quick | grep -q "^GPU 0 .*Simulated GPU"'

# Folders that are searched, the last one first: each module is preferred to the earlier ones.
lib=$(sed -n 's/^CMAKE_INSTALL_LIBDIR:[A-Z]*=//p' "$build/CMakeCache.txt")
for folder in "$lib/sesame" bin/sesame bin; do
    mkdir -p "$tmp/$folder"
    cp "$fake/current/sesame-cuda.so" "$tmp/$folder/"
    that "found in $folder" '[ "$(realpath "$(module_of "$sesame")")" = "$(realpath "$tmp/$folder/sesame-cuda.so")" ]'
done
cp "$fake/other/sesame-cuda.so" "$tmp/$folder/"
that 'a module that does not fit is not replaced by another' 'fails "" "built for another sesame"'
that 'SESAME_CUDA_MODULE is preferred' 'fails "$fake/current/sesame-cuda.so" "computes nothing"'
ln -s "$sesame" "$tmp/link"
that 'found from a link to the command' '"$tmp/link" doctor --json --quick | grep -q "\"module\": \"$tmp/bin/"'

# The hash of the interface covers every header that it includes.
cc=$(command -v cc || command -v gcc || command -v clang)
"$cc" -MM -Iinclude -Isrc src/tensor/cuda_module.h | tr -d '\\\n' | tr ' ' '\n' | grep / | sort >"$tmp/included"
sed -n '/^set(cuda_abi_headers/,/)/p' cmake/cuda_abi.cmake | tr ' )' '\n\n' | grep / | sort >"$tmp/listed"
that 'the ABI covers its headers' 'diff "$tmp/included" "$tmp/listed"'
that 'no GPU code in the library and command' \
    '! nm "$build/libsesame.a" "$build/sesame" 2>/dev/null | grep -qiE " [a-z] (cuda[A-Z]|ses_cuda_(stream|new|gemm))"'
if [ -e "$build/sesame-cuda.so" ]; then
    that 'the module exports one symbol' '[ "$(nm -D --defined-only "$build/sesame-cuda.so" | cut -d" " -f3)" = ses_cuda_entry ]'
    that 'the module fits the command' '"$build/sesame" doctor --json --quick | grep -q "\"module_error\": null"'
else
    skipped=$((skipped + 2))
fi
counted
