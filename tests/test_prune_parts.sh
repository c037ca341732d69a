#!/bin/sh
# sesame prune --output: heads, feed-forward rows and layers of classifiers, taggers and question answering; the result is evaluated,
# quantized, fine-tuned, distilled and pruned again; zero-filled form; bad input.
set -u
. tests/counted.sh

gives() { # exit code, arguments of sesame
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame $*: exit $got, wanted $want: $(tail -n 1 "$tmp/err")"; fi
}
has() { if tr '\n' ' ' <"$tmp/out" | tr -s ' ' | grep -qF -- "$1"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\": $(tail -n 1 "$tmp/err")"; fi; }
config_has() { if tr -d '\n ' <"$tmp/$1/config.json" | grep -qF -- "$2"; then pass; else fail "$1: config.json lacks $2"; fi; }
label_scores() { "$sesame" text-classification -m "$1" 'w5 w9 w33 w30 w12' --top-k all --json 2>/dev/null; }

awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
    for (i = 0; i < 41; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
for model in bert-classify roberta-classify distilbert-classify electra-classify modernbert-classify-mean modernbert-biases-tag \
    electra-tag bert-qa gpt2-classify albert-classify bert-masked-lm t5-v1.0 deberta-masked-lm; do
    cp -r "tests/golden/$model" "$tmp/$model" && chmod -R u+w "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
done
printf 'text\tlabel\nw5 w9 w17 w30\tLABEL_0\nw17 w40 w12\tLABEL_1\nw33 w8 w21 w10 w14\tLABEL_1\nw3 w4\tLABEL_0\n' >"$tmp/labels.tsv"
{ cat "$tmp/labels.tsv" && printf 'w1 w4\tLABEL_2\n'; } >"$tmp/three.tsv"
printf 'w5 LABEL_0\nw9 LABEL_1\nw17 LABEL_0\n\nw30 LABEL_1\nw4 LABEL_0\n\n' >"$tmp/tags.txt"
printf '{"version":"1.1","data":[{"title":"t","paragraphs":[{"context":"w5 w9 w17 w30 w12","qas":[{"id":"1","question":"w3 w4","answers":[{"text":"w17","answer_start":6}]}]}]}]}' \
    >"$tmp/squad.json"

# every architecture; the pruned folder has the scores of the table, also in the other form
for model in bert roberta distilbert electra gpt2; do
    gives 0 prune "$tmp/$model-classify" --heads 0.4 --ffn 0.5 --data "$tmp/labels.tsv" --output "$tmp/$model-small" --json
    has '"heads": 4'
    config_has "$model-small" '"pruned_heads":{'
    gives 0 prune "$tmp/$model-classify" --heads 0.4 --ffn 0.5 --data "$tmp/labels.tsv" --output "$tmp/$model-fill" --fill
    that "$model: --fill has no keys of pruning" '! grep -q "pruned_heads\|ffn_widths" "$tmp/$model-fill/config.json"'
    that "$model: --fill computes the same" '[ "$(label_scores "$tmp/$model-small" | tr -dc "0-9.,A-Z_" | sed "s/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/g")" = \
        "$(label_scores "$tmp/$model-fill" | tr -dc "0-9.,A-Z_" | sed "s/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/g")" ]'
done
gives 0 prune "$tmp/bert-classify" --heads 0.4 --ffn 0.5 --data "$tmp/labels.tsv" --output "$tmp/fill" --fill --json
has '"fill": true'
that 'parameters of the written form' '[ "$(grep -c "\"parameters\": " "$tmp/out")" = 2 ] && [ "$(grep "\"parameters\": " "$tmp/out" | sort -u | wc -l)" = 1 ]'
that 'heads that are left' '[ "$(grep "\"heads\": " "$tmp/out" | sort -u | wc -l)" = 2 ]'
mkdir "$tmp/empty"
gives 0 prune "$tmp/bert-classify" --layers 1 -o "$tmp/empty"
gives 2 prune "$tmp/bert-classify" --layers 1 -o "$tmp/empty"
err_has 'exists: --overwrite'
gives 2 prune "$tmp/empty" --layers 1 -o "$tmp/empty/" --overwrite
err_has 'is the folder of the model'
gives 0 prune "$tmp/modernbert-classify-mean" --heads 0.4 --ffn 0.5 --layers 2 --layers-from bottom --data "$tmp/labels.tsv" -o "$tmp/modern"
has 'layers 3 2 67 %'
has 'accuracy'
config_has modern '"layer_types":["full_attention","sliding_attention"]'
config_has modern '"num_hidden_layers":2'
gives 0 prune "$tmp/bert-classify" --ffn 0.5 --scope layer --data "$tmp/labels.tsv" -o "$tmp/even"
config_has even '"intermediate_size":24'
that 'one width needs no key of ours' '! grep -q sesame_ffn_widths "$tmp/even/config.json"'
gives 0 prune "$tmp/bert-classify" --ffn 0.3 --multiple 1 --data "$tmp/labels.tsv" -o "$tmp/uneven"
config_has uneven '"sesame_ffn_widths":['
gives 0 prune "$tmp/bert-masked-lm" --layers 1 --output "$tmp/one"
has 'layers 2 1 50 %'
that 'no score without data' '! grep -q accuracy "$tmp/out"'
for order in top bottom alternate importance; do
    gives 0 prune "$tmp/bert-classify" --layers 1 --layers-from $order --data "$tmp/labels.tsv" -o "$tmp/by-$order"
done
that 'top and bottom differ' '! cmp -s "$tmp/by-top/model.safetensors" "$tmp/by-bottom/model.safetensors"'
that 'alternate keeps the first layer' 'cmp -s "$tmp/by-top/model.safetensors" "$tmp/by-alternate/model.safetensors"'

# tags and answers
gives 0 prune "$tmp/modernbert-biases-tag" --heads 0.4 --ffn 0.5 --data "$tmp/tags.txt" -o "$tmp/tag"
has ' f1 '
gives 0 prune "$tmp/electra-tag" --ffn 0.5 --data "$tmp/tags.txt" -o "$tmp/electra-tagger"
gives 0 prune "$tmp/bert-qa" --heads 0.4 --ffn 0.5 --data "$tmp/squad.json" -o "$tmp/qa"
has ' f1 '
gives 0 question-answering -m "$tmp/qa" --question 'w3 w4' --context 'w5 w9 w17'

# afterwards: evaluation, int8, bf16, further pruning, fine-tuning, distillation, LoRA
gives 0 eval "$tmp/uneven" "$tmp/labels.tsv" --task classify
gives 0 quantize "$tmp/uneven" "$tmp/int8" --dtype int8
config_has int8 '"sesame_ffn_widths":['
gives 0 card "$tmp/int8" --output -
has 'library_name: sesame'
gives 0 card "$tmp/even" --output -
has 'library_name: transformers'
gives 0 text-classification -m "$tmp/int8" 'w5 w9'
gives 0 text-classification -m "$tmp/uneven" 'w5 w9' --dtype bf16
gives 0 prune "$tmp/int8" --heads 0.3 --ffn 0.5 --data "$tmp/labels.tsv" -o "$tmp/again"
gives 0 info "$tmp/again"
has 'Heads by layer: '
has 'Feed-forward widths by layer: '
has 'hidden size 24, 2 heads of 8, feed-forward 12 to 18 '
gives 0 info "$tmp/uneven" --json
widths=$(tr -d '\n ' <"$tmp/uneven/config.json" | sed 's/.*"sesame_ffn_widths":\[\([0-9,]*\)\].*/\1/')
that 'info: the widths of config.json' 'tr -d "\n " <"$tmp/out" | grep -qF "\"feed_forward_by_layer\":[$widths]"'
that 'info: all heads are there' '! grep -q heads_by_layer "$tmp/out"'
gives 0 info "$tmp/bert-classify" --json
that 'info: a plain model has no such members' '! grep -q "by_layer\|exits\|low_rank" "$tmp/out"'
gives 0 finetune --model "$tmp/again" --task classify --train "$tmp/three.tsv" --epochs 1 --output "$tmp/tuned"
config_has tuned '"sesame_ffn_widths":['
config_has tuned '"pruned_heads":{'
gives 0 finetune --model "$tmp/again" --task classify --train "$tmp/three.tsv" --epochs 1 --teacher "$tmp/bert-classify" --output "$tmp/distilled"
config_has distilled '"sesame_ffn_widths":['
gives 0 finetune --model "$tmp/again" --task classify --train "$tmp/three.tsv" --epochs 1 --adapter lora --lora-rank 2 --output "$tmp/lora"
gives 0 text-classification -m "$tmp/lora" 'w5 w9'

# an adapter of the model before pruning does not fit
gives 0 finetune --model "$tmp/bert-classify" --task classify --train "$tmp/three.tsv" --epochs 1 --adapter lora --lora-rank 2 --output "$tmp/old"
gives 3 text-classification -m "$tmp/bert-small" --adapter "$tmp/old" 'w5 w9'
err_has 'self.query.weight": shape [16, 24], config.json requires [24, 24]'
gives 0 prune "$tmp/lora" --heads 0.3 --data "$tmp/three.tsv" -o "$tmp/merged" # the task is that of run.json
that 'an adapter is merged' '[ -e "$tmp/merged/model.safetensors" ] && [ ! -e "$tmp/merged/adapter_config.json" ]'
gives 0 eval "$tmp/merged" "$tmp/three.tsv"

# an adapter that cannot be merged
gives 0 finetune --model "$tmp/bert-classify" --task classify --train "$tmp/three.tsv" --epochs 1 --adapter prefix --virtual-tokens 2 --output "$tmp/prefix"
gives 3 prune "$tmp/prefix" --heads 0.3 --data "$tmp/three.tsv" -o "$tmp/x"
err_has "cannot be merged into them: prune the adapter's base model"

# bad input
gives 2 prune "$tmp/bert-classify" --heads 1 --data "$tmp/labels.tsv" -o "$tmp/x"
err_has 'would remove everything'
gives 2 prune "$tmp/bert-classify" --ffn -0.5 --data "$tmp/labels.tsv" -o "$tmp/x"
err_has '--ffn'
gives 2 prune "$tmp/bert-classify" --heads 1.5 --data "$tmp/labels.tsv" -o "$tmp/x"
err_has 'from 0 to below 1'
gives 2 prune "$tmp/bert-classify" --layers 0 -o "$tmp/x"
err_has '--layers 0: expected the number of layers to keep'
gives 2 prune "$tmp/bert-classify" --layers 3 -o "$tmp/x"
err_has 'the model has 2 layers'
gives 2 prune "$tmp/bert-classify" --heads 0.5 -o "$tmp/x"
err_has '--data FILE is required'
gives 2 prune "$tmp/bert-classify" -o "$tmp/x"
err_has 'nothing to prune'
gives 2 prune "$tmp/bert-classify" --heads -o "$tmp/x" --data "$tmp/labels.tsv"
err_has '--heads needs a value with --output'
gives 2 prune "$tmp/bert-classify" "$tmp/labels.tsv" --heads 0.5
err_has '--heads 0.5 requires --output DIR'
gives 2 prune "$tmp/bert-classify" "$tmp/labels.tsv" --heads --ffn 0.5
err_has '--ffn requires --output DIR'
gives 2 prune "$tmp/bert-classify" "$tmp/labels.tsv" --heads 0.5 -o "$tmp/x"
err_has 'the data are --data FILE'
for option in '--keep 0.5' '--step 0.2' '--html x.html' '--svg x.svg' '--fraction 0.3' '--write x'; do
    # shellcheck disable=SC2086  # a name and a value
    gives 2 prune "$tmp/bert-classify" --heads 0.5 --data "$tmp/labels.tsv" $option -o "$tmp/x"
    err_has "${option%% *} belongs to --heads without --output"
done
for option in text label pair; do
    name=$option-column
    [ $option = text ] && name=column
    gives 2 prune "$tmp/bert-classify" --heads 0.5 --data "$tmp/labels.tsv" --$name text -o "$tmp/x"
    err_has "--$name belongs to --heads without --output: use --$option COLUMN"
done
for option in '--scope layer' '--layers-from bottom' '--multiple 8' '--task classify' '--text text' --no-score --fill; do
    # shellcheck disable=SC2086
    gives 2 prune "$tmp/bert-classify" "$tmp/labels.tsv" --heads $option
    err_has "${option%% *} requires --output DIR"
done
gives 2 prune "$tmp/bert-classify" --layers 1 --task classify -o "$tmp/x"
err_has '--task has no effect without --data FILE'
gives 2 prune "$tmp/bert-classify" --heads 0.5 --data "$tmp/labels.tsv" --layers-from bottom -o "$tmp/x"
err_has '--layers-from has no effect without --layers N'
gives 2 prune "$tmp/bert-classify" --heads 0.5 --data "$tmp/labels.tsv" --multiple 8 -o "$tmp/x"
err_has '--multiple has no effect without --ffn X'
gives 2 prune "$tmp/bert-classify" --layers 1 -o "$tmp/even"
err_has 'exists: --overwrite'
gives 2 prune "$tmp/bert-masked-lm" --heads 0.5 --data "$tmp/labels.tsv" -o "$tmp/x"
err_has 'has no head of a fine-tuning task'
printf 'text\nw5 w9\n' >"$tmp/unlabeled.tsv"
"$sesame" prune "$tmp/bert-classify" --heads 0.5 --data "$tmp/unlabeled.tsv" -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
that 'data without labels' '[ $? -ne 0 ]'
err_has 'label'
"$sesame" prune "$tmp/albert-classify" --layers 1 -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
err_has 'layers of a albert model cannot be removed: its layers share their weights'
"$sesame" prune "$tmp/deberta-masked-lm" --layers 1 -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
err_has 'layers of a deberta model cannot be removed'
"$sesame" prune "$tmp/t5-v1.0" --layers 1 -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
err_has 'is an encoder-decoder'
"$sesame" prune sesame-embed --layers 1 -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
err_has 'is a sentence encoder'
that 'nothing was written' '[ ! -e "$tmp/x" ]'
counted
