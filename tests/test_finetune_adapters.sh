#!/bin/sh
# Kinds of adapters from outside: training, evaluation, pipelines, training further, resume, refusals.
# Usage: test_finetune_adapters.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

sed 's/pos$/b/; s/neg$/a/' "$tmp/train.tsv" >"$tmp/first.tsv"
# shellcheck disable=SC2086  # several options
ok "a model to begin with" exits 0 "$sesame" finetune $small --task classify --train "$tmp/first.tsv" --epochs 2 -o "$tmp/base"
tune="--model $tmp/base --task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --threads 1 --batch-size 8 --lr 3e-2"

kind() # name, weights file, options
{
    name=$1 file=$2
    shift 2
    # shellcheck disable=SC2086
    ok "$name" exits 0 "$sesame" finetune $tune --epochs 12 "$@" -o "$tmp/$name"
    ok "$name learned" above "$(score eval_accuracy "$tmp/$name/all_results.json")" 0.8
    ok "$name leaves $file" test -s "$tmp/$name/$file"
    ok "$name leaves no model" test ! -e "$tmp/$name/model.safetensors"
    ok "$name: eval" exits 0 "$sesame" eval "$tmp/$name" "$tmp/dev.tsv" --task classify --json
    ok "$name: the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/$name/eval_results.json")"
    cp "$tmp/out" "$tmp/eval.json"
    ok "$name: --adapter" exits 0 "$sesame" eval "$tmp/base" "$tmp/dev.tsv" --task classify --json --adapter "$tmp/$name"
    ok "$name: the same" cmp -s "$tmp/out" "$tmp/eval.json"
    ok "$name: a pipeline" exits 0 "$sesame" text-classification -m "$tmp/$name" "the film was good ."
    ok "$name: agrees" out_has pos
    ok "$name: predict" exits 0 "$sesame" predict "$tmp/base" "$tmp/dev.tsv" --task classify --adapter "$tmp/$name"
    # shellcheck disable=SC2086
    ok "$name: trained further" exits 0 "$sesame" finetune --model "$tmp/$name" --task classify --train "$tmp/train.tsv" \
        --eval "$tmp/dev.tsv" --threads 1 --batch-size 8 --steps 2 -o "$tmp/$name-2"
    ok "$name: from its weights" above "$(score eval_accuracy "$tmp/$name-2/all_results.json")" 0.8
    ok "$name: the same kind" test -s "$tmp/$name-2/$file"
}

peft=adapter_model.safetensors
kind ia3 $peft --adapter ia3
kind bitfit $peft --adapter bitfit
kind prompt $peft --adapter prompt --virtual-tokens 4
kind ptuning $peft --adapter ptuning --virtual-tokens 4 --projection 16
kind prefix $peft --adapter prefix --virtual-tokens 4
kind projected $peft --adapter prefix --virtual-tokens 4 --projection 16
kind bottleneck adapter.safetensors --adapter bottleneck --reduction 4
kind houlsby adapter.safetensors --adapter bottleneck --reduction 4 --placement double
kind parallel adapter.safetensors --adapter bottleneck --reduction 4 --placement parallel

# Interrupted and resumed: the same weights as without interruption, also of the layers that compute a prefix.
# shellcheck disable=SC2086
for k in "prefix --projection 8" bottleneck; do
    rm -rf "$tmp/stopped" "$tmp/whole"
    "$sesame" finetune $tune --adapter $k --epochs 30 -o "$tmp/stopped" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -q 'update' "$tmp/err"; do sleep 0.02; done
    kill -TERM $pid 2>/dev/null
    wait $pid
    ok "$k resumes" exits 0 "$sesame" finetune $tune --adapter $k --epochs 30 -o "$tmp/stopped" --resume
    ok "$k without a stop" exits 0 "$sesame" finetune $tune --adapter $k --epochs 30 -o "$tmp/whole"
    for file in "$tmp/whole"/adapter*.safetensors; do
        ok "$k: the same bits" cmp -s "$file" "$tmp/stopped/$(basename "$file")"
    done
done

# What merges and what does not.
ok "IA3 merges" exits 0 "$sesame" convert "$tmp/ia3" "$tmp/merged"
ok "and keeps its scores" exits 0 "$sesame" eval "$tmp/merged" "$tmp/dev.tsv" --task classify
ok "a prefix does not" exits 3 "$sesame" convert "$tmp/prefix" "$tmp/merged-prefix"
ok "message" err_has 'prefix tuning cannot be merged'
ok "peft's two files are enough" sh -c "mkdir '$tmp/bare' && cp '$tmp/prefix/adapter_config.json' '$tmp/prefix/$peft' '$tmp/bare'"
ok "a pipeline over them" exits 0 "$sesame" text-classification -m "$tmp/bare" "the film was good ."

# Several adapters on one model; the head is that of the last.
ok "two adapters" exits 0 "$sesame" eval "$tmp/base" "$tmp/dev.tsv" --task classify --json --adapter "$tmp/ia3" --adapter "$tmp/prefix"
cp "$tmp/out" "$tmp/two"
ok "not as one" sh -c "'$sesame' eval '$tmp/base' '$tmp/dev.tsv' --task classify --json --adapter '$tmp/ia3' >'$tmp/one'; ! cmp -s '$tmp/one' '$tmp/two'"
ok "predict with two" exits 0 "$sesame" predict "$tmp/base" "$tmp/dev.tsv" --task classify --adapter "$tmp/bottleneck" --adapter "$tmp/houlsby"
ok "a pipeline with two" exits 0 "$sesame" text-classification -m "$tmp/base" --adapter "$tmp/bottleneck" --adapter "$tmp/houlsby" "it was bad ."
ok "two prefixes" exits 3 "$sesame" text-classification -m "$tmp/base" --adapter "$tmp/prefix" --adapter "$tmp/prompt" "it was bad ."
ok "message" err_has 'two adapters with virtual tokens cannot be combined'

# Bad input.
# shellcheck disable=SC2086
for other in '--adapter lora --virtual-tokens 4' '--adapter none --virtual-tokens 4' '--adapter prefix --reduction 4' '--adapter lora --placement double'; do
    # shellcheck disable=SC2086
    ok "without effect: $other" exits 2 "$sesame" finetune $tune $other -o "$tmp/no"
    ok "said: $other" err_has ' needs adapter '
done
# shellcheck disable=SC2086
ok "too many virtual tokens" exits 3 "$sesame" finetune $tune --adapter prompt --virtual-tokens 64 -o "$tmp/no"
ok "message" err_has '64 virtual tokens leave no room for text: bert has 64 positions'
# shellcheck disable=SC2086
ok "targets of a prefix" exits 2 "$sesame" finetune $tune --adapter prefix --lora-targets key -o "$tmp/no"
ok "message" err_has 'lora-targets needs adapter lora or ia3'
# shellcheck disable=SC2086
ok "another kind on an adapter" exits 2 "$sesame" finetune --model "$tmp/ia3" --adapter lora --task classify --train "$tmp/train.tsv" -o "$tmp/no"
ok "message" err_has 'the kind ia3'
sed 's/"hidden_size": 32/"hidden_size": 16/' "$tmp/config.json" >"$tmp/narrow.json"
# shellcheck disable=SC2086
ok "a narrower model" exits 0 "$sesame" finetune --config "$tmp/narrow.json" --tokenizer "$tmp/vocab.txt" --threads 1 --task classify \
    --train "$tmp/first.tsv" --steps 1 -o "$tmp/narrow"
for k in ia3 prompt prefix bottleneck; do
    mkdir "$tmp/only-$k" && cp "$tmp/$k"/adapter* "$tmp/only-$k"
    [ $k = bottleneck ] && cp "$tmp/$k"/head_config.json "$tmp/$k"/model_head* "$tmp/only-$k"
    ok "$k of another model" exits 3 "$sesame" text-classification -m "$tmp/narrow" --adapter "$tmp/only-$k" "it was bad"
    ok "$k: names tensor and shape" err_has 'tensor.*\(shape\|must be\) \['
    ok "$k: names the adapter" err_has "the adapter .*only-$k does not fit this model"
done
head -c 200 "$tmp/prefix/$peft" >"$tmp/bare/$peft"
ok "a truncated file" exits 3 "$sesame" eval "$tmp/bare" "$tmp/dev.tsv" --task classify
ok "message" err_has "$peft"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
