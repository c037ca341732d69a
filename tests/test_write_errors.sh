#!/bin/sh
# Full disks, closed pipes and input that is truncated while it is read: one message, the documented exit code, no
# incomplete file under its final name.
# Usage: sh tests/test_write_errors.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
. tests/counted.sh
label=tests/pipelines/bert-label
mask=tests/pipelines/bert-mask
awk 'BEGIN { print "id,text,label"; for (i = 1; i <= 3000; i++) printf "%d,\"The bell, %d.\",%d\n", i, i, i % 2 }' >"$tmp/rows.csv"
printf '{"text": "The bell rings."}\n{"text": "Nobody counts."}\n' >"$tmp/rows.jsonl"
full='cannot be written: No space left on device; free disk space and run the command again'

# ---- standard output: exit code 1, one line ----

to_full() # COMMAND...
{
    "$sesame" "$@" >/dev/full 2>"$tmp/err"
    code=$?
    that "exit $code, not 1: sesame $*" '[ $code -eq 1 ]'
    that "one line: sesame $*" '[ "$(cat "$tmp/err")" = "sesame: standard output: $full" ]'
}
if [ -w /dev/full ]; then
    to_full --version
    to_full --help
    to_full help tokenize
    to_full man
    to_full completion bash
    to_full models
    to_full doctor
    to_full info $label
    to_full info $label --json
    to_full data --list
    to_full data --task classify "$tmp/rows.csv"
    to_full tokenize -m $label "The bell"
    to_full tokenize -m $label -f "$tmp/rows.csv"
    to_full detokenize -m $label 7 8 9
    to_full perplexity "The bell rings in the tower."
    to_full text-classification -q -m $label "The bell"
    to_full text-classification -q -m $label --json -f "$tmp/rows.csv"
    to_full text-classification -q -m $label --column text --keep "$tmp/rows.csv"
    to_full text-classification -q -m $label --jsonl --keep csv "$tmp/rows.jsonl"
    to_full token-classification -q -m tests/pipelines/bert-tag "The bell"
    to_full question-answering -q -m tests/pipelines/bert-qa "Who?" "The keeper eats."
    to_full fill-mask -q -m $mask "The [MASK] rings."
    to_full embed -q -m $mask "The bell"
    to_full embed -q -m $mask --format npy -f "$tmp/rows.csv"
    to_full text-generation -q --max-new-tokens 4 "The bell"
    to_full text-generation -q --max-new-tokens 4 --stream "The bell"
    to_full predict -q $label --task classify "$tmp/rows.csv"
    to_full predict -q $label --task classify --keep "$tmp/rows.csv"
    to_full eval -q $label --task classify --labels 0=neutral,1=entailment "$tmp/rows.csv"
    to_full search -q -m $mask -f "$tmp/rows.jsonl" bell
    to_full search -q -m $mask -f "$tmp/rows.jsonl" bell --json
    to_full index -m $mask "$tmp/rows.jsonl"
else
    skipped=$((skipped + 1))
fi

# ---- files: exit code 3, one line, nothing left; a limit of N blocks per file, N grows until the command succeeds ----

limited() # OUTPUT COMMAND...: fails with every small limit, then succeeds
{
    out=$1 fails=0 blocks=1
    shift
    while [ $blocks -le 1048576 ]; do
        rm -rf "$out"
        (ulimit -f $blocks; exec "$sesame" "$@") >"$tmp/out" 2>"$tmp/err"
        code=$?
        [ $code -eq 0 ] && break
        fails=$((fails + 1))
        that "exit $code, not 3, with $blocks blocks: sesame $*" '[ $code -eq 3 ]'
        that "message with $blocks blocks: sesame $*" 'grep -q "^sesame: .*: cannot be written: File too large$" "$tmp/err"'
        that "one line with $blocks blocks: sesame $*" '[ "$(wc -l <"$tmp/err")" -eq 1 ]'
        that "no file with $blocks blocks: sesame $*" '[ ! -e "$out" ]'
        that "nothing else with $blocks blocks: sesame $*" '! find "$tmp" -name ".sesame-*" | grep -q .'
        blocks=$((blocks * 3 / 2 + 1))
    done
    that "fails, then succeeds: sesame $*" '[ $fails -gt 0 ] && [ -e "$out" ]'
}
limited "$tmp/to.csv" text-classification -q -m $label --column text --keep --to "$tmp/to.csv" "$tmp/rows.csv"
limited "$tmp/to.jsonl" text-classification -q -m $label --json --to "$tmp/to.jsonl" -f "$tmp/rows.csv"
limited "$tmp/to.npy" embed -q -m $mask --format npy --to "$tmp/to.npy" -f "$tmp/rows.csv"
limited "$tmp/predicted.csv" predict -q $label --task classify --keep --to "$tmp/predicted.csv" "$tmp/rows.csv"
limited "$tmp/rows.csv.sesame-index" index -q -m $mask "$tmp/rows.csv"
limited "$tmp/searched" search -q -m $mask -o "$tmp/searched" -f "$tmp/rows.csv" bell
limited "$tmp/t.json" train-tokenizer -q --type wordpiece --vocab-size 300 -o "$tmp/t.json" "$tmp/rows.csv"
limited "$tmp/half" convert -q $label "$tmp/half" --dtype f16
limited "$tmp/int8" quantize -q $label "$tmp/int8" --dtype int8

# an existing file survives
cp "$tmp/to.csv" "$tmp/before"
(ulimit -f 8; exec "$sesame" text-classification -q -m $label --column text --keep --to "$tmp/to.csv" --overwrite "$tmp/rows.csv") \
    >"$tmp/out" 2>"$tmp/err"
that "an existing file is not changed" 'cmp -s "$tmp/to.csv" "$tmp/before"'

# a corpus: the work so far is kept, and the same command continues
(ulimit -f 8; exec "$sesame" corpus build -q --format text --tokenizer "$tmp/t.json" -o "$tmp/corpus" "$tmp/rows.csv") >"$tmp/out" 2>"$tmp/err"
code=$?
that "corpus build: exit $code, not 3" '[ $code -eq 3 ]'
that "corpus build: message" 'grep -q "^sesame: .*: cannot be written: File too large$" "$tmp/err"'
that "corpus build: no corpus" '[ ! -e "$tmp/corpus" ]'
"$sesame" corpus build -q --format text --tokenizer "$tmp/t.json" -o "$tmp/corpus" "$tmp/rows.csv" >"$tmp/out" 2>"$tmp/err"
code=$?
that "corpus build again: exit $code" '[ $code -eq 0 ] && [ -e "$tmp/corpus" ]'

# ---- training: exit code 3, the last line is the error, no incomplete file or model; the same command then succeeds ----

limited_run() # OUTPUT COMMAND...
{
    out=$1 fails=0 blocks=1
    shift
    while [ $blocks -le 1048576 ]; do
        rm -rf "$out"
        (ulimit -f $blocks; exec "$sesame" "$@" -o "$out") >"$tmp/out" 2>"$tmp/err"
        code=$?
        [ $code -eq 0 ] && break
        fails=$((fails + 1))
        that "exit $code, not 3, with $blocks blocks: sesame $*" '[ $code -eq 3 ]'
        that "message with $blocks blocks: sesame $*" 'tail -n 1 "$tmp/err" | grep -q "^sesame: .*: cannot be written: File too large$"'
        that "no other error with $blocks blocks: sesame $*" '! sed "\$d" "$tmp/err" | grep -qv "^sesame: the log is incomplete: "'
        that "no incomplete file with $blocks blocks: sesame $*" '! find "$out" -name ".sesame-*" | grep -q .'
        that "no model with $blocks blocks: sesame $*" '[ ! -e "$out/model.safetensors" ]'
        "$sesame" "$@" -o "$out" >"$tmp/out" 2>"$tmp/err"
        code=$?
        that "exit $code, not 0, again after $blocks blocks: sesame $*" '[ $code -eq 0 ] && [ -e "$out/model.safetensors" ]'
        blocks=$((blocks * 4))
    done
    that "fails, then succeeds: sesame $*" '[ $fails -gt 0 ] && [ -e "$out/model.safetensors" ]'
}
awk 'BEGIN { for (i = 0; i < 20; i++) printf "The bell rings %d\t%d\n", i, i % 2 }' >"$tmp/train.tsv"
limited_run "$tmp/tuned" finetune -q -m $mask --task classify --no-header --text 1 --label 2 --train "$tmp/train.tsv" --steps 4 \
    --save-every 2
"$sesame" corpus build -q --format text --tokenizer $mask -o "$tmp/mask.ids" "$tmp/train.tsv" >"$tmp/out" 2>"$tmp/err"
limited_run "$tmp/pretrained" pretrain -q -m $mask -c "$tmp/mask.ids" -n 16 --steps 4 --save-every 2

# ---- a model that is truncated while it is used ----

cp -r $label "$tmp/truncated"
chmod -R u+w "$tmp/truncated"
{
    echo 'The bell rings.'
    while [ ! -s "$tmp/out" ]; do sleep 0.05; done
    : >"$tmp/truncated/model.safetensors"
    echo 'The keeper counts.'
} | "$sesame" text-classification -m "$tmp/truncated" >"$tmp/out" 2>"$tmp/err"
code=$?
that "a truncated model: exit $code, not 3" '[ $code -eq 3 ]'
that "a truncated model: one line" '[ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q "was truncated" "$tmp/err"'

# ---- closed pipes: SIGPIPE, no message ----

for command in "text-classification -m $label --column text --keep $tmp/rows.csv" "predict $label --task classify $tmp/rows.csv" \
    "tokenize -m $label -f $tmp/rows.csv" "embed -m $mask -f $tmp/rows.csv"; do
    { "$sesame" $command -q 2>"$tmp/err"; echo $? >"$tmp/status"; } | head -n 1 >"$tmp/out"
    that "closed pipe: exit $(cat "$tmp/status"): $command" '[ "$(cat "$tmp/status")" = 141 ]'
    that "closed pipe: a message: $command" '[ ! -s "$tmp/err" ]'
done

# ---- input that is truncated or removed while it is read; the full pipe stops the command until `cat` ----

awk 'BEGIN { print "id,text,label"; for (i = 1; i <= 200000; i++) printf "%d,\"The bell, %d.\",%d\n", i, i, i % 2 }' >"$tmp/big.csv"
for command in "text-classification -m $label --json --column text" "text-classification -m $label --json -f" \
    "predict $label --task classify --text text" "tokenize -m $label -f"; do
    for change in 'truncate -s 400000' 'rm -f'; do
        cp "$tmp/big.csv" "$tmp/short.csv"
        mkfifo "$tmp/fifo"
        { "$sesame" $command "$tmp/short.csv" -q >"$tmp/fifo" 2>"$tmp/err"; echo $? >"$tmp/status"; } &
        { read -r first; $change "$tmp/short.csv"; cat >"$tmp/out"; } <"$tmp/fifo"
        wait
        rm "$tmp/fifo"
        case $change in rm*) want=0 ;; *) want=3 ;; esac
        that "$change: exit $(cat "$tmp/status"), not $want: $command" '[ "$(cat "$tmp/status")" = $want ]'
        [ $want -eq 0 ] && that "$change: silent: $command" '[ ! -s "$tmp/err" ]'
        [ $want -eq 0 ] || that "$change: message: $command" \
            'grep -q "^sesame: .*short.csv: only [0-9]* of [0-9]* bytes: the file was truncated while it was read$" "$tmp/err"'
    done
done
counted
