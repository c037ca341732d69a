#!/bin/sh
# finetune --method: classifiers that read texts, in finetune, eval, predict and text-classification.
# Usage: test_bow_finetune.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

bow() # method, output, options
{
    method=$1 to=$2
    shift 2
    "$sesame" finetune -q --method "$method" --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$to" "$@"
}
refused() # what, exit code, message, method, options
{
    what=$1 code=$2 message=$3 method=$4
    shift 4
    ok "$what" exits "$code" bow "$method" "$tmp/bad" "$@"
    ok "$what: message" err_has "$message"
    ok "$what: leaves nothing" test ! -e "$tmp/bad/config.json"
}

# ---- each method ----

printf '%s\n' 'good 1 0.5' 'bad -1 0.5' 'film 0 1' 'the 0 0.1' >"$tmp/vectors.txt"
for method in nb nb-svm logreg cbow; do
    options=
    [ $method = cbow ] && options="--vectors $tmp/vectors.txt --c 100"
    # shellcheck disable=SC2086
    ok "$method" exits 0 bow $method "$tmp/$method" $options --json
    ok "$method: learned" above "$(score eval_accuracy "$tmp/$method/all_results.json")" 0.99
    ok "$method: prints its results" out_has '"eval_accuracy": 1.0,'
    ok "$method: eval" exits 0 "$sesame" eval "$tmp/$method" "$tmp/dev.tsv" --json
    ok "$method: the same loss" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/$method/eval_results.json")"
    ok "$method: predict" exits 0 "$sesame" predict "$tmp/$method" "$tmp/dev.tsv"
    ok "$method: a line per text" test "$(wc -l <"$tmp/out")" = 20
    ok "$method: labels" test "$(sed -n '1s/, "score.*//p' "$tmp/out")" = '{"label": "neg"'
    predicted=$(sed -n '2s/.*"score": \([0-9.]*\).*/\1/p' "$tmp/out")
    ok "$method: pipeline" exits 0 "$sesame" text-classification -m "$tmp/$method" --json "it was good ."
    ok "$method: the same score" out_has "\"label\": \"pos\", \"score\": $predicted}"
done
ok "majority" exits 0 bow majority "$tmp/majority"
ok "majority: one half" above "$(score eval_accuracy "$tmp/majority/all_results.json")" 0.5
ok "files" test -s "$tmp/nb/README.md" -a -s "$tmp/nb/run.json" -a -s "$tmp/nb/train_results.json" -a -s "$tmp/nb/vocab.txt"
ok "no tokenizer" test ! -e "$tmp/nb/tokenizer.json"
ok "the card names the method" grep -q '| method | nb: multinomial Naive Bayes' "$tmp/nb/README.md"

# Bits do not depend on the threads.
ok "two threads" exits 0 bow nb-svm "$tmp/two" --threads 2
ok "one thread" exits 0 bow nb-svm "$tmp/one" --threads 1
ok "the same weights" cmp -s "$tmp/one/model.safetensors" "$tmp/two/model.safetensors"

# Settings, intervals, renamed labels, several texts, the best two labels, pairs of texts.
ok "settings" exits 0 bow nb "$tmp/words" --ngrams 1 --words blank --min-count 3 --counts all --alpha 0.1 --bootstrap 50
ok "words only" test -z "$(grep ' ' "$tmp/words/vocab.txt")"
ok "an interval" grep -q eval_accuracy_low "$tmp/words/eval_results.json"
ok "new names" exits 0 "$sesame" predict "$tmp/nb" "$tmp/dev.tsv" --labels neg=bad,pos=good
ok "are used" test "$(sed -n '1s/, "score.*//p' "$tmp/out")" = '{"label": "bad"'
printf 'it was good .\nit was bad .\n' >"$tmp/lines"
ok "a file of texts" exits 0 "$sesame" text-classification -m "$tmp/nb" --json --top-k all -f "$tmp/lines"
ok "both labels" test "$(grep -c 'pos.*neg\|neg.*pos' "$tmp/out")" = 2
awk -F'\t' 'NR == 1 { print "sentence\tpart\tlabel" } NR > 1 { split($1, w, " was "); print w[1] " was\t" w[2] "\t" $2 }' "$tmp/train.tsv" \
    >"$tmp/pairs.tsv"
ok "pairs" exits 0 "$sesame" finetune -q --method nb --task classify --train "$tmp/pairs.tsv" --eval "$tmp/pairs.tsv" --pair part \
    -o "$tmp/pairs"
ok "are read" above "$(score eval_accuracy "$tmp/pairs/all_results.json")" 0.99
ok "a pair in a pipeline" exits 0 "$sesame" text-classification -m "$tmp/pairs" --json --text-pair "bad ." "it was"
ok "counts" out_has '"label": "neg"'
ok "seeds" exits 0 bow nb-svm "$tmp/seeds" --seeds 2
ok "two folders" test -s "$tmp/seeds/seed=42/config.json" -a -s "$tmp/seeds/seed=43/config.json"
ok "grid" exits 0 bow nb "$tmp/grid" --grid ngrams=1,2 --json
ok "its values" out_has '"ngrams": "2"'

# ---- refusals ----

refused "an unknown method" 2 'unknown method "nbsvm"; choose one of majority, nb, nb-svm' nbsvm
refused "a setting of another method" 2 '--beta has no effect on method nb' nb --beta 0.5
refused "an option of models" 2 '--batch-size has no effect on method nb: only models read it' nb --batch-size 8
refused "a learning rate" 2 '--lr has no effect on method nb' nb --lr 5e-5
refused "samples without their loss" 2 '--negatives has no effect with --loss softmax; use --loss ns' fasttext --negatives 3
refused "lengths of no n-grams" 2 '--min-chars has no effect without --max-chars' fasttext --min-chars 2
refused "rows of no n-grams" 2 '--buckets has no effect without n-grams' fasttext --buckets 200
refused "a model" 2 '--model has no effect' nb --model "$tmp/nb"
refused "another task" 2 'methods classify texts' nb --task regress
refused "no vectors" 2 'needs word vectors' cbow
refused "vectors that do not exist" 3 'none.txt' cbow --vectors "$tmp/none.txt"
printf 'a 1 2\nb 1\n' >"$tmp/odd.txt"
refused "vectors of two widths" 3 'odd.txt: line 2' cbow --vectors "$tmp/odd.txt"
ok "exists" exits 3 bow nb "$tmp/nb"
ok "exists: message" err_has 'not empty'
ok "overwrite" exits 0 bow nb "$tmp/nb" --overwrite

printf 'sentence\tlabel\ngood film\tpos\nbad film\n' >"$tmp/missing.tsv"
ok "a missing label" exits 3 "$sesame" finetune -q --method nb --task classify --train "$tmp/missing.tsv" -o "$tmp/bad"
ok "its line" err_has 'missing.tsv: line 3'
printf 'sentence\tlabel\ngood film\tpos\nbad film\tpos\n' >"$tmp/single.tsv"
ok "one class" exits 3 "$sesame" finetune -q --method nb --task classify --train "$tmp/single.tsv" -o "$tmp/bad"
ok "one class: message" err_has 'all 2 examples have the label "pos"'
printf 'sentence\tlabel\n\tpos\n \tneg\n' >"$tmp/empty.tsv"
ok "empty texts" exits 3 "$sesame" finetune -q --method nb-svm --task classify --train "$tmp/empty.tsv" -o "$tmp/bad"
ok "empty texts: message" err_has 'the texts of all 2 examples are empty'
printf 'sentence\tlabel\ngood film\tpos\nfine\tneutral\n' >"$tmp/other.tsv"
ok "an unknown label" exits 3 "$sesame" eval "$tmp/nb" "$tmp/other.tsv"
ok "its line" err_has 'line 3'
ok "another pipeline" exits 3 "$sesame" embed -m "$tmp/nb" "a text"
ok "its message" err_has 'a classifier of texts does not support embed'
ok "a sigmoid" exits 2 "$sesame" text-classification -m "$tmp/nb" --function-to-apply sigmoid "a text"
ok "eval as regression" exits 2 "$sesame" eval "$tmp/nb" "$tmp/dev.tsv" --task regress

# ---- damaged folders ----

damaged() # what, message
{
    ok "$1" exits 3 "$sesame" text-classification -m "$tmp/damaged" "a text"
    ok "$1: message" err_has "$2"
    ok "$1: eval" exits 3 "$sesame" eval "$tmp/damaged" "$tmp/dev.tsv" --task classify
    ok "$1: eval's message" err_has "$2"
    rm -r "$tmp/damaged"
    cp -r "$tmp/nb" "$tmp/damaged"
}
cp -r "$tmp/nb" "$tmp/damaged"
sed -i 's/"format": 1/"format": 9/' "$tmp/damaged/config.json"
damaged "another version" 'format 9 of the classifier; this version reads format 1'
sed -i '$d' "$tmp/damaged/vocab.txt"
damaged "a lost word" 'vocab.txt has 84 bytes; expected 91'
rm "$tmp/damaged/vocab.txt"
damaged "no vocabulary" 'vocab.txt'
head -c 200 "$tmp/nb/model.safetensors" >"$tmp/damaged/model.safetensors"
damaged "lost weights" 'model.safetensors'

counted
