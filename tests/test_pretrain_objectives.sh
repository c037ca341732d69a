#!/bin/sh
# Every objective of the pretrain command, each with a fitting model; parallel texts; distillation.
# Usage: test_pretrain_objectives.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

awk 'BEGIN { srand(1); for (i = 0; i < 600; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' \
    >"$tmp/text"
special='[PAD],[UNK],[CLS],[SEP],[MASK],</s>,<news>,<extra_id_0>,<extra_id_1>,<extra_id_2>,<extra_id_3>,<extra_id_4>'
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 --special-tokens "$special" -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% --label news -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
common="-c $tmp/c --tokenizer $tmp/t.json --threads 1 --steps 6 --batch-size 4 -n 32 --eval-every -1 --json"
bert='--set hidden_size=16 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=32'
t5='-p t5-small --set d_model=16 --set d_ff=32 --set num_layers=1 --set num_heads=2 --set d_kv=8'
bart='-p bart-base --set d_model=16 --set encoder_ffn_dim=32 --set decoder_ffn_dim=32 --set encoder_layers=1
    --set decoder_layers=1 --set encoder_attention_heads=2 --set decoder_attention_heads=2'
gpt='-p gpt2 --set n_embd=16 --set n_layer=1 --set n_head=2'
xlnet='-p xlnet-base --set d_model=16 --set d_inner=32 --set n_layer=1 --set n_head=2 --set d_head=8'
printf '{"model_type": "transfo-xl", "d_model": 16, "d_embed": 16, "n_layer": 1, "n_head": 2, "d_head": 8, "d_inner": 32,
    "mem_len": 32, "cutoffs": [50], "div_val": 1, "vocab_size": 200}' >"$tmp/xl.json"

i=0
learns() # objective, score, then the model
{
    objective=$1 measured=$2
    shift 2
    i=$((i + 1))
    # shellcheck disable=SC2086  # several options
    ok "$objective" exits 0 "$sesame" pretrain $common --objective "$objective" "$@" -o "$tmp/run$i"
    ok "$objective: $measured" out_has "\"eval_$measured\""
}
# shellcheck disable=SC2086
{
learns mlm mlm_accuracy -p bert-tiny $bert --mask-unit word --mask-rate 0.3 --mask-rate-end 0.15 --mask-copies 2
learns mlm,sbo sbo_loss -p bert-tiny $bert --mask-unit span
learns mlm:1,nsp:1 nsp_accuracy -p bert-tiny $bert
learns mlm:1,sop:1 sop_accuracy -p albert-base $bert --set embedding_size=16
for objective in rtd rtd15 replace alltok; do
    learns $objective generator_loss -p electra-small $bert --set embedding_size=16
done
learns clm clm_perplexity $gpt
learns clm:1,mntp:1 mntp_accuracy $gpt

# An encoder pretrained with a causal objective reopens as a decoder. Generation rejects bidirectional models.
decoder() # yes or no
{
    if grep -q '"is_decoder": true' "$tmp/run$i/config.json"; then found=yes; else found=no; fi
    ok "is_decoder: expected $1" test "$found" = "$1"
}
generates() { ok 'generates' exits 0 "$sesame" text-generation -m "$tmp/run$i" --max-new-tokens 3 'w1 w2'; }
for preset in bert-tiny roberta-base 'electra-small --set embedding_size=16'; do
    learns clm clm_perplexity -p $preset $bert
    decoder yes
    # RoBERTa's positions depend on padding: no KV cache
    case $preset in roberta*) ;; *) generates ;; esac
done
learns clm:1,mntp:1 mntp_accuracy -p bert-tiny $bert
decoder yes
learns prefix prefix_accuracy -p bert-tiny $bert
decoder yes
learns mntp mntp_accuracy -p bert-tiny $bert
decoder no
learns mlm:2,mlm_prefix:2,mlm_ltr:1,mlm_rtl:1 mlm_rtl_accuracy -p bert-tiny $bert
decoder no
ok 'a masked LM' grep -q BertForMaskedLM "$tmp/run$i/config.json"
learns clm clm_perplexity -m "$tmp/run1"
decoder yes
generates
learns prefix prefix_accuracy $gpt
learns prefix prefix_accuracy $t5
learns xl xl_perplexity --config "$tmp/xl.json"
learns plm plm_accuracy $xlnet
learns t5 t5_loss $t5
learns bart bart_loss $bart
learns bart bart_loss $bart --noise mask,delete,infill,permute,rotate
learns mass mass_loss $bart

# Two towers: the LM head does not read the token that it predicts, a fine-tuned tagger does. The labels below
# depend on nothing else.
towers='-p cloze-base --set hidden_size=16 --set num_tower_layers=1 --set num_attention_heads=2 --set intermediate_size=32
    --set dropout=0 --set attention_dropout=0 --set initializer_range=0.1'
learns cloze cloze_accuracy $towers
ok 'cloze: fills masks' exits 0 "$sesame" fill-mask -m "$tmp/run$i" 'w1 w10 [MASK] w34'
ok 'cloze: not with BERT' exits 3 "$sesame" pretrain $common --objective cloze -p bert-tiny $bert -o "$tmp/x"
ok 'names the models' err_has 'such as cloze or context2vec, not bert'
awk 'BEGIN { srand(2); for (i = 0; i < 120; i++) { for (j = 0; j < 5; j++) { w = int(rand() * 40)
    print "w" w " " (w % 3 ? "O" : "B-A") } print "" } }' >"$tmp/tags"
ok 'cloze: tags' exits 0 "$sesame" finetune --task ner -m "$tmp/run$i" --train "$tmp/tags" --eval "$tmp/tags" --threads 1 \
    --epochs 30 --lr 1e-2 --batch-size 8 -o "$tmp/tower-tagger"
ok 'cloze: the tagger reads the token' above "$(score eval_f1 "$tmp/tower-tagger/all_results.json")" 0.99
learns cloze cloze_accuracy -p context2vec --set embedding_size=8 --set lstm_size=8 --set intermediate_size=16 --set hidden_size=8

# Documents that are shorter than two tokens per piece are skipped and counted.
{ cat "$tmp/text"; for n in 1 2 3 4 5; do printf '\nw%s\n' $n; printf '\nw1 w%s w%s\n' $n $n; done; } >"$tmp/short.txt"
"$sesame" corpus build --tokenizer "$tmp/t.json" -o "$tmp/short" "$tmp/short.txt" >"$tmp/out" || exit 1
for model in "xl --config $tmp/xl.json" "plm $xlnet"; do
    ok "short passages: $model" exits 0 "$sesame" pretrain -c "$tmp/short" --tokenizer "$tmp/t.json" --threads 1 --epochs 1 \
        --batch-size 4 -n 32 --packing doc -o "$tmp/fits" --overwrite --objective $model
    ok 'reports the skipped passages' err_has '10 passages of fewer than 4 tokens are skipped in each pass'
    ok "too many pieces: $model" exits 3 "$sesame" pretrain -c "$tmp/short" --tokenizer "$tmp/t.json" --threads 1 --steps 1 \
        -n 32 --packing doc --pieces 900 -o "$tmp/none" --objective $model
    ok 'all are too short' err_has 'passages have fewer than 1800 tokens'
done

# Rotary positions and norms before the sublayers: all weights are saved, by layers that share them, too.
for preset in bert-tiny roberta-base electra-small albert-base; do
    learns mlm mlm_loss -p $preset $bert --set position_embedding_type=rotary --set norm_placement=pre
    ok "$preset: opens again" exits 0 "$sesame" run "$tmp/run$i" --ids '2 9 3'
    ok "$preset: weights of q, k and v" sh -c '"$1" info "$2" --tensors | grep -q "qkv\.weight"' . "$sesame" "$tmp/run$i"
    ok "$preset: the final norm" sh -c '"$1" info "$2" --tensors | grep -q "encoder\.LayerNorm\.weight"' . "$sesame" "$tmp/run$i"
done

# A text and its translation: two lines per document.
awk 'NF { print; gsub("w", "W"); print tolower($0) " w1"; print "" }' "$tmp/text" >"$tmp/pairs"
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/p" "$tmp/pairs" >"$tmp/out" || exit 1
common="-c $tmp/p --tokenizer $tmp/t.json --threads 1 --steps 6 --batch-size 4 -n 48 --eval-every -1 --json"
learns tlm tlm_accuracy -p bert-tiny $bert --packing sentence-pair
learns t2t t2t_loss $t5 --packing sentence-pair

# Distillation from a pretrained model to half its layers.
common="-c $tmp/c --tokenizer $tmp/t.json --threads 1 --steps 6 --batch-size 4 -n 32 --eval-every -1 --json"
half='--set dim=16 --set n_layers=1 --set n_heads=2 --set hidden_dim=32'
learns mlm mlm_loss -p distilbert $half --teacher "$tmp/run1" --from-teacher --cosine-weight 1
ok "as its own kind" grep -q DistilBertForMaskedLM "$tmp/run$i/config.json"
ok "no teacher for rtd" exits 3 "$sesame" pretrain $common --objective rtd -p electra-small $bert --set embedding_size=16 \
    --teacher "$tmp/run1" -o "$tmp/x"
"$sesame" train-tokenizer --type wordpiece --vocab-size 100 -q -o "$tmp/o.json" "$tmp/text"
"$sesame" corpus build --tokenizer "$tmp/o.json" -o "$tmp/o" "$tmp/text" >"$tmp/out"
ok "another vocabulary" exits 3 "$sesame" pretrain -c "$tmp/o" --tokenizer "$tmp/o.json" -p bert-tiny $bert --steps 2 \
    --teacher "$tmp/run1" -o "$tmp/x"
ok "the message has both sizes" err_has "the student's vocabulary has"
}
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
