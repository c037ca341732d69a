#!/bin/sh
# Tests of quantize and of --dtype in inference: accuracy, determinism, errors.
# Usage: test_quantize.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086  # several options
ok "train a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" \
    --eval "$tmp/dev.tsv" --epochs 4 -o "$tmp/one"

for dtype in f16 bf16 int8; do
    ok "quantize to $dtype" exits 0 "$sesame" quantize "$tmp/one" "$tmp/$dtype" --dtype $dtype --task classify \
        --eval "$tmp/dev.tsv" --max-drop 1
    file=$tmp/$dtype/model.safetensors
    [ $dtype = int8 ] && file=$tmp/int8/model.sesame-int8
    ok "smaller" test "$(wc -c <"$file")" -lt "$(wc -c <"$tmp/one/model.safetensors")"
    ok "eval reads $dtype" exits 0 "$sesame" eval "$tmp/$dtype" "$tmp/dev.tsv" --task classify --json
    ok "$dtype still knows" above "$(score eval_accuracy "$tmp/out")" 0.95
    "$sesame" predict "$tmp/one" "$tmp/dev.tsv" --task classify --dtype $dtype >"$tmp/rounded"
    ok "a tokenizer beside it" test -s "$tmp/$dtype/tokenizer.json"
done

# An int8 folder holds the weights of --dtype int8, except embedding tables and heads in 16 bits.
"$sesame" predict "$tmp/int8" "$tmp/dev.tsv" --task classify | sed 's/, "score.*//' >"$tmp/stored"
sed 's/, "score.*//' "$tmp/rounded" >"$tmp/made"
ok "stored weights as with --dtype int8" cmp -s "$tmp/stored" "$tmp/made"

# Other programs look for model.safetensors or pytorch_model.bin, alone, in shards or with a variant's name.
ok "no weights for other programs" sh -c "! ls '$tmp/int8' | grep -Eq '[.](safetensors|bin|pt|h5|msgpack)'"
ok "int8 in shards" exits 0 "$sesame" convert "$tmp/one" "$tmp/shards" --dtype int8 --shard-size 20480
ok "nor in shards" sh -c "! ls '$tmp/shards' | grep -Eq '[.](safetensors|bin|pt|h5|msgpack)'"
ok "an index" test -s "$tmp/shards/model.sesame-int8.index.json"
"$sesame" predict "$tmp/shards" "$tmp/dev.tsv" --task classify | sed 's/, "score.*//' >"$tmp/sharded"
ok "the same weights in shards" cmp -s "$tmp/stored" "$tmp/sharded"

# Folders of earlier versions have the same file under the name model.safetensors.
cp -r "$tmp/int8" "$tmp/old" && mv "$tmp/old/model.sesame-int8" "$tmp/old/model.safetensors"
"$sesame" predict "$tmp/old" "$tmp/dev.tsv" --task classify | sed 's/, "score.*//' >"$tmp/older"
ok "an older int8 folder" cmp -s "$tmp/stored" "$tmp/older"
ok "converted to the new form" exits 0 "$sesame" convert "$tmp/old" "$tmp/old" --dtype int8 --overwrite
ok "the new file" cmp -s "$tmp/old/model.sesame-int8" "$tmp/int8/model.sesame-int8"
ok "without the old one" test ! -e "$tmp/old/model.safetensors"

# Batches and threads do not change bits.
cut -f1 "$tmp/dev.tsv" | sed 1d | head -20 >"$tmp/texts"
"$sesame" text-classification --model "$tmp/int8" --json --threads 1 "$(head -1 "$tmp/texts")" >"$tmp/alone"
"$sesame" text-classification --model "$tmp/int8" --json --threads 2 <"$tmp/texts" | head -1 >"$tmp/among"
ok "int8: batch of one and of many" cmp -s "$tmp/alone" "$tmp/among"

# Nor do they change a byte of the output: weights of several pieces, in both layouts.
for model in sesame-small sesame-gpt; do
    "$sesame" convert $model "$tmp/whole" --dtype f32 --overwrite -q
    for dtype in int8 f16; do
        for threads in 1 2 5; do
            rm -rf "$tmp/by$threads"
            ok "quantize $model on $threads threads" exits 0 "$sesame" quantize "$tmp/whole" "$tmp/by$threads" --dtype $dtype \
                --embeddings $([ $dtype = int8 ] && echo int8 || echo f16) --threads $threads
            sed "s/by$threads//" "$tmp/out" >"$tmp/said$threads"
        done
        for threads in 2 5; do
            ok "$model, $dtype: the same bytes on $threads threads" diff -r "$tmp/by1" "$tmp/by$threads"
            ok "$model, $dtype: the same report on $threads threads" cmp -s "$tmp/said1" "$tmp/said$threads"
        done
    done
done

# f16 weights converted back to f32 give identical results.
ok "f16 as f32" exits 0 "$sesame" convert "$tmp/f16" "$tmp/f16-wide" --dtype f32
for at in f16 f16-wide; do "$sesame" predict "$tmp/$at" "$tmp/dev.tsv" --task classify >"$tmp/said-$at"; done
ok "the same" cmp -s "$tmp/said-f16" "$tmp/said-f16-wide"

# int8 embeddings: smaller, and used by the evaluation, too.
ok "8-bit embeddings" exits 0 "$sesame" quantize "$tmp/one" "$tmp/tables" --dtype int8 --embeddings int8 \
    --task classify --eval "$tmp/dev.tsv" --max-drop 1
ok "smaller than int8" test "$(wc -c <"$tmp/tables/model.sesame-int8")" -lt "$(wc -c <"$tmp/int8/model.sesame-int8")"
ok "a scale per row" grep -aq '"bert.embeddings.word_embeddings.weight_scale":{"dtype":"F32","shape":\[[0-9]*\]' \
    "$tmp/tables/model.sesame-int8"
ok "eval reads 8-bit embeddings" exits 0 "$sesame" eval "$tmp/tables" "$tmp/dev.tsv" --task classify --json
ok "accuracy with int8 embeddings" above "$(score eval_accuracy "$tmp/out")" 0.95
"$sesame" text-classification --model "$tmp/tables" --json --threads 1 "$(head -1 "$tmp/texts")" >"$tmp/alone"
"$sesame" text-classification --model "$tmp/tables" --json --threads 2 <"$tmp/texts" | head -1 >"$tmp/among"
ok "int8 embeddings: batch of one and of many" cmp -s "$tmp/alone" "$tmp/among"
ok "convert back to f32" exits 0 "$sesame" convert "$tmp/tables" "$tmp/wide" --dtype f32
"$sesame" text-classification --model "$tmp/wide" --dtype int8 --json "$(head -1 "$tmp/texts")" >"$tmp/again"
ok "same result" sh -c "[ \"\$(cut -c1-40 '$tmp/alone')\" = \"\$(cut -c1-40 '$tmp/again')\" ]"
ok "int8 embeddings require int8" exits 2 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype f16 --embeddings int8

# Pruned blocks of four inputs. The score is that of the written model.
ok "half of the blocks" exits 0 "$sesame" quantize "$tmp/one" "$tmp/sparse" --dtype int8 --sparse 0.5 --task classify \
    --eval "$tmp/dev.tsv" --max-drop 100 --json
ok "zero blocks" grep -q '"zero_blocks": 0.50*[0-9]*, ' "$tmp/out"
quantized=$(score quantized "$tmp/out")
ok "eval of sparse weights" exits 0 "$sesame" eval "$tmp/sparse" "$tmp/dev.tsv" --task classify --json
ok "its score" test "$(score eval_accuracy "$tmp/out")" = "$quantized"
ok "saved again" exits 0 "$sesame" convert "$tmp/sparse" "$tmp/sparse2" --dtype int8 --json
ok "the zeros stay" grep -q '"zero_blocks": 0.50*[0-9]*, ' "$tmp/out"
ok "the same bytes" cmp -s "$tmp/sparse/model.sesame-int8" "$tmp/sparse2/model.sesame-int8"
ok "all as text" exits 0 "$sesame" quantize "$tmp/one" "$tmp/sparse3" --dtype int8 --sparse 0.9
ok "the share" grep -q '^Sparse  *89.9 % of the blocks of four inputs are 0' "$tmp/out"
ok "sparse requires int8" exits 2 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype f16 --sparse 0.5
ok "all blocks" exits 2 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype int8 --sparse 1
ok "too large a drop" exits 3 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype int8 --sparse 0.99 --task classify \
    --eval "$tmp/dev.tsv" --max-drop 0
ok "not written" test ! -e "$tmp/no"
ok "its advice" err_has 'try a smaller --sparse'
ok "a new folder" exits 2 "$sesame" quantize "$tmp/one" "$tmp/sparse" --dtype int8 --sparse 0.5 --task classify \
    --eval "$tmp/dev.tsv" --overwrite
ok "its reason" err_has 'sparse exists: --sparse with --eval measures the written model'

ok "back to f32" exits 0 "$sesame" convert "$tmp/int8" "$tmp/back" --dtype f32
ok "eval reads it" exits 0 "$sesame" eval "$tmp/back" "$tmp/dev.tsv" --task classify --json
ok "accuracy" above "$(score eval_accuracy "$tmp/out")" 0.95
ok "weights that transformers reads" test -s "$tmp/back/model.safetensors"
ok "back to f16" exits 0 "$sesame" convert "$tmp/int8" "$tmp/back16" --dtype f16
ok "F16 only" sh -c "head -c 4000 '$tmp/back16/model.safetensors' | grep -aq F16 && ! head -c 4000 '$tmp/back16/model.safetensors' | grep -aq I8"
ok "in place" exits 0 "$sesame" convert "$tmp/old" "$tmp/old" --dtype f32 --overwrite
ok "the same values" cmp -s "$tmp/old/model.safetensors" "$tmp/back/model.safetensors"
ok "only one file" test ! -e "$tmp/old/model.sesame-int8"
ok "no quantization_config" sh -c "! grep -q quantization_config '$tmp/back/config.json'"
ok "quantization_config" grep -q '"quant_method": "sesame-int8"' "$tmp/int8/config.json"

# info, convert and quantize report the same dtype and number of parameters, also of sentence encoders and tied weights.
reported() { # FOLDER: dtype and parameters of info
    "$sesame" info "$1" --json -q | awk -F'[:,]' '/"total"/ && !n { n = $2 + 0 } /"dtype"/ && !d { d = $2 } END { gsub(/[" ]/, "", d); print d, n }'
}
wrote() { sed 's/.*"parameters": \([0-9]*\), "dtype": "\([A-Z0-9]*\)".*/\2 \1/' "$tmp/out"; }
for model in "$tmp/one" tests/sentence/all-pools tests/pipelines/bert-mask tests/golden/gpt2-lm tests/golden/t5-v1.0; do
    count=$(reported "$model" | cut -d' ' -f2)
    for dtype in f32 f16 bf16 int8; do
        name=$(echo "$dtype" | sed 's/int8/I8/' | tr a-z A-Z)
        rm -rf "$tmp/as"
        ok "convert $model to $dtype" exits 0 "$sesame" convert "$model" "$tmp/as" --dtype $dtype --json -q
        ok "convert: $name $count" test "$(wrote)" = "$name $count"
        ok "info: $name $count" test "$(reported "$tmp/as")" = "$name $count"
        [ $dtype = f32 ] && continue
        rm -rf "$tmp/as"
        ok "quantize $model to $dtype" exits 0 "$sesame" quantize "$model" "$tmp/as" --dtype $dtype --json -q
        ok "quantize: $name $count" test "$(wrote)" = "$name $count"
    done
done
ok "quantize as text" exits 0 "$sesame" quantize "$tmp/int8" "$tmp/as" --overwrite --dtype f16
ok "the dtype it was" grep -q 'parameters, I8 to F16, ' "$tmp/out"
ok "quantize --eval --json" exits 0 "$sesame" quantize "$tmp/one" "$tmp/as" --overwrite --dtype int8 --task classify \
    --eval "$tmp/dev.tsv" --json -q
ok "scores" grep -q '"metric": "accuracy", "original": [0-9.]*, "quantized": [0-9.]*, "drop": [-0-9.e]*}$' "$tmp/out"
ok "one line" test "$(wc -l <"$tmp/out")" -eq 1
ok "the rounding error of 8 bits" exits 0 "$sesame" convert "$tmp/int8" "$tmp/as" --overwrite --dtype int8 --json
ok "none for 8 bits" grep -q '"rounding": 0.0' "$tmp/out"
ok "and above zero" exits 0 "$sesame" convert tests/pipelines/bert-mask "$tmp/as" --overwrite --dtype int8 --json
ok "half of the largest scale" grep -q '"rounding": 0.00557' "$tmp/out"

# Errors; nothing is written. Quantization changes predictions slightly, so the correlation with the original
# predictions drops.
awk 'BEGIN { srand(7); split("good bad film the a was it not paris london anna bob lives in of", w, " "); print "sentence\tlabel"
    for (i = 0; i < 100; i++) { for (j = 0; j < 6; j++) printf "%s ", w[int(rand() * 15) + 1]; print ".\t" i } }' >"$tmp/many.tsv"
# shellcheck disable=SC2086
ok "a regression model" exits 0 "$sesame" finetune $small --steps 1 --task regress --train "$tmp/many.tsv" -o "$tmp/raw"
"$sesame" predict "$tmp/raw" "$tmp/many.tsv" --task regress | sed 's/.*"value": \([-0-9.e]*\).*/\1/' >"$tmp/said"
{ printf 'sentence\tlabel\n'; sed 1d "$tmp/many.tsv" | cut -f1 | paste - "$tmp/said"; } >"$tmp/own.tsv"
ok "a drop that is too large" exits 3 "$sesame" quantize "$tmp/raw" "$tmp/no" --dtype int8 --task regress \
    --eval "$tmp/own.tsv" --max-drop 0
ok "its size" err_has 'points of pearson, --max-drop is 0.00: nothing was written'
ok "f32 is rejected" exits 2 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype f32
mkdir "$tmp/other" && cp "$tmp/one/config.json" "$tmp/one/model.safetensors" "$tmp/one"/tokenizer*.json "$tmp/other"
ok "the task of the class" exits 3 "$sesame" quantize "$tmp/other" "$tmp/no" --dtype int8 --eval "$tmp/own.tsv" --max-drop 0
ok "its reason" err_has 'unknown label .*expected one of: neg, pos'
ok "no such score" exits 2 "$sesame" quantize "$tmp/one" "$tmp/no" --dtype int8 --task classify --eval "$tmp/dev.tsv" \
    --metric bleu
ok "does not overwrite" exits 3 "$sesame" quantize "$tmp/one" "$tmp/int8" --dtype int8
ok "nothing was written" test ! -e "$tmp/no"

# int8 weights require scales.
cp -r "$tmp/int8" "$tmp/torn"
sed 's/_scale"/_scalf"/g' "$tmp/int8/model.sesame-int8" >"$tmp/torn/model.sesame-int8"
ok "a changed header" exits 3 "$sesame" eval "$tmp/torn" "$tmp/dev.tsv" --task classify
ok "is noticed" grep -q 'checksum' "$tmp/err"
sed 's/_scale"/_scalf"/g; s/"sesame_checksum"/"other__checksum"/' "$tmp/int8/model.sesame-int8" >"$tmp/torn/model.sesame-int8"
ok "scales are missing" exits 3 "$sesame" eval "$tmp/torn" "$tmp/dev.tsv" --task classify
ok "names it" grep -q 'dtype I8 without ".*_scale"' "$tmp/err"

# NaN is an error.
cp -r "$tmp/one" "$tmp/nan"
at=$(head -c 100000 "$tmp/one/model.safetensors" | tr -d '\n' |
    LC_ALL=C sed 's/.*query.weight":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/' | head -c 12 | tr -dc 0-9)
head=$(od -An -tu8 -N8 "$tmp/one/model.safetensors" | tr -d ' ')
printf '\377\377\377\177' | dd of="$tmp/nan/model.safetensors" bs=1 seek=$((8 + head + at)) conv=notrunc 2>/dev/null
for dtype in f16 bf16 int8; do
    ok "NaN in $dtype" exits 3 "$sesame" eval "$tmp/nan" "$tmp/dev.tsv" --task classify --dtype $dtype
    ok "error message" err_has 'a weight is NaN or infinite'
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
