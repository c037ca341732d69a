#!/bin/sh
# ELMo by the command: original files, conversion, features, scalar mix, carried state, pretraining.
set -u
. tests/counted.sh

elmo=tests/fixtures/elmo
same() { if cmp -s "$1" "$2"; then pass; else fail "$1 and $2 differ"; fi; }
differ() { if cmp -s "$1" "$2"; then fail "$1 and $2 are equal"; else pass; fi; }
has() { if grep -qF -- "$2" "$1"; then pass; else fail "$1 lacks \"$2\""; fi; }
features() { "$sesame" features -q -m "$@" --format tsv --pool words; }

# original files and converted ones
"$sesame" info $elmo >"$tmp/info" && pass || fail 'info'
has "$tmp/info" 'elmo (ElmoModel)'
has "$tmp/info" 'words, split at white space'
has "$tmp/info" 'forward LSTM'
"$sesame" convert $elmo "$tmp/own" >"$tmp/out" && pass || fail 'convert'
printf 'The cat sat .\nThe \347\214\253\n' >"$tmp/two"
features $elmo --layers 0-2 --combine concat -f "$tmp/two" >"$tmp/a" || fail 'features'
features "$tmp/own" --layers 0-2 --combine concat -f "$tmp/two" >"$tmp/b" || fail 'features of the converted folder'
same "$tmp/a" "$tmp/b"
if [ "$(wc -l <"$tmp/a")" -eq 6 ]; then pass; else fail 'words'; fi
if [ "$(awk 'NR == 1 { print NF }' "$tmp/a")" -eq 32 ]; then pass; else fail 'columns'; fi
"$sesame" convert --dtype bf16 "$tmp/own" "$tmp/half" >"$tmp/out" && features "$tmp/half" 'The cat' >"$tmp/h" && pass || fail 'bf16'

# words that are split already; words of more than 50 characters; an empty text
printf '{"words": ["The", "cat", "sat", "."]}\n{"words": ["The", "\347\214\253"]}\n' >"$tmp/words.jsonl"
features $elmo --layers 0-2 --combine concat --jsonl -f "$tmp/words.jsonl" >"$tmp/b"
same "$tmp/a" "$tmp/b"
long=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
features $elmo "$long" | cut -f3- >"$tmp/a48"
features $elmo "${long}bcd" | cut -f3- >"$tmp/a51"
same "$tmp/a48" "$tmp/a51"
# which is counted
"$sesame" features -m $elmo --format tsv --pool words "$long The" >"$tmp/out" 2>"$tmp/err"
if grep -q 'longer than' "$tmp/err"; then fail "a word of 48 bytes: $(cat "$tmp/err")"; else pass; fi
"$sesame" features -m $elmo --format tsv --pool words "${long}b The ${long}bcd" The "${long}x" >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" '3 words are longer than 48 bytes: only the beginning of such words is read'
features $elmo "${long}b" >"$tmp/out" 2>"$tmp/err"
if [ -s "$tmp/err" ]; then fail "a notice in spite of -q: $(cat "$tmp/err")"; else pass; fi
features $elmo '' >"$tmp/empty" && pass || fail 'empty text'
if [ -s "$tmp/empty" ]; then fail 'an empty text has words'; else pass; fi

# scalar mix: equal numbers are the mean; the gain is a factor
features $elmo --layers 0-2 'The cat' >"$tmp/mean"
features $elmo --layers 0-2 --mix 1,1,1 'The cat' >"$tmp/mix"
same "$tmp/mean" "$tmp/mix"
features $elmo --layers 0-2 --mix 0,0,100:2 'The cat' | awk '{ printf "%.4f\n", $3 }' >"$tmp/mix"
features $elmo --layers 2 'The cat' | awk '{ printf "%.4f\n", 2 * $3 }' >"$tmp/top"
same "$tmp/top" "$tmp/mix"
for bad in 1,2 1,2,3,4 1,x,2 1,2,3:y ''; do
    "$sesame" features -m $elmo --layers 0-2 --mix "$bad" x >"$tmp/out" 2>"$tmp/err"
    if [ $? -eq 2 ]; then pass; else fail "--mix '$bad'"; fi
done
has "$tmp/err" 'expected 3 numbers'

# the carried state changes a later text, and only with --stateful
features $elmo -f "$tmp/two" >"$tmp/alone"
features $elmo --stateful -f "$tmp/two" >"$tmp/carried"
head -n 4 "$tmp/alone" >"$tmp/x" && head -n 4 "$tmp/carried" >"$tmp/y" && same "$tmp/x" "$tmp/y"
tail -n 2 "$tmp/alone" >"$tmp/x" && tail -n 2 "$tmp/carried" >"$tmp/y" && differ "$tmp/x" "$tmp/y"
"$sesame" features -m sesame-small --stateful x >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" 'carries no state'
features $elmo --stateful --batch-tokens 4096 -f "$tmp/two" >"$tmp/x" && same "$tmp/x" "$tmp/carried"

# damaged folders
mkdir "$tmp/bad" && cp $elmo/options.json "$tmp/bad" && head -c 20000 $elmo/weights.hdf5 >"$tmp/bad/weights.hdf5"
"$sesame" features -m "$tmp/bad" x >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" 'weights.hdf5: truncated: 20000 bytes'
sed 's/"n_characters": 262/"n_characters": 100/' $elmo/options.json >"$tmp/bad/options.json"
"$sesame" info "$tmp/bad" >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" '"n_characters" is 100'
sed 's/"dim": 7/"dim": 8/' $elmo/options.json >"$tmp/bad/options.json"
cp $elmo/weights.hdf5 "$tmp/bad"
"$sesame" info "$tmp/bad" >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" 'has another shape than options.json requires'
cp $elmo/options.json "$tmp/bad/second_options.json"
"$sesame" info "$tmp/bad" >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" '2 files *options.json'

# pretraining: each word determines its neighbors
awk 'BEGIN { srand(1); for (i = 0; i < 1200; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' \
    >"$tmp/text"
echo '{"pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1],
"sep": ["[SEP]", 2]}}' >"$tmp/stages.json"
"$sesame" train-tokenizer --type wordlevel --special-tokens '[UNK],[CLS],[SEP]' --stages "$tmp/stages.json" \
    --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
run="$sesame pretrain -c $tmp/c --tokenizer $tmp/t.json -p elmo-small --objective bilm --set lstm_dim=32 --set projection_dim=16
    --set filters=[[1,8],[3,16]] --set sampled_softmax=20 --steps 30 --lr 2e-2 --eval-every 10 --save-every 10 --keep 9 -q"
# shellcheck disable=SC2086  # a list of options
{
    $run --threads 2 -o "$tmp/m" >"$tmp/out" 2>"$tmp/err" && pass || fail "pretrain: $(cat "$tmp/err")"
    $run --threads 1 -o "$tmp/n" >"$tmp/out" 2>"$tmp/err" && pass || fail 'pretrain with one thread'
}
same "$tmp/m/model.safetensors" "$tmp/n/model.safetensors"
loss=$(sed -n 's/.*"eval_bilm_loss": \([0-9.]*\).*/\1/p' "$tmp/m/all_results.json" | head -n 1)
if awk "BEGIN { exit !($loss > 0 && $loss < 3.7) }"; then pass; else fail "loss $loss"; fi
# words of the vocabulary, and of the texts of a task, that are longer than 48 bytes
sed "s/w1 /$long$long /; s/w2 /b$long /" "$tmp/text" >"$tmp/text2"
"$sesame" train-tokenizer --type wordlevel --special-tokens '[UNK],[CLS],[SEP]' --stages "$tmp/stages.json" --vocab-size 200 -q -o "$tmp/t2.json" \
    "$tmp/text2" && "$sesame" corpus build --tokenizer "$tmp/t2.json" -o "$tmp/c2" "$tmp/text2" >"$tmp/out" || exit 1
"$sesame" pretrain -c "$tmp/c2" --tokenizer "$tmp/t2.json" -p elmo-small --objective bilm --set lstm_dim=8 --set projection_dim=8 --set 'filters=[[1,8]]' \
    --steps 1 -o "$tmp/long" >"$tmp/out" 2>"$tmp/err" && pass || fail "pretrain: $(cat "$tmp/err")"
has "$tmp/err" '2 words of the vocabulary are longer than 48 bytes'
has "$tmp/long/train_results.json" '"train_shortened_words": 2'
printf 'sentence\tlabel\nw1 %sa x\tpos\n%s\tneg\nw3 %sb %sc\tpos\n' "$long" "$long" "$long" "$long" >"$tmp/long.tsv"
for head in '' "--embed elmo:$elmo"; do
    set -- "$tmp/long.tsv" 3 classify
    [ -z "$head" ] || { printf 'w1 N O\n%sa N B-X\n\n%s N O\n%sb N B-X\n' "$long" "$long" "$long" >"$tmp/long.txt" && set -- "$tmp/long.txt" 2 tag; }
    # shellcheck disable=SC2086  # several options
    "$sesame" finetune ${head:--m $elmo --head bilstm --head-sizes 8} --task $3 --train "$1" --eval "$1" --epochs 1 --overwrite -o "$tmp/tuned" >"$tmp/out" 2>"$tmp/err" &&
        pass || fail "finetune: $(cat "$tmp/err")"
    has "$tmp/err" "$1: $2 words are longer than 48 bytes"
    has "$tmp/tuned/all_results.json" "\"train_shortened_words\": $2"
    has "$tmp/tuned/all_results.json" "\"eval_shortened_words\": $2"
    "$sesame" predict "$tmp/tuned" "$1" --task $3 >"$tmp/out" 2>"$tmp/err" && pass || fail "predict: $(cat "$tmp/err")"
    has "$tmp/err" "$2 words are longer than 48 bytes"
done
"$sesame" ner -m "$tmp/tuned" "w1 ${long}a lives" >"$tmp/out" 2>"$tmp/err" && pass || fail "ner: $(cat "$tmp/err")"
has "$tmp/err" '1 word is longer than 48 bytes'
features "$tmp/m" 'w1 w10 unseen' >"$tmp/out" && pass || fail 'features of a pretrained model'
if [ "$(wc -l <"$tmp/out")" -eq 3 ]; then pass; else fail 'words of a pretrained model'; fi
# Fine-tuning spells words outside the vocabulary, as pipelines do: all words of an original folder, few of a pretrained one.
printf 'sentence\tlabel\n' >"$tmp/train.tsv"
awk 'BEGIN { for (i = 0; i < 24; i++) print "w" i " " (i % 2 ? "unseen good" : "bad") "\t" (i % 2 ? "pos" : "neg") }' >>"$tmp/train.tsv"
score() { grep -o '"score": *[0-9.e-]*' "$1" | sed -n "$2p"; }
for model in $elmo "$tmp/m"; do
    "$sesame" finetune -m "$model" --task classify --head bilstm --head-sizes 8 --mix-layers --train "$tmp/train.tsv" --lr 1e-2 --epochs 40 --threads 1 -q \
        --overwrite -o "$tmp/tuned" >"$tmp/out" 2>"$tmp/err" && pass || fail "fine-tuning $model: $(cat "$tmp/err")"
    printf 'sentence\nw3 unseen good\nw7 bad\n' >"$tmp/new.tsv"
    "$sesame" predict "$tmp/tuned" "$tmp/new.tsv" --task classify >"$tmp/out" 2>"$tmp/err" && pass || fail "predict: $(cat "$tmp/err")"
    has "$tmp/out" '"label": "pos"'
    has "$tmp/out" '"label": "neg"'
    "$sesame" text-classification -m "$tmp/tuned" --json 'w3 unseen good' 'w7 bad' >"$tmp/pipe" 2>"$tmp/err" && pass || fail "pipeline: $(cat "$tmp/err")"
    for i in 1 2; do
        if [ -n "$(score "$tmp/out" $i)" ] && [ "$(score "$tmp/out" $i)" = "$(score "$tmp/pipe" $i)" ]; then pass; else fail "$(cat "$tmp/out" "$tmp/pipe")"; fi
    done
done
counted
