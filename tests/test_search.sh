#!/bin/sh
# Tests of search and index: results, updates of the index, damaged and foreign indexes, interrupted builds.
# Usage: sh tests/test_search.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
sesame=$1/sesame
json_valid=$1/json_valid
m=tests/pipelines/bert-mask
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $*"
    sed 's/^/    stdout: /' "$tmp/out" | cut -c 1-200 | head -2
    sed 's/^/    stderr: /' "$tmp/err" | head -2
}

# run CODE COMMAND...: output in $tmp/out and $tmp/err, input from $tmp/in.
: >"$tmp/in"
run() {
    want=$1
    shift
    "$sesame" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
    code=$?
    if [ "$code" -eq "$want" ]; then ok; else bad "exit $code, not $want: sesame $*"; fi
}
stdout_has() { for text in "$@"; do if grep -qF -- "$text" "$tmp/out"; then ok; else bad "not on stdout: $text"; fi; done; }
stderr_has() { for text in "$@"; do if grep -qF -- "$text" "$tmp/err"; then ok; else bad "not on stderr: $text"; fi; done; }
that() { if eval "$2"; then ok; else bad "$1"; fi; }

f=$tmp/texts.txt
printf 'The bell rings.\n\nThe keeper counts.\nA ship is near the light.\n  \nThe bell rings.\nThe light is on.\n' >"$f"

# results: the text itself first, equal scores by line, blank lines left out
run 0 search -m $m "The bell rings." -f "$f" -k 3 --json -q
that "no messages with -q" '[ ! -s "$tmp/err" ]'
stdout_has '{"query": "The bell rings.", "results": [{"index": 0, "score": ' '{"index": 5, "score": '
that "valid JSON" '[ ! -x "$json_valid" ] || "$json_valid" <"$tmp/out" >/dev/null 2>&1 || "$json_valid" "$tmp/out" >/dev/null'
that "score of the text itself" 'grep -q "\"index\": 0, \"score\": \(1\.0\|0\.999\)" "$tmp/out"'
that "index file" '[ -s "$f.sesame-index" ]'
cp "$tmp/out" "$tmp/one"
cp -p "$f.sesame-index" "$tmp/before"
run 0 search -m $m "The bell rings." -f "$f" -k 3 --json -t 3
that "another number of threads, same output" 'cmp -s "$tmp/one" "$tmp/out"'
that "index unchanged" 'cmp -s "$tmp/before" "$f.sesame-index"'
run 0 search -m $m "The bell rings." -f "$f" -k 100 --json -q
that "all texts" '[ "$(grep -o "\"index\"" "$tmp/out" | wc -l)" -eq 5 ]'
run 0 search -m $m "The keeper counts." "The light is on." -f "$f" -k 2
stdout_has "The keeper counts." "line 3" "line 7"
that "rank, score, bar, line, text" 'grep -q "^ *1  *[01]\.[0-9]*  *[^ ]*  *line 3 *The keeper counts\.$" "$tmp/out"'
stderr_has "5 texts searched in"
printf 'The keeper counts.\nThe light is on.\n' >"$tmp/in"
run 0 search -m $m - -f "$f" -k 1 --json -q
that "queries from standard input" '[ "$(wc -l <"$tmp/out")" -eq 2 ]'
: >"$tmp/in"

# prompts of the folder: the same scores as texts that contain them
cp -r $m "$tmp/prompts"
printf '{"prompts": {"query": "The keeper ", "document": "Nobody ", "other": "The bell "}}' >"$tmp/prompts/config_sentence_transformers.json"
printf 'rings.\ncounts.\nsleeps.\n' >"$tmp/bare.txt"
sed 's/^/Nobody /' "$tmp/bare.txt" >"$tmp/whole.txt"
scores() { grep -o '"index": [0-9]*, "score": [-0-9.e]*' "$tmp/out" >"$tmp/$1"; }
run 0 search -m $m "The keeper counts." -f "$tmp/whole.txt" --json -q
scores whole
run 0 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --json -q
scores bare
that "prompts query and document" '[ -s "$tmp/whole" ] && cmp -s "$tmp/whole" "$tmp/bare"'
run 0 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --json -q --prompt-name other
scores other
run 0 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --json -q --prompt "The bell "
scores given
run 0 search -m $m "The bell counts." -f "$tmp/whole.txt" --json -q
scores whole
that "--prompt-name" 'cmp -s "$tmp/whole" "$tmp/other"'
that "--prompt" 'cmp -s "$tmp/whole" "$tmp/given"'
run 3 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --prompt-name none
stderr_has 'the model has no prompt "none"'
run 2 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --prompt-name other --prompt x
run 3 search -m "$tmp/prompts" "counts." -f "$tmp/bare.txt" --text-prompt "" -q
stderr_has 'built with another model'

# updates
run 0 index -m $m "$f" --json
stdout_has '"texts": 5' '"embedded": 0' '"written": false'
sleep 0.02
touch "$f"
run 0 index -m $m "$f" --json
stdout_has '"written": false'
printf 'The boat is late.\n' >>"$f"
run 0 index -m $m "$f" --json
stdout_has '"texts": 6' '"embedded": 1' '"reused": 5' '"written": true'
sed 1d "$f" >"$tmp/short" && cp "$tmp/short" "$f"
run 0 search -m $m "The boat is late." -f "$f" -k 1 --json -q
stdout_has '"index": 6, ' 'The boat is late.'
cp "$f" "$tmp/copy.txt"
run 0 index -m $m "$tmp/copy.txt" -q
that "an updated index has the vectors of a new one" \
    '"$sesame" search -m $m "a light" -f "$f" -k 9 --json -q >"$tmp/one" && "$sesame" search -m $m "a light" -f "$tmp/copy.txt" -k 9 --json -q | cmp -s - "$tmp/one"'
run 0 index -m $m "$f"
stdout_has "5 texts" "f16; up to date"

# int8
run 0 index -m $m "$f" --dtype int8
stdout_has "int8; 5 embedded, 0 reused"
run 0 search -m $m "The boat is late." -f "$f" -k 1 --json -q
stdout_has '"index": 6, ' '"score": 0.99'
run 0 index -m $m "$f" --json
stdout_has '"dtype": "int8"' '"written": false'

# tables
printf 'id,text\n1,"The bell, it rings."\n2,The keeper counts.\n3,\n4,"The light\nis on."\n' >"$tmp/t.csv"
run 0 search -m $m "The light is on." -f "$tmp/t.csv" --column text -k 1 --json -q
stdout_has '"index": 3, ' '"text": "The light\nis on."'
run 0 search -m $m "The keeper counts." -f "$tmp/t.csv" --column text -k 1
stdout_has "row 2"
run 0 search -m $m "id,text" -f "$tmp/t.csv" -k 1 --json -q
stdout_has '"index": 0, '
run 0 index -m $m "$tmp/t.csv" --column 2 --no-header --json
stdout_has '"texts": 4'
printf '{"t": "The bell rings.", "n": 1}\n{"t": "The keeper counts.", "n": 2}\n' >"$tmp/t.dat"
run 0 search -m $m "The keeper counts." -f "$tmp/t.dat" --jsonl t -k 1 --json -q
stdout_has '"index": 1, ' 'The keeper counts.'
run 3 search -m $m "x" -f "$tmp/t.dat" --jsonl missing
stderr_has "missing"
printf 'id,text\n1,good\n2,"open\n' >"$tmp/bad.csv"
run 3 index -m $m "$tmp/bad.csv" --column text
stderr_has "bad.csv"
that "no index of a broken file" '[ ! -e "$tmp/bad.csv.sesame-index" ]'

# reranking
run 0 search -m $m "The bell rings." -f "$f" -k 2 --json -q --rerank tests/pipelines/bert-score
cp "$tmp/out" "$tmp/one"
that "two results" '[ "$(grep -o "\"index\"" "$tmp/one" | wc -l)" -eq 2 ]'
grep -v '^ *$' "$f" >"$tmp/in"
run 0 rerank -m tests/pipelines/bert-score "The bell rings." - --json -k 1 -q
best=$(sed 's/.*"score": \([0-9.e-]*\).*/\1/' "$tmp/out")
that "score of the cross-encoder" 'grep -qF "\"score\": $best" "$tmp/one"'
: >"$tmp/in"

# another model, damage
run 3 search -m tests/pipelines/roberta-mask "x" -f "$f"
stderr_has "built with another model or prompt (bert-mask" "--rebuild"
run 0 search -m tests/pipelines/roberta-mask "x" -f "$f" --rebuild -q
run 3 search -m $m "x" -f "$f"
run 0 index -m $m "$f" --rebuild -q
i=$f.sesame-index
cp "$i" "$tmp/good"
for at in 20 200 300 "$(($(wc -c <"$tmp/good") - 100))"; do
    cp "$tmp/good" "$i"
    printf '\377\376' | dd of="$i" bs=1 seek="$at" conv=notrunc 2>/dev/null
    run 3 search -m $m "x" -f "$f"
    stderr_has "$i: " "--rebuild"
done
last=$(($(wc -c <"$tmp/good") - 1))
for size in 0 7 100 256 600 "$last"; do
    head -c "$size" "$tmp/good" >"$i"
    run 3 search -m $m "x" -f "$f"
    stderr_has "$i: " "--rebuild"
done
run 0 index -m $m "$f" --rebuild -q
that "rebuilt" 'cmp -s "$tmp/good" "$i"'
cp "$f" "$tmp/notes"
run 3 index -m $m "$f" -o "$tmp/notes"
run 3 index -m $m "$f" -o "$tmp/notes" --rebuild
stderr_has "is not an index"
that "other files are kept" 'cmp -s "$f" "$tmp/notes"'
run 0 index -m $m "$f" -o "$tmp/own.index" -q
that "-o" '[ -s "$tmp/own.index" ]'

# bad input
run 3 search -m $m "x" -f "$tmp/none"
stderr_has "$tmp/none: No such file"
run 3 search -m $m "x" -f "$tmp"
run 2 search -m $m "x"
run 2 search -m $m -f "$f"
run 2 search -m $m "x" -f "$f" --column a --jsonl b
run 2 search -m $m "x" -f "$f" -k 0
run 3 index -m $m "$f" -o "$tmp/none/x.index"
: >"$tmp/empty"
run 0 search -m $m "x" -f "$tmp/empty" --json -q
stdout_has '{"query": "x", "results": []}'

# an interrupted build leaves no index and no temporary file
awk 'BEGIN { for (i = 0; i < 200000; i++) print "The bell of ship number " i " rings near the light." }' >"$tmp/large"
mkdir "$tmp/dir"
"$sesame" index -m $m "$tmp/large" -o "$tmp/dir/index" >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 0.3
kill -TERM $pid 2>/dev/null
wait $pid 2>/dev/null
code=$?
that "exit 143 after SIGTERM, not $code" '[ "$code" -eq 143 ]'
that "nothing left" '[ -z "$(ls -A "$tmp/dir")" ]'

# the bundled encoder
if "$sesame" models 2>/dev/null | grep -q '^sesame-embed '; then
    printf 'The cat sleeps on the sofa.\nThe central bank raised interest rates.\nHe plays the guitar in a band.\n' >"$tmp/b"
    run 0 search "monetary policy" "a musician" -f "$tmp/b" -k 1 --json -q
    stdout_has '"index": 1, ' '"index": 2, '
else
    skipped=$((skipped + 1))
fi

printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
echo
[ "$failed" -eq 0 ]
