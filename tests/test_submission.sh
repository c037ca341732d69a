#!/bin/sh
# predict --submission: files of GLUE and SuperGLUE, their numbers of rows, their order.
# Usage: test_submission.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

train() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    exits 0 "$sesame" finetune $small --steps 12 -o "$tmp/$dir" "$@"
}
submit() { exits 0 "$sesame" predict "$@" --to "$tmp/files" --overwrite; }

# ---- GLUE ----

# WNLI: 146 rows; labels have names in the model and are numbers in the file
awk 'BEGIN { print "index\tsentence1\tsentence2\tlabel"; for (i = 0; i < 80; i++) printf "%d\tthe film was %s .\tit was good .\t%d\n", i, i % 2 ? "good" : "bad", i % 2 }' \
    >"$tmp/wnli.tsv"
awk 'BEGIN { print "index\tsentence1\tsentence2"; for (i = 0; i < 146; i++) printf "%d\tthe film was %s .\tit was good .\n", i, i % 2 ? "good" : "bad" }' \
    >"$tmp/test.tsv"
ok "WNLI" train wnli --task wnli --train "$tmp/wnli.tsv" --epochs 8
ok "its file" submit "$tmp/wnli" "$tmp/test.tsv" --task wnli --submission glue
ok "header" test "$(head -1 "$tmp/files/WNLI.tsv")" = "$(printf 'index\tprediction')"
ok "147 lines" test "$(wc -l <"$tmp/files/WNLI.tsv")" -eq 147
ok "predictions" exits 0 "$sesame" predict "$tmp/wnli" "$tmp/test.tsv" --task wnli
sed 's/.*"not_entailment".*/0/; s/.*"entailment".*/1/' "$tmp/out" | awk '{ printf "%d\t%s\n", NR - 1, $0 }' >"$tmp/want"
ok "the same, as numbers" sh -c "sed 1d '$tmp/files/WNLI.tsv' | cmp - '$tmp/want'"
ok "the task of the run" submit "$tmp/wnli" "$tmp/test.tsv" --submission glue
ok "an ensemble" submit --ensemble "$tmp/wnli,$tmp/wnli" "$tmp/test.tsv" --submission glue
ok "the same file" sh -c "sed 1d '$tmp/files/WNLI.tsv' | cmp - '$tmp/want'"

# CoLA: the test file has a header and other columns
awk 'BEGIN { for (i = 0; i < 40; i++) printf "x\t%d\t\tthe film was %s .\n", i % 2, i % 2 ? "good" : "bad" }' >"$tmp/cola.tsv"
awk 'BEGIN { print "index\tsentence"; for (i = 0; i < 1063; i++) printf "%d\tthe film was %s .\n", i, i % 2 ? "good" : "bad" }' >"$tmp/cola-test.tsv"
ok "CoLA" train cola --task cola --train "$tmp/cola.tsv"
ok "its file" submit "$tmp/cola" "$tmp/cola-test.tsv" --task cola --submission glue
ok "0 and 1" awk 'NR > 1 && $2 !~ /^[01]$/ { bad = 1 } END { exit bad || NR != 1064 }' "$tmp/files/CoLA.tsv"

# STS-B: numbers from 0 to 5
awk 'BEGIN { print "index\tsentence1\tsentence2\tscore"; for (i = 0; i < 40; i++) printf "%d\tthe film\tit was\t%d\n", i, i % 2 ? 30 : -30 }' >"$tmp/stsb.tsv"
awk 'BEGIN { print "index\tsentence1\tsentence2"; for (i = 0; i < 1379; i++) printf "%d\tthe film\tit was\n", i }' >"$tmp/stsb-test.tsv"
ok "STS-B" train stsb --task stsb --train "$tmp/stsb.tsv"
ok "its file" submit "$tmp/stsb" "$tmp/stsb-test.tsv" --task stsb --submission glue
ok "in range" awk 'NR > 1 && ($2 < 0 || $2 > 5 || $2 !~ /^[0-9]\.[0-9][0-9][0-9]$/) { bad = 1 } END { exit bad || NR != 1380 }' "$tmp/files/STS-B.tsv"

# ---- SuperGLUE ----

wsc() # rows, with label
{
    awk -v n="$1" -v labels="$2" 'BEGIN { for (i = 0; i < n; i++) printf "{\"idx\": %d, \"text\": \"the film was %s .\", \"target\": {\"span1_text\": \"film\", \"span2_text\": \"it\"}%s}\n",
        i, i % 2 ? "good" : "bad", labels ? (i % 2 ? ", \"label\": true" : ", \"label\": false") : "" }'
}
wsc 40 1 >"$tmp/wsc.jsonl"
wsc 146 0 >"$tmp/wsc-test.jsonl"
ok "WSC" train wsc --task wsc --train "$tmp/wsc.jsonl" --epochs 8
ok "its file" submit "$tmp/wsc" "$tmp/wsc-test.jsonl" --task wsc --submission superglue
ok "its lines" sh -c "test \$(grep -c '^{\"idx\": [0-9]*, \"label\": \"\\(True\\|False\\)\"}\$' '$tmp/files/WSC.jsonl') -eq 146"
copa() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "{\"idx\": %d, \"premise\": \"the film was\", \"choice1\": \"good .\", \"choice2\": \"bad .\", \"question\": \"who ?\", \"label\": %d}\n", i, i % 2 }'; }
copa 40 >"$tmp/copa.jsonl"
copa 500 >"$tmp/copa-test.jsonl"
ok "COPA" train copa --task superglue-copa --train "$tmp/copa.jsonl"
ok "its file" submit "$tmp/copa" "$tmp/copa-test.jsonl" --task superglue-copa --submission superglue
ok "its lines" sh -c "test \$(grep -c '^{\"idx\": [0-9]*, \"label\": [01]}\$' '$tmp/files/COPA.jsonl') -eq 500"

# ---- bad input ----

bad() # what, exit code, message, arguments
{
    name=$1 code=$2 message=$3
    shift 3
    ok "$name" exits "$code" "$sesame" predict "$@"
    ok "$name: message" err_has "$message"
    ok "$name: no file" test ! -e "$tmp/none"
}
head -100 "$tmp/test.tsv" >"$tmp/short.tsv"
bad "too few rows" 3 '99 rows; the test set of wnli has 146: nothing was written' "$tmp/wnli" "$tmp/short.tsv" --task wnli --submission glue --to "$tmp/none"
{ head -1 "$tmp/test.tsv"; sed 1d "$tmp/test.tsv" | sort -r; } >"$tmp/turned.tsv"
bad "another order" 3 'the index is 99, expected 0' "$tmp/wnli" "$tmp/turned.tsv" --task wnli --submission glue --to "$tmp/none"
bad "another suite" 2 'expected --task with one of boolq, cb' "$tmp/wnli" "$tmp/test.tsv" --task wnli --submission superglue --to "$tmp/none"
bad "no folder" 2 'needs --to FOLDER' "$tmp/wnli" "$tmp/test.tsv" --task wnli --submission glue
bad "columns of the rows" 2 'leave out --keep' "$tmp/wnli" "$tmp/test.tsv" --task wnli --submission glue --keep --to "$tmp/none"
sed 's/\t0$/\tno/; s/\t1$/\tyes/' "$tmp/wnli.tsv" >"$tmp/yes.tsv"
ok "other labels" train yes --task classify --text sentence1 --pair sentence2 --train "$tmp/yes.tsv"
bad "of a model" 3 'the labels differ' "$tmp/yes" "$tmp/test.tsv" --task wnli --submission glue --to "$tmp/none"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
