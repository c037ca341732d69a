#!/bin/sh
# Early exit: finetune --exits, --exit of eval, predict and text-classification, files, resumed runs, bad input.
# Usage: test_exit_training.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

sed 's/"num_hidden_layers": 2/"num_hidden_layers": 4/' "$tmp/config.json" >"$tmp/deep.json"
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' "$tmp/config.json" >"$tmp/flat.json"
deep="--config $tmp/deep.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8 --task classify"
data="--train $tmp/train.tsv --eval $tmp/dev.tsv"

refused() # what, message, command
{
    what=$1 message=$2
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" && ok "$what" false
    ok "$what: message" err_has "$message"
}

# ---- joint ----

# shellcheck disable=SC2086
{
    joint="$deep $data --exits joint --epochs 8 --metric loss --save-every 20 --keep 9"
    ok "joint" exits 0 "$sesame" finetune $joint -o "$tmp/joint"
}
ok "learned" above "$(score eval_accuracy "$tmp/joint/all_results.json")" 0.95
ok "its key" grep -q '"sesame_exits": {' "$tmp/joint/config.json"
ok "eval" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --json
loss=$(score eval_loss "$tmp/out")
ok "a rule that never applies" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit entropy:0 --json
ok "the bits of the whole model" test "$(score eval_loss "$tmp/out")" = "$loss"
ok "all layers" test "$(score eval_mean_layers "$tmp/out")" = 4.0
ok "entropy" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit entropy:0.9 --json
ok "fewer layers" above 3 "$(score eval_mean_layers "$tmp/out")"
ok "patience" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit patience:1
ok "its layers" out_has 'Layers .* of 4 on average'

# A folder can name its rule: commands that name none use it.
ok "a rule in the folder" exits 0 "$sesame" convert "$tmp/joint" "$tmp/ruled" --exit-rule entropy:0.9
ok "in its config" grep -q '"rule": "entropy:0.9"' "$tmp/ruled/config.json"
"$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit entropy:0.9 --json >"$tmp/want"
ok "eval uses it" exits 0 "$sesame" eval "$tmp/ruled" "$tmp/dev.tsv" --task classify --json
ok "as --exit" cmp "$tmp/out" "$tmp/want"
ok "a pipeline uses it" exits 0 "$sesame" text-classification -m "$tmp/ruled" 'it was good .' --json
ok "its layers" out_has '"layers": [12]}'
ok "int8 keeps it" exits 0 "$sesame" quantize "$tmp/ruled" "$tmp/ruled8" --dtype int8
ok "in its config" grep -q '"rule": "entropy:0.9"' "$tmp/ruled8/config.json"
ok "never" exits 0 "$sesame" eval "$tmp/ruled" "$tmp/dev.tsv" --task classify --exit never --json
ok "the whole model" test "$(score eval_loss "$tmp/out")" = "$loss"
refused "no rule" 'exit: "often" is not a rule' "$sesame" convert "$tmp/joint" "$tmp/x" --exit-rule often
refused "a rule that does not fit" 'patience:90: the model has 3 exits' "$sesame" convert "$tmp/joint" "$tmp/x" --exit-rule patience:90
ok "nothing is written" test ! -e "$tmp/x"
# The rule was chosen for these classifiers: training drops it, for another kind of labels, too.
# shellcheck disable=SC2086
ok "trained further" exits 0 "$sesame" finetune --model "$tmp/ruled" --task classify $data --epochs 1 -o "$tmp/further"
ok "keeps its exits" grep -q '"sesame_exits"' "$tmp/further/config.json"
ok "without the rule" sh -c '! grep -q "\"rule\"" "$1"' . "$tmp/further/config.json"
awk -F '\t' 'NR > 1 { $2 = NR % 5 } { print $1 "\t" $2 }' "$tmp/train.tsv" >"$tmp/numbers.tsv"
ok "a regression" exits 0 "$sesame" finetune --model "$tmp/ruled" --task regress --train "$tmp/numbers.tsv" --epochs 1 -o "$tmp/regress"
sed -i 's/"rule": "entropy:0.9"/"rule": 3/' "$tmp/ruled/config.json"
refused "a wrong type" '"rule"' "$sesame" eval "$tmp/ruled" "$tmp/dev.tsv" --task classify

resumed() # run, checkpoint that it continues from, options: ends with the same bytes
{
    run=$1 from=$2
    shift 2
    cp -r "$tmp/$run" "$tmp/$run-again"
    find "$tmp/$run-again" -name 'checkpoint-*' ! -name "checkpoint-$from" -prune -exec rm -r {} +
    rm -f "$tmp/$run-again/model.safetensors" "$tmp/$run-again/config.json"
    ok "$run: resume" exits 0 "$sesame" finetune "$@" -o "$tmp/$run-again" --resume
    ok "$run: continues" err_has "checkpoint-$from"
    ok "$run: the same bytes" cmp "$tmp/$run/model.safetensors" "$tmp/$run-again/model.safetensors"
}

# shellcheck disable=SC2086
resumed joint 20 $joint

# ---- frozen ----

# shellcheck disable=SC2086
{
    ok "a model without exits" exits 0 "$sesame" finetune $deep $data --epochs 4 -o "$tmp/plain"
    frozen="--model $tmp/plain --threads 1 --lr 3e-3 --batch-size 8 --task classify $data --exits frozen"
    ok "frozen" exits 0 "$sesame" finetune $frozen --epochs 12 --save-every 20 --keep 9 --exit-head linear \
        --exit-layers 1,3 -o "$tmp/frozen"
}
ok "two exits" sh -c "tr -d ' \n' <'$tmp/frozen/config.json' | grep -q '\"sesame_exits\":{\"head\":\"linear\",\"layers\":\[1,3\]}'"
ok "eval of the plain model" exits 0 "$sesame" eval "$tmp/plain" "$tmp/dev.tsv" --json
loss=$(score eval_loss "$tmp/out")
ok "eval of the frozen model" exits 0 "$sesame" eval "$tmp/frozen" "$tmp/dev.tsv" --json
ok "the model is unchanged" test "$(score eval_loss "$tmp/out")" = "$loss"
ok "its first exit" exits 0 "$sesame" eval "$tmp/frozen" "$tmp/dev.tsv" --exit layer:1 --json
ok "has learned" above "$(score eval_accuracy "$tmp/out")" 0.95
# shellcheck disable=SC2086
ok "targets of the last layer" exits 0 "$sesame" finetune $frozen --epochs 2 --exit-targets last -o "$tmp/last"

# shellcheck disable=SC2086
resumed frozen 60 $frozen --epochs 12 --save-every 20 --keep 9 --exit-head linear --exit-layers 1,3

# ---- predictions ----

ok "predict" exits 0 "$sesame" predict "$tmp/joint" "$tmp/dev.tsv" --exit entropy:0.9
ok "layers of each text" test "$(grep -c '"layers": [1-4]}' "$tmp/out")" -eq 20
line=$(head -1 "$tmp/out")
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/joint" --exit entropy:0.9 --json "the film was bad ."
ok "to the last digit" test "$(cat "$tmp/out")" = "[$line]"
ok "without exit" exits 0 "$sesame" text-classification -m "$tmp/joint" --json "the film was bad ."
ok "no layers" sh -c "! grep -q layers '$tmp/out'"
ok "table" exits 0 "$sesame" predict "$tmp/joint" "$tmp/dev.tsv" --exit layer:2 --keep csv
ok "its column" out_has '^sentence,label,.*layers'

ok "info" exits 0 "$sesame" info "$tmp/frozen"
ok "its exits" out_has '^Exits  *after layers 1, 3 (linear)$'
ok "info as JSON" exits 0 "$sesame" info "$tmp/frozen" --json
ok "its members" sh -c "tr -d ' \n' <'$tmp/out' | grep -q '\"exits\":{\"head\":\"linear\",\"layers\":\[1,3\]}'"

# ---- the curve ----

ok "curve" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit curve --svg "$tmp/c.svg" --html "$tmp/c.html"
ok "a row per rule" test "$(grep -c -E '^ *(never|entropy:|patience:)' "$tmp/out")" -eq 16
ok "a picture" grep -q '<svg' "$tmp/c.svg"
for file in svg html; do
    echo mine >"$tmp/mine"
    refused "an existing $file" 'exists: --overwrite replaces it' "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit curve --$file "$tmp/mine"
    ok "$file: it stays" grep -qx mine "$tmp/mine"
    ok "$file: --overwrite" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit curve --$file "$tmp/mine" --overwrite
    ok "$file: replaces it" grep -q '<svg' "$tmp/mine"
done
refused "--svg without a curve" 'need --exit curve' "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --svg "$tmp/other.svg"
ok "curve as JSON" exits 0 "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit curve --json
ok "its numbers" out_has '"rule": "patience:3", "accuracy": [0-9.]*, "mean_layers": '

# ---- other forms ----

ok "int8" exits 0 "$sesame" quantize "$tmp/joint" "$tmp/int8" --dtype int8
ok "leaves early" exits 0 "$sesame" eval "$tmp/int8" "$tmp/dev.tsv" --task classify --exit entropy:0.9 --json
ok "with fewer layers" above 3 "$(score eval_mean_layers "$tmp/out")"
ok "convert" exits 0 "$sesame" convert "$tmp/joint" "$tmp/f32" --dtype f32
ok "the same tensors" cmp "$tmp/joint/model.safetensors" "$tmp/f32/model.safetensors"
# shellcheck disable=SC2086
ok "further training keeps exits" exits 0 "$sesame" finetune --model "$tmp/joint" --threads 1 --batch-size 8 --task classify $data \
    --epochs 1 -o "$tmp/more"
ok "three exits" grep -q '"sesame_exits"' "$tmp/more/config.json"
ok "that were trained" exits 1 cmp -s "$tmp/joint/model.safetensors" "$tmp/more/model.safetensors"
# shellcheck disable=SC2086
ok "exits none" exits 0 "$sesame" finetune --model "$tmp/joint" --threads 1 --batch-size 8 --task classify $data --epochs 1 \
    --exits none -o "$tmp/none"
ok "removes them" sh -c "! grep -q sesame_exits '$tmp/none/config.json' '$tmp/none/model.safetensors'"

# ---- bad input ----

# shellcheck disable=SC2086
{
    refused "no exits" 'has no classifiers after inner layers' "$sesame" eval "$tmp/plain" "$tmp/dev.tsv" --exit entropy:0.3
    refused "no exits, pipeline" 'has no classifiers after inner layers' "$sesame" text-classification -m "$tmp/plain" \
        --exit patience:1 x
    refused "no exits, curve" 'no classifiers after inner layers' "$sesame" eval "$tmp/plain" "$tmp/dev.tsv" --exit curve
    refused "a threshold" 'expected a threshold from 0 to 1' "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit entropy:2
    refused "no patience" 'expected a number from 1' "$sesame" predict "$tmp/joint" "$tmp/dev.tsv" --exit patience:0
    refused "too patient" 'expected 1 to 3' "$sesame" text-classification -m "$tmp/joint" --exit patience:9 x
    refused "not a rule" 'is not a rule' "$sesame" eval "$tmp/joint" "$tmp/dev.tsv" --exit soon
    refused "an ensemble" 'ensemble' "$sesame" eval --ensemble "$tmp/joint,$tmp/plain" "$tmp/dev.tsv" --exit patience:1
    refused "frozen, no model" 'needs a model with a trained classifier' "$sesame" finetune $deep $data --exits frozen -o "$tmp/bad"
    sed 's/pos/good/;s/neg/bad/' "$tmp/train.tsv" >"$tmp/other.tsv"
    refused "frozen, other labels" 'no trained classifier for the labels' "$sesame" finetune --model "$tmp/plain" \
        --task classify --train "$tmp/other.tsv" --exits frozen -o "$tmp/bad"
    refused "one layer" 'it has a single layer' "$sesame" finetune --config "$tmp/flat.json" --tokenizer "$tmp/vocab.txt" \
        --task classify $data --exits joint -o "$tmp/bad"
    refused "layers" 'exit-layers: 4 is not from 1 to 3' "$sesame" finetune $deep $data --exits joint --exit-layers 4 -o "$tmp/bad"
    refused "options without exits" 'need exits joint or frozen' "$sesame" finetune $deep $data --exit-head linear -o "$tmp/bad"
    refused "joint, last" 'exit-targets last needs exits frozen' "$sesame" finetune $deep $data --exits joint \
        --exit-targets last -o "$tmp/bad"
    refused "an adapter" 'cannot be trained with an adapter' "$sesame" finetune --model "$tmp/plain" --task classify $data \
        --exits joint --adapter lora -o "$tmp/bad"
    refused "a teacher" 'cannot be trained with a teacher' "$sesame" finetune $deep $data --exits joint \
        --teacher "$tmp/plain" -o "$tmp/bad"
    refused "an adapter on exits" 'exits' "$sesame" finetune --model "$tmp/joint" --task classify $data --adapter lora -o "$tmp/bad"
    cat >"$tmp/gpt2.json" <<END
{"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0}
END
    refused "a decoder" 'gpt2 cannot have exits: it is a decoder' "$sesame" finetune --config "$tmp/gpt2.json" \
        --tokenizer "$tmp/vocab.txt" --task classify $data --exits joint -o "$tmp/bad"
    refused "a recurrent model" 'cannot have exits: its layers do not run one by one' "$sesame" finetune --config lstm \
        --tokenizer "$tmp/vocab.txt" --task classify $data --exits joint -o "$tmp/bad"
    printf 'bob B-PER\nlives O\n\nanna B-PER\nlives O\n' >"$tmp/tags.txt"
    refused "tags" 'exits: the task tag has none' "$sesame" finetune --config "$tmp/deep.json" --tokenizer "$tmp/vocab.txt" \
        --task tag --train "$tmp/tags.txt" --exits joint -o "$tmp/bad"
}
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
