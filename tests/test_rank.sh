#!/bin/sh
# rank: scores against the probabilities of the pipelines, order, limits, input, refusals.
# Usage: test_rank.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086
ok "a classifier" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 2 -o "$tmp/model"
printf '%s\n' 'the film was good .' 'it was bad .' '' 'a film' 'the film was good .' 'not good , not bad' 'paris' >"$tmp/texts.txt"
rank() { "$sesame" rank -m "$tmp/model" "$@"; }

# Each score is recomputed from the probabilities: score, line.
grep . "$tmp/texts.txt" >"$tmp/full.txt"
"$sesame" text-classification -m "$tmp/model" --top-k all --json -f "$tmp/full.txt" 2>/dev/null |
    awk '{ while (match($0, /"score": [0-9.e-]*/)) { printf "%s ", substr($0, RSTART + 9, RLENGTH - 9); $0 = substr($0, RSTART + RLENGTH) } print "" }' >"$tmp/probabilities"
ok "probabilities of six texts" test "$(awk '$1 > 0 && $2 > 0 && $1 + $2 > 0.9999 && $1 + $2 < 1.0001' "$tmp/probabilities" | wc -l)" = 6
check() # measure, awk expression of the probabilities p (higher) and q
{
    awk "{ p = \$1 > \$2 ? \$1 : \$2; q = \$1 > \$2 ? \$2 : \$1; l = NR < 3 ? NR : NR + 1; printf \"%.5f %d\\n\", $2, l }" "$tmp/probabilities" >"$tmp/want"
    ok "by $1" exits 0 rank --by "$1" "$tmp/texts.txt"
    ok "$1: six texts" test "$(wc -l <"$tmp/out")" = 6
    ok "$1: the scores" awk -v d=0.00002 'NR == FNR { want[$2] = $1; next } { x = $1 - want[$2]; if (x < 0) x = -x; if (x > d) { print "line", $2, $1, want[$2]; bad = 1 } } END { exit bad }' "$tmp/want" "$tmp/out"
}
check entropy '-p * log(p) - q * log(q)'
ok "falling" sort -c -s -g -r -k 1,1 "$tmp/out"
ok "equal texts in their order" test "$(awk '$2 == 1 || $2 == 5 { printf "%s ", $2 }' "$tmp/out")" = '1 5 '
ok "empty lines" err_has '^1 empty lines were left out$'
cp "$tmp/out" "$tmp/entropy"
check least-confidence '1 - p'
ok "falling" sort -c -s -g -r -k 1,1 "$tmp/out"
check margin 'p - q'
ok "rising" sort -c -s -g -k 1,1 "$tmp/out"

# Limits, input, JSON.
for n in 1 2 5 6 7 100; do
    ok "top $n" exits 0 rank --top $n "$tmp/texts.txt"
    head -$n "$tmp/entropy" >"$tmp/head"
    ok "the first of all" cmp "$tmp/head" "$tmp/out"
done
ok "standard input" exits 0 sh -c "'$sesame' rank -m '$tmp/model' <'$tmp/texts.txt'"
ok "the same" cmp "$tmp/entropy" "$tmp/out"
ok "JSON" exits 0 rank "$tmp/texts.txt" --json --top 2
ok "two lines" test "$(grep -c '^{"rank": [12], "score": [0-9.]*, "line": [0-9], "label": "\(pos\|neg\)", "text": ".*"}$' "$tmp/out")" = 2
ok "two files" exits 0 rank "$tmp/texts.txt" "$tmp/full.txt" --top 20
ok "twelve" test "$(wc -l <"$tmp/out")" = 12
ok "named" test "$(grep -c "full.txt:[1-6][[:space:]]" "$tmp/out")" = 6
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%s was %s %d\n", i % 3 ? "it" : "the film", i % 2 ? "good" : "bad", i % 7 }' >"$tmp/many.txt"
ok "many" exits 0 rank "$tmp/many.txt"
ok "sorted" sort -c -s -g -r -k 1,1 "$tmp/out"
head -50 "$tmp/out" >"$tmp/head"
ok "fifty of many" exits 0 rank "$tmp/many.txt" --top 50
ok "the same" cmp "$tmp/head" "$tmp/out"
printf 'the film\0was good .\n' >"$tmp/nul.txt"
ok "a NUL byte" exits 3 rank "$tmp/nul.txt"
ok "its position" err_has "nul.txt: line 1: byte 9: NUL: not a text file"
ok "a closed pipe" sh -c "'$sesame' rank -q -m '$tmp/model' '$tmp/many.txt' | head -1 | grep -q ."

# A classifier of words, several labels, tags.
ok "nb" exits 0 "$sesame" finetune --method nb --task classify --train "$tmp/train.tsv" -o "$tmp/nb"
ok "by it" exits 0 "$sesame" rank -m "$tmp/nb" "$tmp/texts.txt" --top 1
ok "the unknown word" out_has '0.693147[[:space:]]7[[:space:]].*paris'
awk 'BEGIN { for (i = 0; i < 30; i++) printf "anna B-PER\nlives O\nin O\n%s %s\n\n", i % 3 ? "paris" : "it", i % 3 ? "B-LOC" : "O" }' >"$tmp/tags.txt"
# shellcheck disable=SC2086
ok "a tagger" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --epochs 1 -o "$tmp/tagger"
printf '%s\n' 'anna lives in paris' 'bob was in it' 'film' >"$tmp/sentences"
ok "tags" exits 0 "$sesame" rank -m "$tmp/tagger" "$tmp/sentences" --by least-confidence
"$sesame" ner -m "$tmp/tagger" -a none --ignore-labels X --json -f "$tmp/sentences" 2>/dev/null | awk '{ s = 0; n = 0; while (match($0, /"score": [0-9.e-]*/)) { s += substr($0, RSTART + 9, RLENGTH - 9); n++; $0 = substr($0, RSTART + RLENGTH) } printf "%.5f %d\n", 1 - s / n, NR }' >"$tmp/want"
ok "the mean over tokens" awk 'NR == FNR { want[$2] = $1; next } { x = $1 - want[$2]; if (x < 0) x = -x; if (x > 0.00002) { print $0, want[$2]; bad = 1 } } END { exit bad }' "$tmp/want" "$tmp/out"
ok "entropy of tags" exits 0 "$sesame" rank -m "$tmp/tagger" "$tmp/sentences" --json
ok "no label" out_has '"line": [123], "text"'

# Refusals.
awk 'BEGIN { print "sentence\tscore"; for (i = 0; i < 20; i++) printf "film %d\t%d.5\n", i, i % 5 }' >"$tmp/numbers.tsv"
# shellcheck disable=SC2086
ok "a regression" exits 0 "$sesame" finetune $small --task regress --train "$tmp/numbers.tsv" --epochs 1 -o "$tmp/regression"
ok "has no labels" exits 3 "$sesame" rank -m "$tmp/regression" "$tmp/texts.txt"
ok "said" err_has 'predicts a number'
ok "no model" exits 3 "$sesame" rank -m "$tmp/none" "$tmp/texts.txt"
ok "no file" exits 3 rank "$tmp/none.txt"
: >"$tmp/empty"
ok "an empty file" exits 3 rank "$tmp/empty"
ok "said" err_has 'no text'
ok "another measure" exits 2 rank --by gini "$tmp/texts.txt"
ok "top 0" exits 2 rank --top 0 "$tmp/texts.txt"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
