#!/bin/sh
# BART's comparison of objectives (Lewis et al. 2020, table 1): models pretrained with each objective answer questions. An
# encoder-decoder reads the question and the passage in both stacks, and the decoder's states score the tokens.
# Usage: test_answer_models.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

"$sesame" corpus build --format text --tokenizer "$tmp/vocab.txt" -o "$tmp/corpus" "$tmp/train.tsv" >"$tmp/out" 2>&1 || exit 1
awk 'BEGIN { printf "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": ["
    for (i = 0; i < 60; i++) {
        who = i % 2 ? "anna" : "bob"; city = i % 3 ? "paris" : "london"
        printf "%s{\"context\": \"%s lives in %s .\", \"qas\": [{\"id\": \"%d\", \"question\": \"where ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]}]}", \
            i ? ", " : "", who, city, i, city, length(who) + 10
    }
    print "]}]}" }' >"$tmp/squad.json"
bert='--set hidden_size=32 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=64 --set max_position_embeddings=64'
bart='--set d_model=32 --set encoder_ffn_dim=64 --set decoder_ffn_dim=64 --set encoder_layers=1 --set decoder_layers=1
    --set encoder_attention_heads=2 --set decoder_attention_heads=2 --set max_position_embeddings=64'

answers() # NAME OBJECTIVE, then the model
{
    name=$1 objective=$2
    shift 2
    ok "$name: pretrained" exits 0 "$sesame" pretrain -c "$tmp/corpus" --tokenizer "$tmp/vocab.txt" --objective "$objective" --steps 6 --batch-size 4 \
        --length 32 --threads 1 --eval-every -1 "$@" -o "$tmp/$name"
    ok "$name: finetune" exits 0 "$sesame" finetune --model "$tmp/$name" --task answer --train "$tmp/squad.json" --eval "$tmp/squad.json" \
        --threads 1 --batch-size 8 --lr 3e-3 --epochs 10 --max-length 32 -o "$tmp/tuned-$name"
    ok "$name: learned" above "$(score eval_f1 "$tmp/tuned-$name/all_results.json")" 95
    ok "$name: eval" exits 0 "$sesame" eval "$tmp/tuned-$name" "$tmp/squad.json" --task answer --max-length 32 --json
    ok "$name: the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/tuned-$name/eval_results.json")"
    ok "$name: a pipeline" exits 0 "$sesame" question-answering -m "$tmp/tuned-$name" --json --context "bob lives in london ." "where ?"
    ok "$name: the answer" out_has '"answer": "london"'
}
# shellcheck disable=SC2086
{
    answers language-model clm -p gpt2 --set n_embd=32 --set n_layer=2 --set n_head=2 --set n_positions=64
    answers permuted plm -p xlnet-base --set d_model=32 --set d_inner=64 --set n_layer=1 --set n_head=2 --set d_head=16
    answers masked mlm -p bert-tiny $bert
    answers multitask mlm:2,mlm_prefix:2,mlm_ltr:1,mlm_rtl:1 -p bert-tiny $bert
    answers masked-seq2seq mass -p bart-base $bart
    answers bart bart -p bart-base $bart
}
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
