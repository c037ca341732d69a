#!/bin/sh
# LSTM language models: pretraining with a carried state, resumed and with asgd; the classifier of ULMFiT; a backward
# character model; errors.
set -u
. tests/counted.sh

gives() {
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame $*: exit $got, wanted $want: $(tail -n 2 "$tmp/err")"; fi
}
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\": $(cat "$tmp/err")"; fi; }
same() { if cmp -s "$1" "$2"; then pass; else fail "$1 and $2 differ"; fi; }
number() { sed -n "s/.*\"$2\": \([0-9.e-]*\).*/\1/p" "$1" | tail -n 1; }
equal() { if [ -n "$1" ] && [ "$1" = "$2" ]; then pass; else fail "$1 is not $2"; fi; }
below() { if awk "BEGIN { exit !($1 < $2) }"; then pass; else fail "$1 is not below $2"; fi; }

# The seventh word repeats the first: only a state remembers it.
awk 'BEGIN { srand(1); for (i = 0; i < 400; i++) { a = int(rand() * 8); s = ""
    for (j = 0; j < 12; j++) s = s " w" (j % 6 ? 10 + j % 6 : a); print s; if (i % 4 == 3) print "" } }' >"$tmp/text"
"$sesame" train-tokenizer --type wordlevel --vocab-size 100 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
small="--set emb_sz=24 --set n_hid=32 --set n_layers=2 --set output_p=0.1 --set hidden_p=0.1 --set input_p=0.1 --set weight_p=0.1"
lm="pretrain -c $tmp/c --tokenizer $tmp/t.json -p ulmfit $small --objective bptt --length 5 --pieces 8 -b 8 --threads 2"

# shellcheck disable=SC2086  # lists of options
{
run="--steps 90 --lr 1e-2 --schedule one_cycle --vary-window --eval-every 30 --save-every 30 --keep 9"
gives 0 $lm $run -o "$tmp/a"
below "$(number "$tmp/a/all_results.json" eval_bptt_loss)" 0.9
mkdir "$tmp/b" && cp -r "$tmp/a/checkpoint-30" "$tmp/a/pretrain.json" "$tmp/b/"
gives 0 $lm $run -o "$tmp/b" --resume --threads 1
err_has 'update 30 of 90'
same "$tmp/a/model.safetensors" "$tmp/b/model.safetensors"

# asgd: plain SGD, then the average.
run="--steps 40 --lr 20 --clip 0.25 --optimizer asgd --average-trigger 1 --schedule constant --warmup 0 --eval-every 4 --save-every 4 --keep 99"
gives 0 $lm $run -o "$tmp/asgd"
from=$(number "$tmp/asgd/checkpoint-40/trainer_state.json" average_from)
if [ "$from" -gt 0 ]; then pass; else fail "no average: $from"; fi
mkdir "$tmp/asgd2" && cp -r "$tmp/asgd/checkpoint-32" "$tmp/asgd/pretrain.json" "$tmp/asgd2/"
gives 0 $lm $run -o "$tmp/asgd2" --resume
same "$tmp/asgd/model.safetensors" "$tmp/asgd2/model.safetensors"
gives 0 $lm --steps 30 --lr 2 --clip 0.25 --optimizer sgd --momentum 0 --schedule plateau --plateau-decay 0.25 --plateau-patience 0 --warmup 0 --eval-every 3 -o "$tmp/plateau"

# Perplexity of a text, with the state carried over all of it.
head -n 8 "$tmp/text" >"$tmp/few"
gives 0 eval "$tmp/a" "$tmp/few" --task continue --max-length 40 --json
# ULMFiT: label by the first word.
awk 'BEGIN { print "sentence\tlabel" } NF { print $0 "\t" (substr($1, 2) < 4 ? "low" : "high") }' "$tmp/text" >"$tmp/train.tsv"
head -n 81 "$tmp/train.tsv" >"$tmp/dev.tsv"
tune="finetune --model $tmp/a --task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --set hidden_p=0.2 --set bptt=6 --threads 2"
tune="$tune --unfreeze --layer-decay 0.385 --schedule slanted --lr 2e-2 --epochs 8 --save-every 40 --keep 9 -b 16"
gives 0 $tune -o "$tmp/u"
err_has 'layers.1.2.weight'
accuracy=$(number "$tmp/u/all_results.json" eval_accuracy)
below 0.9 "$accuracy"
if grep -q '"hidden_p": 0.2' "$tmp/u/config.json"; then pass; else fail 'the config lacks --set'; fi
cp -r "$tmp/u" "$tmp/u2"
for c in "$tmp"/u2/checkpoint-*; do if [ "${c##*-}" -gt 40 ]; then rm -r "$c"; fi; done
gives 0 $tune -o "$tmp/u2" --resume
err_has 'update 40 of 200'
same "$tmp/u/model.safetensors" "$tmp/u2/model.safetensors"
gives 0 text-classification -m "$tmp/u" ' w1 w11 w12'
gives 3 $tune --optimizer asgd -o "$tmp/no"
err_has 'averages of weights'

# A plain LSTM: language model (LM-LSTM) and sequence autoencoder (SA-LSTM), whose weights start a classifier.
plain="-p lstm --set embedding_size=16 --set hidden_size=24"
gives 0 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" $plain --objective autoencoder --length 40 -b 8 --steps 60 --lr 2e-2 --eval-every 20 --save-every 20 --keep 9 \
    --threads 2 -o "$tmp/sa"
below "$(number "$tmp/sa/all_results.json" eval_autoencoder_loss)" 1.9
mkdir "$tmp/sa2" && cp -r "$tmp/sa/checkpoint-20" "$tmp/sa/pretrain.json" "$tmp/sa2/"
gives 0 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" $plain --objective autoencoder --length 40 -b 8 --steps 60 --lr 2e-2 --eval-every 20 --save-every 20 --keep 9 \
    --threads 1 --resume -o "$tmp/sa2"
same "$tmp/sa/model.safetensors" "$tmp/sa2/model.safetensors"
gives 0 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" $plain --objective bptt --length 12 --pieces 2 -b 8 --steps 30 --lr 2e-2 --threads 2 -o "$tmp/lmlstm"
for from in sa lmlstm; do
    gives 0 finetune -m "$tmp/$from" --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --lr 1e-2 --epochs 4 -b 16 --threads 2 -o "$tmp/$from-c"
    err_has 'classifier.weight'
    below 0.9 "$(number "$tmp/$from-c/all_results.json" eval_accuracy)"
done
if grep -qF 'embeddings.weight' "$tmp/err"; then fail 'the token vectors are new'; else pass; fi
gives 0 finetune -m "$tmp/sa" --task classify --set label_gain=true --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --lr 1e-2 --epochs 4 -b 16 --threads 2 -o "$tmp/gain"
below 0.9 "$(number "$tmp/gain/all_results.json" eval_accuracy)"
gives 0 text-classification -m "$tmp/gain" ' w1 w11 w12'
gives 3 finetune -m "$tmp/sa" --task classify --set label_gain=true --head mlp1 --train "$tmp/train.tsv" --steps 1 -o "$tmp/no"
err_has "the model's own head"
# The same loss as a fine-tuning task, on the texts of labeled data.
gives 0 finetune --config lstm --set embedding_size=16 --set hidden_size=24 --tokenizer "$tmp/t.json" --task continue --loss autoencoder --train "$tmp/few" \
    --eval "$tmp/few" --lr 2e-2 --epochs 3 -b 4 --threads 2 -o "$tmp/ta"
gives 3 finetune --config gpt2 --set n_layer=1 --set n_embd=16 --set n_head=2 --tokenizer "$tmp/t.json" --task continue --loss autoencoder --train "$tmp/few" --steps 1 -o "$tmp/no"
err_has 'needs a recurrent language model'
gives 3 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-tiny --objective autoencoder -o "$tmp/no"
gives 2 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" $plain --objective autoencoder --length 1 -o "$tmp/no"

# Empty texts, 100,000 time steps.
printf 'sentence\tlabel\nw1 w2\tlow\n\thigh\n' >"$tmp/empty.tsv"
gives 3 finetune -m "$tmp/sa" --task classify --train "$tmp/empty.tsv" --steps 1 -o "$tmp/no"
err_has 'line 3: an example has no tokens: remove it'
awk 'BEGIN { for (i = 0; i < 50000; i++) printf "w1 w11 " }' >"$tmp/huge"
gives 0 text-classification -m "$tmp/gain" -f "$tmp/huge" --json
gives 0 perplexity -m "$tmp/sa" -f "$tmp/huge"
: >"$tmp/nothing" && printf '\n\n' >"$tmp/blank"
gives 3 perplexity -m "$tmp/sa" ''
err_has '"": the text is empty'
gives 3 perplexity -m "$tmp/sa" -f "$tmp/nothing"
err_has 'nothing: the text is empty'
gives 3 perplexity -m "$tmp/sa" --lines -f "$tmp/blank"
err_has 'all lines are empty'

# A character model of reversed texts.
"$sesame" train-tokenizer --type bpe --vocab-size 257 -q -o "$tmp/bytes.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/bytes.json" --line-ends --held-out 10% -o "$tmp/chars" "$tmp/text" >"$tmp/out" || exit 1
gives 0 pretrain -c "$tmp/chars" --tokenizer "$tmp/bytes.json" -p flair-lm --set hidden_size=32 --set embedding_size=8 --set is_forward_lm=false \
    --objective bptt --length 20 --steps 20 --lr 1e-2 --schedule constant -o "$tmp/flair" --threads 2
# It reads a text from its end; as a forward model it reads the reversed text.
cp -r "$tmp/flair" "$tmp/forward"
sed 's/"is_forward_lm": false/"is_forward_lm": true/' "$tmp/flair/config.json" >"$tmp/forward/config.json"
gives 0 perplexity -m "$tmp/flair" --tokens --json 'w1 w21'
cp "$tmp/out" "$tmp/backward.json"
gives 0 perplexity -m "$tmp/forward" --tokens --json '12w 1w'
equal "$(number "$tmp/backward.json" perplexity)" "$(number "$tmp/out" perplexity)"
gives 3 text-generation -m "$tmp/flair" 'w1'
err_has 'expected a forward model'
printf 'w1 w21\n' >"$tmp/line" && printf '12w 1w\n' >"$tmp/enil"
gives 0 eval "$tmp/flair" "$tmp/line" --task continue --lines --json
cp "$tmp/out" "$tmp/backward.json"
gives 0 eval "$tmp/forward" "$tmp/enil" --task continue --lines --json
equal "$(number "$tmp/backward.json" eval_loss)" "$(number "$tmp/out" eval_loss)"
# Layers of different widths.
gives 3 lens -m "$tmp/flair" 'w1 w2'
err_has 'has 8 columns, expected 32'
gives 2 features -m "$tmp/flair" --layers 0,1 --combine mean 'w1 w2'
err_has 'layer 0 has 8 columns, layer 1 has 32'
# Errors.
gives 3 pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-tiny --objective bptt -o "$tmp/no"
err_has 'needs a recurrent model'
gives 3 $lm --set n_hid=0 --steps 1 -o "$tmp/no"
gives 2 $lm --optimizer asgd --ema 0.9 --steps 1 -o "$tmp/no"
}
counted
