#!/bin/sh
# convert --average: the mean of models, and models that do not fit.
# Usage: test_convert_average.sh BUILD_DIR, from the source folder.
set -u
. tests/counted.sh
from=tests/pipelines/bert-label other=tests/fixtures/adapters/bert
refused() # STATUS, MESSAGE, ARGUMENTS of convert: this exit status and message, and no output
{
    expected=$1 message=$2
    shift 2
    "$sesame" convert "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
    that "$message: status $status" '[ $status -eq $expected ] && [ ! -e "$tmp/no" ]'
    that "$message" 'grep -q -e "$message" "$tmp/err"'
}

# A model with itself is that model, to the bit; so is a mean of three of them, but for rounding.
"$sesame" convert $from "$tmp/one" -q
that 'with itself' '"$sesame" convert $from "$tmp/two" --average $from -q && cmp "$tmp/one/model.safetensors" "$tmp/two/model.safetensors"'
that 'JSON' '"$sesame" convert $from "$tmp/three" --average "$tmp/one" --average "$tmp/two" --json >"$tmp/out" && grep -q "\"models\": 3" "$tmp/out"'
label() { "$sesame" text-classification -m "$1" --json 'the film was good' | grep -o '"label": .*"score": 0[.].....'; }
that 'its prediction' '[ -n "$(label $from)" ] && [ "$(label "$tmp/three")" = "$(label $from)" ]'

# An adapter is merged first, on both sides.
that 'with an adapter' '"$sesame" convert $other/base "$tmp/base" --average $other/adapter -q && "$sesame" convert $other/adapter "$tmp/same" --average $other/base -q'
that 'in either order' 'cmp "$tmp/base/model.safetensors" "$tmp/same/model.safetensors" && ! cmp -s "$tmp/base/model.safetensors" $other/base/model.safetensors'

# int8: the values, whatever the order; a mean of several types is f32.
"$sesame" quantize $from "$tmp/int8" --dtype int8 -q
"$sesame" convert $from "$tmp/half" --dtype f16 -q
that 'int8' '"$sesame" convert "$tmp/int8" "$tmp/a" --average $from --json >"$tmp/out" && "$sesame" convert $from "$tmp/b" --average "$tmp/int8" -q'
that 'int8 in either order' 'cmp "$tmp/a/model.safetensors" "$tmp/b/model.safetensors" && ! cmp -s "$tmp/a/model.safetensors" "$tmp/one/model.safetensors"'
that 'f16 and f32' '"$sesame" convert "$tmp/half" "$tmp/c" --average $from --json | grep -q "\"dtype\": \"F32\""'
that 'f16 and f16' '"$sesame" convert "$tmp/half" "$tmp/d" --average "$tmp/half" --json | grep -q "\"dtype\": \"F16\""'

# Sentence encoders: modules with weights are refused on both sides; a name is resolved like a path.
encoder=tests/sentence/prompt-norm
cp -r $encoder "$tmp/plain" && rm "$tmp/plain/modules.json"
refused 3 'has modules with weights' $encoder "$tmp/no" --average $encoder
refused 3 'modules of a sentence encoder instead of 0' "$tmp/plain" "$tmp/no" --average $encoder
refused 3 'has modules with weights' $encoder "$tmp/no" --average "$tmp/plain"

cp -r $from "$tmp/tokens"
sed 's/"the"/"eht"/' $from/tokenizer.json >"$tmp/tokens/tokenizer.json"
that 'another token' '! cmp -s $from/tokenizer.json "$tmp/tokens/tokenizer.json"'
refused 3 'has another tokenizer than' $from "$tmp/no" --average "$tmp/tokens"
SESAME_MODELS=$tmp
export SESAME_MODELS
refused 3 'has another tokenizer than' $from "$tmp/no" --average tokens
refused 3 'nowhere' $from "$tmp/no" --average "$tmp/nowhere"
mkdir "$tmp/mask" && cp tests/pipelines/bert-mask/config.json tests/pipelines/bert-mask/model.safetensors "$tmp/mask"
refused 3 'is a BertForMaskedLM instead of a BertForSequenceClassification' $from "$tmp/no" --average "$tmp/mask"
refused 2 '--average' $other/adapter "$tmp/no" --keep-adapter --average $other/adapter

counted
