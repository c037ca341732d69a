#!/bin/sh
# The output folder of convert and quantize: complete or absent, and never removed if another program made it.
# Usage: test_convert_output.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C # the order of ls
export LC_ALL
. tests/counted.sh
from=tests/pipelines/bert-mask
only() { [ "$(ls -A "$1" | tr '\n' ' ')" = "$2" ]; } # FOLDER NAMES

mkdir "$tmp/w"
that 'a new folder' '"$sesame" convert $from "$tmp/w/new/" -q && only "$tmp/w" "new " && [ -s "$tmp/w/new/config.json" ]'
that 'folders above it' '"$sesame" quantize $from "$tmp/w/a/b" --dtype int8 -q && only "$tmp/w/a" "b "'
that 'an empty folder' 'mkdir "$tmp/w/empty" && "$sesame" convert $from "$tmp/w/empty" -q && [ -s "$tmp/w/empty/config.json" ]'
that 'an adapter' '"$sesame" convert tests/fixtures/adapters/bert/adapter "$tmp/w/adapter" --keep-adapter -q && [ -s "$tmp/w/adapter/adapter_model.safetensors" ]'
rm -rf "$tmp/w"
mkdir "$tmp/w"

# Failures after the weights were written: a tokenizer file that cannot be read, a disk that is full.
cp -r $from "$tmp/bad"
rm "$tmp/bad/tokenizer_config.json"
mkdir "$tmp/bad/tokenizer_config.json"
that 'exit 3' '"$sesame" convert "$tmp/bad" "$tmp/w/out" 2>"$tmp/err"; [ $? -eq 3 ]'
that 'no folder remains' 'only "$tmp/w" ""'
that 'a full disk' '(ulimit -f 8; trap "" XFSZ; "$sesame" convert $from "$tmp/w/out" 2>"$tmp/err"; [ $? -eq 3 ]) && only "$tmp/w" ""'
that 'the error gives the name of the folder' 'grep -q "/w/out/model.safetensors: " "$tmp/err" && ! grep -q "[.]tmp" "$tmp/err"'

# Another program creates the folder meanwhile.
i=0
while [ $i -lt 30 ]; do
    "$sesame" convert "$tmp/bad" "$tmp/w/out" 2>/dev/null &
    [ $((i % 3)) -eq 0 ] || sleep 0.00$((i % 10))
    mkdir -p "$tmp/w/out" && echo x >"$tmp/w/out/notes"
    wait
    that 'its file remains' '[ -s "$tmp/w/out/notes" ]'
    rm -rf "$tmp/w/out"
    i=$((i + 1))
done
: >"$tmp/err"
for i in 1 2 3 4 5 6; do
    { "$sesame" convert $from "$tmp/w/out" -q 2>>"$tmp/err" && echo $i >>"$tmp/won"; } &
done
wait
ls -AR "$tmp/w" >"$tmp/out" # shown with a failure
that 'one of six succeeds' '[ "$(wc -l <"$tmp/won")" -eq 1 ]'
that 'its folder is complete' 'only "$tmp/w" "out " && only "$tmp/w/out" "config.json model.safetensors tokenizer.json tokenizer_config.json "'

counted
