#!/bin/sh
# Objectives with a generator (ELECTRA): All-Tokens MLM with its copy mechanism, tied weights, a frozen generator;
# mixed units of masking. Usage: test_pretrain_generator.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

awk 'BEGIN { srand(1); for (i = 0; i < 600; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' \
    >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 100 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
run="$sesame pretrain -c $tmp/c --tokenizer $tmp/t.json --threads 1 --batch-size 8 -n 32 --eval-every -1 --lr 3e-3"
sizes='--set hidden_size=16 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=32
    --set embedding_size=16'
electra="-p electra-small $sizes"
# The tensors of a folder with their norms, without the heads.
encoder() { "$sesame" info "$1" --tensors | grep ' electra\.'; }
# The embeddings.
embeddings() { encoder "$1" | grep 'embeddings\.'; }
same() { [ -n "$1" ] && [ "$1" = "$2" ]; }
resumes() # folder: continues after update 4, with the same bytes
{
    mkdir "$tmp/again" && cp -r "$1/checkpoint-4" "$tmp/again/" && "$sesame" pretrain -o "$tmp/again" --resume >"$tmp/out" 2>&1 &&
        cmp "$1/model.safetensors" "$tmp/again/model.safetensors" &&
        cmp "$1/generator/model.safetensors" "$tmp/again/generator/model.safetensors" && rm -r "$tmp/again"
}
# shellcheck disable=SC2086  # several options
{
# All-Tokens MLM with the copy mechanism: learns to copy, is saved and resumed with its head.
ok alltok exits 0 $run $electra --objective alltok --steps 60 --save-every 4 --keep 99 --json -o "$tmp/alltok"
for name in alltok_loss alltok_accuracy alltok_restored alltok_copied generator_loss; do
    ok "alltok: $name" out_has "\"eval_$name\""
done
ok 'alltok: copies' above "$(score eval_alltok_copied "$tmp/alltok/all_results.json")" 0.7
ok 'alltok: more than half is right' above "$(score eval_alltok_accuracy "$tmp/alltok/all_results.json")" 0.7
ok 'alltok: its class' grep -q ElectraForCopyLM "$tmp/alltok/config.json"
ok 'alltok: its head' sh -c '"$1" info "$2" --tensors | grep -q copy_predictions.weight' . "$sesame" "$tmp/alltok"
ok 'alltok: resumed' resumes "$tmp/alltok"
ok 'alltok: corrects tokens' exits 0 "$sesame" run "$tmp/alltok" --ids '2 9 10 11 3'
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 40; i++) print "w" i % 40 " w1\t" i % 2 }' >"$tmp/labels.tsv"
ok 'alltok: fine-tuned' exits 0 "$sesame" finetune -m "$tmp/alltok" --task classify --train "$tmp/labels.tsv" \
    --eval "$tmp/labels.tsv" --threads 1 --epochs 1 -o "$tmp/tuned"
ok 'without the copy mechanism' exits 0 $run $electra --objective alltok-nocopy --steps 4 --json -o "$tmp/nocopy"
ok 'without: accuracy' out_has '"eval_alltok-nocopy_accuracy"'

# Tied weights: none, embeddings (the default), all of the encoder.
for tying in none embeddings all; do
    ok "tying $tying" exits 0 $run $electra --objective rtd --steps 8 --save-every 4 --keep 9 --generator-tying $tying \
        -o "$tmp/$tying"
    ok "tying $tying: resumed" resumes "$tmp/$tying"
done
ok 'embeddings are the default' exits 0 $run $electra --objective rtd --steps 8 -o "$tmp/default"
ok 'the same bytes' cmp "$tmp/default/model.safetensors" "$tmp/embeddings/model.safetensors"
ok 'none: two tables' test "$(embeddings "$tmp/none")" != "$(embeddings "$tmp/none/generator")"
ok 'embeddings: one table' same "$(embeddings "$tmp/embeddings")" "$(embeddings "$tmp/embeddings/generator")"
ok 'embeddings: two encoders' test "$(encoder "$tmp/embeddings")" != "$(encoder "$tmp/embeddings/generator")"
ok 'all: one encoder' same "$(encoder "$tmp/all")" "$(encoder "$tmp/all/generator")"
ok 'all: the generator opens' exits 0 "$sesame" info "$tmp/all/generator"
ok 'half the widths' exits 0 $run $electra --objective rtd --steps 2 --generator-size 0.5 -o "$tmp/half"
ok 'hidden_size 8' grep -q '"hidden_size": 8' "$tmp/half/generator/config.json"
ok 'all: half the widths' exits 3 $run $electra --objective rtd --steps 2 --generator-tying all --generator-size 0.5 -o "$tmp/x"
ok 'all: another size' exits 3 $run $electra --objective rtd --steps 2 --generator-tying all --generator electra-small \
    -o "$tmp/x"
ok 'all: names the sizes' err_has 'generator and model need the same sizes'
ok 'all: another depth' exits 3 $run $electra --objective rtd --steps 2 --generator-tying all \
    --generator "$tmp/default/generator" -o "$tmp/x"
ok 'embeddings: another width' exits 3 $run $electra --set embedding_size=8 --objective rtd --steps 2 \
    --generator "$tmp/default/generator" -o "$tmp/x"
ok 'embeddings: names the option' err_has 'generator-tying none'
ok 'a resumed run keeps its tying' exits 3 "$sesame" pretrain -o "$tmp/all" --resume --generator-tying none

# Two stages: a generator by masked LM, then a model that starts from it and a generator that is not trained.
ok 'stage 1' exits 0 $run $electra --objective mlm --steps 8 -o "$tmp/mlm"
ok 'stage 2' exits 0 $run -m "$tmp/mlm" --objective rtd --generator "$tmp/mlm" --generator-frozen --steps 8 --save-every 4 \
    --keep 9 -o "$tmp/second"
ok 'stage 2: the generator is unchanged' same "$(encoder "$tmp/mlm")" "$(encoder "$tmp/second/generator")"
ok 'stage 2: the model is not' test "$(encoder "$tmp/mlm")" != "$(encoder "$tmp/second")"
ok 'stage 2: resumed' resumes "$tmp/second"
ok 'a generator from a folder, trained' exits 0 $run -m "$tmp/mlm" --objective rtd --generator "$tmp/mlm" --steps 2 -o "$tmp/third"
ok 'frozen without weights' exits 2 $run $electra --objective rtd --generator-frozen --steps 2 -o "$tmp/x"
ok 'frozen: names the remedy' err_has 'train one with objective mlm'
ok 'frozen and tied' exits 3 $run -m "$tmp/mlm" --objective rtd --generator "$tmp/mlm" --generator-frozen \
    --generator-tying all --steps 2 -o "$tmp/x"

# Units of masking: each alone, mixed, static and dynamic.
bert="-p bert-tiny $sizes"
for unit in token word ngram span token:0.5,span:0.5 word,ngram:2,span; do
    for copies in 0 2; do
        ok "unit $unit, copies $copies" exits 0 $run $bert --objective mlm --mask-unit $unit --mask-copies $copies --steps 2 \
            --overwrite -o "$tmp/unit"
    done
done
ok 'a mix is not its first unit' exits 3 "$sesame" pretrain -o "$tmp/unit" --resume --mask-unit word
ok 'an unknown unit' exits 2 $run $bert --mask-unit tokens --steps 2 -o "$tmp/x"
ok 'suggests a unit' err_has 'token'
ok 'a unit twice' exits 3 $run $bert --mask-unit span,span --steps 2 -o "$tmp/x"
ok 'a weight of 0' exits 3 $run $bert --mask-unit span:0 --steps 2 -o "$tmp/x"
ok 'names the weight' err_has 'the weight of mask unit span must be a number above 0'
}
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
