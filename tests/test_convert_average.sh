#!/bin/sh
# convert --average: the mean of models, and models that do not fit.
# Usage: test_convert_average.sh BUILD_DIR, from the source folder.
set -u
. tests/counted.sh
from=tests/pipelines/bert-label other=tests/fixtures/adapters/bert
refused() # MESSAGE, ARGUMENTS of convert: exit status 1 or 2, this message, and no output
{
    message=$1
    shift
    "$sesame" convert "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
    that "$message: status $status" '[ $status -ne 0 ] && [ ! -e "$tmp/no" ]'
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

cp -r $from "$tmp/tokens"
sed 's/"the"/"eht"/' $from/tokenizer.json >"$tmp/tokens/tokenizer.json"
that 'another token' '! cmp -s $from/tokenizer.json "$tmp/tokens/tokenizer.json"'
refused 'has another tokenizer than' $from "$tmp/no" --average "$tmp/tokens"
refused 'nowhere' $from "$tmp/no" --average "$tmp/nowhere"
mkdir "$tmp/mask" && cp tests/pipelines/bert-mask/config.json tests/pipelines/bert-mask/model.safetensors "$tmp/mask"
refused 'is a BertForMaskedLM instead of a BertForSequenceClassification' $from "$tmp/no" --average "$tmp/mask"
refused '--average' $other/adapter "$tmp/no" --keep-adapter --average $other/adapter

counted
