#!/bin/sh
# finetune, eval and predict of tasks with several texts per example: choose, rewrite, continue, embed.
# Usage: test_finetune_kinds.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

refused() # what, exit code, message, options
{
    what=$1 code=$2 message=$3
    shift 3
    ok "$what" exits "$code" "$sesame" finetune --config "${base:-$tmp/config.json}" --tokenizer "$tmp/vocab.txt" -o "$tmp/bad" "$@"
    ok "$what: message" err_has "$message"
    ok "$what: leaves nothing" test ! -e "$tmp/bad/config.json"
}

# ---- choose ----

awk 'BEGIN { print "text,a,b,label"
    for (i = 0; i < 80; i++) {
        r = int(i / 2) % 2
        printf "%s film was,%s,%s,%d\n", i % 2 ? "the" : "a", r ? "bad ." : "good .", r ? "good ." : "bad .", r } }' >"$tmp/choose.csv"
# shellcheck disable=SC2086
ok "choose" exits 0 "$sesame" finetune $small --task choose --choices 'a|b' --train "$tmp/choose.csv" --eval "$tmp/choose.csv" \
    --epochs 8 -o "$tmp/choose"
ok "learned" above "$(score eval_accuracy "$tmp/choose/all_results.json")" 0.95
ok "class of transformers" grep -q BertForMultipleChoice "$tmp/choose/config.json"
ok "eval" exits 0 "$sesame" eval "$tmp/choose" "$tmp/choose.csv" --task choose --choices 'a|b' --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/choose/eval_results.json")"
cut -d, -f1-3 "$tmp/choose.csv" >"$tmp/open.csv"
ok "predict without labels" exits 0 "$sesame" predict "$tmp/choose" "$tmp/open.csv" --task choose --choices 'a|b'
ok "names it" test "$(head -3 "$tmp/out" | sed 's/"score": [0-9.]*, //' | tr -d '\n')" = \
    '{"choice": 0, "text": "good ."}{"choice": 0, "text": "good ."}{"choice": 1, "text": "good ."}'
score=$(score score "$tmp/out")
ok "a pipeline agrees" exits 0 "$sesame" multiple-choice -m "$tmp/choose" --json "a film was" "good ." "bad ."
ok "to the last digit" out_has "\"index\": 0, \"score\": $score,"

# A benchmark: two texts, the second is the common beginning of the choices.
sed 's/text,a,b,label/premise,choice1,choice2,label/' "$tmp/choose.csv" | awk -F, 'NR > 1 {
    printf "{\"premise\": \"%s\", \"choice1\": \"%s\", \"choice2\": \"%s\", \"question\": \"where ?\", \"label\": %s}\n", $1, $2, $3, $4 }' \
    >"$tmp/copa.jsonl"
# shellcheck disable=SC2086
ok "COPA" exits 0 "$sesame" finetune $small --task superglue-copa --train "$tmp/copa.jsonl" --eval "$tmp/copa.jsonl" --epochs 8 \
    -o "$tmp/copa"
ok "learned" above "$(score eval_accuracy "$tmp/copa/all_results.json")" 0.95

refused "choices that are not named" 3 'needs at least two choice columns' --task choose --train "$tmp/choose.csv"
refused "a choice that is not there" 3 'no column "c"; available: text, a, b, label' --task choose --choices 'a|c' \
    --train "$tmp/choose.csv"
sed '3s/.$/2/' "$tmp/choose.csv" >"$tmp/third.csv"
refused "a choice too many" 3 'line 3: unknown label "2"; expected one of: 0, 1' --task choose --choices 'a|b' \
    --train "$tmp/third.csv"
sed '5s/,[^,]*$//' "$tmp/choose.csv" >"$tmp/ragged.csv"
refused "a ragged row of choices" 3 'line 5: 3 fields, the header has 4' --task choose --choices 'a|b' --train "$tmp/ragged.csv"

# ---- continue ----

cat >"$tmp/gpt2.json" <<END
{"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4,
 "initializer_range": 0.05}
END
gpt="--config $tmp/gpt2.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8"
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 2 ? "the film was good ." : "a film was bad ." }' >"$tmp/plain.txt"
# shellcheck disable=SC2086
ok "continue" exits 0 "$sesame" finetune $gpt --task continue --train "$tmp/plain.txt" --eval "$tmp/plain.txt" --epochs 12 \
    -o "$tmp/gpt"
ok "blocks" err_has '43 examples of 32.0 tokens, 43 for evaluation'
ok "dropped tokens" err_has 'the last 24 tokens do not fill a block of 32 and are dropped'
ok "learned" above 1.6 "$(score eval_perplexity "$tmp/gpt/all_results.json")"
ok "one loss" test "$(grep -c eval_loss "$tmp/gpt/eval_results.json")" -eq 1
ok "eval" exits 0 "$sesame" eval "$tmp/gpt" "$tmp/plain.txt" --task continue --json
ok "the same score" test "$(score eval_perplexity "$tmp/out")" = "$(score eval_perplexity "$tmp/gpt/eval_results.json")"
# 43 blocks of 31 predicted tokens have 196 lines of 4 words ("good." is one) and the first 3 words of the next
ok "word perplexity" awk -v w="$(score eval_word_perplexity "$tmp/out")" -v t="$(score eval_perplexity "$tmp/out")" \
    'BEGIN { r = log(w) / log(t) * 787 / (43 * 31); exit !(r > 0.9999 && r < 1.0001) }'
ok "predict" exits 0 "$sesame" predict "$tmp/gpt" "$tmp/plain.txt" --task continue
ok "a line a block" test "$(grep -c '"tokens": 31' "$tmp/out")" -eq 43
printf 'text,n\nthe film was good .,1\n,2\nthe,3\n' >"$tmp/texts.csv"
ok "predict line by line" exits 0 "$sesame" predict "$tmp/gpt" "$tmp/texts.csv" --task continue --lines
ok "a line a row" test "$(sed 's/, "loss.*//; s/.*: //' "$tmp/out" | tr -d '\n')" = 612
ok "each line alone" exits 0 "$sesame" finetune --model "$tmp/gpt" --task continue --lines --train "$tmp/texts.csv" --steps 2 \
    -o "$tmp/gpt2"
ok "a pipeline generates" exits 0 "$sesame" text-generation -m "$tmp/gpt" --max-new-tokens 3 --json "film was good"
printf 'the film was good .\nthe film\n\nthe film was good .\n' >"$tmp/short.txt"
refused "too short a text" 3 '20 tokens do not fill a block of 64; use a smaller max-length, or one sequence per line' \
    --task continue --train "$tmp/short.txt"
refused "an encoder" 3 'no class with the head conditional-generation' --task rewrite --train "$tmp/choose.csv" --text a --pair b

# ---- rewrite ----

cat >"$tmp/bart.json" <<END
{"model_type": "bart", "vocab_size": 100, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
 "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
 "max_position_embeddings": 32, "init_std": 0.05, "is_encoder_decoder": true, "pad_token_id": 0, "bos_token_id": 2,
 "eos_token_id": 3, "decoder_start_token_id": 3}
END
bart="--config $tmp/bart.json --tokenizer $tmp/vocab.txt --threads 1 --lr 5e-3 --batch-size 8"
awk 'BEGIN { print "source\ttarget"
    for (i = 0; i < 80; i++) printf "%s lives in %s\t%s\n", i % 2 ? "anna" : "bob", int(i / 2) % 2 ? "paris" : "london",
        i % 2 ? "it was not a good film" : "the bad film of paris" }' >"$tmp/rewrite.tsv"
# shellcheck disable=SC2086
ok "rewrite" exits 0 "$sesame" finetune $bart --task rewrite --train "$tmp/rewrite.tsv" --eval "$tmp/rewrite.tsv" --epochs 14 \
    -o "$tmp/bart" --prefix "who ? " --max-target 16
ok "learned" above "$(score eval_exact_match "$tmp/bart/all_results.json")" 0.95
ok "ROUGE" above "$(score eval_rougeL "$tmp/bart/all_results.json")" 0.95
ok "BLEU" above "$(score eval_bleu "$tmp/bart/all_results.json")" 95
ok "eval" exits 0 "$sesame" eval "$tmp/bart" "$tmp/rewrite.tsv" --task rewrite --prefix "who ? " --max-target 16 --num-beams 2 --json
ok "with beams" above "$(score eval_exact_match "$tmp/out")" 0.95
ok "metrics by name" exits 0 "$sesame" eval "$tmp/bart" "$tmp/rewrite.tsv" --task rewrite --prefix "who ? " --max-target 16 \
    --metrics 'bleu_plain|rouge_stem' --json
ok "only these metrics" sh -c "grep -q eval_bleu '$tmp/out' && grep -q eval_rougeL '$tmp/out' && ! grep -q exact '$tmp/out'"
ok "unknown metric" exits 2 "$sesame" eval "$tmp/bart" "$tmp/rewrite.tsv" --task rewrite --metrics 'rouge|fog'
ok "lists the metrics" err_has 'unknown metric "fog"; choose one of accuracy, f1, matthews'
cut -f1 "$tmp/rewrite.tsv" >"$tmp/source.tsv"
ok "predict" exits 0 "$sesame" predict "$tmp/bart" "$tmp/source.tsv" --task rewrite --prefix "who ? " --max-target 16
ok "generated texts" test "$(head -2 "$tmp/out" | tr -d '\n')" = '{"text": "the bad film of paris"}{"text": "it was not a good film"}'
ok "a pipeline too" exits 0 "$sesame" text2text-generation -m "$tmp/bart" --json "who ? bob lives in paris"
ok "agrees" out_has 'the bad film'
cp -r "$tmp/bart" "$tmp/bart2" && echo '{"num_beams": 3, "eos_token_id": 3, "decoder_start_token_id": 3, "pad_token_id": 0}' \
    >"$tmp/bart2/generation_config.json"
ok "from a folder" exits 0 "$sesame" finetune --model "$tmp/bart2" --task rewrite --train "$tmp/rewrite.tsv" --steps 2 \
    -o "$tmp/bart3"
ok "copies generation_config.json" grep -q '"num_beams": 3' "$tmp/bart3/generation_config.json"
ok "unknown language" exits 2 "$sesame" predict "$tmp/bart" "$tmp/source.tsv" --task rewrite --src-lang xx_XX
ok "message" err_has 'src-lang: the tokenizer has no token "xx_XX"'
base=$tmp/bart.json
refused "no target" 3 'no column "target"; available: source' --task rewrite --train "$tmp/source.tsv"

# ---- embed ----

base=$tmp/config.json
awk 'BEGIN { print "sentence1\tsentence2\tscore\tsame\tkind\tnegative"
    split("the film was|it was|a film was|the film of paris was", s, "|")
    for (i = 0; i < 64; i++) { a = i % 2 ? "good" : "bad"; b = int(i / 2) % 2 ? "good" : "bad"; c = a == "good" ? "bad" : "good"
        printf "%s %s .\t%s %s .\t%s\t%d\t%s\t%s %s .\n", s[i % 4 + 1], a, s[int(i / 3) % 4 + 1], b, a == b ? 5 : 0.5, a == b,
            a == b ? "same" : "other", s[int(i / 5) % 4 + 1], c } }' >"$tmp/pairs.tsv"
awk -F'\t' 'NR == 1 { print "anchor\tpositive\tnegative" } NR > 1 && $4 { print $1 "\t" $2 "\t" $6 }' "$tmp/pairs.tsv" >"$tmp/triplets.tsv"
embed() # name, loss, file, options
{
    name=$1 loss=$2 file=$3
    shift 3
    # shellcheck disable=SC2086
    ok "$name" exits 0 "$sesame" finetune $small --task embed --loss "$loss" --train "$file" --epochs 10 -o "$tmp/$name" "$@"
}
embed cosine cosine "$tmp/pairs.tsv" --eval "$tmp/pairs.tsv"
ok "scores are scaled" err_has 'scores are divided by their maximum, 5: a cosine is at most 1'
ok "learned" above "$(score eval_spearmanr "$tmp/cosine/all_results.json")" 0.8
for file in modules.json sentence_bert_config.json 1_Pooling/config.json config.json model.safetensors tokenizer.json; do
    ok "leaves $file" test -s "$tmp/cosine/$file"
done
awk -F'\t' 'BEGIN { OFS = "\t" } { print $1, $2, $4 }' "$tmp/pairs.tsv" | sed '1s/same/score/' >"$tmp/same.tsv"
embed contrastive contrastive "$tmp/same.tsv" --eval "$tmp/pairs.tsv" --pooling cls --epochs 30
ok "learned" above "$(score eval_spearmanr "$tmp/contrastive/all_results.json")" 0.8
ok "the way of pooling" grep -q '"pooling_mode_cls_token": true' "$tmp/contrastive/1_Pooling/config.json"
awk -F'\t' 'BEGIN { OFS = "\t" } { print $1, $2, $5 }' "$tmp/pairs.tsv" | sed '1s/kind/label/' >"$tmp/kinds.tsv"
embed softmax softmax "$tmp/kinds.tsv" --epochs 30 --measure triplets --eval "$tmp/triplets.tsv"
ok "learned" above 0.2 "$(score train_loss "$tmp/softmax/all_results.json")"
ok "measured with triplets" above "$(score eval_accuracy "$tmp/softmax/all_results.json")" 0.5
embed triplet triplet "$tmp/triplets.tsv" --eval "$tmp/triplets.tsv" --margin 1
ok "learned" above "$(score eval_accuracy "$tmp/triplet/all_results.json")" 0.95
embed negatives negatives "$tmp/triplets.tsv" --eval "$tmp/pairs.tsv"
ok "learned" above "$(score eval_spearmanr "$tmp/negatives/all_results.json")" 0.8
ok "eval" exits 0 "$sesame" eval "$tmp/negatives" "$tmp/pairs.tsv" --task embed --json
ok "the same score" test "$(score eval_spearmanr "$tmp/out")" = "$(score eval_spearmanr "$tmp/negatives/eval_results.json")"
ok "eval of triplets" exits 0 "$sesame" eval "$tmp/negatives" "$tmp/triplets.tsv" --task embed --measure triplets --json
ok "separates them" above "$(score eval_accuracy "$tmp/out")" 0.95
cut -f1,2 "$tmp/pairs.tsv" >"$tmp/two.tsv"
ok "predict" exits 0 "$sesame" predict "$tmp/negatives" "$tmp/two.tsv" --task embed
ok "a line a pair" test "$(grep -c '^{"similarity": [-0-9.e]*}$' "$tmp/out")" -eq 64
first=$(score similarity "$tmp/out")
ok "a pipeline agrees" exits 0 "$sesame" similarity -m "$tmp/negatives" --json "$(sed -n 2p "$tmp/two.tsv" | cut -f1)" \
    "$(sed -n 2p "$tmp/two.tsv" | cut -f2)"
ok "to four digits" out_has "$(printf '%.4s' "${first#-}")"

# Stopped and resumed, including the classifier of the softmax loss.
# shellcheck disable=SC2086
soft="$small --task embed --loss softmax --train $tmp/kinds.tsv --epochs 3"
# shellcheck disable=SC2086
ok "a run in one go" exits 0 "$sesame" finetune $soft -o "$tmp/whole" --save-every 10 --keep 3
cp -r "$tmp/whole" "$tmp/half" && rm -rf "$tmp/half/checkpoint-24" "$tmp/half/config.json"
# shellcheck disable=SC2086
ok "a run in two" exits 0 "$sesame" finetune $soft -o "$tmp/half" --save-every 10 --keep 3 --resume
ok "the same bits" cmp "$tmp/whole/model.safetensors" "$tmp/half/model.safetensors"
ok "from a sentence encoder" exits 0 "$sesame" finetune --model "$tmp/cosine" --task embed --train "$tmp/triplets.tsv" --steps 2 \
    -o "$tmp/on" --threads 1
ok "overwrite" exits 0 "$sesame" finetune --model "$tmp/cosine" --task embed --train "$tmp/triplets.tsv" --steps 2 \
    -o "$tmp/on" --threads 1 --overwrite
refused "no such loss" 2 'unknown "fog"; choose one of negatives, softmax, softmax-product, cosine, contrastive, triplet' --task embed --loss fog \
    --train "$tmp/pairs.tsv"
refused "a loss of another task" 2 'classify has only one' --task classify --loss cosine --train "$tmp/pairs.tsv"
refused "contrastive scores" 3 'is 5, not 0 or 1\|is 0.5, not 0 or 1' --task embed --loss contrastive --train "$tmp/pairs.tsv"
refused "triplets of two" 2 'one column of negative texts' --task embed --loss triplet --train "$tmp/two.tsv" \
    --text sentence1 --pair sentence2

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
