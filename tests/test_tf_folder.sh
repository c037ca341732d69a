#!/bin/sh
# TensorFlow checkpoints with the command: info, run, pipelines, convert, and formats that are refused.
# Usage: test_tf_folder.sh BUILD_DIR, from the source folder.
set -u
. tests/counted.sh
tf=tests/fixtures/tf/bert
hf=tests/fixtures/tf/bert-hf

run_both() { # COMMAND...: the same output for both folders; DIR is replaced by each
    for m in $tf $hf; do
        "$sesame" $(echo "$*" | sed "s|DIR|$m|") >"$tmp/${m##*/}.out" 2>/dev/null || return 1
    done
    [ -s "$tmp/bert.out" ] && cmp -s "$tmp/bert.out" "$tmp/bert-hf.out"
}
fails() { # TEXT COMMAND...: exit 3 or 4, one line with this text
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err"
    [ $? -ge 3 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q -e "$want" "$tmp/err"
}

that 'info' '"$sesame" info $tf >"$tmp/info" && grep -q "bert (BertForPreTraining)" "$tmp/info" && grep -q "24 tokens" "$tmp/info"'
that 'info as JSON' '"$sesame" info $tf --json | grep -q "bert_model.ckpt.data-00001-of-00003"'
that 'hidden states' 'run_both run DIR --json --hidden-states --ids 2,17,19,4,21,5,3'
that 'logits' 'run_both run DIR --json --logits --ids 2,17,19,4,21,5,3'
printf 'the cat sat on the [MASK] .\n' >"$tmp/in"
that 'a pipeline' '"$sesame" fill-mask -m $tf -f "$tmp/in" --json -q >"$tmp/a" && "$sesame" fill-mask -m $hf -f "$tmp/in" --json -q >"$tmp/b" && [ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b"'
that 'features of a pipe' 'cat "$tmp/in" | "$sesame" features -m $tf --format tsv -q >"$tmp/a" && "$sesame" features -m $hf --format tsv -q <"$tmp/in" >"$tmp/b" && [ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b"'

that 'convert' '"$sesame" convert $tf "$tmp/out.d" -q && [ -s "$tmp/out.d/tokenizer.json" ]'
that 'settings of the tokenizer' '[ "$(tr -d " \n" <"$tmp/out.d/tokenizer_config.json")" = "{\"do_lower_case\":true,\"tokenizer_class\":\"BertTokenizer\"}" ]'
that 'the same tensors' '"$sesame" convert $hf "$tmp/hf.d" -q && cmp -s "$tmp/out.d/model.safetensors" "$tmp/hf.d/model.safetensors"'
that 'the same pipeline' '"$sesame" fill-mask -m "$tmp/out.d" -f "$tmp/in" --json -q >"$tmp/b" && "$sesame" fill-mask -m $hf -f "$tmp/in" --json -q >"$tmp/a" && cmp -s "$tmp/a" "$tmp/b"'
that 'the generator of ELECTRA' '"$sesame" convert tests/fixtures/tf/electra "$tmp/generator" --class ElectraForMaskedLM -q && "$sesame" info "$tmp/generator" | grep -q "ElectraForMaskedLM"'
that 'one checkpoint of int8' '"$sesame" quantize $tf "$tmp/int8" --dtype int8 -q && [ -s "$tmp/int8/model.sesame-int8" ]'

printf 'text\tlabel\nthe cat sat\t0\na dog\t1\nthe mat\t0\nan dog sat\t1\n' >"$tmp/train.tsv"
that 'finetune' '"$sesame" finetune --task classify --model $tf --train "$tmp/train.tsv" --output "$tmp/ft" --epochs 1 -q >/dev/null && cmp -s "$tmp/ft/tokenizer.json" "$tmp/out.d/tokenizer.json" && "$sesame" text-classification -m "$tmp/ft" -q "the cat" >/dev/null'

# Names of the folder and capital letters decide about the case.
mkdir "$tmp/cased_L-2" "$tmp/any"
cp $tf/* "$tmp/cased_L-2" && cp $tf/* "$tmp/any"
that 'a cased folder' '"$sesame" tokenize -m "$tmp/cased_L-2" "The cat" | grep -q UNK'
that 'another one' '! "$sesame" tokenize -m "$tmp/any" "The cat" | grep -q UNK'
sed -i 's/^mat$/Mat/' "$tmp/any/vocab.txt"
that 'capital letters' '"$sesame" tokenize -m "$tmp/any" "The cat" | grep -q UNK'

# Bad input.
cp -r $tf "$tmp/bad"
rm "$tmp/bad/bert_config.json"
that 'no config' 'fails "bert_config.json: not found" info "$tmp/bad"'
that 'a prefix instead of the folder' 'fails "name its folder" info $tf/bert_model.ckpt'
cp $tf/bert_config.json "$tmp/bad"
rm "$tmp/bad/bert_model.ckpt.data-00002-of-00003"
that 'a missing shard' 'fails "shard 3 of 3: .*data-00002-of-00003" info "$tmp/bad"'
that 'and convert writes nothing' 'fails "shard 3 of 3" convert "$tmp/bad" "$tmp/nothing" && [ ! -e "$tmp/nothing" ]'
head -c 1000 $tf/bert_model.ckpt.data-00002-of-00003 >"$tmp/bad/bert_model.ckpt.data-00002-of-00003"
that 'a truncated shard' 'fails "the file is truncated" fill-mask -m "$tmp/bad" "the [MASK]"'
sed -i 's/"hidden_size": 8/"hidden_size": 10/' "$tmp/any/bert_config.json"
that 'a config of another size' 'fails "shape \[24, 8\], config.json requires \[24, 10\]" info "$tmp/any"'
for f in tf_model.h5:from_tf flax_model.msgpack:from_flax; do
    mkdir "$tmp/other"
    cp $hf/config.json "$tmp/other"
    : >"$tmp/other/${f%:*}"
    that "${f%:*}" 'fails "found ${f%:*}, expected model.safetensors: .*${f#*:}=True" info "$tmp/other"'
    rm -r "$tmp/other"
done
counted
