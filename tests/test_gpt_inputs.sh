#!/bin/sh
# finetune --inputs gpt1: texts, pairs in both orders, choices and numbers; the same inputs in eval, predict and pipelines.
# Usage: test_gpt_inputs.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cat >"$tmp/gpt2.json" <<END
{"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4,
 "initializer_range": 0.05}
END
awk 'BEGIN { for (i = 0; i < 100; i++) print i % 2 ? "the film was good ." : "a film was bad ." }' >"$tmp/plain.txt"
ok "a base model" exits 0 "$sesame" finetune --config "$tmp/gpt2.json" --tokenizer "$tmp/vocab.txt" --threads 1 --lr 3e-3 --task continue \
    --train "$tmp/plain.txt" --steps 10 -o "$tmp/base"
ok "its vocabulary" grep -q '"vocab_size": 28' "$tmp/base/config.json"
tune() { # NAME, options
    name=$1
    shift
    exits 0 "$sesame" finetune --model "$tmp/base" --threads 1 --lr 3e-3 --batch-size 8 --inputs gpt1 --overwrite -o "$tmp/$name" "$@"
}
label() { grep -o "\"$1\": \"\{0,1\}[-a-z0-9.]*" "$tmp/out" | head -1 | sed 's/.*[ "]//'; } # first value of a key

# texts
ok "classify" tune text --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 6
ok "learned" above "$(score eval_accuracy "$tmp/text/all_results.json")" 0.95
ok "class" grep -q '"GPT2ForSequenceClassification"' "$tmp/text/config.json"
ok "three more tokens" grep -q '"vocab_size": 31' "$tmp/text/config.json"
ok "inputs" sh -c "tr -d ' \n' <'$tmp/text/config.json' | grep -q '\"sesame_inputs\":{\"kind\":\"gpt1\",\"both_orders\":false}'"
for token in _start_ _delimiter_ _classify_; do ok "$token" grep -q "\"content\": \"$token\"" "$tmp/text/tokenizer.json"; done
ok "eval without --task" exits 0 "$sesame" eval "$tmp/text" "$tmp/dev.tsv" --json
ok "the same score" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/text/eval_results.json")"
ok "eval with --task" exits 0 "$sesame" eval "$tmp/text" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/text/eval_results.json")"
head -2 "$tmp/dev.tsv" >"$tmp/first.tsv"
exits 0 "$sesame" predict "$tmp/text" "$tmp/first.tsv"
want_label=$(label label) want_score=$(label score)
ok "the pipeline" exits 0 "$sesame" text-classification -m "$tmp/text" --json "$(sed -n 2p "$tmp/dev.tsv" | cut -f 1)"
ok "the same label" test "$(label label)" = "$want_label"
ok "the same score" test "$(label score)" = "$want_score"
ok "without L_LM" tune plain --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 2 --lm-loss 0
ok "a smaller loss" above "$(score train_loss "$tmp/text/all_results.json")" "$(score train_loss "$tmp/plain/all_results.json")"
ok "again from its folder" exits 0 "$sesame" finetune --model "$tmp/text" --threads 1 --lr 1e-3 --inputs gpt1 --task classify \
    --train "$tmp/train.tsv" --steps 2 -o "$tmp/again"
ok "no more tokens" grep -q '"vocab_size": 31' "$tmp/again/config.json"
ok "plain inputs again" exits 0 "$sesame" finetune --model "$tmp/text" --threads 1 --lr 1e-3 --task classify \
    --train "$tmp/train.tsv" --steps 2 -o "$tmp/plain2"
ok "no inputs in the config" sh -c "! grep -q sesame_inputs '$tmp/plain2/config.json'"
ok "resumed" tune resumed --task classify --train "$tmp/train.tsv" --epochs 2 --save-every 5 --keep-checkpoints 2
rm "$tmp/resumed/config.json" "$tmp/resumed/model.safetensors"
ok "finished" exits 0 "$sesame" finetune --model "$tmp/base" --threads 1 --lr 3e-3 --batch-size 8 --inputs gpt1 --resume -o "$tmp/resumed" \
    --task classify --train "$tmp/train.tsv" --epochs 2 --save-every 5 --keep-checkpoints 2
ok "the rate of GPT-1" exits 0 "$sesame" finetune --model "$tmp/base" --threads 1 --inputs gpt1 --task classify --train "$tmp/train.tsv" \
    --steps 2 --schedule constant --warmup 0 -o "$tmp/rate"
ok "in the log" grep -q '"learning_rate": 6.25e-05' "$tmp/rate/log.jsonl"
ok "with checkpoints" exits 0 "$sesame" finetune --model "$tmp/base" --threads 1 --inputs gpt1 --task classify --train "$tmp/train.tsv" \
    --steps 4 --save-every 2 --keep-checkpoints 2 -o "$tmp/rate2"
cp "$tmp/rate2/model.safetensors" "$tmp/rate2.safetensors"
rm "$tmp/rate2/config.json" "$tmp/rate2/model.safetensors"
ok "resumed by its folder" exits 0 "$sesame" finetune -o "$tmp/rate2" --resume --threads 1
ok "the same bits" cmp "$tmp/rate2.safetensors" "$tmp/rate2/model.safetensors"

# pairs in both orders: the order does not matter
awk 'BEGIN { print "a\tb\tlabel"; for (i = 0; i < 60; i++)
    print i % 2 ? "the film was good\tgood film\tsame" : (i % 4 ? "the film was bad\tgood film\tother" : "good film\tit was bad\tother") }' >"$tmp/pairs.tsv"
ok "pairs" tune pairs --task classify --text a --pair b --both-orders --train "$tmp/pairs.tsv" --eval "$tmp/pairs.tsv" --epochs 6
ok "learned" above "$(score eval_accuracy "$tmp/pairs/all_results.json")" 0.95
ok "in the config" grep -q '"both_orders": true' "$tmp/pairs/config.json"
for order in 0 1; do
    a='the film was good' b='good film'
    [ $order -eq 0 ] || { b=$a a='good film'; }
    ok "pipeline" exits 0 "$sesame" text-classification -m "$tmp/pairs" --json --text-pair "$b" "$a"
    eval "score_$order=$(label score)"
done
# shellcheck disable=SC2154
ok "both orders" awk -v a="$score_0" -v b="$score_1" 'BEGIN { exit !(a > 0.5 && a - b < 1e-6 && b - a < 1e-6) }'
printf 'a\tb\tlabel\nthe film was good\tgood film\tsame\n' >"$tmp/one.tsv"
exits 0 "$sesame" predict "$tmp/pairs" "$tmp/one.tsv" --task classify --text a --pair b
ok "predict" test "$(label score)" = "$score_0"
exits 0 "$sesame" predict "$tmp/pairs" "$tmp/one.tsv" --task classify --text a --pair b --inputs gpt1
ok "predict --inputs gpt1" test "$(label score)" = "$score_0"
ok "a text alone" exits 3 "$sesame" text-classification -m "$tmp/pairs" "the film"
ok "its message" err_has 'the model compares pairs in both orders: give a second text'

# zero-shot classification has the same inputs
sed 's/other$/contradiction/; s/same$/entailment/' "$tmp/pairs.tsv" >"$tmp/nli.tsv"
ok "NLI" tune nli --task classify --text a --pair b --train "$tmp/nli.tsv" --epochs 3
ok "zero-shot" exits 0 "$sesame" zero-shot-classification -m "$tmp/nli" --json --multi-label -c 'good film' --hypothesis-template '{}' "the film was good"
zero=$(grep -o '"scores": \[[0-9.]*' "$tmp/out" | sed 's/.*\[//')
exits 0 "$sesame" text-classification -m "$tmp/nli" --json -k all --text-pair 'good film' "the film was good"
pair=$(sed 's/.*entailment", "score": \([0-9.]*\).*/\1/' "$tmp/out")
ok "the same score" awk -v a="$zero" -v b="$pair" 'BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }'
ok "not in both orders" exits 3 "$sesame" zero-shot-classification -m "$tmp/pairs" -c 'good film' "the film"
ok "its message" err_has 'it does not tell the text from the hypothesis'

# numbers
awk 'BEGIN { print "a\tb\tscore"; for (i = 0; i < 60; i++) print i % 2 ? "the film was good\tgood film\t1" : "a film\tbad film\t0" }' >"$tmp/real.tsv"
ok "regress" tune real --task regress --text a --pair b --both-orders --train "$tmp/real.tsv" --eval "$tmp/real.tsv" --epochs 6
ok "learned" above "$(score eval_pearson "$tmp/real/all_results.json")" 0.95
ok "R^2" above "$(score eval_r2 "$tmp/real/all_results.json")" 0.5

# choices: double heads
awk 'BEGIN { print "text,a,b,label"; for (i = 0; i < 60; i++) print i % 2 ? "the film,was good,was bad,0" : "it,was bad,was good,1" }' >"$tmp/choose.csv"
ok "choose" tune choose --task choose --choices 'a|b' --train "$tmp/choose.csv" --eval "$tmp/choose.csv" --epochs 6
ok "learned" above "$(score eval_accuracy "$tmp/choose/all_results.json")" 0.95
ok "class" grep -q '"GPT2DoubleHeadsModel"' "$tmp/choose/config.json"
ok "eval" exits 0 "$sesame" eval "$tmp/choose" "$tmp/choose.csv" --task choose --choices 'a|b' --json
ok "the same score" test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$tmp/choose/eval_results.json")"
head -2 "$tmp/choose.csv" >"$tmp/first.csv"
exits 0 "$sesame" predict "$tmp/choose" "$tmp/first.csv"
want_score=$(label score)
ok "pipeline" exits 0 "$sesame" multiple-choice -m "$tmp/choose" --json it 'was bad' 'was good'
ok "the same" test "$(label score)" = "$want_score"
ok "its LM continues texts" exits 0 "$sesame" text-generation -m "$tmp/choose" --max-new-tokens 2 "the film"

# GPT-1 itself, from random weights
sed 's/"gpt2"/"openai-gpt", "afn": "gelu"/' "$tmp/gpt2.json" >"$tmp/gpt1.json"
first="--config $tmp/gpt1.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8 --inputs gpt1 --epochs 6"
# shellcheck disable=SC2086
ok "openai-gpt" exits 0 "$sesame" finetune $first --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/gpt1"
ok "learned" above "$(score eval_accuracy "$tmp/gpt1/all_results.json")" 0.95
ok "class" grep -q '"OpenAIGPTForSequenceClassification"' "$tmp/gpt1/config.json"
# shellcheck disable=SC2086
ok "its double heads" exits 0 "$sesame" finetune $first --task choose --choices 'a|b' --train "$tmp/choose.csv" --eval "$tmp/choose.csv" -o "$tmp/gpt1c"
ok "learned" above "$(score eval_accuracy "$tmp/gpt1c/all_results.json")" 0.95
ok "class" grep -q '"OpenAIGPTDoubleHeadsModel"' "$tmp/gpt1c/config.json"

# bad input
refused() # description, exit code, message, options
{
    what=$1 code=$2 message=$3
    shift 3
    ok "$what" exits "$code" "$sesame" finetune --threads 1 -o "$tmp/bad" "$@"
    ok "$what: message" err_has "$message"
}
refused "another task" 2 'the tasks classify, regress and choose have them, not continue' --model "$tmp/base" --inputs gpt1 --task continue \
    --train "$tmp/plain.txt"
refused "an encoder" 3 'is not a causal model, as openai-gpt and gpt2 are' --config "$tmp/config.json" --tokenizer "$tmp/vocab.txt" \
    --inputs gpt1 --task classify --train "$tmp/train.tsv"
refused "no pair" 3 'line 2: no second text: both-orders compares pairs' --model "$tmp/base" --inputs gpt1 --both-orders --task classify \
    --train "$tmp/train.tsv"
refused "both orders of plain inputs" 2 'both-orders is a setting of inputs gpt1: set both' --model "$tmp/base" --both-orders --task classify \
    --text a --pair b --train "$tmp/pairs.tsv"
refused "both orders of choices" 2 'it does not apply to choose' --model "$tmp/base" --inputs gpt1 --both-orders --task choose \
    --choices 'a|b' --train "$tmp/choose.csv"
refused "LoRA" 3 'which an adapter does not have' --model "$tmp/base" --inputs gpt1 --adapter lora --task classify --train "$tmp/train.tsv"
refused "a weight without the inputs" 2 'lm-loss is a setting of inputs gpt1' --model "$tmp/base" --lm-loss 0.3 --task classify --train "$tmp/train.tsv"
refused "a negative weight" 2 'lm-loss' --model "$tmp/base" --inputs gpt1 --lm-loss -1 --task classify --train "$tmp/train.tsv"
refused "no space" 3 'leave no space between start and extract token' --model "$tmp/base" --inputs gpt1 --max-length 3 --task classify \
    --text a --pair b --train "$tmp/pairs.tsv"
refused "choose with plain inputs" 3 'has no class with the head choice' --model "$tmp/base" --task choose --choices 'a|b' --train "$tmp/choose.csv"
cp -r "$tmp/text" "$tmp/lost" && cp "$tmp/base/tokenizer.json" "$tmp/lost/tokenizer.json"
ok "a tokenizer without the tokens" exits 3 "$sesame" text-classification -m "$tmp/lost" "the film"
ok "its message" err_has 'the tokenizer lacks a token of them: expected _start_, _delimiter_ and _classify_'
sed 's/"kind": "gpt1"/"kind": "gpt9"/' "$tmp/text/config.json" >"$tmp/lost/config.json"
ok "another kind" exits 3 "$sesame" predict "$tmp/lost" "$tmp/dev.tsv" --task classify
ok "its message" err_has 'expected {"kind": "gpt1"'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
