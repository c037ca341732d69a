#!/bin/sh
# --shard: parts that concatenate to the output of one process, resumable output, completion markers.
# Usage: sh tests/test_shard.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS TMPDIR
. tests/counted.sh
shards="1 2 3 7"

run() # CODE COMMAND...
{
    want=$1
    shift
    "$sesame" "$@" <"${in:-/dev/null}" >"$tmp/out" 2>"$tmp/err"
    code=$?
    that "exit $code, not $want: sesame $*" '[ $code -eq $want ]'
}
reports() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "not on stderr: $1"; fi; }
gone() { for f; do that "$f is left" "[ ! -e '$f' ]"; done; }

# The parts of every number of shards, concatenated, are the output of one process; of some also with --to.
equal() # COMMAND...
{
    "$sesame" "$@" -q <"${in:-/dev/null}" >"$tmp/whole" 2>"$tmp/err" || fail "sesame $*"
    that "no output: sesame $*" '[ -s "$tmp/whole" ]'
    for n in $shards; do
        i=0
        : >"$tmp/parts"
        while [ $i -lt "$n" ]; do
            if [ "$n" -eq 3 ]; then
                rm -f "$tmp/part" "$tmp/part.done"
                "$sesame" "$@" -q --shard $i/3 --to "$tmp/part" <"${in:-/dev/null}" 2>"$tmp/err" || fail "--shard $i/3: sesame $*"
                that "no marker: sesame $*" '[ -s "$tmp/part.done" ] && [ ! -e "$tmp/part.progress" ] && [ ! -e "$tmp/part.partial" ]'
                cat "$tmp/part" >>"$tmp/parts"
            else
                "$sesame" "$@" -q --shard $i/"$n" <"${in:-/dev/null}" >>"$tmp/parts" 2>"$tmp/err" || fail "--shard $i/$n: sesame $*"
            fi
            i=$((i + 1))
        done
        that "$n shards differ: sesame $*" 'cmp -s "$tmp/whole" "$tmp/parts"'
    done
}

# files of every format: 600 records, several blocks
awk 'BEGIN { for (i = 0; i < 600; i++) printf "The bell rings %d times, we count%s.\n", i * i % 97, i % 7 ? "" : ", ever" }' >"$tmp/a.txt"
awk 'BEGIN { for (i = 0; i < 300; i++) printf "We ring %d bells.\r\n", i; printf "no line end" }' >"$tmp/b.txt"
: >"$tmp/empty"
awk 'BEGIN { print "id,text,note"; for (i = 0; i < 400; i++) printf "%d,\"The bell\nrings %d times, \"\"so\"\".\",x\n", i, i }' >"$tmp/a.csv"
awk 'BEGIN { print "id\ttext"; for (i = 0; i < 400; i++) printf "%d\tThe \"bell rings %d times.\n", i, i }' >"$tmp/a.tsv"
awk 'BEGIN { for (i = 0; i < 300; i++) printf "{\"text\": \"The bell rings %d times.\", \"label\": %d}\n", i, i }' >"$tmp/a.jsonl"
label="text-classification -m tests/pipelines/bert-label"

# texts and their formats
equal $label --json -f "$tmp/a.txt"
equal $label -f "$tmp/a.txt" -f "$tmp/empty" -f "$tmp/b.txt" -f "$tmp/b.txt"
equal $label --keep csv -f "$tmp/empty" -f "$tmp/a.txt"
equal $label --keep tsv -f "$tmp/a.txt" -f "$tmp/b.txt"
equal $label --keep --column text "$tmp/a.csv"
equal $label --keep jsonl --column text "$tmp/a.csv" "$tmp/a.csv"
equal $label --keep --column 2 --no-header "$tmp/a.csv"
equal $label --json --column text "$tmp/a.tsv"
equal $label --keep --column text "$tmp/a.tsv"
equal $label --keep --jsonl "$tmp/a.jsonl"
equal $label --keep csv --column text "$tmp/a.jsonl"
equal $label --json --batch-tokens 7 --threads 1 --jsonl "$tmp/a.jsonl"
if gzip -kf "$tmp/a.csv" && "$sesame" --version --verbose | grep -q 'gzip\|zlib'; then
    equal $label --keep --column text "$tmp/a.csv.gz"
else
    skipped=$((skipped + 1))
fi

# standard input: a file, a pipe
in=$tmp/a.txt
equal $label --json
equal $label --keep csv -
in=
for i in 0 1 2; do cat "$tmp/a.txt" | "$sesame" $label -q --json --shard $i/3; done >"$tmp/parts"
"$sesame" $label -q --json -f "$tmp/a.txt" >"$tmp/whole"
that "shards of a pipe differ" 'cmp -s "$tmp/whole" "$tmp/parts"'

# other tasks; results that show or use line numbers
equal token-classification --json -m tests/pipelines/bert-tag -f "$tmp/a.txt"
equal token-classification -m tests/pipelines/bert-tag --column text "$tmp/a.csv"
awk -v t="$(printf '\t')" 'BEGIN { for (i = 0; i < 200; i++) printf "Who rings%sThe bell rings %d times.\n", t, i }' >"$tmp/pairs"
equal question-answering -m tests/pipelines/bert-qa -f "$tmp/pairs"
equal similarity --json -m tests/pipelines/bert-label -f "$tmp/pairs"
equal next-sentence --keep tsv --column 1 --no-header --text-pair "We count." -m tests/pipelines/bert-nsp "$tmp/a.tsv"
equal feature-extraction --json -m tests/pipelines/bert-label -f "$tmp/b.txt"
equal text-generation --json --do-sample --max-new-tokens 3 -f "$tmp/b.txt"
equal embed -m tests/pipelines/bert-label --format tsv -f "$tmp/a.txt"
equal embed -m tests/pipelines/bert-label --format jsonl -f "$tmp/a.txt"
equal embed -m tests/pipelines/bert-label --format f32 -f "$tmp/a.txt"
equal features -m tests/pipelines/bert-label --pool words --format tsv -f "$tmp/a.txt" -f "$tmp/b.txt"
equal features -m tests/pipelines/bert-label --pool tokens --format f32 --column text "$tmp/a.tsv"
sed 's/bell/[MASK]/' "$tmp/a.txt" >"$tmp/mask.txt"
equal fill-mask --json --do-sample -f "$tmp/mask.txt"
equal fill-mask --top-k 2 -f "$tmp/mask.txt"
run 0 embed -q -m tests/pipelines/bert-label --format npy -f "$tmp/a.txt"
tail -c +129 "$tmp/out" >"$tmp/raw"
run 0 embed -q -m tests/pipelines/bert-label --format f32 -f "$tmp/a.txt"
that "f32 is npy without its header" 'cmp -s "$tmp/out" "$tmp/raw"'

# failed lines keep their numbers
awk 'BEGIN { for (i = 1; i <= 300; i++) print i % 100 ? "{\"text\": \"The bell rings.\"}" : "{\"text\": 7}" }' >"$tmp/bad.jsonl"
"$sesame" $label -q --json --keep-going --jsonl "$tmp/bad.jsonl" >"$tmp/whole" 2>"$tmp/err"
: >"$tmp/parts"
for i in 0 1; do
    run 1 $label -q --json --keep-going --jsonl "$tmp/bad.jsonl" --shard $i/2 --to "$tmp/f$i"
    cat "$tmp/f$i" >>"$tmp/parts"
done
that "failed lines differ" 'cmp -s "$tmp/whole" "$tmp/parts" && grep -q "line 300" "$tmp/parts"'
run 1 $label --json --keep-going --jsonl "$tmp/bad.jsonl" --shard 1/2 --to "$tmp/f1"
reports "already complete"
run 3 $label --json --jsonl "$tmp/bad.jsonl" --shard 1/2
reports "bad.jsonl: line 200: "

# predict: tables and other formats
equal predict tests/pipelines/bert-label --task classify "$tmp/a.csv"
equal predict tests/pipelines/bert-label --task classify --keep "$tmp/a.csv"
equal predict tests/pipelines/bert-label --task classify --keep csv "$tmp/a.jsonl"
awk 'BEGIN { print "text\tn"; for (i = 0; i < 900; i++) printf "The bell rings %d times.\t%d\n", i, i }' >"$tmp/in.tsv"
"$sesame" predict -q tests/pipelines/bert-label --task classify --text text --keep csv "$tmp/in.tsv" >"$tmp/all"
for i in 0 1 2; do
    "$sesame" predict -q tests/pipelines/bert-label --task classify --text text --keep csv --shard $i/3 - <"$tmp/in.tsv"
done >"$tmp/parts"
that "predict: shards of standard input" '[ -s "$tmp/all" ] && cmp -s "$tmp/all" "$tmp/parts"'

awk 'BEGIN { for (i = 0; i < 300; i++) printf "The\tO\nbell\tO\nrings\tO\n%d\tO\n\n", i }' >"$tmp/tags.txt"
equal predict tests/pipelines/bert-tag --task tag "$tmp/tags.txt"
printf 'text\nThe bell rings.\n' >"$tmp/short.csv"
equal predict tests/pipelines/bert-label --task classify --keep "$tmp/short.csv"

# usage
for bad in 3/3 0/0 -1/2 x 1/2/3 1; do
    run 2 $label -f "$tmp/a.txt" --shard=$bad
    reports "--shard"
done
run 2 $label --shard 0/2 "a text"
reports "--shard divides files"
run 2 embed -m tests/pipelines/bert-label --format npy --shard 0/2 -f "$tmp/a.txt"
reports "use --format f32"

# the marker
rm -f "$tmp"/part*
run 0 $label --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/part"
"$build/json_valid" <"$tmp/part.done" >/dev/null || fail "part.done is not JSON"
that "marker: sha256" 'grep -q "\"sha256\": \"$(sha256sum <"$tmp/part" | cut -d" " -f1)\"" "$tmp/part.done"'
that "marker: bytes" 'grep -q "\"bytes\": $(wc -c <"$tmp/part" | tr -d " ")," "$tmp/part.done"'
that "marker: records" 'grep -q "\"records\": $(wc -l <"$tmp/part" | tr -d " ")," "$tmp/part.done"'
cp "$tmp/part" "$tmp/copy"
run 0 $label --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/part" --threads 1 --batch-tokens 9
reports "already complete"
run 3 $label --json --top-k 2 -f "$tmp/a.txt" --shard 1/2 --to "$tmp/part"
reports "other settings (top-k 1, now 2)"
printf 'X' | dd of="$tmp/part" bs=1 seek=5 conv=notrunc 2>/dev/null # the same size
run 3 $label --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/part"
reports "part: not the file that part.done describes; use --overwrite"
cp "$tmp/copy" "$tmp/part"
run 3 $label --json -f "$tmp/b.txt" --shard 1/2 --to "$tmp/part"
reports "another input"
that "a refused command changes nothing" 'cmp -s "$tmp/part" "$tmp/copy"'
# Models that differ anywhere in a file are different ones.
cp -r tests/pipelines/bert-label "$tmp/model"
head -c 300000 /dev/zero >"$tmp/model/more.bin"
run 0 text-classification -m "$tmp/model" --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/other"
printf x | dd of="$tmp/model/more.bin" bs=1 seek=150000 conv=notrunc 2>/dev/null
run 3 text-classification -m "$tmp/model" --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/other"
reports "another model"
run 0 $label --json --top-k 2 -f "$tmp/a.txt" --shard 1/2 --to "$tmp/part" --overwrite
that "--overwrite" '! cmp -s "$tmp/part" "$tmp/copy"'
echo x >"$tmp/foreign"
run 3 $label --json -f "$tmp/a.txt" --shard 1/2 --to "$tmp/foreign"
reports "already exists"
that "a foreign file stays" '[ "$(cat "$tmp/foreign")" = x ]'
gone "$tmp/foreign.partial" "$tmp/foreign.progress"

# kill -9 in the middle, and the same command again: the same bytes. A pipe slows the input of the second half down.
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "Line %d: the bell rings %d times, we count them by the river.\n", i, i * i % 97 }' >"$tmp/long.txt"
slow="$label --json --threads 1 -f $tmp/long.txt --shard 0/1"
"$sesame" $slow -q >"$tmp/whole"
kills=0
for try in 1 2 3 4 5 6; do
    "$sesame" $slow -q --to "$tmp/long" 2>"$tmp/err" &
    pid=$!
    waited=0
    before=$(sed -n 's/.*"next_block": \([0-9]*\).*/\1/p' "$tmp/long.progress" 2>/dev/null)
    while kill -0 $pid 2>/dev/null && [ $waited -lt 600 ]; do
        now=$(sed -n 's/.*"next_block": \([0-9]*\).*/\1/p' "$tmp/long.progress" 2>/dev/null)
        [ -n "$now" ] && [ "$now" != "$before" ] && break
        sleep 0.05
        waited=$((waited + 1))
    done
    [ $try -eq 2 ] && kill -INT $pid 2>/dev/null || kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null && break
    kills=$((kills + 1))
    if [ $try -eq 1 ] && [ -e "$tmp/long.progress" ]; then # while a partial result exists
        run 3 $slow --top-k 2 --to "$tmp/long"
        reports "the partial result has other settings (top-k 1, now 2)"
        printf 'X' >"$tmp/damage"
        cp "$tmp/long.partial" "$tmp/save"
        dd if="$tmp/damage" of="$tmp/long.partial" bs=1 seek=10 conv=notrunc 2>/dev/null
        run 3 $slow --to "$tmp/long"
        reports "damaged"
        cp "$tmp/save" "$tmp/long.partial"
        cp "$tmp/long.progress" "$tmp/save"
        for field in next_block records bytes failed shards first_block end_block; do # one more
            awk -v key="\"$field\":" '$1 == key { sub(/[0-9]+/, $2 + 1) } { print }' "$tmp/save" >"$tmp/long.progress"
            that "$field was changed" '! cmp -s "$tmp/save" "$tmp/long.progress"'
            run 3 $slow --to "$tmp/long"
            reports "long.progress: damaged: its checksum is not that of its members; --overwrite starts over"
        done
        cp "$tmp/save" "$tmp/long.progress"
    fi
done
[ -e "$tmp/long.done" ] || "$sesame" $slow -q --to "$tmp/long"
that "no kill came in the middle" '[ $kills -gt 0 ]'
that "the bytes after $kills interruptions" 'cmp -s "$tmp/whole" "$tmp/long"'
gone "$tmp/long.partial" "$tmp/long.progress"

# killed between the new name and the marker: before and after the old name is removed
cp "$tmp/long.done" "$tmp/long.progress"
rm "$tmp/long.done"
ln "$tmp/long" "$tmp/long.partial"
run 0 $slow --to "$tmp/long"
that "one name" '[ -e "$tmp/long.done" ] && [ ! -e "$tmp/long.partial" ] && cmp -s "$tmp/whole" "$tmp/long"'
cp "$tmp/long.done" "$tmp/long.progress"
rm "$tmp/long.done"
run 0 $slow --to "$tmp/long"
that "the marker is written" '[ -e "$tmp/long.done" ] && [ ! -e "$tmp/long.progress" ] && cmp -s "$tmp/whole" "$tmp/long"'

# a full disk: reported, and the same command continues
if command -v prlimit >/dev/null; then
    half=$(($(wc -c <"$tmp/whole") / 2))
    rm "$tmp/long" "$tmp/long.done"
    (
        trap '' XFSZ
        prlimit --fsize=$half "$sesame" $slow --to "$tmp/long" >"$tmp/out" 2>"$tmp/err"
    )
    code=$?
    that "a full disk is an error" '[ $code -gt 0 ] && [ $code -lt 128 ]'
    reports "long.partial: cannot be written"
    reports "the same command continues"
    run 0 $slow --to "$tmp/long"
    reports "continues at block"
    that "the bytes after a full disk" 'cmp -s "$tmp/whole" "$tmp/long"'
else
    skipped=$((skipped + 1))
fi

# several processes without --overwrite: one result is kept, the others fail
for how in "embed -q -m tests/pipelines/bert-label --format f32 -f $tmp/a.txt" "embed -q -m tests/pipelines/bert-label --format f32 -f $tmp/a.txt --shard 0/1"; do
    for try in 1 2 3 4 5; do
        rm -f "$tmp"/once*
        pids=
        for i in 1 2 3; do
            "$sesame" $how --to "$tmp/once" >/dev/null 2>"$tmp/err$i" &
            pids="$pids $!"
        done
        won=0
        for pid in $pids; do wait "$pid" && won=$((won + 1)); done
        cat "$tmp"/err[123] >"$tmp/err"
        that "$won of 3 processes succeeded: $how" '[ $won -eq 1 ] || grep -q "already complete" "$tmp/err"'
    done
done

counted
