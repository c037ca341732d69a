#!/bin/sh
# `sesame map`: inputs, methods, equal bits on any number of threads, errors; its page in a real browser
# (tests/test_map_page.py), skipped without chromium, its driver or python3-selenium.
set -u
. tests/counted.sh

map() { "$sesame" map "$@" >"$tmp/out" 2>"$tmp/err"; }
result() { # result KEY: the first number of this name in the JSON
    sed -n "s/.*\"$1\": \(-*[0-9.e-]*\).*/\1/p" "$tmp/out" | head -n 1
}

# 60 vectors in three groups, and a table that describes them
awk 'BEGIN { srand(1); for (i = 0; i < 60; i++) { for (k = 0; k < 6; k++)
    printf "%s%.4f", k ? "\t" : "", (k == i % 3 ? 5 : 0) + rand(); print "" } }' >"$tmp/vectors.tsv"
awk 'BEGIN { print "text\tgroup\tlength"; for (i = 0; i < 60; i++) printf "text %d\t%s\t%d\n", i, substr("abc", i % 3 + 1, 1), i * 7 % 50 }' \
    >"$tmp/table.tsv"

for method in pca tsne umap; do
    that "$method of vectors" 'map --vectors "$tmp/vectors.tsv" --no-header --method $method --json'
    that "$method: trustworthy" 'awk "BEGIN { exit !($(result trustworthiness) > 0.85) }"'
    cp "$tmp/out" "$tmp/first"
    that "$method: the same bits on three threads" \
        'map --vectors "$tmp/vectors.tsv" --no-header --method $method --json --threads 3 && cmp -s "$tmp/first" "$tmp/out"'
done
{ printf 'a\tb\tc\td\te\tf\n'; cat "$tmp/vectors.tsv"; } >"$tmp/named.tsv"
that 'columns of a table' 'map "$tmp/table.tsv" --vectors "$tmp/named.tsv" --json && grep -q "\"color\": \"group\"" "$tmp/out"'
that 'a drawing with a key' 'map "$tmp/table.tsv" --vectors "$tmp/named.tsv" && grep -q "a a  b b  c c" "$tmp/out"'
that 'a picture' 'map "$tmp/table.tsv" --vectors "$tmp/named.tsv" --svg "$tmp/map.svg" && grep -q "<title>text 59</title>" "$tmp/map.svg"'
that 'vectors need no model' 'cp "$sesame" "$tmp/alone" &&
    (unset SESAME_MODELS && cd "$tmp" && ./alone map --vectors named.tsv --method pca >out 2>err)'
that 'a text is the mean of features --pool mean' '"$sesame" features -f "$tmp/table.tsv" --column text --pool mean --format npy --to "$tmp/mean.npy" &&
    map "$tmp/table.tsv" --method pca --json && sed "s/.*\"x\"/\"x\"/" "$tmp/out" >"$tmp/want" &&
    map "$tmp/table.tsv" --vectors "$tmp/mean.npy" --method pca --json && sed "s/.*\"x\"/\"x\"/" "$tmp/out" | cmp -s - "$tmp/want"'
that 'the divergence is that of 50 columns' 'map "$tmp/table.tsv" --vectors "$tmp/mean.npy" && grep -q "after PCA to 50 columns" "$tmp/out"'
that 'a sample' 'map "$tmp/table.tsv" --vectors "$tmp/named.tsv" --points 20 --method pca --json &&
    [ "$(result points)" = 20 ] && [ "$(result found)" = 60 ]'

refuses() { # refuses TEXT ARGUMENT...: the command fails with TEXT in one line
    what=$1
    shift
    if map "$@"; then failed=$((failed + 1)); echo "failed: accepted: $*"; return; fi
    that "$what" 'grep -qF -- "$what" "$tmp/err"'
}
printf '1\t2\n3\tnan\n' >"$tmp/nan.tsv"
: >"$tmp/empty.txt"
head -n 3 "$tmp/vectors.tsv" >"$tmp/few.tsv"
refuses 'line 2, field 2: "nan" is not a finite number' --vectors "$tmp/nan.tsv" --no-header
refuses 't-SNE needs at least 4' --vectors "$tmp/few.tsv" --no-header
refuses '--perplexity 30 needs 91 points, the input has 60' --vectors "$tmp/vectors.tsv" --no-header --perplexity 30
refuses 'no such column; the columns are text, group, length' "$tmp/table.tsv" --vectors "$tmp/named.tsv" --color x
refuses 'has 3 vectors' "$tmp/table.tsv" --vectors "$tmp/few.tsv" --no-header
refuses 'missing argument: FILE, or --vectors FILE'
# 10 million vectors: an estimate, at once
{ printf '\223NUMPY\001\000\166\000'; printf '%-117s\n' "{'descr': '<i1', 'fortran_order': False, 'shape': (10000000, 2), }"; } >"$tmp/big.npy"
truncate -s 20000128 "$tmp/big.npy"
refuses 'hours of CPU time' --vectors "$tmp/big.npy"
awk 'BEGIN { for (i = 0; i < 12; i++) print "1\t2\t3" }' >"$tmp/same.tsv"
that 'identical points' 'map --vectors "$tmp/same.tsv" --no-header && map --vectors "$tmp/same.tsv" --no-header --method umap'
that 'one point' 'head -n 1 "$tmp/same.tsv" >"$tmp/one.tsv" && map --vectors "$tmp/one.tsv" --no-header --method pca'

if [ -f models/sesame-small/config.json ]; then
    awk 'BEGIN { n = split("the dog runs|a cat sleeps|birds sing in the bank|we walk to the bank|money is in the bank", s, "|")
        for (i = 0; i < 30; i++) print s[i % n + 1], "number", i }' >"$tmp/texts.txt"
    awk '{ for (i = 1; i <= NF; i++) printf "%d\t%s\t%s\t%s\tX\t_\t%d\tdep\t_\t_\n", i, $i, $i, i % 2 ? "NOUN" : "VERB", i - 1; print "" }' \
        "$tmp/texts.txt" >"$tmp/words.conllu"
    that 'texts' 'map "$tmp/texts.txt" --method pca --layers 1,2 --json && [ "$(result points)" = 30 ]'
    that 'words of a text' 'map "$tmp/texts.txt" --words Bank,the --method pca --json && [ "$(result points)" = 42 ]'
    that 'words of a treebank' 'map "$tmp/words.conllu" --points 50 --json && grep -q "\"color\": \"upos\"" "$tmp/out" &&
        [ "$(result points)" = 50 ]'
    "$sesame" embed -m sesame-embed --format tsv -f "$tmp/texts.txt" >"$tmp/embedded.tsv" 2>"$tmp/err"
    that 'vectors of embed' 'map --vectors "$tmp/embedded.tsv" --no-header --method pca --json' && sed 's/.*"x": \[\([^]]*\).*/\1/' "$tmp/out" >"$tmp/x"
    that 'texts by a sentence encoder' 'map "$tmp/texts.txt" -m sesame-embed --method pca --json &&
        grep -q "\"vectors\": \"sentence encoder (modules.json)\"" "$tmp/out"'
    sed 's/.*"x": \[\([^]]*\).*/\1/' "$tmp/out" | tr ',' '\n' >"$tmp/x2"
    that 'the same points' 'tr "," "\n" <"$tmp/x" | paste - "$tmp/x2" |
        awk "{ d = \$1 - \$2; if (d > 1e-3 || d < -1e-3) bad++ } END { exit !(NR == 30 && !bad) }"'
    that 'means of tokens, if layers are chosen' 'map "$tmp/texts.txt" -m sesame-embed --layers last --method pca --json &&
        grep -q "\"vectors\": \"mean of tokens\"" "$tmp/out"'
    that 'first pieces, by either name' 'map "$tmp/texts.txt" --words bank --word-pieces first --method pca --json && cp "$tmp/out" "$tmp/one" &&
        map "$tmp/texts.txt" --words bank --first-piece --method pca --json && cmp -s "$tmp/one" "$tmp/out" &&
        grep -q "\"vectors\": \"first token\"" "$tmp/out"'
    refuses "the word 'absent' does not occur" "$tmp/texts.txt" --words absent
    refuses 'no text; expected at least one' "$tmp/empty.txt"
    refuses '--column COLUMN, the column of the texts, is required; the columns are' "$tmp/named.tsv"
else
    skipped=$((skipped + 1))
    echo 'skipped: the bundled models are missing'
fi

# ---- page ----

python=
for candidate in /usr/bin/python3 python3; do
    "$candidate" -c 'import selenium' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ] || ! command -v chromedriver >/dev/null 2>&1 || [ ! -f "$tmp/words.conllu" ]; then
    skipped=$((skipped + 1))
    echo 'skipped: chromium, its driver, python3-selenium or the bundled models are missing'
    counted
    exit $((failed > 0))
fi
that 'a page' 'map "$tmp/words.conllu" --layers 1,2,3 --html "$tmp/map.html"'
that 'a page of given vectors' 'map "$tmp/table.tsv" --vectors "$tmp/named.tsv" --html "$tmp/vectors.html"'
"$python" tests/test_map_page.py "$tmp/map.html" "$tmp/vectors.html" >"$tmp/report"
cat "$tmp/report"
eval "$(tail -n 1 "$tmp/report" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/n=\1 bad=\2/p')"
passed=$((passed + ${n:-0})) failed=$((failed + ${bad:-1}))
counted
