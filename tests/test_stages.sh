#!/bin/sh
# finetune --first (an intermediate task) and --adapt (more pretraining): folders, resuming, bad input.
# Usage: test_stages.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

awk -F '\t' 'NR == 1 { print "sentence\tlabel"; next } { printf "%s\t%s\n", $1, $2 == "pos" ? "yes" : "no" }' "$tmp/train.tsv" >"$tmp/yes.tsv"
awk 'BEGIN { for (i = 0; i < 200; i++) print (i % 2 ? "the film was good ." : "a film was bad .") (i % 10 ? "" : "\n") }' >"$tmp/domain.txt"
# shellcheck disable=SC2086  # several options
ok "a base model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --steps 2 -o "$tmp/base"
rest="--threads 1 --lr 3e-3 --batch-size 8 --warmup 0"

# ---- an intermediate task is two runs ----

# shellcheck disable=SC2086
{
    ok "in one command" exits 0 "$sesame" finetune --model "$tmp/base" $rest --first "$tmp/yes.tsv" --first-task classify --first-eval "$tmp/yes.tsv" \
        --first-set epochs=2 --first-set label=label --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --task classify --epochs 1 -o "$tmp/one"
    ok "stage 1 by hand" exits 0 "$sesame" finetune --model "$tmp/base" $rest --train "$tmp/yes.tsv" --eval "$tmp/yes.tsv" --task classify --label label \
        --epochs 2 -o "$tmp/hand1"
    ok "stage 2 by hand" exits 0 "$sesame" finetune --model "$tmp/hand1" $rest --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --task classify --epochs 1 \
        -o "$tmp/hand2"
}
ok "the same stage" cmp "$tmp/one/stage-1/model.safetensors" "$tmp/hand1/model.safetensors"
ok "the same model" cmp "$tmp/one/model.safetensors" "$tmp/hand2/model.safetensors"
ok "labels of the stage" grep -q '"yes"' "$tmp/one/stage-1/config.json"
ok "labels of the run" grep -q '"pos"' "$tmp/one/config.json"
ok "eval of the stage" exits 0 "$sesame" eval "$tmp/one/stage-1" "$tmp/yes.tsv"
ok "complete" exits 0 "$sesame" finetune -o "$tmp/one" --resume
ok "nothing to do" err_has 'nothing to resume'

# ---- resumed in the first stage, and between the stages ----

cp -r "$tmp/one" "$tmp/part"
# shellcheck disable=SC2086
ok "stopped in stage 1" exits 0 "$sesame" finetune --model "$tmp/base" $rest --train "$tmp/yes.tsv" --eval "$tmp/yes.tsv" --task classify --label label \
    --epochs 2 --save-every 5 --keep 9 -o "$tmp/hand3"
rm -rf "$tmp/part/stage-1"/* "$tmp/part"/checkpoint-* "$tmp/part/config.json" "$tmp/part/model.safetensors"
cp -r "$tmp/hand3/checkpoint-10" "$tmp/part/stage-1"
ok "resumed in stage 1" exits 0 "$sesame" finetune -o "$tmp/part" --resume
ok "from its checkpoint" err_has 'resuming from .*stage-1/checkpoint-10'
ok "the same stage" cmp "$tmp/one/stage-1/model.safetensors" "$tmp/part/stage-1/model.safetensors"
ok "the same model" cmp "$tmp/one/model.safetensors" "$tmp/part/model.safetensors"
rm -rf "$tmp/part"/checkpoint-* "$tmp/part/config.json" "$tmp/part/model.safetensors"
ok "resumed after stage 1" exits 0 "$sesame" finetune -o "$tmp/part" --resume
ok "it is complete" err_has 'stage-1: complete'
ok "the same model" cmp "$tmp/one/model.safetensors" "$tmp/part/model.safetensors"

rm -rf "$tmp/part"/checkpoint-* "$tmp/part/config.json"
ok "other options of stage 1" exits 3 "$sesame" finetune -o "$tmp/part" --resume --lr 1e-3
ok "the option" err_has 'stage-1: was run with lr 0.003, not 0.001; --first-set can keep it'
ok "other data of stage 1" exits 3 "$sesame" finetune -o "$tmp/part" --resume --first "$tmp/dev.tsv"
ok "the data" err_has 'was run with train .*yes.tsv, not .*dev.tsv'
ok "options of the run" exits 0 "$sesame" finetune -o "$tmp/part" --resume --lr 1e-3 --first-set epochs=2 --first-set label=label --first-set lr=3e-3

# ---- replaced ----

# shellcheck disable=SC2086
again() # exit code, OUT, more options: the run from the start
{
    want=$1 out=$2
    shift 2
    exits "$want" "$sesame" finetune --model "$tmp/base" $rest --first "$tmp/yes.tsv" --first-task classify --first-eval "$tmp/yes.tsv" --first-set epochs=2 \
        --first-set label=label --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --task classify --epochs 1 -o "$out" --overwrite "$@"
}
ok "the stage has checkpoints" sh -c "ls -d '$tmp/part/stage-1'/checkpoint-* >/dev/null"
echo old >"$tmp/part/stage-1/old"
ok "overwritten" again 0 "$tmp/part"
ok "the same model" cmp "$tmp/one/model.safetensors" "$tmp/part/model.safetensors"
ok "nothing old" test ! -e "$tmp/part/stage-1/old"

# shellcheck disable=SC2086
ok "another run" exits 0 "$sesame" finetune --model "$tmp/base" $rest --train "$tmp/train.tsv" --task classify --steps 3 -o "$tmp/other"
mv "$tmp/yes.tsv" "$tmp/away.tsv"
ok "without the data of a stage" again 3 "$tmp/other"
ok "the old model stays" test -s "$tmp/other/config.json"
mv "$tmp/away.tsv" "$tmp/yes.tsv"
limited() { (ulimit -f 64; again "$@"); } # no file of 32 KB
ok "its replacement stops in stage 1" limited 3 "$tmp/other"
ok "the old model is gone" sh -c "test ! -e '$tmp/other/config.json' && ! ls -d '$tmp/other'/checkpoint-* 2>/dev/null"
ok "resumed" exits 0 "$sesame" finetune -o "$tmp/other" --resume
ok "it is the new run" cmp "$tmp/one/model.safetensors" "$tmp/other/model.safetensors"

ok "a part of --train" again 0 "$tmp/part" --train-size 16
ok "all of --first" cmp "$tmp/one/stage-1/model.safetensors" "$tmp/part/stage-1/model.safetensors"
ok "another model" sh -c "! cmp -s '$tmp/one/model.safetensors' '$tmp/part/model.safetensors'"
ok "some of each class" again 0 "$tmp/part" --shots 4 --first-set train-size=24
ok "a part of --first" grep -q '"train-size": 24' "$tmp/part/stage-1/run.json"
ok "without --shots" grep -q '"shots": 0' "$tmp/part/stage-1/run.json"
ok "a start that is replaced" again 2 "$tmp/base"
ok "its message" err_has '--model .*base is in --output'
ok "it is still there" exits 0 "$sesame" eval "$tmp/base" "$tmp/dev.tsv"

# ---- adaptation to a domain ----

# shellcheck disable=SC2086
{
    ok "a masked model" exits 0 "$sesame" finetune --model "$tmp/base" $rest --adapt "$tmp/domain.txt" --adapt-steps 6 --adapt-set length=32 \
        --first "$tmp/yes.tsv" --first-task classify --train "$tmp/train.tsv" --task classify --epochs 1 -o "$tmp/adapted"
    ok "its objective" grep -q '"objective": "mlm"' "$tmp/adapted/adapted/run.json"
    ok "6 updates" grep -q '"global_step": 6' "$tmp/adapted/adapted/trainer_state.json"
    ok "a model of masked tokens" grep -q BertForMaskedLM "$tmp/adapted/adapted/config.json"
    ok "then both tasks" sh -c "test -e '$tmp/adapted/stage-1/config.json' && test -e '$tmp/adapted/config.json' && test ! -e '$tmp/adapted/adapted.ids'"
    cp -r "$tmp/adapted" "$tmp/again" && echo old >"$tmp/again/adapted.ids"
    ok "not with an old corpus" exits 0 "$sesame" finetune --model "$tmp/base" $rest --adapt "$tmp/domain.txt" --adapt-steps 6 --adapt-set length=32 \
        --first "$tmp/yes.tsv" --first-task classify --train "$tmp/train.tsv" --task classify --epochs 1 -o "$tmp/again" --overwrite
    ok "the same model" cmp "$tmp/adapted/model.safetensors" "$tmp/again/model.safetensors"
    rm -rf "$tmp/again" && cp -r "$tmp/adapted" "$tmp/again" && rm -rf "$tmp/again/config.json" "$tmp/again"/checkpoint-* "$tmp/again/stage-1" "$tmp/again/adapted/config.json" \
        "$tmp/again/adapted"/checkpoint-*
    ok "another text" exits 3 "$sesame" finetune -o "$tmp/adapted" --resume --adapt "$tmp/vocab.txt"
    ok "its message" err_has 'was run with adapt .*domain.txt, not .*vocab.txt'
    ok "other steps" exits 3 "$sesame" finetune -o "$tmp/adapted" --resume --adapt-steps 7
    ok "its message" err_has 'adapted: was run with steps 6, not 7'
    ok "nothing to do" exits 0 "$sesame" finetune -o "$tmp/adapted" --resume
    ok "once more from the start" exits 0 "$sesame" finetune -o "$tmp/again" --resume
    ok "the same model" cmp "$tmp/adapted/model.safetensors" "$tmp/again/model.safetensors"
}
cat >"$tmp/gpt2.json" <<END
{"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.05}
END
# shellcheck disable=SC2086
{
    ok "a causal base" exits 0 "$sesame" finetune --config "$tmp/gpt2.json" --tokenizer "$tmp/vocab.txt" --threads 1 --task classify --train "$tmp/train.tsv" \
        --steps 1 --set pad_token_id=0 -o "$tmp/gpt"
    ok "a causal model" exits 0 "$sesame" finetune --model "$tmp/gpt" $rest --adapt "$tmp/domain.txt" --adapt-steps 2 --adapt-set length=32 --train "$tmp/train.tsv" \
        --task classify --steps 2 -o "$tmp/causal"
}
ok "its objective" grep -q '"objective": "clm"' "$tmp/causal/adapted/run.json"

# ---- bad input ----

bad() # what, exit code, message, options
{
    name=$1 code=$2 message=$3
    shift 3
    # shellcheck disable=SC2086
    ok "$name" exits "$code" "$sesame" finetune --model "$tmp/base" $rest --train "$tmp/train.tsv" --task classify -o "$tmp/bad" "$@"
    ok "$name: message" err_has "$message"
    ok "$name: no model" test ! -e "$tmp/bad/config.json"
    rm -rf "$tmp/bad"
}
: >"$tmp/empty.txt"
bad "an empty corpus" 3 'adapted: --adapt: ' --adapt "$tmp/empty.txt"
bad "no corpus" 3 'nothere.txt: No such file' --adapt "$tmp/nothere.txt"
bad "a task without data" 2 '--first-set need --first FILE' --first-task classify
bad "steps without a corpus" 2 'need --adapt FILE' --adapt-steps 5
bad "an unknown option" 2 'first-set' --first "$tmp/yes.tsv" --first-set nothing=1
bad "no value" 2 'expected NAME=VALUE' --first "$tmp/yes.tsv" --first-set epochs
bad "a value out of range" 2 '--first-set epochs' --first "$tmp/yes.tsv" --first-set epochs=-1
bad "an option of the whole run" 2 'output cannot be set' --first "$tmp/yes.tsv" --first-set output=x
bad "missing data" 3 'nothere' --first "$tmp/nothere"
bad "a search" 2 'belong to one run' --first "$tmp/yes.tsv" --seeds 2
mkdir "$tmp/bad" && touch "$tmp/bad/mine"
bad "a folder with other files" 3 'not empty' --first "$tmp/yes.tsv"
# shellcheck disable=SC2086
ok "adapt without a model" exits 2 "$sesame" finetune $small --train "$tmp/train.tsv" --task classify --adapt "$tmp/domain.txt" -o "$tmp/bad"
ok "its message" err_has '--model DIR is required'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
