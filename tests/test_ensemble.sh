#!/bin/sh
# predict and eval with --ensemble: means of the probabilities of several models, computed again by awk.
# Usage: test_ensemble.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

train() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    exits 0 "$sesame" finetune $small --steps 6 -o "$tmp/$dir" "$@" || cat "$tmp/err"
}
predict() # folder, then arguments: predictions to $tmp/FOLDER.out
{
    dir=$1
    shift
    ok "predict by $dir" exits 0 "$sesame" predict "$tmp/$dir" "$@"
    cp "$tmp/out" "$tmp/$dir.out"
}
number() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" "$2"; } # of each row
close() # two files of numbers and a tolerance
{
    paste "$1" "$2" | awk -v most="$3" 'NF != 2 { bad = 1 } { d = $1 - $2; if (d < 0) d = -d; if (d > most) { print $1, $2; bad = 1 } }
        END { exit bad || !NR }'
}

# ---- classify: two labels, in another order in the third model; its tokenizer is another one, too ----

train a --task classify --train "$tmp/train.tsv"
train b --task classify --train "$tmp/train.tsv" --seed 7
mkdir "$tmp/other"
{ head -20 "$tmp/vocab.txt"; sed -n '21,$p' "$tmp/vocab.txt" | sort -r; echo more; } >"$tmp/other/vocab.txt"
# shellcheck disable=SC2086
exits 0 "$sesame" finetune $small --tokenizer "$tmp/other/vocab.txt" --steps 6 -o "$tmp/c" --task classify --train "$tmp/train.tsv" \
    --labels 'pos|neg' --seed 8
for m in a b c; do
    predict $m "$tmp/dev.tsv"
    # the probability of pos
    awk '{ match($0, /"score": [0-9.e-]*/); p = substr($0, RSTART + 9, RLENGTH - 9) + 0
        printf "%.9f\n", /"label": "pos"/ ? p : 1 - p }' "$tmp/$m.out" >"$tmp/$m.pos"
done
paste "$tmp/a.pos" "$tmp/b.pos" "$tmp/c.pos" | awk '{ m = ($1 + $2 + $3) / 3; printf "%s %.9f\n", (m > 0.5 ? "pos" : "neg"), (m > 0.5 ? m : 1 - m) }' \
    >"$tmp/mean"
ok "three models" exits 0 "$sesame" predict --ensemble "$tmp/a,$tmp/b,$tmp/c" "$tmp/dev.tsv"
cp "$tmp/out" "$tmp/three"
cut -d' ' -f2 "$tmp/mean" >"$tmp/mean.score"
number score "$tmp/three" >"$tmp/three.score"
ok "the mean of the probabilities" close "$tmp/three.score" "$tmp/mean.score" 1e-6
ok "its label" test "$(sed 's/.*"label": "\([a-z]*\)".*/\1/' "$tmp/three" | tr '\n' ' ')" = "$(cut -d' ' -f1 "$tmp/mean" | tr '\n' ' ')"
ok "models as argument and option" exits 0 "$sesame" predict "$tmp/a" "$tmp/dev.tsv" --ensemble "$tmp/b,$tmp/c"
ok "the same" cmp "$tmp/out" "$tmp/three"
ok "any order" exits 0 "$sesame" predict --ensemble "$tmp/c,$tmp/a,$tmp/b" "$tmp/dev.tsv"
number score "$tmp/out" >"$tmp/turned.score"
ok "the same numbers" close "$tmp/turned.score" "$tmp/mean.score" 1e-6
ok "from standard input" exits 0 sh -c "'$sesame' predict --ensemble '$tmp/a,$tmp/b,$tmp/c' - --text sentence <'$tmp/dev.tsv'"
ok "the same rows" cmp "$tmp/out" "$tmp/three"

ok "eval" exits 0 "$sesame" eval --ensemble "$tmp/a,$tmp/b,$tmp/c" "$tmp/dev.tsv" --json
sed 1d "$tmp/dev.tsv" | paste "$tmp/a.pos" "$tmp/b.pos" "$tmp/c.pos" - |
    awk '{ m = ($1 + $2 + $3) / 3; p = $NF == "pos" ? m : 1 - m; loss -= log(p); right += p > 0.5 } END { printf "%.9f\n", loss / NR >"/dev/stderr"; printf "%.9f\n", right / NR }' \
        >"$tmp/accuracy" 2>"$tmp/loss"
score eval_accuracy "$tmp/out" >"$tmp/got.accuracy"
score eval_loss "$tmp/out" >"$tmp/got.loss"
ok "its accuracy" close "$tmp/got.accuracy" "$tmp/accuracy" 1e-9
ok "the loss of the mean" close "$tmp/got.loss" "$tmp/loss" 1e-6

# a classifier of n-grams with an encoder
ok "a classifier" exits 0 "$sesame" finetune --method logreg --task classify --train "$tmp/train.tsv" -o "$tmp/bag"
ok "an encoder and a classifier" exits 0 "$sesame" predict --ensemble "$tmp/a,$tmp/bag" "$tmp/dev.tsv"
ok "20 rows" test "$(wc -l <"$tmp/out")" -eq 20

# ---- regress ----

awk 'BEGIN { print "sentence\tlabel" } { printf "%s\t%.1f\n", $0, NR % 5 }' FS='\t' "$tmp/rows" | sed 's/\t[a-z]*\t/\t/' >"$tmp/real.tsv"
train ra --task regress --train "$tmp/real.tsv"
train rb --task regress --train "$tmp/real.tsv" --seed 7
predict ra "$tmp/real.tsv" && predict rb "$tmp/real.tsv"
ok "two of regress" exits 0 "$sesame" predict --ensemble "$tmp/ra,$tmp/rb" "$tmp/real.tsv"
number value "$tmp/ra.out" >"$tmp/ra.v" && number value "$tmp/rb.out" | paste "$tmp/ra.v" - | awk '{ printf "%.9f\n", ($1 + $2) / 2 }' >"$tmp/mean"
number value "$tmp/out" >"$tmp/got"
ok "the mean value" close "$tmp/got" "$tmp/mean" 1e-6

# ---- choose ----

awk 'BEGIN { print "text,a,b,label"
    for (i = 0; i < 40; i++) { r = int(i / 2) % 2; printf "%s film was,%s,%s,%d\n", i % 2 ? "the" : "a", r ? "bad ." : "good .", r ? "good ." : "bad .", r } }' \
    >"$tmp/choose.csv"
train ca --task choose --choices 'a|b' --train "$tmp/choose.csv"
train cb --task choose --choices 'a|b' --train "$tmp/choose.csv" --seed 7
for m in ca cb; do
    predict $m "$tmp/choose.csv"
    awk '{ match($0, /"score": [0-9.e-]*/); p = substr($0, RSTART + 9, RLENGTH - 9) + 0; printf "%.9f\n", /"choice": 1/ ? p : 1 - p }' "$tmp/$m.out" >"$tmp/$m.p"
done
ok "two of choose" exits 0 "$sesame" predict --ensemble "$tmp/ca,$tmp/cb" "$tmp/choose.csv"
paste "$tmp/ca.p" "$tmp/cb.p" | awk '{ m = ($1 + $2) / 2; printf "%.9f\n", (m > 0.5 ? m : 1 - m) }' >"$tmp/mean"
number score "$tmp/out" >"$tmp/got"
ok "the mean of the choices" close "$tmp/got" "$tmp/mean" 1e-6

# ---- tag and answer ----

awk 'BEGIN { for (i = 0; i < 40; i++) { printf "anna B-PER\nlives O\nin O\n%s B-LOC\n. O\n\n", i % 2 ? "paris" : "london" } }' >"$tmp/tags"
train ta --task tag --train "$tmp/tags"
train tb --task tag --train "$tmp/tags" --crf --seed 7 --epochs 4 --steps 20
predict ta "$tmp/tags"
ok "a tagger with itself" exits 0 "$sesame" predict --ensemble "$tmp/ta,$tmp/ta" "$tmp/tags"
ok "has the same tags" cmp "$tmp/out" "$tmp/ta.out"
ok "with one that has a CRF" exits 0 "$sesame" eval --ensemble "$tmp/ta,$tmp/tb" "$tmp/tags" --json
ok "scores" out_has '"eval_f1": '

cat >"$tmp/squad.json" <<END
{"data": [{"paragraphs": [{"context": "anna lives in paris . bob lives in london .", "qas": [
 {"id": "1", "question": "where lives anna ?", "answers": [{"text": "paris", "answer_start": 14}]},
 {"id": "2", "question": "where lives bob ?", "answers": [{"text": "london", "answer_start": 35}]}]}]}]}
END
train qa --task answer --train "$tmp/squad.json"
train qb --task answer --train "$tmp/squad.json" --seed 7
predict qa "$tmp/squad.json"
ok "a model of answers with itself" exits 0 "$sesame" predict --ensemble "$tmp/qa,$tmp/qa" "$tmp/squad.json"
ok "has the same answers" cmp "$tmp/out" "$tmp/qa.out"
ok "two models" exits 0 "$sesame" eval --ensemble "$tmp/qa,$tmp/qb" "$tmp/squad.json" --json
ok "scores" out_has '"eval_f1": '

# ---- what does not fit ----

bad() # what, exit code, message, arguments
{
    name=$1 code=$2 message=$3
    shift 3
    ok "$name" exits "$code" "$sesame" predict "$@"
    ok "$name: message" err_has "$message"
}
sed 's/pos$/yes/; s/neg$/no/' "$tmp/train.tsv" >"$tmp/yes.tsv"
train yes --task classify --train "$tmp/yes.tsv"
bad "other labels" 3 "ensemble: .*a has the labels neg, pos; .*yes has no, yes: the models of an ensemble need the same labels" \
    --ensemble "$tmp/a,$tmp/yes" "$tmp/dev.tsv"
bad "another task" 3 "ensemble: .*ra was trained for the task regress, not classify: the models need one task" \
    --ensemble "$tmp/a,$tmp/ra" "$tmp/dev.tsv"
bad "one model" 2 "name at least two models" --ensemble "$tmp/a" "$tmp/dev.tsv"
bad "an empty name" 2 "a name is empty" --ensemble "$tmp/a,,$tmp/b" "$tmp/dev.tsv"
bad "a model that is not there" 3 "nothere" --ensemble "$tmp/a,$tmp/nothere" "$tmp/dev.tsv"
exits 0 "$sesame" finetune --model "$tmp/a" --task classify --train "$tmp/train.tsv" --adapter lora --steps 6 -o "$tmp/adapted"
ok "an adapter folder" exits 0 "$sesame" predict --ensemble "$tmp/a,$tmp/adapted" "$tmp/dev.tsv"
bad "--adapter, too" 2 "ensemble and --adapter: give one of them" --ensemble "$tmp/a,$tmp/b" --adapter "$tmp/adapted" "$tmp/dev.tsv"
bad "--adapter of a named model" 2 "ensemble and --adapter: give one of them" "$tmp/a" "$tmp/dev.tsv" --ensemble "$tmp/b" --adapter "$tmp/adapted"
mkdir "$tmp/norun" && cp "$tmp"/a/*.json "$tmp"/a/*.safetensors "$tmp/norun/" && rm "$tmp/norun/run.json"
ok "no task: that of the first model's class" exits 0 "$sesame" eval --ensemble "$tmp/norun,$tmp/b" "$tmp/dev.tsv" --text sentence
bad "no file" 2 "missing argument" "$tmp/a"
# shellcheck disable=SC2086
exits 0 "$sesame" finetune $small --tokenizer "$tmp/other/vocab.txt" --steps 6 -o "$tmp/qc" --task answer --train "$tmp/squad.json"
bad "answers of other tokens" 3 "need the same tokenizer" --ensemble "$tmp/qa,$tmp/qc" "$tmp/squad.json"
ok "other tasks of eval" exits 2 "$sesame" eval --ensemble "$tmp/a,$tmp/b" "$tmp/dev.tsv" --task blimp

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
