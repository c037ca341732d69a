#!/bin/sh
# The corpus command from outside: packed files, pipes, a killed build, JSON, and what it refuses.
set -u
. tests/counted.sh

gives() {
    want=$1
    shift
    "$sesame" corpus "$@" >"$tmp/out" 2>"$tmp/err" <"$tmp/in"
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame corpus $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }
same() { if cmp -s "$tmp/c" "$1"; then pass; else fail "$1 differs"; fi; }

: >"$tmp/in"
awk 'BEGIN { for (i = 0; i < 4000; i++) { s = "n" i; for (j = 0; j < 3 + i % 7; j++) s = s " word" (i * j) % 97
    print s; if (i % 5 == 4) print "" } }' >"$tmp/text.txt"
"$sesame" train-tokenizer --type wordpiece --vocab-size 300 -o "$tmp/t.json" -q "$tmp/text.txt" || exit 1

gives 0 build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text.txt"
out_has 'Documents     800'
out_has 'Sentences     4,000'
out_has 'Unknown       0 tokens'
gives 3 build --tokenizer "$tmp/t.json" -o "$tmp/c" "$tmp/text.txt"
err_has 'already exists; use --overwrite to replace it'
gives 0 info "$tmp/c" --json
out_has '"documents": 800'
out_has '"unigram_entropy": '
for pack in gzip xz zstd; do
    if ! command -v $pack >/dev/null 2>&1; then
        skipped=$((skipped + 1))
        continue
    fi
    $pack -c "$tmp/text.txt" >"$tmp/packed"
    if "$sesame" --version --verbose | grep -q "texts compressed with $pack.*: in this build" || {
        [ $pack = zstd ] && "$sesame" --version --verbose | grep -q 'Zstandard.*: in this build'
    }; then
        gives 0 build --tokenizer "$tmp/t.json" --held-out 0.1 -o "$tmp/c.$pack" "$tmp/packed"
        same "$tmp/c.$pack"
        "$sesame" train-tokenizer --type wordpiece --vocab-size 300 -o "$tmp/t.$pack" -q "$tmp/packed"
        if cmp -s "$tmp/t.json" "$tmp/t.$pack"; then pass; else fail "a tokenizer of the packed text differs"; fi
        head -c 3000 "$tmp/packed" >"$tmp/short"
        gives 3 build --tokenizer "$tmp/t.json" -o "$tmp/short-file" "$tmp/short"
        err_has 'truncated'
    else
        gives 3 build --tokenizer "$tmp/t.json" -o "$tmp/short-file" "$tmp/packed"
        err_has "decompress it first ($pack -dc)"
        "$sesame" train-tokenizer --type wordpiece -o "$tmp/short-file" "$tmp/packed" 2>"$tmp/err" && fail 'packed text was learned from'
        err_has "decompress it first ($pack -dc)"
    fi
done
cp "$tmp/text.txt" "$tmp/in"
gives 0 build --tokenizer "$tmp/t.json" --held-out 0.1 -o "$tmp/piped"
same "$tmp/piped"

# A stopped build reports its state and keeps its files.
mkfifo "$tmp/fifo"
"$sesame" corpus build --tokenizer "$tmp/t.json" -o "$tmp/stopped" "$tmp/fifo" >"$tmp/out" 2>"$tmp/err" &
pid=$!
exec 3>"$tmp/fifo"
kill -TERM $pid
cat "$tmp/text.txt" >&3
exec 3>&-
wait $pid
if [ $? -eq 143 ]; then pass; else fail 'exit code of a stopped build'; fi
err_has 'run the same command to resume'
if [ -e "$tmp/stopped.part" ] && [ ! -e "$tmp/stopped" ]; then pass; else fail 'no C.part'; fi

: >"$tmp/in"
gives 3 build --tokenizer "$tmp/t.json" -o "$tmp/none" "$tmp/in"
err_has 'no text in'
if [ ! -e "$tmp/none" ] && [ ! -e "$tmp/none.part" ]; then pass; else fail 'an empty corpus leaves nothing'; fi
head -c 2000 "$tmp/c" >"$tmp/short"
gives 3 info "$tmp/short"
err_has 'the file is truncated'
gives 3 info "$tmp/text.txt"
err_has 'not a corpus'
gives 2 info
gives 2 build "$tmp/text.txt"
err_has 'build: expected --tokenizer and --output'
gives 2 build --tokenizer "$tmp/t.json" -o "$tmp/x" --held-out 2 "$tmp/text.txt"
err_has 'expected a number from 0 to 1'
gives 2 make
err_has 'expected build, merge or info'

counted
