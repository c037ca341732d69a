#!/bin/sh
# Tests of factorize: files, further fine-tuning, distillation, int8, messages.
# Usage: test_factorize.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086  # several options
ok "train a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" \
    --eval "$tmp/dev.tsv" --epochs 4 -o "$tmp/one"

ok "factorize" exits 0 "$sesame" factorize "$tmp/one" --ratio 0.5 --embeddings 8 -o "$tmp/half"
ok "a table of the weights" out_has "encoder.layer.#.attention.self.query *2 *32 x 32 *8 *0"
ok "and of the token table" out_has "word_embeddings.weight *1 *28 x 32 *8 "
ok "a tokenizer beside it" test -s "$tmp/half/tokenizer.json"
ok "ranks in the config" grep -q '"encoder.layer.1.output.dense": 10' "$tmp/half/config.json"
ok "two factors" grep -aq '"bert.encoder.layer.1.output.dense.weight_b":{"dtype":"F32","shape":\[32,10\]' \
    "$tmp/half/model.safetensors"
ok "smaller" test "$(wc -c <"$tmp/half/model.safetensors")" -lt "$(wc -c <"$tmp/one/model.safetensors")"
ok "JSON" exits 0 "$sesame" factorize "$tmp/one" --energy 0.8 --only ffn --json -o "$tmp/ffn"
ok "each weight" out_has '"name": "encoder.layer.0.intermediate.dense", "out": 64, "in": 32, "rank": '
ok "feed-forward only" sh -c "! grep -q attention '$tmp/out'"

# A key that is null means no factors; it is written once.
cp -r "$tmp/one" "$tmp/null"
sed 's/"model_type"/"sesame_low_rank": null, &/' "$tmp/one/config.json" >"$tmp/null/config.json"
ok "factorize with a null key" exits 0 "$sesame" factorize "$tmp/null" --rank 4 -o "$tmp/once"
ok "one key" test "$(grep -o '"sesame_low_rank"' "$tmp/once/config.json" | wc -l)" -eq 1
ok "prune with a null key" exits 0 "$sesame" finetune --model "$tmp/null" --task classify --train "$tmp/train.tsv" --threads 1 \
    --steps 4 --prune magnitude --block 8x8 --keep 0.5 -o "$tmp/null-pruned"

# With texts the factors keep the layers' outputs: more energy at the same rank, and without labels.
cut -f1 "$tmp/train.tsv" >"$tmp/texts.tsv"
ok "texts" exits 0 "$sesame" factorize "$tmp/one" --rank 4 --data "$tmp/texts.tsv" --task classify --json -o "$tmp/seen"
kept() { sed 's/.*layer.1.output.dense", "out": 32, "in": 64, "rank": 4, "energy": \([0-9.]*\).*/\1/' "$tmp/out"; }
seen=$(kept)
ok "the same without texts" exits 0 "$sesame" factorize "$tmp/one" --rank 4 --json -o "$tmp/unseen"
ok "texts keep more" above "$seen" "$(awk -v x="$(kept)" 'BEGIN { print x + 0.1 }')"
ok "eval reads it" exits 0 "$sesame" eval "$tmp/seen" "$tmp/dev.tsv" --task classify --json
ok "the task of the run" exits 0 "$sesame" factorize "$tmp/one" --energy 0.99 --data "$tmp/train.tsv" --examples 20 \
    -o "$tmp/some"

# The same predictions at full rank.
ok "full rank" exits 0 "$sesame" factorize "$tmp/one" --rank 32 --embeddings 28 --even-if-larger -o "$tmp/full"
"$sesame" predict "$tmp/one" "$tmp/dev.tsv" --task classify | sed 's/, "score.*//' >"$tmp/dense"
"$sesame" predict "$tmp/full" "$tmp/dev.tsv" --task classify | sed 's/, "score.*//' >"$tmp/same"
ok "the same predictions" cmp -s "$tmp/dense" "$tmp/same"

# Fine-tuning trains both factors and keeps the form; a teacher helps.
for teacher in "" "--teacher $tmp/one"; do
    rm -rf "$tmp/tuned"
    # shellcheck disable=SC2086  # no option or two words
    ok "fine-tune $teacher" exits 0 "$sesame" finetune --model "$tmp/half" --task classify --train "$tmp/train.tsv" \
        --eval "$tmp/dev.tsv" --epochs 2 --lr 1e-3 --batch-size 8 --threads 1 $teacher -o "$tmp/tuned"
    ok "it learns" above "$(score eval_accuracy "$tmp/tuned/all_results.json")" 0.95
done
for at in half tuned; do sed -n "/sesame_low_rank/,/}/p" "$tmp/$at/config.json" >"$tmp/ranks-$at"; done
ok "the same ranks" cmp -s "$tmp/ranks-half" "$tmp/ranks-tuned"

# int8: both factors.
ok "quantize" exits 0 "$sesame" quantize "$tmp/tuned" "$tmp/int8" --dtype int8 --task classify --eval "$tmp/dev.tsv" \
    --max-drop 1
for part in a b; do
    ok "int8 factor $part" grep -aq "\"bert.encoder.layer.1.output.dense.weight_$part\":{\"dtype\":\"I8\"" \
        "$tmp/int8/model.sesame-int8"
done
ok "eval reads it" exits 0 "$sesame" eval "$tmp/int8" "$tmp/dev.tsv" --task classify --json
ok "it still knows" above "$(score eval_accuracy "$tmp/out")" 0.95
ok "bf16" exits 0 "$sesame" eval "$tmp/tuned" "$tmp/dev.tsv" --task classify --json --dtype bf16
ok "it knows in bf16" above "$(score eval_accuracy "$tmp/out")" 0.95

ok "info" exits 0 "$sesame" info "$tmp/half"
ok "its ranks" out_has '^Low rank  *[0-9]* weights of rank [0-9]*'
ok "info as JSON" exits 0 "$sesame" info "$tmp/half" --json
ok "its members" out_has '"largest_rank": [1-9]'

# Messages.
"$sesame" quantize "$tmp/one" "$tmp/dense8" --dtype int8 -q
no() # message, then options after the model
{
    message=$1
    shift
    ok "refuses $*" exits "${code_of:-2}" "$sesame" factorize "$@"
    ok "message: $message" err_has "$message"
}
no "one of --rank" "$tmp/one" -o "$tmp/no"
no "exclude each other" "$tmp/one" --rank 4 --ratio 0.5 -o "$tmp/no"
no "--data needs" "$tmp/one" --embeddings 4 --data "$tmp/train.tsv" -o "$tmp/no"
no "--only needs" "$tmp/one" --embeddings 4 --only ffn -o "$tmp/no"
no "rank" "$tmp/one" --rank 0 -o "$tmp/no"
no "ratio" "$tmp/one" --ratio 1.5 -o "$tmp/no"
no "energy" "$tmp/one" --energy 0 -o "$tmp/no"
no "output" "$tmp/one" --rank 4
no "--examples has no effect without --data FILE" "$tmp/one" --rank 4 --examples 10 -o "$tmp/no"
no "--task has no effect without --data FILE" "$tmp/one" --rank 4 --task classify -o "$tmp/no"
no "--text has no effect without --data FILE" "$tmp/one" --rank 4 --text sentence -o "$tmp/no"
no "is the folder of the model" "$tmp/one" --rank 4 --overwrite -o "$tmp/one/"
code_of=3
no "expected at most 32" "$tmp/one" --rank 33 -o "$tmp/no"
no "no weight becomes smaller" "$tmp/one" --rank 32 -o "$tmp/no"
no "already contains a model" "$tmp/one" --rank 4 -o "$tmp/half"
no "factorized already" "$tmp/half" --rank 4 -o "$tmp/no"
no "its layers share their weights" tests/golden/albert-classify --rank 4 -o "$tmp/no"
no "missing.tsv" "$tmp/one" --rank 4 --data "$tmp/missing.tsv" --task classify -o "$tmp/no"
no "int8 weights" "$tmp/dense8" --rank 4 --data "$tmp/train.tsv" --task classify -o "$tmp/no"
ok "nothing was written" test ! -e "$tmp/no"
ok "overwrite" exits 0 "$sesame" factorize "$tmp/one" --rank 4 --overwrite -o "$tmp/ffn"

# A folder that does not fit its config, and adapters.
cp -r "$tmp/half" "$tmp/wrong"
sed 's/"encoder.layer.1.output.dense": 10/"encoder.layer.1.output.dense": 7/' "$tmp/half/config.json" \
    >"$tmp/wrong/config.json"
ok "a wrong rank" exits 3 "$sesame" predict "$tmp/wrong" "$tmp/dev.tsv" --task classify
ok "names it" err_has 'bert.encoder.layer.1.output.dense.weight_a.: shape \[10, 64\], config.json requires \[7, 64\]'
cp "$tmp/one/model.safetensors" "$tmp/wrong/model.safetensors"
ok "no factors" exits 3 "$sesame" predict "$tmp/wrong" "$tmp/dev.tsv" --task classify
ok "names the missing tensor" err_has 'word_embeddings.weight'
ok "LoRA" exits 3 "$sesame" finetune --model "$tmp/half" --task classify --train "$tmp/train.tsv" --adapter lora -o "$tmp/lora"
ok "gives the reason" err_has 'LoRA needs dense weights, but this model has factorized weights'
counted
