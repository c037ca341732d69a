#!/bin/sh
# --keep: rows of the input with their results, as CSV, TSV and JSON lines.
# Usage: sh tests/test_rows.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
. tests/counted.sh
json_valid=$build/json_valid
tab=$(printf '\t')
label="text-classification -q -m tests/pipelines/bert-label"

run() # CODE COMMAND...
{
    want=$1
    shift
    "$sesame" "$@" <"${in:-/dev/null}" >"$tmp/out" 2>"$tmp/err"
    code=$?
    that "exit $code, not $want: sesame $*" '[ $code -eq $want ]'
}
line() { if [ "$(sed -n "$1p" "$tmp/out")" = "$2" ]; then pass; else fail "line $1 is not: $2"; fi; }
lines() { that "lines: not $1" "[ \$(wc -l <'$tmp/out') -eq $1 ]"; }
valid() # every line of the output is JSON
{
    while IFS= read -r one; do printf '%s' "$one" | "$json_valid" >/dev/null || return 1; done <"$tmp/out"
}
reports() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "not on stderr: $1"; fi; }

# the scores, from --json
printf 'The bell rings.\nNobody counts.\n' >"$tmp/plain"
run 0 $label --json -f "$tmp/plain"
score() { sed -n "$1s/.*\"score\": \([0-9.]*\).*/\1/p" "$tmp/plain.out"; }
name() { sed -n "$1s/.*\"label\": \"\([^\"]*\)\".*/\1/p" "$tmp/plain.out"; }
cp "$tmp/out" "$tmp/plain.out"
l1=$(name 1) s1=$(score 1) l2=$(name 2) s2=$(score 2)
that "scores are read" '[ -n "$s1" ] && [ -n "$s2" ] && [ -n "$l1" ]'

# lines of text
run 0 $label --keep csv -f "$tmp/plain"
line 1 "text,label,score"
line 2 "The bell rings.,$l1,$s1"
line 3 "Nobody counts.,$l2,$s2"
run 0 $label --keep -f "$tmp/plain"
line 1 "{\"text\": \"The bell rings.\", \"label\": \"$l1\", \"score\": $s1}"
in=$tmp/plain run 0 $label --keep=tsv
in=
line 2 "The bell rings.$tab$l1$tab$s1"

# CSV: quotes, delimiters and line ends in fields
printf 'id,text,note\n7,The bell rings.,"a ""b"", c"\n8,Nobody counts.,"two\nlines"\n9,Nobody counts.,\n' >"$tmp/a.csv"
run 0 $label --column text --keep "$tmp/a.csv"
line 1 "id,text,note,label,score"
line 2 "7,The bell rings.,\"a \"\"b\"\", c\",$l1,$s1"
line 3 '8,Nobody counts.,"two'
line 4 "lines\",$l2,$s2"
line 5 "9,Nobody counts.,,$l2,$s2"
cp "$tmp/out" "$tmp/kept.csv"
run 0 $label --column text --keep jsonl "$tmp/a.csv"
line 1 "{\"id\": \"7\", \"text\": \"The bell rings.\", \"note\": \"a \\\"b\\\", c\", \"label\": \"$l1\", \"score\": $s1}"
line 2 "{\"id\": \"8\", \"text\": \"Nobody counts.\", \"note\": \"two\\nlines\", \"label\": \"$l2\", \"score\": $s2}"
lines 3
run 3 $label --column text --keep tsv "$tmp/a.csv"
reports "a.csv: line 3: a field contains a tab or a line end"
line 2 "7${tab}The bell rings.${tab}a \"b\", c$tab$l1$tab$s1"
lines 2

# names that exist get a prefix: nothing is replaced
run 0 $label --column text --keep "$tmp/kept.csv"
line 1 "id,text,note,label,score,predicted_label,predicted_score"
line 2 "7,The bell rings.,\"a \"\"b\"\", c\",$l1,$s1,$l1,$s1"
cp "$tmp/out" "$tmp/twice.csv"
run 3 $label --column text --keep "$tmp/twice.csv"
reports 'the input has a column "predicted_label", the name of a result; choose another --result-prefix'
run 0 $label --column text --keep --result-prefix third. "$tmp/twice.csv"
line 1 "id,text,note,label,score,predicted_label,predicted_score,third.label,third.score"
run 3 $label --column text --keep --result-prefix '' "$tmp/kept.csv"
reports 'the input has a column "label"'

# no header, several files, compressed files
printf 'The bell rings.,x\nNobody counts.,y\n' >"$tmp/bare.csv"
run 0 $label --column 1 --no-header --keep "$tmp/bare.csv" "$tmp/bare.csv"
line 1 "The bell rings.,x,$l1,$s1"
lines 4
run 0 $label --column 1 --no-header --keep jsonl "$tmp/bare.csv"
line 1 "{\"1\": \"The bell rings.\", \"2\": \"x\", \"label\": \"$l1\", \"score\": $s1}"
printf 'text,other\nNobody counts.,z\n' >"$tmp/b.csv"
run 3 $label --column text --keep "$tmp/a.csv" "$tmp/b.csv"
reports "b.csv: line 2: the header differs from that of the first file"
"$sesame" --version --verbose >"$tmp/build"
for pack in gzip:gz:gzip xz:xz:xz zstd:zst:Zstandard; do # program, suffix, name in the list of libraries
    program=${pack%%:*} suffix=${pack#*:}
    if command -v $program >/dev/null && grep -q "compressed with ${pack##*:}): in this build" "$tmp/build"; then
        $program -qc <"$tmp/a.csv" >"$tmp/packed.csv.${suffix%:*}"
    else
        skipped=$((skipped + 1))
    fi
done
for file in "$tmp"/packed.csv.*; do
    "$sesame" $label --column text --keep "$file" >"$tmp/out" 2>"$tmp/err"
    that "$file" 'cmp -s "$tmp/out" "$tmp/kept.csv"'
done
printf 'text,note\n' >"$tmp/empty.csv"
run 0 $label --column text --keep --to "$tmp/to.csv" "$tmp/a.csv"
that "--to" 'cmp -s "$tmp/to.csv" "$tmp/kept.csv"'
run 3 $label --column text --keep --to "$tmp/to.csv" "$tmp/a.csv"
reports "already exists; use --overwrite"

# an interrupted command leaves nothing
mkdir "$tmp/killed"
mkfifo "$tmp/fifo"
"$sesame" $label --keep csv -f "$tmp/fifo" --to "$tmp/killed/to.csv" 2>"$tmp/err" &
exec 9>"$tmp/fifo"
echo "The bell rings." >&9
sleep 0.5
kill -TERM $!
wait $! 2>/dev/null
exec 9>&-
that "an interrupted command leaves nothing" '[ -z "$(ls -A "$tmp/killed")" ]'

# JSON lines: fields as they are, to the byte
cat >"$tmp/a.jsonl" <<'END'
{"n": 123456789012345678901234567890, "text": "The bell rings.", "deep": {"b": [1.50, {"a": null}], "a":"\u00e9\/"}}
  { "z" : -0.0,"text":"Nobody counts."  }
"Nobody counts."
END
run 0 $label --jsonl --keep "$tmp/a.jsonl"
line 1 "{\"n\": 123456789012345678901234567890, \"text\": \"The bell rings.\", \"deep\": {\"b\": [1.50, {\"a\": null}], \"a\":\"\\u00e9\\/\"}, \"label\": \"$l1\", \"score\": $s1}"
line 2 "{ \"z\" : -0.0,\"text\":\"Nobody counts.\", \"label\": \"$l2\", \"score\": $s2}"
line 3 "{\"text\": \"Nobody counts.\", \"label\": \"$l2\", \"score\": $s2}"
that "valid JSON lines" valid
cp "$tmp/out" "$tmp/kept.jsonl"
run 0 $label --column text --keep "$tmp/kept.jsonl"
line 1 "{\"n\": 123456789012345678901234567890, \"text\": \"The bell rings.\", \"deep\": {\"b\": [1.50, {\"a\": null}], \"a\":\"\\u00e9\\/\"}, \"label\": \"$l1\", \"score\": $s1, \"predicted_label\": \"$l1\", \"predicted_score\": $s1}"
sed -n 1p "$tmp/a.jsonl" >"$tmp/one.jsonl"
run 0 $label --jsonl --keep csv "$tmp/one.jsonl"
line 1 "n,text,deep,label,score"
line 2 "123456789012345678901234567890,The bell rings.,\"{\"\"b\"\": [1.50, {\"\"a\"\": null}], \"\"a\"\":\"\"\\u00e9\\/\"\"}\",$l1,$s1"
run 3 $label --jsonl --keep csv "$tmp/a.jsonl"
reports 'a.jsonl: line 2: key "z" is not in the first row; use --keep jsonl'
printf '{"text": "Nobody counts."}\n{"label": 1, "text": "x"}\n' >"$tmp/late.jsonl"
run 3 $label --jsonl --keep "$tmp/late.jsonl"
reports 'late.jsonl: line 2: key "label" is the name of a result, but not in the first row'
lines 1
run 0 $label --jsonl --keep --result-prefix p_ "$tmp/late.jsonl"
line 1 "{\"text\": \"Nobody counts.\", \"p_label\": \"$l2\", \"p_score\": $s2}"

# failed rows keep their position and their fields
printf '{"id": 1, "text": "Nobody counts."}\n{"id": 2}\n{"id": 3, "text": "Nobody counts."}\n{"id"\n' >"$tmp/bad.jsonl"
run 1 $label --jsonl --keep --keep-going "$tmp/bad.jsonl"
line 2 "{\"id\": 2, \"error\": \"$tmp/bad.jsonl: line 2: key \\\"text\\\" is missing\"}"
line 3 "{\"id\": 3, \"text\": \"Nobody counts.\", \"label\": \"$l2\", \"score\": $s2}"
lines 4
that "valid JSON lines with errors" valid
run 1 $label --jsonl --keep csv --keep-going "$tmp/bad.jsonl"
line 1 "id,text,label,score,error"
line 2 "1,Nobody counts.,$l2,$s2,"
line 3 "2,,,,\"$tmp/bad.jsonl: line 2: key \"\"text\"\" is missing\""
run 3 $label --jsonl --keep "$tmp/bad.jsonl"
lines 1

# columns that cannot be kept end the run
printf 'a,a\nThe bell rings.,x\nNobody counts.,y\n' >"$tmp/equal.csv"
run 3 $label --column 1 --keep jsonl --keep-going "$tmp/equal.csv"
reports 'equal.csv: line 2: two columns are named "a": JSON lines need different names'
lines 0
printf '{"text": "The bell rings.", "p_label": 1}\n{"text": "Nobody counts.", "p_label": 2}\n' >"$tmp/equal.jsonl"
run 3 $label --jsonl --keep csv --keep-going --result-prefix p_ "$tmp/equal.jsonl"
reports 'the input has a column "p_label", the name of a result'
lines 0

# results of other forms
run 0 $label -k 2 --keep csv -f "$tmp/plain"
line 1 "text,result"
run 0 zero-shot-classification -q -m tests/pipelines/bert-label --candidate-labels a,b --keep csv -f "$tmp/plain"
line 1 "text,labels,scores"
run 0 token-classification -q -m tests/pipelines/bert-tag --keep -f "$tmp/plain"
that "valid JSON lines of tags" valid
printf '{"question": "Who eats?", "context": "The keeper eats.", "k": 1}\n' >"$tmp/qa.jsonl"
run 0 question-answering -q -m tests/pipelines/bert-qa --jsonl --keep csv "$tmp/qa.jsonl"
line 1 "question,context,k,score,start,end,answer"
run 0 embed -q -m tests/pipelines/bert-mask --keep -f "$tmp/plain"
that "valid JSON lines of vectors" valid

# predict: the same rows, in groups
predict="predict -q tests/pipelines/bert-label --task classify"
run 0 $predict "$tmp/a.csv"
that "one JSON object for each row" '[ "$(head -n 1 "$tmp/out")" = "{\"label\": \"$l1\", \"score\": $s1}" ]'
lines 3
run 0 $predict --keep "$tmp/a.csv"
that "predict: the rows of text-classification" 'cmp -s "$tmp/out" "$tmp/kept.csv"'
run 0 $predict --keep "$tmp/kept.csv"
line 1 "id,text,note,label,score,predicted_label,predicted_score"
run 3 $predict --keep "$tmp/twice.csv"
reports 'the input has a column "predicted_label"'
sed 2q "$tmp/a.jsonl" >"$tmp/two.jsonl"
run 0 $predict --keep "$tmp/two.jsonl"
that "predict: JSON lines" '[ "$(cat "$tmp/out")" = "$(sed 2q "$tmp/kept.jsonl")" ]'
run 3 $predict --keep "$tmp/late.jsonl"
reports 'late.jsonl: line 2: key "label" is the name of a result'
lines 1
run 0 $predict --keep --to "$tmp/predicted.csv" "$tmp/a.csv"
that "predict --to" 'cmp -s "$tmp/predicted.csv" "$tmp/kept.csv" && [ ! -s "$tmp/out" ]'
run 3 $predict --keep --to "$tmp/none.csv" "$tmp/late.jsonl"
that "predict --to: no file after an error" '[ ! -e "$tmp/none.csv" ] && ! ls -a "$tmp" | grep -q "sesame-.*tmp"'
printf 'The bell\n' >"$tmp/words.conll"
run 3 predict -q tests/pipelines/bert-tag --task tag --keep "$tmp/words.conll"
reports "expected rows of CSV, TSV or JSON lines"

# usage
run 2 question-answering -q -m tests/pipelines/bert-qa --keep "Who?" "Anna"
reports "a table needs rows"
run 2 $label --keep csv --json -f "$tmp/plain"
run 2 $label --result-prefix p -f "$tmp/plain"
run 2 embed --keep --format npy -f "$tmp/plain"

# memory does not grow with the number of rows
awk 'BEGIN { print "id,text,label"; for (i = 1; i <= 60000; i++) printf "%d,\"The bell, %d.\",%s\n", i, i, "abcdefghij" }' >"$tmp/big.csv"
grep -qs '^SESAME_SANITIZE:.*=.' "$build/CMakeCache.txt" && limit= || limit=400000 # sanitizers reserve terabytes
limited() { (if [ "$limit" ]; then ulimit -v $limit 2>/dev/null; fi; exec "$sesame" "$@") >"$tmp/out" 2>"$tmp/err"; }
limited $label --threads 1 --column text --keep "$tmp/big.csv"
in_order() { that "60,000 rows in order: $1" 'awk -F, "NR > 1 && \$1 != NR - 1 { exit 1 } END { exit NR != 60001 }" "$tmp/out"'; }
in_order pipeline
limited $predict --threads 1 --keep "$tmp/big.csv"
in_order predict

# a quote that is never closed names its line, after the results of the rows before
awk 'NR == 50001 { sub(/\.",/, ".,") } { print }' "$tmp/big.csv" >"$tmp/quote.csv"
for command in "$label --column text --keep" "$predict --keep"; do
    run 3 $command "$tmp/quote.csv"
    reports "quote.csv: line 50001: field 2: text after its closing quote in line 50002"
    lines 50000
done
counted
