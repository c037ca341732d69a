#!/bin/sh
# Folders of an encoder and a decoder of types of their own (model_type encoder-decoder): pipelines, fine-tuning, saved
# folders, refused configs. Usage: test_encoder_decoder.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cp -r tests/golden/bert2bert "$tmp/pair"
chmod -R u+w "$tmp/pair"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat dog sat ran saw fish >"$tmp/pair/vocab.txt"
printf '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}' >"$tmp/pair/tokenizer_config.json"

ok "info" exits 0 "$sesame" info "$tmp/pair"
ok "both stacks" out_has 'Decoder       1 layers, hidden size 16, 4 heads of 4'
for task in text2text-generation summarization translation; do
    ok "$task" exits 0 "$sesame" $task -m "$tmp/pair" --max-new-tokens 6 --num-beams 3 "the cat sat"
done
ok "features" exits 0 "$sesame" feature-extraction -m "$tmp/pair" "the cat"

awk 'BEGIN { split("cat|dog|fish", n, "|"); split("sat|ran|saw", v, "|"); print "text\ttarget"
    for (i = 0; i < 54; i++) {
        a = n[i % 3 + 1]; b = v[int(i / 3) % 3 + 1]; c = n[int(i / 9) % 3 + 1]
        print "the " a " " b " a " c "\t" a " " b " " c } }' >"$tmp/data.tsv"
ok "finetune" exits 0 "$sesame" finetune -m "$tmp/pair" --task rewrite --train "$tmp/data.tsv" --eval "$tmp/data.tsv" --epochs 60 \
    --lr 5e-3 --batch-size 18 --max-target 10 -o "$tmp/tuned"
ok "learned" above "$(score eval_rougeL "$tmp/tuned/all_results.json")" 0.9
ok "generates" exits 0 "$sesame" text2text-generation -m "$tmp/tuned" "the dog saw a fish"
ok "the target" out_has '^dog saw fish$'
ok "saved config" grep -q '"EncoderDecoderModel"' "$tmp/tuned/config.json"
ok "saved names" grep -q 'decoder.bert.encoder.layer.0.crossattention.self.query.weight' "$tmp/tuned/model.safetensors"
ok "eval" exits 0 "$sesame" eval "$tmp/tuned" "$tmp/data.tsv" --task rewrite --max-target 10 --json
ok "the same score" test "$(score eval_rougeL "$tmp/out")" = "$(score eval_rougeL "$tmp/tuned/eval_results.json")"

refuses() # what, sed command, message
{
    rm -rf "$tmp/bad" && cp -r "$tmp/pair" "$tmp/bad"
    sed -i "$2" "$tmp/bad/config.json"
    ok "$1" exits 3 "$sesame" info "$tmp/bad"
    ok "$1: message" err_has "$3"
}
refuses "no cross attention" 's/"add_cross_attention": true/"add_cross_attention": false/' \
    '"decoder": "add_cross_attention" is not true'
refuses "no decoder" 's/"decoder": {/"decoding": {/' 'key "decoder" must be an object'
refuses "unknown decoder" '/"decoder": {/,/}/s/"model_type": "bert"/"model_type": "bort"/' '"decoder": "model_type" "bort"'
refuses "a decoder without causal LM" '/"decoder": {/,/}/s/"model_type": "bert"/"model_type": "albert"/' 'cannot be a decoder'
refuses "start outside the vocabulary" 's/"decoder_start_token_id": 2/"decoder_start_token_id": 37/' \
    "token id 37 is outside the decoder's vocabulary of 37"

rm -rf "$tmp/bad" && cp -r "$tmp/pair" "$tmp/bad"
sed -i 's/"decoder_start_token_id"/"tie_encoder_decoder": true, &/' "$tmp/bad/config.json"
ok "tied weights are not trained" exits 3 "$sesame" finetune -m "$tmp/bad" --task rewrite --train "$tmp/data.tsv" -o "$tmp/none"
ok "tied weights: message" err_has '"tie_encoder_decoder" is true'

counted
