#!/bin/sh
# One changed bit in any file of Sesame's own formats is refused, or changes nothing that is read.
# Usage: sh tests/test_damage.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS TMPDIR
. tests/counted.sh

# Changes bit BIT of byte AT of FILE.
flip() # FILE AT BIT
{
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059 # the byte is the format
    printf "\\$(printf %03o $((byte ^ (1 << $3))))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# N positions, spread over FILE. A command that reads it must fail without a crash, or print the same.
n=24
check() # FILE COMMAND...
{
    file=$1
    shift
    "$@" >"$tmp/good" 2>"$tmp/err" </dev/null || fail "$* (intact)"
    cp "$file" "$tmp/intact"
    size=$(wc -c <"$file" | tr -d ' ')
    refused=0 i=0
    while [ $i -lt $n ]; do
        at=$(((2 * i + 1) * size / (2 * n)))
        cp "$tmp/intact" "$file"
        flip "$file" $at $((i % 8))
        "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
        code=$?
        that "$file, byte $at, bit $((i % 8)): exit $code: $*" '[ $code -eq 3 ] || { [ $code -eq 0 ] && cmp -s "$tmp/good" "$tmp/out"; }'
        [ $code -eq 3 ] && refused=$((refused + 1))
        i=$((i + 1))
    done
    cp "$tmp/intact" "$file"
    that "$file: only $refused of $n are refused" '[ $refused -ge $((n - 3)) ]'
}

model=tests/pipelines/bert-label
awk 'BEGIN { for (i = 0; i < 200; i++) printf "the cat %d sat on the mat %d .\n", i % 7, i % 5 }' >"$tmp/lines"
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 40; i++) printf "good film %d\tpos\nbad film %d\tneg\n", i, i }' >"$tmp/labels.tsv"
head -n 20 "$tmp/lines" >"$tmp/few"
made() { "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "$*"; }

made corpus build -q --tokenizer tests/pipelines/bert-mask -o "$tmp/c.ids" "$tmp/lines"
check "$tmp/c.ids" "$sesame" corpus info "$tmp/c.ids"
made index -q -m $model -o "$tmp/i.idx" "$tmp/lines"
check "$tmp/i.idx" "$sesame" search -q -m $model -o "$tmp/i.idx" --file "$tmp/lines" "the cat 3"
made quantize $model "$tmp/int8" --dtype int8
check "$tmp/int8/model.sesame-int8" "$sesame" text-classification -q -m "$tmp/int8" -f "$tmp/few"
made vectors train -q -o "$tmp/vectors" --format safetensors --epochs 2 --dim 8 --min-count 1 "$tmp/lines"
made vectors train -q -o "$tmp/paragraphs" --model pv-dbow --words text --epochs 2 --dim 8 --min-count 1 "$tmp/lines"
made topics train -q -o "$tmp/topics" --topics 3 "$tmp/lines"
made finetune -q --method nb --task classify --train "$tmp/labels.tsv" -o "$tmp/nb"
check "$tmp/paragraphs" "$sesame" vectors infer "$tmp/paragraphs" "$tmp/few"
for part in config.json model.safetensors vocab.txt; do
    check "$tmp/vectors/$part" "$sesame" vectors nearest "$tmp/vectors" cat
    check "$tmp/topics/$part" "$sesame" topics infer "$tmp/topics" "$tmp/few"
    check "$tmp/nb/$part" "$sesame" text-classification -q -m "$tmp/nb" -f "$tmp/few"
done

# Checkpoints: a round, then a continued training.
for name in skipgram glove pv-dbow; do
    train="vectors train -q --model $name --words text --epochs 1000 --dim 16 --min-count 1 --threads 1 $tmp/lines"
    # shellcheck disable=SC2086
    for seconds in 0.2 0.4 0.8 0.1; do
        rm -f "$tmp/v" "$tmp/v.checkpoint"
        timeout -s INT $seconds "$sesame" $train -o "$tmp/v" >/dev/null 2>&1
        [ -e "$tmp/v.checkpoint" ] && break
    done
    if [ ! -e "$tmp/v.checkpoint" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    cp "$tmp/v.checkpoint" "$tmp/saved"
    # shellcheck disable=SC2016
    check "$tmp/saved" sh -c 'cp "$1" "$2.checkpoint" && rm -f "$2" && shift 2 && "$@"' - "$tmp/saved" "$tmp/v" "$sesame" $train -o "$tmp/v" --resume
done

# The format of safetensors folders of older versions has no checksums: they can be read.
sed '/"files"/,/^  },/d; /"checksum"/d; s/"hidden_size": 8,/"hidden_size": 8/' "$tmp/vectors/config.json" >"$tmp/out" && cp "$tmp/out" "$tmp/vectors/config.json"
that "a folder of an older version" '"$sesame" vectors nearest "$tmp/vectors" cat >"$tmp/out" 2>"$tmp/err"'

counted
