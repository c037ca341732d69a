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

# several labels: the separator is detected and named, or given
labels() { # labels FILE WANT OPTION...: the notice about the labels
    file=$1 notice=$2
    shift 2
    gives 0 "$tmp/$file" --task multi_label "$@"
    err_has "$notice"
}
printf 'text,labels\na,billing|delivery\nb,delivery\nc,"x, y|billing"\n' >"$tmp/bar.csv"
labels bar.csv 'labels are separated by "|"; 3 labels: billing, delivery, x, y'
printf 'text,labels\na,billing; delivery\nb,delivery\n' >"$tmp/semicolon.csv"
labels semicolon.csv 'labels are separated by ";"; 2 labels: billing, delivery'
labels semicolon.csv 'labels are separated by "|"; 2 labels: billing; delivery, delivery' --label-separator '|'
printf 'text,labels\na,"billing,delivery"\nb,\n' >"$tmp/comma.csv"
labels comma.csv 'labels are separated by ","; 2 labels: billing, delivery'
printf 'text,labels\na,"[""x, y"", ""z""]"\nb,[]\nc,"[3]"\n' >"$tmp/array.csv"
labels array.csv 'labels are JSON arrays; 3 labels: 3, x, y, z'
printf '{"text":"a","labels":["x, y","z"]}\n{"text":"b","labels":[]}\n' >"$tmp/array.jsonl"
labels array.jsonl 'labels are JSON arrays; 2 labels: x, y, z'
printf '{"text":"a","labels":["x","y"]}\n{"text":"b","labels":"z, w"}\n' >"$tmp/string.jsonl"
labels string.jsonl 'labels are JSON arrays; 3 labels: x, y, z, w; "," is in 1 row, too: --label-separator chooses'
printf 'text,labels\na,"[""x"", ""y""]"\nb,"[""x"\n' >"$tmp/open.csv"
gives 3 "$tmp/open.csv" --task multi_label
err_has 'line 3: the labels ["x are not a JSON array'
{ # one stray separator among many rows
    printf 'text\tlabels\n0\tin|out,billing\n'
    awk 'BEGIN { for (i = 1; i <= 200; i++) printf "%d\tbilling,delivery\n", i }'
} >"$tmp/stray.tsv"
labels stray.tsv 'labels are separated by ","; 3 labels: billing, delivery, in|out; "|" is in 1 row, too'
printf 'text\tlabels\n1\ta|b,c\n2\td|b,c\n3\ta|d,a\n' >"$tmp/fewest.tsv"
labels fewest.tsv 'labels are separated by "|"; 4 labels: a, b,c, d, d,a; "," is in 3 rows, too'
printf 'text\tlabels\n1\tb,a|x\n2\tb,a|y\n3\tc,a|z\n' >"$tmp/tie.tsv" # "|": 5 labels, ",": 5; the first one
labels tie.tsv 'labels are separated by "|"; 5 labels: '
printf 'text\tlabels\n1\tp,a|b\n2\ta|b,p\n3\tp,a|b\n' >"$tmp/comma2.tsv" # "|": 4 labels, ",": 2
labels comma2.tsv 'labels are separated by ","; 2 labels: a|b, p; "|" is in 3 rows, too'
printf 'text\tlabels\n1\ta,b,\n2\tb, \n3\ta\n' >"$tmp/trailing.tsv"
labels trailing.tsv 'labels are separated by ","; 2 labels: a, b'
printf 'text\tlabels\n1\ta,,b\n' >"$tmp/gap.tsv"
gives 3 "$tmp/gap.tsv" --task multi_label
err_has 'line 2: empty label'
printf 'text,labels\na,x\nb,y\n' >"$tmp/single.csv"
labels single.csv 'no row has several labels'
gives 0 "$tmp/bar.csv" "$tmp/semicolon.csv" --task multi_label --json # the second file has its own separator
out_has '"label_separator": ";"'
printf "text,labels\na,\"['x', 'y']\"\n" >"$tmp/python.csv"
gives 3 "$tmp/python.csv" --task multi_label
err_has "['x', 'y'] are not a JSON array"
gives 2 "$tmp/bar.csv" --task classify --label-separator '|'
err_has 'label-separator applies to the task multi_label'

# JSON lines in place of CoNLL columns; a brace may be a token
printf '{"text": "Ada in Rome", "entities": [[0, 3, "PER"]]}\n' >"$tmp/e.jsonl"
printf '{"tokens": ["Ada", "in"], "ner_tags": ["B-PER", "O"]}\n' >"$tmp/t.jsonl"
printf '[ {"tokens": ["Ada"], "ner_tags": [1]} ]\n' >"$tmp/l.json"
for file in e.jsonl t.jsonl l.json; do
    gives 3 "$tmp/$file" --task tag
    err_has 'line 1: JSON, expected CoNLL columns'
done
printf '{ O\n"a" O\n} O\n[ O\n: O\n' >"$tmp/brace.conll"
gives 0 "$tmp/brace.conll" --task tag
out_has 'Tokens        5'

# gaps: all of them, not the first; --skip-bad drops the rows
printf 'text,label\na,x\n,x\nb,y\n" ",y\nc,\nd,x,z\ne,X\n,y\nf,\n' >"$tmp/gaps.csv"
gives 3 "$tmp/gaps.csv"
out_has 'Gaps          3 rows: empty text (lines 3, 5, 9)'
out_has '2 rows: empty label (lines 6, 10)'
out_has '1 row: 3 fields, the header has 2 (line 7)'
out_has 'Examples      6, task'
err_has 'gaps.csv: line 6: empty label; 3 rows have errors (see Gaps), --skip-bad drops them'
err_has '"X" and "x" are different labels: they differ only in case or blanks'
gives 0 "$tmp/gaps.csv" --skip-bad
out_has 'Examples      3, task'
gives 3 "$tmp/gaps.csv" --json
out_has '{"what": "empty label", "rows": 2, "error": true, "lines": [6, 10]}'
printf 'text,label\na,1\nb,two\nc,3\n' >"$tmp/numbers.csv"
gives 3 "$tmp/numbers.csv" --task regress
out_has 'is not a finite number (line 3)'
printf 'text,label\ncaf\351,x\nb,y\n' >"$tmp/latin1.csv"
gives 3 "$tmp/latin1.csv"
err_has 'line 2: byte 4: invalid UTF-8'
gives 0 "$tmp/latin1.csv" --encoding latin1
out_has 'café'
for bad in 1 2 3; do # a byte without a meaning in each data row
    rows() { # rows FORMAT: with @ where a row has its bad byte
        for row in 1 2 3; do
            if [ $row -eq $bad ]; then text='a@b'; else text=ab; fi
            # shellcheck disable=SC2059 # a format
            printf "$1" "$text" "label$((row % 2))"
        done | tr '@' '\201'
    }
    { printf 'text\tlabel\n' && rows '%s\t%s\n'; } >"$tmp/byte.tsv"
    { printf 'text,label\n' && rows '%s,%s\n'; } >"$tmp/byte.csv"
    rows '{"text":"%s","label":"%s"}\n' >"$tmp/byte.jsonl"
    for file in byte.tsv byte.csv byte.jsonl; do
        line=$((bad + 1)) byte=2
        if [ $file = byte.jsonl ]; then line=$bad byte=11; fi
        for task in '' '--task classify'; do
            # shellcheck disable=SC2086 # an option with its value
            gives 3 $task --encoding windows-1252 "$tmp/$file"
            err_has "$file: line $line: byte $byte: a byte that this encoding does not use"
        done
    done
done
printf 'text\tlabel\nab\000c\tx\n' >"$tmp/nul.tsv"
gives 3 --encoding latin1 "$tmp/nul.tsv"
err_has 'nul.tsv: line 2: byte 3: NUL'
printf 'text,label\na,b,c\nd,x\ne,y\n' >"$tmp/first.csv" # the first row is the bad one
gives 0 --skip-bad "$tmp/first.csv"
out_has 'Examples      2, task classification'

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
