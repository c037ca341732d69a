#!/bin/sh
# finetune --patterns and --method: cloze classifiers, PET, iPET, ADAPET, LM-BFF, SetFit, self-training.
# Usage: test_few_shot.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cat >"$tmp/patterns.json" <<END
{"patterns": ["{text} it was {mask} .", "{mask} ? {sep} {text}"], "verbalizers": {"neg": "bad", "pos": ["good", "paris"]}}
END
cut -f1 "$tmp/train.tsv" | head -41 >"$tmp/more.tsv"
{ head -1 "$tmp/train.tsv"; sed -n '2,9p' "$tmp/train.tsv"; } >"$tmp/few.tsv"
few="--task classify --model $tmp/base --threads 1 --lr 3e-3 --batch-size 8 --train $tmp/few.tsv --eval $tmp/dev.tsv"

# ---- a cloze classifier ----

# shellcheck disable=SC2086
ok "patterns" exits 0 "$sesame" finetune $small --task classify --patterns "$tmp/patterns.json" --pattern 2 \
    --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 6 -o "$tmp/base"
ok "learned" above "$(score eval_accuracy "$tmp/base/all_results.json")" 0.95
ok "a masked LM" grep -q BertForMaskedLM "$tmp/base/config.json"
ok "its pattern" grep -q '{mask} ? {sep} {text}' "$tmp/base/patterns.json"
ok "its card" grep -q 'sesame text-classification --model FOLDER' "$tmp/base/README.md"
ok "no other" test "$(grep -c '{mask}' "$tmp/base/patterns.json")" -eq 1
ok "eval" exits 0 "$sesame" eval "$tmp/base" "$tmp/dev.tsv" --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/base/eval_results.json")"
ok "the same loss" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/base/eval_results.json")"
ok "predict" exits 0 "$sesame" predict "$tmp/base" "$tmp/more.tsv"
ok "labels" test "$(head -2 "$tmp/out" | sed 's/, "score.*/}/' | tr -d '\n')" = '{"label": "neg"}{"label": "pos"}'
label=$(head -1 "$tmp/out")
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/base" --json "the film was bad ."
ok "to the last digit" test "$(cat "$tmp/out")" = "[$label]"
ok "all labels" exits 0 "$sesame" text-classification -m "$tmp/base" --top-k all --json "the film was bad ."
ok "two of them" out_has '"neg".*"pos"'
ok "without training" exits 0 "$sesame" eval "$tmp/base" "$tmp/dev.tsv" --task classify --patterns "$tmp/patterns.json" \
    --json
ok "another pattern" test "$(score eval_loss "$tmp/out")" != "$(score eval_loss "$tmp/base/eval_results.json")"

# A long text loses tokens, the pattern does not: the mask is still there.
awk 'BEGIN { printf "sentence\tlabel\n"; for (i = 0; i < 500; i++) printf "film "; print "\tpos" }' >"$tmp/long.tsv"
ok "a long text" exits 0 "$sesame" eval "$tmp/base" "$tmp/long.tsv"
ok "truncated" err_has '1 of 1 examples are longer than 64 tokens and were truncated'

# Words behind the text, the pair and the mask.
printf '{"patterns": ["{text} {mask} {pair} it was ."], "verbalizers": {"neg": "bad", "pos": "good"}}' >"$tmp/p.json"
awk -F'\t' 'NR == 1 { print "sentence1\tsentence2\tlabel" } NR > 1 { print $1 "\tthe film\t" $2 }' "$tmp/dev.tsv" >"$tmp/pairs.tsv"
ok "pairs" exits 0 "$sesame" eval "$tmp/base" "$tmp/pairs.tsv" --task classify --patterns "$tmp/p.json"

# The files of docs/recipes/patterns have words of one token in the bundled vocabulary.
for task in sst2 agnews trec imdb mr subj rte mrpc; do
    case $task in
    rte) printf 'index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n' ;;
    mrpc) printf 'a\tb\tc\td\te\n1\t2\t3\ta film\tthe film\n' ;;
    trec) printf 'coarse\tfine\tquestion\nNUM\tdist\tHow far ?\n' ;;
    agnews) printf 'A game.\tSports\n' ;;
    imdb) printf 'text\tlabel\nA film.\t1\n' ;;
    *) printf 'sentence\tlabel\nA film.\t1\n' ;;
    esac >"$tmp/$task.tsv"
    for i in $(seq "$(grep -c '{mask}' docs/recipes/patterns/$task.json)"); do
        ok "$task $i" exits 0 "$sesame" eval sesame-small "$tmp/$task.tsv" --task $task \
            --patterns docs/recipes/patterns/$task.json --pattern "$i"
    done
done

# ---- PET ----

pet="--method pet --patterns $tmp/patterns.json --unlabeled $tmp/more.tsv --repetitions 2 --member-steps 6 --epochs 8"
# shellcheck disable=SC2086
ok "PET" exits 0 "$sesame" finetune $few $pet -o "$tmp/pet"
ok "four members" test "$(grep -c '^generation-1-pattern-[12]-repetition-[12]$' "$tmp/err")" -eq 4
ok "a classifier" grep -q BertForSequenceClassification "$tmp/pet/config.json"
ok "learned" above "$(score eval_accuracy "$tmp/pet/all_results.json")" 0.95
ok "without patterns" test ! -e "$tmp/pet/patterns.json"
ok "members are gone" test ! -e "$tmp/pet/.sesame-members"
# The final model learns scores: texts with one best label are enough.
awk 'NR == 1 || NR % 2 == 0' "$tmp/more.tsv" >"$tmp/one-label.tsv"
# shellcheck disable=SC2086
ok "PET, texts of one label" exits 0 "$sesame" finetune $few --method pet --patterns "$tmp/patterns.json" \
    --unlabeled "$tmp/one-label.tsv" --repetitions 1 --member-steps 6 --epochs 1 -o "$tmp/pet-one"
ok "they have one label" test "$("$sesame" predict "$tmp/pet" "$tmp/one-label.tsv" | grep -o '"label": "[a-z]*"' | sort -u | wc -l)" -eq 1
ok "eval" exits 0 "$sesame" eval "$tmp/pet" "$tmp/dev.tsv" --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/pet/eval_results.json")"
# shellcheck disable=SC2086
ok "the same again" exits 0 "$sesame" finetune $few $pet -o "$tmp/pet2"
ok "bit for bit" cmp -s "$tmp/pet/model.safetensors" "$tmp/pet2/model.safetensors"
# shellcheck disable=SC2086
ok "nothing to resume" exits 0 "$sesame" finetune $few $pet -o "$tmp/pet" --resume
ok "a notice" err_has 'the run is complete'
# shellcheck disable=SC2086
ok "other settings" exits 2 "$sesame" finetune $few $pet -o "$tmp/pet" --resume --soft-temperature 3
ok "names them" err_has 'the run to resume has soft-temperature 2'
for other in '--weight-decay 0.3' '--schedule constant' '--warmup 7' '--optimizer sgd' '--clip 3' '--pattern 2'; do
    # shellcheck disable=SC2086
    ok "other settings: $other" exits 2 "$sesame" finetune $few $pet -o "$tmp/pet" --resume $other
    ok "named: $other" err_has 'the run to resume has '
done
sed 's/{mask}/ {mask}/' "$tmp/patterns.json" >"$tmp/other.json"
# shellcheck disable=SC2086
ok "other patterns" exits 2 "$sesame" finetune $few $pet -o "$tmp/pet" --resume --patterns "$tmp/other.json"
ok "named" err_has 'the run to resume has patterns (SHA-256) '

# Interrupted: finished members are kept, the rest gives the same bits.
# shellcheck disable=SC2086
"$sesame" finetune $few $pet -o "$tmp/part" >/dev/null 2>"$tmp/err" &
pid=$!
i=0
while [ ! -e "$tmp/part/.sesame-members/generation-1-pattern-1-repetition-2.json" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
kill -INT $pid 2>/dev/null
wait $pid
code=$?
if [ -d "$tmp/part/.sesame-members" ]; then
    ok "interrupted" test $code -eq 130
    # shellcheck disable=SC2086
    ok "refused without --resume" exits 3 "$sesame" finetune $few $pet -o "$tmp/part"
    ok "names the options" err_has 'an unfinished run; resume continues it'
    ok "resumed" exits 0 "$sesame" finetune -o "$tmp/part" --resume --threads 1
    ok "skips members" err_has 'generation-1-pattern-1-repetition-1: finished before'
fi
ok "the same bits" cmp -s "$tmp/pet/model.safetensors" "$tmp/part/model.safetensors"

# Checkpoints of a run that was replaced are not resumed.
if [ -d "$tmp/pet/checkpoint-40" ]; then
    # shellcheck disable=SC2086
    "$sesame" finetune $few $pet --seed 7 -o "$tmp/pet" --overwrite >/dev/null 2>&1 &
    pid=$!
    i=0
    while [ ! -e "$tmp/pet/.sesame-members/generation-1-pattern-1-repetition-1.json" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
    kill -INT $pid 2>/dev/null
    wait $pid
    # shellcheck disable=SC2086
    ok "resumed after --overwrite" exits 0 "$sesame" finetune $few $pet --seed 7 -o "$tmp/pet" --resume
    ok "another seed" test "$(score eval_loss "$tmp/pet/all_results.json")" != "$(score eval_loss "$tmp/pet2/all_results.json")"
else
    ok "checkpoints of PET: $(ls "$tmp/pet")" false
fi

# shellcheck disable=SC2086
ok "iPET" exits 0 "$sesame" finetune $few --method ipet --patterns "$tmp/patterns.json" --unlabeled "$tmp/more.tsv" \
    --repetitions 2 --member-steps 4 --generations 2 --growth 2 --epochs 8 -o "$tmp/ipet"
ok "eight members" test "$(grep -c '^generation-[12]-pattern-[12]-repetition-[12]$' "$tmp/err")" -eq 8
ok "the second generation has more" err_has '16 examples of'
ok "learned" above "$(score eval_accuracy "$tmp/ipet/all_results.json")" 0.95

# ---- one masked LM ----

for method in adapet lm-bff; do
    # shellcheck disable=SC2086
    ok "$method" exits 0 "$sesame" finetune $few --method $method --patterns "$tmp/patterns.json" --member-steps 60 -o "$tmp/$method"
    ok "$method learned" above "$(score eval_accuracy "$tmp/$method/all_results.json")" 0.95
    ok "$method eval" exits 0 "$sesame" eval "$tmp/$method" "$tmp/dev.tsv" --json
    ok "the same loss" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/$method/eval_results.json")"
    ok "$method predict" exits 0 "$sesame" predict "$tmp/$method" "$tmp/more.tsv"
    label=$(sed -n 2p "$tmp/out")
    ok "$method pipeline" exits 0 "$sesame" text-classification -m "$tmp/$method" --json "it was good ."
    ok "the same label" test "$(cat "$tmp/out")" = "[$label]"
    ok "$method: nothing to resume" exits 0 "$sesame" finetune -o "$tmp/$method" --resume --threads 1
    ok "$method: a notice" err_has 'the run is complete'
done
# shellcheck disable=SC2086
ok "words" exits 0 "$sesame" finetune $few --method lm-bff --patterns "$tmp/patterns.json" --search-words 5 --member-steps 2 -o "$tmp/words"
word=$(sed -n 's/^word of pos: //p' "$tmp/err")
ok "found" test -n "$word"
ok "kept" grep -q "\"pos\": \"$word\"" "$tmp/words/patterns.json"
ok "demonstrations" test "$(grep -c '"text"' "$tmp/lm-bff/patterns.json")" -eq 8

# ---- SetFit ----

# shellcheck disable=SC2086
ok "SetFit" exits 0 "$sesame" finetune $few --method setfit --pair-draws 4 -o "$tmp/setfit"
ok "learned" above "$(score eval_accuracy "$tmp/setfit/all_results.json")" 0.95
ok "nothing to resume" exits 0 "$sesame" finetune -o "$tmp/setfit" --resume --threads 1
ok "a notice" err_has 'the run is complete'
ok "another C" exits 2 "$sesame" finetune -o "$tmp/setfit" --resume --threads 1 --c 3
ok "named" err_has 'the run to resume has c 1'
ok "eval" exits 0 "$sesame" eval "$tmp/setfit" "$tmp/dev.tsv" --json
ok "the same loss" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/setfit/eval_results.json")"
ok "predict" exits 0 "$sesame" predict "$tmp/setfit" "$tmp/more.tsv"
label=$(sed -n 2p "$tmp/out")
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/setfit" --json "it was good ."
ok "the same label" test "$(cat "$tmp/out")" = "[$label]"

# A part of the training data.
# shellcheck disable=SC2086
ok "shots" exits 0 "$sesame" finetune $few --method setfit --pair-draws 4 --shots 2 -o "$tmp/shots"
ok "of each label" test "$(score train_samples "$tmp/shots/all_results.json")" = 4
# shellcheck disable=SC2086
ok "too many shots" exits 3 "$sesame" finetune $few --method setfit --shots 5 -o "$tmp/bad"
ok "names the class" err_has 'few.tsv'

# ---- self-training ----

sed 1d "$tmp/more.tsv" >"$tmp/more.txt"
printf 'the "film was\tgood .\n' >>"$tmp/more.txt" # neither a tab nor a quote divides a line
# shellcheck disable=SC2086
ok "self-training" exits 0 "$sesame" finetune $few --method self-training --unlabeled "$tmp/more.txt" --rounds 2 --threshold 0.6 \
    --epochs 12 -o "$tmp/self"
ok "a round" err_has 'round 1: [0-9]* of 41 texts have a label of probability 0.6 or more'
ok "learned" above "$(score eval_accuracy "$tmp/self/all_results.json")" 0.95

# ---- refused ----

refused() # what, exit code, message, options
{
    what=$1 code=$2 message=$3
    shift 3
    # shellcheck disable=SC2086
    ok "$what" exits "$code" "$sesame" finetune $few -o "$tmp/bad" "$@"
    ok "$what: message" err_has "$message"
    ok "$what: leaves nothing" test ! -e "$tmp/bad/config.json"
    rm -rf "$tmp/bad"
}
pattern() # what, message, patterns, verbalizers
{
    printf '{"patterns": %s, "verbalizers": %s}' "$3" "$4" >"$tmp/p.json"
    refused "$1" 3 "$2" --patterns "$tmp/p.json"
}
words='{"neg": "bad", "pos": "good"}'
pattern "no mask" 'p.json: pattern 1: {mask} occurs 0 times; expected once' '["{text} ."]' "$words"
pattern "two masks" 'p.json: pattern 2: {mask} occurs 2 times' '["{mask} {text}", "{mask} {text} {mask}"]' "$words"
pattern "no text" '{text} occurs 0 times' '["{mask}"]' "$words"
pattern "an unknown field" '"{label}" is not a field' '["{text} {mask} {label}"]' "$words"
pattern "no patterns" '"patterns" has 0 entries' '[]' "$words"
pattern "a label without a word" 'the label "pos" of the data has no verbalizer; the patterns have neg, other' \
    '["{text} {mask}"]' '{"neg": "bad", "other": "good"}'
pattern "several tokens" 'verbalizer of "pos": "goods" has 2 tokens (good, ##s); expected a word that is one token' \
    '["{text} {mask}"]' '{"neg": "bad", "pos": "goods"}'
pattern "an unknown word" 'verbalizer of "pos": "xyz" is not in the model' '["{text} {mask}"]' '{"neg": "bad", "pos": "xyz"}'
pattern "one token for two labels" 'the labels "neg" and "pos" have the same token "good"' '["{text} {mask}"]' \
    '{"neg": ["bad", "good"], "pos": "good"}'
pattern "a pattern of pairs" 'the pattern has {pair}, but the data have one text' '["{text} {pair} {mask}"]' "$words"
printf '{"patterns": ["{text} %s {mask}"], "verbalizers": %s}' "$(printf 'film %.0s' $(seq 70))" "$words" >"$tmp/p.json"
refused "a pattern too long" 3 'the pattern has 73 tokens without the text, a sequence at most 64' --patterns "$tmp/p.json"
printf '{' >"$tmp/p.json"
refused "no JSON" 3 'p.json: line 1' --patterns "$tmp/p.json"
refused "no such pattern" 2 'pattern 3; the file has 2' --patterns "$tmp/patterns.json" --pattern 3
refused "no patterns" 2 'method pet needs --patterns FILE' --method pet --unlabeled "$tmp/more.tsv"
refused "no texts" 2 'method pet needs --unlabeled FILE' --method pet --patterns "$tmp/patterns.json"
printf 'sentence\n' >"$tmp/empty.tsv"
refused "an empty file" 3 'empty.tsv: no ' --method pet --patterns "$tmp/patterns.json" --unlabeled "$tmp/empty.tsv"
refused "an unknown method" 2 'unknown method "pets"; choose one of majority, .*pet, ipet, adapet' --method pets
refused "a setting of another method" 2 '--rounds has no effect on method setfit' --method setfit --rounds 4
refused "a setting without a method" 2 '--rounds has no effect without --method' --rounds 4
refused "epochs of SetFit" 2 'method setfit has no epochs: --pair-draws or --steps sets its length' --method setfit --epochs 5
refused "a setting of classifiers" 2 '--ngrams has no effect on method setfit' --method setfit --ngrams 2
refused "another task" 2 'patterns apply to the task classify, not regress' --task regress --patterns "$tmp/patterns.json"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
