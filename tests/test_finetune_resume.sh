#!/bin/sh
# --resume without other options, longer and shorter runs.
# Usage: test_finetune_resume.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

tune() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/$dir" "$@"
}
part() { mkdir "$tmp/$3" && cp -r "$tmp/$1/checkpoint-$2" "$tmp/$3/"; } # an interrupted run
model() { cmp -s "$tmp/$1/model.safetensors" "$tmp/$2/model.safetensors"; }

# The options are in the checkpoint.
ok "whole run" exits 0 tune whole --steps 12 --save-every 5 --keep 9 --accumulate 2 --freeze 1 --quotes off
part whole 5 a
ok "resumed without options" exits 0 "$sesame" finetune -o "$tmp/a" --resume
ok "from its checkpoint" err_has 'resuming from .*checkpoint-5: update 5 of 12'
ok "the same weights" model whole a
ok "the same settings" grep -q '"accumulate": 2' "$tmp/a/run.json"
ok "complete" exits 0 "$sesame" finetune -o "$tmp/a" --resume
ok "complete: message" err_has 'the run is complete, with update 12; nothing to resume'
# A new head is new at the start of a run, not when its checkpoint is resumed.
mkdir "$tmp/encoder" && cp "$tmp/whole/model.safetensors" "$tmp/whole"/tokenizer*.json "$tmp/encoder"
sed 's/BertForSequenceClassification/BertModel/; s/"id2label"/"was_id2label"/' "$tmp/whole/config.json" >"$tmp/encoder/config.json"
sed 's/pos$/one/; s/neg$/two/; $s/one$/three/' "$tmp/train.tsv" >"$tmp/three.tsv"
ok "a new head" exits 0 "$sesame" finetune -m "$tmp/encoder" --task classify --train "$tmp/three.tsv" --steps 4 --save-every 2 --keep 9 -o "$tmp/head"
ok "is named" err_has 'randomly initialized: classifier.weight'
part head 2 head2
ok "resumed" exits 0 "$sesame" finetune -o "$tmp/head2" --resume
ok "from update 2" err_has 'update 2 of 4'
ok "nothing is new" sh -c "! grep -q 'randomly initialized' '$tmp/err'"
ok "the same weights" model head head2

part whole 5 b
ok "with another option" exits 3 "$sesame" finetune -o "$tmp/b" --resume --lr 1e-3
ok "names it" err_has 'started with lr 0.003, not 0.001'
ok "no run" exits 2 "$sesame" finetune -o "$tmp/none" --resume
ok "no run: message" err_has 'is required'
ok "no file or folder of it" test ! -e "$tmp/none"

# Stored options that are not options.
for text in '[]' '{}' '{"options": []}' '{"options": {"train": 3}}' '{"options": {"train": "x", "lr": "fast"}}' '{"options'; do
    rm -rf "$tmp/d" && mkdir "$tmp/d" && printf '%s' "$text" >"$tmp/d/run.json"
    "$sesame" finetune -o "$tmp/d" --resume >"$tmp/out" 2>"$tmp/err"
    code=$?
    ok "stored: $text" test $code -eq 2 -o $code -eq 3
    ok "stored: one line for $text" test "$(grep -c '^sesame: ' "$tmp/err")" -eq 1
done

# Longer, where the learning rates do not depend on the length.
fixed='--schedule constant --warmup 2 --save-every 4 --keep 9'
# shellcheck disable=SC2086  # several options
{
ok "short" exits 0 tune short --steps 8 $fixed
ok "long" exits 0 tune long --steps 14 $fixed
ok "extended" exits 0 "$sesame" finetune -o "$tmp/short" --resume --steps 14
ok "extended: from its end" err_has 'update 8 of 14'
ok "extended: the weights of the long run" model long/checkpoint-14 short/checkpoint-14 # the best ones may differ
ok "extended: by epochs" exits 0 "$sesame" finetune -o "$tmp/short" --resume --steps 0 --epochs 2
ok "extended: 20 updates" test "$(score global_step "$tmp/short/trainer_state.json")" -eq 20
cp -r "$tmp/short" "$tmp/kept"
ok "shorter" exits 3 "$sesame" finetune -o "$tmp/short" --resume --steps 3
ok "shorter: reason" err_has 'the run has 20 updates already, more than 3'
ok "shorter: nothing changed" diff -r -x .lock "$tmp/kept" "$tmp/short"
}
part whole 10 linear
ok "linear" exits 3 "$sesame" finetune -o "$tmp/linear" --resume --steps 30
ok "linear: reason" err_has 'started with steps 12, not 30; its learning rates depend on its length'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
