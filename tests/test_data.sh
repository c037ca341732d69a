#!/bin/sh
# The data command: counts, labels, JSON, folders, pipes, and errors.
set -u
. tests/counted.sh

gives() {
    want=$1
    shift
    "$sesame" data "$@" >"$tmp/out" 2>"$tmp/err" <"$tmp/in"
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame data $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }
err_empty() { if [ ! -s "$tmp/err" ]; then pass; else fail 'stderr is not empty'; fi; }

: >"$tmp/in"
mkdir "$tmp/sst2"
printf 'sentence\tlabel\na good film\t1\nnot so\t0\na good film\t0\n' >"$tmp/sst2/train.tsv"
printf 'sentence\tlabel\nfine\t1\n' >"$tmp/sst2/dev.tsv"

gives 0 --list
out_has 'conll2003'
err_empty
gives 0 --list --json
out_has '"name": "superglue-copa"'

gives 0 "$tmp/sst2" --task sst2
out_has 'train.tsv (train)'
out_has 'dev.tsv (dev)'
out_has 'Examples      3, task classification'
out_has 'Duplicates    1; with another label: 1'
out_has 'line 2: positive'
err_empty
gives 0 "$tmp/sst2" --task sst2 --json -n 1
out_has '{"name": "negative", "value": "0", "count": 2}'
out_has '"first": [{"line": 2, "text": "a good film", "label": "positive"}]'
if [ "$(wc -l <"$tmp/out")" -eq 2 ]; then pass; else fail 'one line of JSON a file'; fi

printf 'x,1.5\n"y, z",3\n' >"$tmp/in"
gives 0 - --format csv --no-header --task regress --text 1 --label 2
out_has 'Targets       1.5 to 3, mean 2.25, standard deviation 0.75'
out_has 'Words         mean 1.5, min 1, median 1.5, 95th percentile 2, max 2'
printf 'EU B-ORG\nsaid O\n\nx O\n' >"$tmp/ner.txt"
gives 0 "$tmp/ner.txt" --task tag
out_has 'EU/B-ORG said'
printf '{"text":"a","label":["x","y"]}\n{"text":"b","label":[]}\n' >"$tmp/m.jsonl"
gives 0 "$tmp/m.jsonl" --task multi_label
out_has 'label: y'

gives 2
err_has 'expected a FILE'
gives 2 "$tmp/sst2" --task sst3
err_has 'unknown task "sst3"'
gives 2 "$tmp/sst2"
err_has 'is a folder'
gives 0 "$tmp/sst2/train.tsv" --json
out_has '"name": "1"'
gives 3 "$tmp/sst2/train.tsv" --text text
err_has 'no column "text"; available: sentence, label'
gives 3 "$tmp/sst2/dev.tsv" "$tmp/sst2/train.tsv" --text sentence
err_has 'train.tsv: line 3: unknown label "0"; expected one of: 1'
gives 3 "$tmp/nothing.tsv"
err_has 'No such file'
printf 'sentence\tlabel\nonly one\n' >"$tmp/ragged.tsv"
gives 3 "$tmp/ragged.tsv" --task sst2
err_has 'line 2: 1 field, the header has 2'
mkdir "$tmp/none"
gives 3 "$tmp/none" --task sst2
err_has 'no file of sst2 found; expected train.tsv, dev.tsv'
gives 2 "$tmp/ner.txt" --delimiter ab
err_has 'one ASCII character'

counted
