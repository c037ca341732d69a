#!/bin/sh
# ladder: methods, table, pictures, JSON, a split file, resume, interruption, refusals.
# Usage: test_ladder.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# A model for the last methods.
# shellcheck disable=SC2086
ok "a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 1 -o "$tmp/model"

ladder() { "$sesame" ladder classify "$tmp/train.tsv" "$tmp/dev.tsv" -m "$tmp/model" --bootstrap 100 --lr 3e-3 "$@"; }
ok "ladder" exits 0 ladder -o "$tmp/all" --svg "$tmp/all.svg" --html "$tmp/all.html" --seeds 2 --epochs 4
ok "a row each" test "$(grep -c '^\(majority\|nb\|nb-bi\|nb-svm\|nb-svm-bi\|vectors\|fasttext\|bilstm\|lm-lstm\|sa-lstm\|features\|finetuned\) .* to ' "$tmp/out")" = 12
ok "two methods are left out" out_has 'ulmfit has no result.*--lm DIR'
ok "with their options" out_has 'elmo has no result.*--elmo DIR'
ok "results during the run" err_has '^nb-svm: accuracy 1.0000'
ok "no language model is left" test ! -e "$tmp/all/lm-lstm-lm"
ok "bars" test "$(grep -c '^nb-svm-bi  ' "$tmp/out")" = 2
ok "pictures" grep -q '<svg.*Methods on dev.tsv' "$tmp/all.svg"
ok "a page" grep -q '<html' "$tmp/all.html"
for method in majority nb nb-bi nb-svm nb-svm-bi vectors fasttext bilstm lm-lstm sa-lstm finetuned; do
    ok "$method opens" exits 0 "$sesame" eval "$tmp/all/$method" "$tmp/dev.tsv" --json
    ok "$method: the score of its row" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/all/$method/all_results.json")"
done
ok "a second seed" test -s "$tmp/all/finetuned-seed=43/config.json" -a -s "$tmp/all/vectors-seed=43/config.json" -a ! -e "$tmp/all/nb-seed=43"
ok "no other files" test -z "$(find "$tmp/all" -maxdepth 1 -type f ! -name ladder.json ! -name .lock)"
ok "words are enough" above "$(score eval_accuracy "$tmp/all/nb-svm/all_results.json")" 0.99

# Finished methods are not repeated.
ok "not without being asked" exits 3 ladder -o "$tmp/all"
ok "its message" err_has '--resume continues'
touch -d '2001-01-01' "$tmp/all/nb/config.json" "$tmp/all/features/all_results.json"
rm -r "$tmp/all/nb-bi"
ok "resume" exits 0 ladder -o "$tmp/all" --resume --seeds 2 --epochs 4 --json
ok "old files stay" test "$tmp/all/nb/config.json" -ot "$tmp/all/nb-bi/config.json"
ok "features too" test "$tmp/all/features/all_results.json" -ot "$tmp/all/nb-bi/config.json"
ok "all rows" test "$(grep -o '"method"' "$tmp/out" | wc -l)" = 14
ok "settings" out_has '"train_texts": 80, "test_texts": 20'
ok "one row" exits 0 ladder -o "$tmp/all" --resume --only nb --epochs 4 --json
bytes=$(score bytes "$tmp/out")
sed -i 's/"eval_accuracy":/"other":/' "$tmp/all/nb/all_results.json"
ok "a run without a score" exits 0 ladder -o "$tmp/all" --resume --only nb --epochs 4 --json
ok "is repeated and counts once" above "$bytes" "$(awk -v x="$(score bytes "$tmp/out")" 'BEGIN { print x / 1.5 + 1 }')"
ok "another setting" exits 3 ladder -o "$tmp/all" --resume --epochs 5
ok "its message" err_has 'was run with epochs 4'

# Selection, a split file.
ok "only" exits 0 "$sesame" ladder classify "$tmp/train.tsv" --only majority,nb --json --seed 7
ok "two rows" test "$(grep -o '"method"' "$tmp/out" | wc -l)" = 2
ok "a fifth is split off" out_has '"train_texts": 64, "test_texts": 16'
cp "$tmp/out" "$tmp/first"
ok "again" exits 0 "$sesame" ladder classify "$tmp/train.tsv" --only majority,nb --json --seed 7
ok "the same split" test "$(score score "$tmp/out")" = "$(score score "$tmp/first")"
ok "said" exits 0 "$sesame" ladder classify "$tmp/train.tsv" --only majority --test-size 0.5
ok "in a note" out_has 'train.tsv was split: 40 texts for training, 40'
ok "skip" exits 0 ladder --skip nb,nb-bi,nb-svm,vectors,fasttext,bilstm,lm-lstm,sa-lstm,ulmfit,elmo,features,finetuned --json
ok "leaves two" test "$(grep -o '"method"' "$tmp/out" | wc -l)" = 2
ok "a benchmark" exits 0 "$sesame" ladder sst2 "$tmp/train.tsv" "$tmp/dev.tsv" --labels 'neg|pos' --only nb
printf 'good 1 0.5\nbad -1 0.5\n' >"$tmp/vectors.txt"
ok "vectors of a file" exits 0 ladder --only vectors --vectors "$tmp/vectors.txt" --json
ok "are used" above "$(score score "$tmp/out")" 0.99

ok "a recurrent encoder" exits 0 ladder --only bilstm --vectors "$tmp/vectors.txt" --json
ok "learns" above "$(score score "$tmp/out")" 0.99

# ULMFiT from a tiny language model, and features of ELMo.
cut -f 1 "$tmp/train.tsv" >"$tmp/texts"
ok "words" exits 0 "$sesame" train-tokenizer --type wordlevel --vocab-size 60 -q -o "$tmp/lm.json" "$tmp/texts"
ok "corpus" exits 0 "$sesame" corpus build --tokenizer "$tmp/lm.json" -o "$tmp/ids" "$tmp/texts"
ok "general model" exits 0 "$sesame" pretrain -c "$tmp/ids" --tokenizer "$tmp/lm.json" -p ulmfit --set emb_sz=16 --set n_hid=24 --objective bptt --length 10 \
    --steps 5 --threads 1 -o "$tmp/general"
ok "ULMFiT and ELMo" exits 0 ladder --only ulmfit,elmo --lm "$tmp/general" --elmo tests/fixtures/elmo -o "$tmp/lms" --json
ok "two rows" test "$(grep -o '"score"' "$tmp/out" | wc -l)" = 2
ok "a classifier" grep -q 'AwdLstmForSequenceClassification' "$tmp/lms/ulmfit/config.json"
ok "a mix of layers" grep -q '"mix_layers": true' "$tmp/lms/elmo/config.json"
ok "the language model's time" test -s "$tmp/lms/ulmfit/rung.json"
ok "ULMFiT opens" exits 0 "$sesame" eval "$tmp/lms/ulmfit" "$tmp/dev.tsv" --json
ok "its score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/lms/ulmfit/all_results.json")"
ok "not a language model" exits 3 ladder --only ulmfit --lm "$tmp/model"
ok "named" err_has '--lm .*expected "awd-lstm"'

# The parts of that method.
ok "a tokenizer" exits 0 "$sesame" vectors tokenizer "$tmp/vectors.txt" -o "$tmp/words.json"
ok "its words" test "$(echo 'Good, bad' | "$sesame" tokenize -m "$tmp/words.json")" = 'good [UNK] bad [SEP]'
bilstm() { "$sesame" finetune --config bilstm --tokenizer "$tmp/words.json" --task classify --train "$tmp/train.tsv" --epochs 1 "$@"; }
ok "vectors of the first layer" exits 0 bilstm --vectors "$tmp/vectors.txt" -o "$tmp/bilstm"
ok "their width" grep -q '"embedding_size": 2' "$tmp/bilstm/config.json"
ok "missing vectors" exits 3 bilstm --vectors "$tmp/none.txt" -o "$tmp/bilstm2"
printf 'other 1 0.5\nwords -1 0.5\n' >"$tmp/other.txt"
ok "no common word" exits 3 bilstm --vectors "$tmp/other.txt" -o "$tmp/bilstm2"
ok "its message" err_has 'no token of the tokenizer is a word'
ok "vectors without a config" exits 2 "$sesame" finetune -m "$tmp/model" --vectors "$tmp/vectors.txt" --task classify --train "$tmp/train.tsv" -o "$tmp/bilstm2"

# A method that fails leaves the others.
printf '2 2\ngood 1 0\nbad 0 x\n' >"$tmp/broken.txt" # the second vector
ok "a method fails" exits 0 ladder --only nb,vectors --vectors "$tmp/broken.txt"
ok "its reason" out_has 'vectors has no result: .*broken.txt'
ok "the other" out_has '^nb '
ok "all fail" exits 1 ladder --only vectors --vectors "$tmp/broken.txt"
ok "its message" err_has 'no method has a result'
mkdir "$tmp/broken" && cp "$tmp/config.json" "$tmp/broken" # without weights
ok "no model" exits 0 "$sesame" ladder classify "$tmp/train.tsv" "$tmp/dev.tsv" -m "$tmp/broken" --only nb,features,finetuned
ok "the reason of features" out_has 'features has no result: .*broken'
ok "the reason of finetuned" out_has 'finetuned has no result: .*broken'
printf 'sentence\tlabel\na\tpos\nb\tneg\na\tpos\n' >"$tmp/rare.tsv"
ok "no text for vectors" exits 0 "$sesame" ladder classify "$tmp/rare.tsv" "$tmp/rare.tsv" --only nb,vectors --bootstrap 10
ok "the reason of vectors" out_has 'vectors has no result: .*a vocabulary of one'

# Interruption keeps the finished rows.
"$sesame" ladder classify "$tmp/train.tsv" "$tmp/dev.tsv" -m "$tmp/model" --bootstrap 100 -o "$tmp/stopped" --only nb,finetuned \
    --epochs 2000 --json >"$tmp/out" 2>"$tmp/err" &
pid=$!
i=0
while [ ! -e "$tmp/stopped/nb/config.json" ] && [ $i -lt 1200 ]; do sleep 0.1; i=$((i + 1)); done
sleep 0.3
kill -INT $pid
wait $pid
code=$?
ok "the code of the signal" test $code = 130 -o $code = 0 # a fast machine may have finished
ok "the finished row" out_has '"method": "nb", "summary": "Naive Bayes, words", "score": 1'
[ $code = 0 ] || ok "resumable" err_has '--resume continues'

ok "an unknown method" exits 2 ladder --only nb,svm
ok "its message" err_has '--only: unknown method "svm"; choose one of .*majority'
ok "no method" exits 2 ladder --only nb --skip nb
ok "another task" exits 2 "$sesame" ladder tag "$tmp/train.tsv"
ok "its message" err_has 'use classify'
ok "a file that does not exist" exits 3 "$sesame" ladder classify "$tmp/none.tsv"
printf 'sentence\tlabel\ngood\tpos\nbad\tneg\n' >"$tmp/two.tsv"
ok "too few texts" exits 3 "$sesame" ladder classify "$tmp/two.tsv"
ok "its message" err_has 'too few to split'
ok "resume without a folder" exits 2 ladder --resume
ok "a picture that exists" exits 2 ladder --svg "$tmp/all.svg"

counted
