#!/bin/sh
# Shards of corpora and of vector indexes merge to the files of one process.
# Usage: sh tests/test_shard_merge.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS TMPDIR
. tests/counted.sh

run() # CODE COMMAND...
{
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    that "exit $code, not $want: sesame $*" '[ $code -eq $want ]'
}
reports() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "not on stderr: $1"; fi; }

# documents between blank lines, some repeated in other shards; JSON lines
awk 'BEGIN { for (i = 0; i < 900; i++) { printf "The bell rings %d times.\nWe count them, %d.\r\n", i % 131, i % 5
    if (i % 3 == 0) print i % 2 ? "" : " \t"; if (i % 50 == 0) print "\n\n" } }' >"$tmp/a.txt"
awk 'BEGIN { for (i = 0; i < 300; i++) printf "{\"text\": \"The bell rings %d times.\\nAnd zqx %d.\"}\n", i % 91, i % 7 }' >"$tmp/b.jsonl"
printf 'one document only' >"$tmp/c.txt"
: >"$tmp/empty.txt"

corpus() # OPTIONS...: a corpus of one process against merged shards
{
    rm -f "$tmp"/corpus* "$tmp"/part*
    run 0 corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/corpus" "$@"
    for n in 1 2 3 7 40; do
        i=0
        parts=
        while [ $i -lt $n ]; do
            "$sesame" corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/part$n.$i" --shard $i/$n "$@" \
                >"$tmp/out" 2>"$tmp/err" || fail "corpus --shard $i/$n"
            parts="$parts $tmp/part$n.$i"
            i=$((i + 1))
        done
        # shellcheck disable=SC2086  # a list of names
        run 0 corpus merge -o "$tmp/corpus$n" $parts
        that "$n shards of a corpus differ: $*" 'cmp -s "$tmp/corpus" "$tmp/corpus$n"'
    done
}
corpus --held-out 10% --label en "$tmp/a.txt" "$tmp/b.jsonl" "$tmp/a.txt" "$tmp/empty.txt"
corpus --keep-duplicates --line-ends "$tmp/a.txt" "$tmp/c.txt"
corpus --split-sentences "$tmp/c.txt"
corpus "$tmp/a.txt" "$tmp/b.jsonl"

# standard input, a file and a pipe
rm -f "$tmp"/corpus* "$tmp"/part*
run 0 corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/corpus" "$tmp/a.txt"
"$sesame" corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/part0" --shard 0/2 <"$tmp/a.txt" || fail 'a file as standard input'
cat "$tmp/a.txt" | "$sesame" corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/part1" --shard 1/2 || fail 'a pipe'
run 0 corpus merge -o "$tmp/merged" "$tmp/part0" "$tmp/part1"
that "shards of standard input" 'cmp -s "$tmp/corpus" "$tmp/merged"'
rm -f "$tmp"/part*
corpus "$tmp/a.txt" "$tmp/b.jsonl"

# what merge refuses
run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.2" "$tmp/part3.1"
reports "expected 1/3"
run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.1"
reports "expected 0/2"
mv "$tmp/part3.1.done" "$tmp/save"
run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.1" "$tmp/part3.2"
reports "the shard is not complete"
run 0 corpus build --tokenizer tests/pipelines/bert-mask --split-sentences -o "$tmp/part3.other" --shard 1/3 "$tmp/a.txt" "$tmp/b.jsonl"
run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.other" "$tmp/part3.2"
reports "its settings or input differ"
for change in 's/"cut_documents": \[\]/"cut_documents": [1]/' 's/"records": /&1/' 's/"shard": 1/"shard": 0/'; do
    sed "$change" "$tmp/save" >"$tmp/part3.1.done"
    run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.1" "$tmp/part3.2"
    reports "part3.1.done: damaged: its checksum"
done
mv "$tmp/save" "$tmp/part3.1.done"
cp "$tmp/part3.1" "$tmp/save" # the same size
printf 'X' | dd of="$tmp/part3.1" bs=1 seek=9 conv=notrunc 2>/dev/null
run 3 corpus merge -o "$tmp/x" "$tmp/part3.0" "$tmp/part3.1" "$tmp/part3.2"
reports "part3.1: not the file that part3.1.done describes"
mv "$tmp/save" "$tmp/part3.1"
run 2 corpus merge "$tmp/part3.0"
run 3 corpus merge -o "$tmp/corpus" "$tmp/part2.0" "$tmp/part2.1"
reports "exists"
that "nothing is left" '[ ! -e "$tmp/x" ] && [ ! -e "$tmp/x.part" ]'
run 0 corpus build --tokenizer tests/pipelines/bert-mask -o "$tmp/part3.1" --shard 1/3 "$tmp/a.txt" "$tmp/b.jsonl"
reports "already complete"
echo more >>"$tmp/b.jsonl"
run 3 corpus build --tokenizer tests/pipelines/bert-mask -o "$tmp/part3.1" --shard 1/3 "$tmp/a.txt" "$tmp/b.jsonl"
reports "another input"

# a shard that was interrupted continues
awk 'BEGIN { for (i = 0; i < 700000; i++) printf "The bell rings %d times, %d.\n\n", i, i % 7 }' >"$tmp/long.txt"
build="corpus build -q --tokenizer tests/pipelines/bert-mask --threads 1 --shard 1/2 $tmp/long.txt"
# shellcheck disable=SC2086
run 0 $build -o "$tmp/whole"
for wait in 0.05 0.2; do
    # shellcheck disable=SC2086
    "$sesame" $build -o "$tmp/killed" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    sleep $wait
    [ $wait = 0.05 ] && kill -INT $pid 2>/dev/null || kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
# shellcheck disable=SC2086
run 0 $build -o "$tmp/killed"
that "an interrupted shard of a corpus" 'cmp -s "$tmp/whole" "$tmp/killed" && [ -e "$tmp/killed.done" ]'
# Killed after the file, before its marker: the file is its own, and is made again. A foreign file is not.
mv "$tmp/killed.done" "$tmp/killed.progress"
# shellcheck disable=SC2086
run 0 $build -o "$tmp/killed"
that "a shard without its marker" 'cmp -s "$tmp/whole" "$tmp/killed" && [ -e "$tmp/killed.done" ] && [ ! -e "$tmp/killed.progress" ]'
rm "$tmp/killed.done"
# shellcheck disable=SC2086
run 3 $build -o "$tmp/killed"
that "a foreign file stays" 'cmp -s "$tmp/whole" "$tmp/killed" && [ ! -e "$tmp/killed.progress" ]'

# indexes: numbers of lines and rows continue over the shards
awk 'BEGIN { for (i = 0; i < 400; i++) printf "The bell rings %d times.\n%s", i % 131, i % 9 ? "" : "  \n" }' >"$tmp/i.txt"
awk 'BEGIN { print "id,text"; for (i = 0; i < 300; i++) printf "%d,\"The bell\nrings %d times.\"\n", i, i }' >"$tmp/i.csv"
index() # FILE OPTIONS...
{
    rm -f "$tmp"/index* "$tmp"/vec*
    run 0 index -q -m tests/pipelines/bert-label -o "$tmp/index" "$@"
    for n in 1 2 3 7; do
        i=0
        parts=
        while [ $i -lt $n ]; do
            "$sesame" index -q -m tests/pipelines/bert-label -o "$tmp/vec$n.$i" --shard $i/$n "$@" >"$tmp/out" 2>"$tmp/err" ||
                fail "index --shard $i/$n"
            parts="$parts $tmp/vec$n.$i"
            i=$((i + 1))
        done
        # shellcheck disable=SC2086
        run 0 index -q --merge -o "$tmp/index$n" $parts
        that "$n shards of an index differ: $*" 'cmp -s "$tmp/index" "$tmp/index$n"'
    done
}
index "$tmp/i.txt"
index "$tmp/i.csv" --column text --dtype int8
index "$tmp/c.txt"
index "$tmp/i.txt" --dtype int8
run 0 index -m tests/pipelines/bert-label --dtype int8 -o "$tmp/index3" "$tmp/i.txt"
that "the merged index is up to date" 'grep -q "up to date" "$tmp/out"'
run 0 index -m tests/pipelines/bert-label --dtype int8 -o "$tmp/vec3.1" --shard 1/3 "$tmp/i.txt"
reports "already complete"
run 3 index --merge -o "$tmp/index3" "$tmp/vec3.0" "$tmp/vec3.1" "$tmp/vec3.2"
reports "already exists"
run 3 index --merge -o "$tmp/x" "$tmp/vec3.0" "$tmp/vec3.2" "$tmp/vec3.1"
reports "expected 1/3"
run 3 index --merge -o "$tmp/x" "$tmp/part2.0" "$tmp/part2.1"
reports "not a shard of"
run 2 index --shard 0/2 "$tmp/i.txt"
reports "needs -o INDEX"
run 2 index "$tmp/i.txt" "$tmp/c.txt"

counted
