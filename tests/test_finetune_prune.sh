#!/bin/sh
# Pruning during fine-tuning from outside: criteria, blocks, resume, the saved model, refusals.
# Usage: test_finetune_prune.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

tune="$small --task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --epochs 12"
member() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" "$2" | head -1; }

pruned() # name, least accuracy, options
{
    name=$1 least=$2
    shift 2
    # shellcheck disable=SC2086  # several options
    ok "$name" exits 0 "$sesame" finetune $tune "$@" -o "$tmp/$name"
    ok "$name: the summary shows densities" out_has 'attn.query'
    ok "$name learned" above "$(score eval_accuracy "$tmp/$name/all_results.json")" "$least"
    ok "$name: the log has the kept fraction" grep -q '"kept":' "$tmp/$name/log.jsonl"
    ok "$name: eval" exits 0 "$sesame" eval "$tmp/$name" "$tmp/dev.tsv" --task classify --json
    ok "$name: the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/$name/eval_results.json")"
    ok "$name: a pipeline" exits 0 "$sesame" text-classification -m "$tmp/$name" "the film was good ."
    ok "$name: int8" exits 0 "$sesame" quantize "$tmp/$name" "$tmp/$name-i8" --dtype int8
    ok "$name: trained further" exits 0 "$sesame" finetune --model "$tmp/$name" --task classify --train "$tmp/train.tsv" \
        --threads 1 --steps 2 -o "$tmp/$name-2"
}

pruned movement 0.8 --prune movement --block 8x8 --keep 0.5
ok "half is kept" test "$(member kept "$tmp/movement/all_results.json")" = 0.5
pruned sparse 0.8 --prune magnitude --block 1x4 --keep 0.4
pruned soft 0.8 --prune soft-movement --block 8x8 --prune-penalty 0.5
pruned units 0.8 --prune movement --block unit --keep 0.25
left=$(member heads_left "$tmp/units/all_results.json") rows=$(member ffn_rows_left "$tmp/units/all_results.json")
ok "units: heads are removed" test "$left" = 2
ok "units: rows are removed" test "$rows" = 32
ok "units: config.json has the heads" grep -q pruned_heads "$tmp/units/config.json"
ok "units: the card names the key" grep -q 'transformers do not: `pruned_heads` in config.json' "$tmp/units/README.md"
ok "units: the card's library" grep -qx 'library_name: sesame' "$tmp/units/README.md"
ok "units: no pipeline of transformers" sh -c "! grep -q 'from transformers' '$tmp/units/README.md'"
ok "units: a smaller file" test "$(wc -c <"$tmp/units/model.safetensors")" -lt "$(wc -c <"$tmp/movement/model.safetensors")"
# shellcheck disable=SC2086
ok "a teacher" exits 0 "$sesame" finetune $tune --prune movement --block 8x8 --keep 0.5 --teacher "$tmp/movement" -o "$tmp/taught"

# Interrupted between full and final masks and resumed: the same weights as without interruption.
long="${tune% *} 100"
# shellcheck disable=SC2086
for p in "movement --block 8x8" "magnitude --block row"; do
    rm -rf "$tmp/stopped" "$tmp/whole"
    "$sesame" finetune $long --prune $p --keep 0.3 -o "$tmp/stopped" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -q 'kept [0-9]\{1,2\}\.' "$tmp/err"; do sleep 0.02; done
    kill -TERM $pid 2>/dev/null
    wait $pid
    ok "$p is interrupted" test $? -eq 143
    ok "$p resumes" exits 0 "$sesame" finetune $long --prune $p --keep 0.3 -o "$tmp/stopped" --resume
    ok "$p without a stop" exits 0 "$sesame" finetune $long --prune $p --keep 0.3 -o "$tmp/whole"
    ok "$p: the same bits" cmp -s "$tmp/whole/model.safetensors" "$tmp/stopped/model.safetensors"
done

refuse() # message, options
{
    message=$1
    shift
    # shellcheck disable=SC2086
    ok "refused: $*" exits 2 "$sesame" finetune $tune "$@" -o "$tmp/refused"
    ok "$message" err_has "$message"
}
for option in '--keep 0.3' '--block 8x8' '--score-lr 0.1' '--prune-warmup 5' '--prune-cooldown 5' '--prune-threshold 0.3' '--prune-penalty 2'; do
    # shellcheck disable=SC2086
    refuse "${option%% *} has no effect without --prune" $option
done
for option in '--score-lr 0.1' '--prune-penalty 2' '--prune-threshold 0.3'; do
    # shellcheck disable=SC2086
    refuse "${option%% *} has no effect with --prune magnitude" --prune magnitude --keep 0.5 $option
done
for option in '--prune-penalty 2' '--prune-threshold 0.3'; do
    # shellcheck disable=SC2086
    refuse "${option%% *} has no effect with --prune movement" --prune movement --keep 0.5 $option
done
refuse '--keep X is required' --prune movement
refuse '--keep X is required' --prune magnitude
refuse '--prune and --exits frozen exclude each other' --prune movement --keep 0.5 --exits frozen
refuse 'keep is 2' --prune movement --keep 2
refuse 'unknown criterion of prune "moving"' --prune moving --keep 0.5
refuse '"0x8" is neither a size' --prune movement --keep 0.5 --block 0x8
refuse '64x64 is larger than' --prune movement --keep 0.5 --block 64x64
ok "an adapter" exits 3 "$sesame" finetune --model "$tmp/movement" --adapter lora --task classify --train "$tmp/train.tsv" \
    --prune movement --keep 0.5 -o "$tmp/refused"
ok "an adapter: why" err_has 'an adapter'
ok "a method" exits 2 "$sesame" finetune --model "$tmp/movement" --method self-training --task classify --train "$tmp/train.tsv" \
    --prune movement --keep 0.5 -o "$tmp/refused"
ok "a method: why" err_has 'second run'
# A sentence encoder keeps its size.
awk 'BEGIN { print "a\tb\tscore"; for (i = 0; i < 24; i++) print "the film was good\tit was " (i % 2 ? "good" : "bad") "\t" i % 2 }' >"$tmp/pairs.tsv"
# shellcheck disable=SC2086
ok "embed" exits 0 "$sesame" finetune $small --task embed --loss cosine --train "$tmp/pairs.tsv" --text a --pair b --label score --epochs 2 \
    --prune movement --block unit --keep 0.5 -o "$tmp/embed"
ok "embed: a notice" err_has 'stay in the model'
ok "embed: opens" exits 0 "$sesame" embed -m "$tmp/embed" "the film"
# --keep was the name of --keep-checkpoints and still is without --prune.
# shellcheck disable=SC2086
ok "--keep 3" exits 0 "$sesame" finetune $tune --keep 3 -o "$tmp/kept"
# shellcheck disable=SC2012
ok "three checkpoints" test "$(ls -d "$tmp/kept"/checkpoint-* | wc -l)" -ge 3

# Without pruning, transformers reads the folder.
ok "the card's library" grep -qx 'library_name: transformers' "$tmp/kept/README.md"
ok "a pipeline of transformers" grep -q 'from transformers' "$tmp/kept/README.md"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
