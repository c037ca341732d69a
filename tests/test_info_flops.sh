#!/bin/sh
# sesame info --flops: FLOPs of folders, presets and config files, next to the numbers of ELECTRA's counter.
# Usage: sh tests/test_info_flops.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# near KEY VALUE: the number in the JSON output differs by less than 0.2 percent.
near() {
    awk -v key="\"$1\":" -v want="$2" '$1 == key { x = $2 + 0 } END { d = x / want - 1; exit !(d < 0.002 && d > -0.002) }' "$tmp/out"
}

ok "BERT-base" exits 0 "$sesame" info bert-base --flops --length 512 --batch-size 256 --steps 1000000 --masked 0.15625 --json
ok "valid JSON" sh -c "'$build/json_valid' <'$tmp/out'"
ok "as ELECTRA's counter" near train_flops 6.428335104e19
ok "the class" out_has '"class": "BertForPreTraining"'
ok "ELECTRA-small" exits 0 "$sesame" info electra-small --flops --class ElectraForPreTraining --generator 0.25 \
    --length 128 --batch-size 128 --steps 1000000 --masked 0.15625 --json
ok "as well" near train_flops 1.293743798272e18
ok "recomputation" exits 0 "$sesame" info bert-base --flops --length 512 --batch-size 256 --steps 1000000 --masked 0.15625 --recompute --json
ok "is a third pass" near train_flops 9.642502656e19
ok "a folder" exits 0 "$sesame" info tests/golden/bert-classify --flops
ok "its class" out_has '^Model .*(BertForSequenceClassification)'
ok "its FLOPs" out_has '^Forward .* FLOPs per text of 24 tokens, .* per token'
ok "the parts" out_has 'attention  *[0-9.]*e[0-9]*  *[0-9.]* %'
ok "training" out_has '^Training .* 1 update of 1 text, 2 forward passes each'
ok "a config" exits 0 "$sesame" info tests/golden/t5-v1.1/config.json --flops --length 8 --target-length 4
ok "too long" exits 2 "$sesame" info tests/golden/bert-classify --flops --length 25
ok "the reason" err_has "exceeds the model's maximum of 24"
ok "neither model nor preset" exits 2 "$sesame" info "$tmp/nowhere" --flops
ok "its name" err_has nowhere
ok "a class of another model" exits 3 "$sesame" info bert-base --flops --class GPT2LMHeadModel
ok "an option of --flops alone" exits 2 "$sesame" info tests/golden/bert-classify --length 8
ok "what to do" err_has 'options of --flops: add it'
ok "without --flops" exits 0 "$sesame" info tests/golden/bert-classify --json
ok "per token" out_has '"flops_per_token": [0-9.]*'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
