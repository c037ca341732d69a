#!/bin/sh
# Ways to transfer from outside: adapters, frozen layers and their thawing, dropout.
# Usage: test_transfer.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# A model to begin with: labels it learned are others.
sed 's/pos$/b/; s/neg$/a/' "$tmp/train.tsv" >"$tmp/first.tsv"
# shellcheck disable=SC2086  # several options
ok "a model to begin with" exits 0 "$sesame" finetune $small --task classify --train "$tmp/first.tsv" --epochs 2 -o "$tmp/base"
tune="--model $tmp/base --task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --threads 1 --batch-size 8"

# Adapters.
# shellcheck disable=SC2086
ok "LoRA" exits 0 "$sesame" finetune $tune --lr 1e-2 --epochs 3 --adapter lora --lora-rank 4 --lora-dropout 0.1 -o "$tmp/lora"
ok "reports the trained parameters" err_has '(1,090 trained)'
ok "learned" above "$(score eval_accuracy "$tmp/lora/all_results.json")" 0.95
for file in adapter_config.json adapter_model.safetensors config.json tokenizer.json README.md; do
    ok "leaves $file" test -s "$tmp/lora/$file"
done
ok "and no model" test ! -e "$tmp/lora/model.safetensors"
ok "in peft's words" sh -c "tr -d ' \n' <'$tmp/lora/adapter_config.json' | grep -q '\"target_modules\":\[\"query\",\"value\"\]'"
ok "with the head" sh -c "tr -d ' \n' <'$tmp/lora/adapter_config.json' | grep -q '\"modules_to_save\":\[\"classifier\"\]'"
ok "eval" exits 0 "$sesame" eval "$tmp/lora" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/lora/eval_results.json")"
cp "$tmp/out" "$tmp/eval.json"
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/lora" "the film was good ."
ok "agrees" out_has pos
mkdir "$tmp/bare" && cp "$tmp/lora/adapter_config.json" "$tmp/lora/adapter_model.safetensors" "$tmp/bare"
ok "peft's two files are enough" exits 0 "$sesame" predict "$tmp/bare" "$tmp/dev.tsv" --task classify
ok "a pipeline over them" exits 0 "$sesame" text-classification -m "$tmp/bare" "the film was good ."
mv "$tmp/base" "$tmp/moved"
ok "a model that moved" exits 3 "$sesame" eval "$tmp/lora" "$tmp/dev.tsv" --task classify
ok "message" err_has 'which is not a folder with a model'
ok "--adapter" exits 0 "$sesame" eval "$tmp/moved" "$tmp/dev.tsv" --task classify --json --adapter "$tmp/lora"
ok "the same" cmp -s "$tmp/out" "$tmp/eval.json"
ok "--adapter of a pipeline" exits 0 "$sesame" text-classification -m "$tmp/moved" --adapter "$tmp/lora" "it was bad ."
ok "agrees" out_has neg
ok "merge" exits 0 "$sesame" convert "$tmp/moved" "$tmp/merged" --merge-adapter "$tmp/lora"
ok "a whole model" test -s "$tmp/merged/model.safetensors"
ok "eval of it" exits 0 "$sesame" eval "$tmp/merged" "$tmp/dev.tsv" --task classify --json
ok "the same numbers" cmp -s "$tmp/out" "$tmp/eval.json"
mv "$tmp/moved" "$tmp/base"
ok "merge a folder that names its model" exits 0 "$sesame" convert "$tmp/lora" "$tmp/merged2"
# shellcheck disable=SC2086
ok "an adapter of a model with a head" exits 0 "$sesame" finetune --model "$tmp/merged" --task classify --train "$tmp/train.tsv" \
    --threads 1 --epochs 1 --adapter lora -o "$tmp/second"
ok "with a new head" exits 0 "$sesame" convert "$tmp/second" "$tmp/merged3" --strict
ok "the same weights" cmp -s "$tmp/merged/model.safetensors" "$tmp/merged2/model.safetensors"
# An adapter is trained further, also without a tokenizer in its folder; --adapter none trains all weights.
further="--task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --threads 1 --batch-size 8 --steps 2"
# shellcheck disable=SC2086
ok "train an adapter further" exits 0 "$sesame" finetune --model "$tmp/lora" $further -o "$tmp/further"
ok "the same parameters" err_has '(1,090 trained)'
ok "starts from its weights" above "$(score eval_accuracy "$tmp/further/all_results.json")" 0.95
ok "an adapter" test -s "$tmp/further/adapter_model.safetensors"
ok "of the same base model" sh -c "[ \"\$(grep base_model_name '$tmp/further/adapter_config.json')\" = \"\$(grep base_model_name '$tmp/lora/adapter_config.json')\" ]"
ok "of the same rank" grep -q '"r": 4' "$tmp/further/adapter_config.json"
ok "which the card gives" grep -q 'LoRA: rank 4, alpha 16, dropout 0, on query,value' "$tmp/further/README.md"
ok "with changed weights" sh -c "! cmp -s '$tmp/further/adapter_model.safetensors' '$tmp/lora/adapter_model.safetensors'"
ok "usable" exits 0 "$sesame" eval "$tmp/further" "$tmp/dev.tsv" --task classify --json
ok "tokenize" exits 0 "$sesame" tokenize -m "$tmp/bare" "the film was good"
cp "$tmp/out" "$tmp/tokens"
ok "tokenize with the base model" exits 0 "$sesame" tokenize -m "$tmp/base" "the film was good"
ok "the same tokens" cmp -s "$tmp/out" "$tmp/tokens"
ok "detokenize" sh -c "'$sesame' tokenize -m '$tmp/bare' --json 'the film' | '$sesame' detokenize -m '$tmp/bare' | grep -q 'the film'"
# shellcheck disable=SC2086
ok "without a tokenizer" exits 0 "$sesame" finetune --model "$tmp/bare" $further -o "$tmp/further2"
ok "the tokenizer is copied" cmp -s "$tmp/further2/tokenizer.json" "$tmp/further/tokenizer.json"
# shellcheck disable=SC2086
ok "all weights" exits 0 "$sesame" finetune --model "$tmp/bare" $further --adapter none -o "$tmp/all"
ok "a complete model" test -s "$tmp/all/model.safetensors"
ok "its tokenizer" cmp -s "$tmp/all/tokenizer.json" "$tmp/further/tokenizer.json"
ok "usable, too" exits 0 "$sesame" eval "$tmp/all" "$tmp/dev.tsv" --task classify --json
ok "and better than chance" above "$(score eval_accuracy "$tmp/out")" 0.9
# shellcheck disable=SC2086
ok "frozen layers" exits 0 "$sesame" finetune --model "$tmp/bare" $further --freeze all -o "$tmp/all2"
ok "of a complete model" test -s "$tmp/all2/model.safetensors"
# shellcheck disable=SC2086
ok "with another rank" exits 2 "$sesame" finetune --model "$tmp/lora" $further --lora-rank 2 -o "$tmp/no"
ok "the message" err_has 'the model is an adapter of rank 4, alpha 16, on query,value'
mv "$tmp/base" "$tmp/moved"
ok "a base model that moved" exits 3 "$sesame" tokenize -m "$tmp/bare" "the film"
ok "the message" err_has 'base_model_name_or_path'
mv "$tmp/moved" "$tmp/base"

# shellcheck disable=SC2086
ok "resume" exits 0 "$sesame" finetune $tune --lr 1e-2 --epochs 3 --adapter lora --lora-rank 4 --lora-dropout 0.1 -o "$tmp/lora" --resume
# shellcheck disable=SC2086
ok "another rank" exits 3 "$sesame" finetune $tune --lr 1e-2 --epochs 3 --adapter lora --lora-rank 2 --lora-dropout 0.1 -o "$tmp/lora" --resume
ok "message" err_has 'lora-rank 4, not 2'
# shellcheck disable=SC2086
ok "no such layer" exits 3 "$sesame" finetune $tune --adapter lora --lora-targets q_proj -o "$tmp/no"
ok "lists the choices" err_has 'choose from query, key, value, dense'
# shellcheck disable=SC2086
ok "no model" exits 2 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --adapter lora -o "$tmp/no"

# Gradual unfreezing: stopped in the second epoch and resumed, the run is the same.
ulmfit="--unfreeze --layer-decay 0.385 --schedule slanted --lr 1e-2 --epochs 4 --save-every 7 --keep 9"
# shellcheck disable=SC2086
ok "ULMFiT" exits 0 "$sesame" finetune $tune $ulmfit -o "$tmp/ulmfit"
ok "begins with the head" err_has '(1,122 trained)'
ok "learned" above "$(score eval_accuracy "$tmp/ulmfit/all_results.json")" 0.95
# The schedule starts anew with every level: the highest rate is reached in each of the four epochs of ten updates.
peaks=$(awk -F'"learning_rate": ' '{ if ($2 + 0 > 0.0099) n++ } END { print n + 0 }' "$tmp/ulmfit/log.jsonl")
ok "a schedule per level: $peaks peaks" test "$peaks" = 4
cp -r "$tmp/ulmfit" "$tmp/stopped"
for update in 20 21 28 30 35 40; do rm -rf "$tmp/stopped/checkpoint-$update"; done
# shellcheck disable=SC2086
ok "resumed" exits 0 "$sesame" finetune $tune $ulmfit -o "$tmp/stopped" --resume
ok "from the second epoch" err_has 'checkpoint-14'
ok "the same weights" cmp -s "$tmp/stopped/model.safetensors" "$tmp/ulmfit/model.safetensors"

# A frozen encoder, dropout.
# shellcheck disable=SC2086
ok "--freeze all" exits 0 "$sesame" finetune $tune --lr 1e-2 --freeze all -o "$tmp/frozen" --dropout 0 --attention-dropout 0.2 --classifier-dropout 0.3
ok "the head alone" err_has '(1,122 trained)'
for key in '"hidden_dropout_prob": 0' '"attention_probs_dropout_prob": 0.2' '"classifier_dropout": 0.3'; do
    ok "$key" grep -q "$key" "$tmp/frozen/config.json"
done
# shellcheck disable=SC2086
ok "--freeze of nothing" exits 2 "$sesame" finetune $tune --freeze some -o "$tmp/no"
# shellcheck disable=SC2086
ok "too much dropout" exits 2 "$sesame" finetune $tune --dropout 1 -o "$tmp/no"

# Heads of Sesame's own, and the mix of layers.
for head in linear mlp1 mlp2 bilstm bigru; do
    # shellcheck disable=SC2086
    ok "--head $head" exits 0 "$sesame" finetune $tune --freeze 0 --lr 3e-3 --epochs 5 --head $head --head-sizes '' -o "$tmp/$head"
    ok "$head learned" above "$(score eval_accuracy "$tmp/$head/all_results.json")" 0.95
    ok "in config.json" grep -q sesame_head "$tmp/$head/config.json"
    ok "described in the card" grep -q "The head is one of Sesame's" "$tmp/$head/README.md"
    ok "eval" exits 0 "$sesame" eval "$tmp/$head" "$tmp/dev.tsv" --task classify --json
    ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/$head/eval_results.json")"
    ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/$head" "it was bad ."
    ok "agrees" out_has neg
done
# shellcheck disable=SC2086
ok "a recurrent head on a frozen encoder, layers mixed" exits 0 "$sesame" finetune $tune --lr 1e-2 --epochs 6 --head bilstm \
    --head-sizes 16,8 --mix-layers -o "$tmp/mix"
ok "learned" above "$(score eval_accuracy "$tmp/mix/all_results.json")" 0.95
ok "reports the trained parameters" err_has '(9,190 trained)'
ok "with a norm of the encoder's states" exits 0 "$sesame" info "$tmp/mix" --tensors
ok "and its statistics" out_has 'sesame_head.norm.running_mean'
ok "eval" exits 0 "$sesame" eval "$tmp/mix" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/mix/eval_results.json")"
# shellcheck disable=SC2086
ok "a mix below the usual head" exits 0 "$sesame" finetune $tune --lr 3e-3 --mix-layers -o "$tmp/mix2"
ok "has its weights" exits 0 "$sesame" info "$tmp/mix2" --tensors
ok "by name" out_has 'sesame_head.mix.weight'
# Chosen layers, as in BERT's feature-based approach.
# shellcheck disable=SC2086
ok "concatenated layers below a recurrent head" exits 0 "$sesame" finetune $tune --lr 1e-2 --epochs 6 --head bilstm \
    --head-sizes 8 --layers 1-2 --combine concat -o "$tmp/concat"
ok "learned" above "$(score eval_accuracy "$tmp/concat/all_results.json")" 0.95
ok "in config.json" sh -c "tr -d ' \n' <'$tmp/concat/config.json' | grep -q '\"layers\":\[1,2\],\"combine\":\"concat\"'"
ok "twice as wide" exits 0 "$sesame" info "$tmp/concat" --tensors
ok "weights" out_has '\[32, 64\] .*weight_ih_l0$'
ok "eval" exits 0 "$sesame" eval "$tmp/concat" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/concat/eval_results.json")"
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/concat" "it was bad ."
ok "agrees" out_has neg
ok "features of its encoder" exits 0 "$sesame" features -m "$tmp/concat" --layers 0-2 --combine concat --format tsv "it was bad ."
ok "a converted copy" exits 0 "$sesame" convert "$tmp/concat" "$tmp/concat16" --dtype f16
ok "is a classifier, too" exits 0 "$sesame" text-classification -m "$tmp/concat16" "it was bad ."
ok "agrees" out_has neg
for how in sum mean mix; do
    # shellcheck disable=SC2086
    ok "$how of layers below the usual head" exits 0 "$sesame" finetune $tune --lr 3e-3 --layers 0,-1 --combine $how -o "$tmp/of-$how"
    ok "learned" above "$(score eval_accuracy "$tmp/of-$how/all_results.json")" 0.95
done
ok "the weights of the mix" exits 0 "$sesame" info "$tmp/of-mix" --tensors
ok "one per layer" out_has '\[2\] .*sesame_head.mix.weight'
ok "eval" exits 0 "$sesame" eval "$tmp/of-mix" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/of-mix/eval_results.json")"
# shellcheck disable=SC2086
ok "concatenated layers below the usual head" exits 2 "$sesame" finetune $tune --layers 1,2 --combine concat -o "$tmp/no"
ok "message" err_has 'concatenated layers are wider than the model.s head'
# shellcheck disable=SC2086
ok "a combination without layers" exits 2 "$sesame" finetune $tune --combine sum -o "$tmp/no"
ok "message" err_has 'combine has no effect without layers'
# shellcheck disable=SC2086
ok "a layer that does not exist" exits 3 "$sesame" finetune $tune --layers 5 -o "$tmp/no"
ok "message" err_has 'layer 5: the model has layers 0 to 2'
# shellcheck disable=SC2086
ok "chosen and mixed layers" exits 2 "$sesame" finetune $tune --layers 1 --mix-layers -o "$tmp/no"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "%s B-PER\nlives O\nin O\n%s B-LOC\n. O\n\n", i % 2 ? "anna" : "bob", i % 3 ? "paris" : "london" }' >"$tmp/tags"
for head in bigru mlp1; do
    # shellcheck disable=SC2086
    ok "a tagger: $head" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags" --eval "$tmp/tags" --text 1 --label 2 \
        --head $head --freeze 0 --epochs 4 -o "$tmp/tag-$head"
    ok "learned" above "$(score eval_f1 "$tmp/tag-$head/all_results.json")" 0.95
    ok "a pipeline" exits 0 "$sesame" ner -m "$tmp/tag-$head" --json "anna lives in paris ."
    ok "agrees" out_has PER
done
# answers: start and end of a BiLSTM over the states
awk 'BEGIN { printf "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": ["
    for (i = 0; i < 60; i++) {
        who = i % 2 ? "anna" : "bob"; city = i % 3 ? "paris" : "london"
        printf "%s{\"context\": \"%s lives in %s .\", \"qas\": [{\"id\": \"%d\", \"question\": \"where ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]}]}", \
            i ? ", " : "", who, city, i, city, length(who) + 10
    }
    print "]}]}" }' >"$tmp/squad.json"
for head in bilstm mlp1; do
    # shellcheck disable=SC2086
    ok "answers: $head" exits 0 "$sesame" finetune $small --task answer --train "$tmp/squad.json" --eval "$tmp/squad.json" --head $head \
        --head-sizes 16 --freeze 0 --epochs 8 -o "$tmp/answer-$head"
    ok "learned" above "$(score eval_f1 "$tmp/answer-$head/all_results.json")" 95
    ok "in config.json" grep -q sesame_head "$tmp/answer-$head/config.json"
    ok "eval" exits 0 "$sesame" eval "$tmp/answer-$head" "$tmp/squad.json" --task answer --json
    ok "the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/answer-$head/eval_results.json")"
    ok "a pipeline" exits 0 "$sesame" question-answering -m "$tmp/answer-$head" --json --context "bob lives in london ." "where ?"
    ok "agrees" out_has london
done
# shellcheck disable=SC2086
ok "a head of choices" exits 2 "$sesame" finetune $small --task choose --choices 'text|text' --train "$tmp/train.tsv" --head bilstm -o "$tmp/no"
ok "message" err_has 'head applies to classify, multi_label, regress, tag and answer only'
# shellcheck disable=SC2086
ok "sizes without a head" exits 2 "$sesame" finetune $tune --head-sizes 3 -o "$tmp/no"
# shellcheck disable=SC2086
ok "too many sizes" exits 2 "$sesame" finetune $tune --head mlp1 --head-sizes 3,4 -o "$tmp/no"
ok "message" err_has 'at most 1 hidden'
# shellcheck disable=SC2086
ok "bad sizes" exits 2 "$sesame" finetune $tune --head mlp2 --head-sizes 3,x -o "$tmp/no"
sed 's/"kind": "mlp"/"kind": "cnn"/' "$tmp/mlp1/config.json" >"$tmp/c.json" && cp "$tmp/c.json" "$tmp/mlp1/config.json"
ok "an unknown head" exits 3 "$sesame" eval "$tmp/mlp1" "$tmp/dev.tsv" --task classify
ok "lists the choices" err_has '"kind" is "cnn", expected none, linear, mlp, lstm or gru'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
