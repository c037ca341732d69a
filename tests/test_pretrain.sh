#!/bin/sh
# The pretrain command: a run, resumed and with other threads, stages, EMA, time budget, errors; the
# example of sesame/pretrain.h.
set -u
. tests/counted.sh

gives() {
    want=$1
    shift
    "$sesame" pretrain "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame pretrain $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }
same() { if cmp -s "$1" "$2"; then pass; else fail "$1 and $2 differ"; fi; }
there() { for f; do if [ -e "$f" ]; then pass; else fail "no $f"; fi; done; }

# Learnable sentences: each word determines the next one.
awk 'BEGIN { srand(1); for (i = 0; i < 1200; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' \
    >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
small="--set hidden_size=32 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=64"
common="-c $tmp/c --tokenizer $tmp/t.json -p bert-tiny $small --threads 2"

# shellcheck disable=SC2086  # lists of options
{
gives 0 $common --steps 60 --lr 3e-3 --eval-every 20 --save-every 20 --keep 9 -o "$tmp/a"
out_has 'BertForMaskedLM'
err_has 'unigram baseline: mlm_loss'
out_has 'mlm_perplexity'
out_has 'baseline mlm_loss'
there "$tmp/a/run.json" "$tmp/a/config.json" "$tmp/a/model.safetensors" "$tmp/a/tokenizer.json" "$tmp/a/curve.svg" "$tmp/a/README.md" "$tmp/a/report.html"
first=$(sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' "$tmp/a/log.jsonl" | head -n 1)
last=$(sed -n 's/.*"eval_loss": \([0-9.]*\).*/\1/p' "$tmp/a/log.jsonl" | tail -n 1)
if awk "BEGIN { exit !($last < $first - 0.3) }"; then pass; else fail "loss $first to $last"; fi
if grep -q "sesame fill-mask --model $tmp/a " "$tmp/a/report.html"; then pass; else fail 'report.html'; fi
if grep -q "<svg" "$tmp/a/curve.svg" && grep -q "eval_mlm_loss" "$tmp/a/curve.svg"; then pass; else fail 'curve.svg'; fi
if "$sesame" fill-mask -m "$tmp/a" 'w1 w10 [MASK] w4' >"$tmp/out" 2>"$tmp/err"; then pass; else fail 'fill-mask'; fi
gives 3 $common -o "$tmp/a"
err_has 'not empty'

# Resumed from a checkpoint, with gradient checkpointing, and on one thread: the same bits.
mkdir "$tmp/b" && cp -r "$tmp/a/checkpoint-20" "$tmp/a/pretrain.json" "$tmp/b/"
gives 0 $common --steps 60 --lr 3e-3 --eval-every 20 --save-every 20 --keep 9 -o "$tmp/b" --resume --recompute
err_has 'update 20 of 60'
same "$tmp/a/model.safetensors" "$tmp/b/model.safetensors"
loss() { sed -n 's/.*"train_loss": \([0-9.]*\).*/\1/p' "$1/all_results.json"; }
if awk "BEGIN { exit !(($(loss "$tmp/a") - $(loss "$tmp/b")) ^ 2 < 1e-12) }"; then pass; else fail 'loss of the whole run'; fi
# The options are in the checkpoint.
mkdir "$tmp/b2" && cp -r "$tmp/a/checkpoint-40" "$tmp/b2/"
gives 0 -o "$tmp/b2" --resume
same "$tmp/a/model.safetensors" "$tmp/b2/model.safetensors"
# Longer, where neither learning rates nor batches depend on the length.
gives 0 $common --schedule constant --warmup 2 --steps 4 -o "$tmp/less"
gives 0 $common --schedule constant --warmup 2 --steps 9 -o "$tmp/more"
gives 0 -o "$tmp/less" --resume --steps 9
same "$tmp/less/model.safetensors" "$tmp/more/model.safetensors"
# A complete run is not resumed.
cp "$tmp/b/all_results.json" "$tmp/results"
gives 0 $common --steps 60 --lr 3e-3 --eval-every 20 --save-every 20 --keep 9 -o "$tmp/b" --resume
err_has 'the run is complete, with update 60; nothing to resume'
same "$tmp/b/all_results.json" "$tmp/results"
gives 0 $common --threads 1 --steps 60 --lr 3e-3 --eval-every 20 --save-every -1 -o "$tmp/one"
same "$tmp/a/model.safetensors" "$tmp/one/model.safetensors"
"$sesame" compare "$tmp/a" "$tmp/one" --json >"$tmp/out" 2>"$tmp/err"
out_has '"save-every": 20'

# Killed before its first checkpoint: starts anew. More steps are another run.
mkdir "$tmp/dead" && touch "$tmp/dead/.lock" "$tmp/dead/log.jsonl" && cp "$tmp/a/pretrain.json" "$tmp/dead/"
gives 0 $common --steps 2 -o "$tmp/dead" --resume
gives 3 $common --steps 3 -o "$tmp/dead" --resume
err_has 'started with updates 2, not 3; its learning rates depend on its length'

# Stages, batch-size warmup, EMA; resumed in the second stage.
more='--steps 30 --length 24:0.5,48 --tokens-per-batch 400 --batch-ramp 0.5 --accumulate 2 --ema 0.9 --optimizer lamb'
gives 0 $common $more --save-every 10 --keep 9 --eval-every -1 -o "$tmp/s"
mkdir "$tmp/s2" && cp -r "$tmp/s/checkpoint-20" "$tmp/s/pretrain.json" "$tmp/s2/"
gives 0 $common $more --save-every 10 --keep 9 --eval-every -1 -o "$tmp/s2" --resume
same "$tmp/s/model.safetensors" "$tmp/s2/model.safetensors"
if cmp -s "$tmp/s/model.safetensors" "$tmp/s/checkpoint-30/model.safetensors"; then fail 'no average'; else pass; fi

# Other objectives, continued pretraining, a time budget.
gives 0 $common --objective mlm,nsp:0.5 --steps 6 -o "$tmp/nsp" --json
out_has '"eval_nsp_accuracy"'
gives 0 -c "$tmp/c:2" -c "$tmp/c" -m "$tmp/a" --objective mlm --steps 3 -o "$tmp/on"
gives 0 -c "$tmp/c" --tokenizer "$tmp/t.json" -p gpt2 --set n_embd=32 --set n_layer=1 --set n_head=2 \
    --objective clm --steps 6 -o "$tmp/gpt"
out_has 'GPT2LMHeadModel'
gives 0 $common --teacher "$tmp/a" --from-teacher --set num_hidden_layers=1 --cosine-weight 1 --steps 6 -o "$tmp/taught"
gives 0 -c "$tmp/c" --threads 2 --teacher "$tmp/a" --student-layers 1 --soft-weight 0 --hard-weight 0 --relation-weight 1 --steps 6 -o "$tmp/related"
if grep -q '"num_hidden_layers": 1' "$tmp/related/config.json"; then pass; else fail 'layers of the student'; fi
gives 2 -c "$tmp/c" --student-layers 1 -o "$tmp/x"
err_has 'need a teacher'
gives 3 $common --set vocab_size=300 --teacher "$tmp/a" --steps 6 -o "$tmp/x"
err_has 'vocab'
gives 0 $common --max-time 2s -o "$tmp/time"
err_has 'updates in 2 s'
# A process that waits for 3 s has no time for its updates.
"$sesame" pretrain $common --max-time 2s -o "$tmp/late" >"$tmp/out" 2>"$tmp/err" &
late=$!
for _ in $(seq 100); do
    if grep -q 'updates in 2 s' "$tmp/err"; then break; fi
    sleep 0.05
done
kill -STOP $late && sleep 3 && kill -CONT $late
if wait $late; then pass; else fail 'late'; fi
err_has 'the time was over after'
gives 0 $common --max-time 1s --schedule constant --warmup 0 -o "$tmp/longer"
steps=$(sed -n 's/.*"max_steps": \([0-9]*\).*/\1/p' "$tmp/longer/trainer_state.json")
steps=$((steps + 3))
gives 0 -o "$tmp/longer" --resume --steps $steps
if grep -q "\"global_step\": $steps," "$tmp/longer/trainer_state.json"; then pass; else fail 'steps replace max-time'; fi
if grep -q "\"updates\": $steps" "$tmp/longer/pretrain.json"; then pass; else fail 'the plan has the steps'; fi
# --epochs with its default value also replaces the time, and stored steps: one epoch has fewer updates than are done.
for dir in longer stepped; do
    [ $dir = longer ] || gives 0 $common --steps $steps --schedule constant --warmup 0 -o "$tmp/$dir"
    gives 3 -o "$tmp/$dir" --resume --epochs 1
    err_has "the run has $steps updates already, more than 3"
done

# Minimal pairs: a tie counts as wrong.
printf 'term\tUID\tgood\tbad\nx\tone\tw1 w10\tw1 w10\nx\ttwo\tw1 w10\tw1 w1 w1 w1 w1 w1\n' >"$tmp/pairs.tsv"
"$sesame" eval "$tmp/a" --task blimp "$tmp/pairs.tsv" >"$tmp/out" 2>"$tmp/err"
out_has '50.00 % over 2 paradigms'
printf 'case\tgood\tbad\tbad2\nc\tw1 w10\tw1 w1 w1 w1 w1 w1\tw1 w10\nc\tw1 w10\tw1 w1 w1 w1 w1 w1\n' >"$tmp/pairs.tsv"
"$sesame" eval "$tmp/a" --task agreement "$tmp/pairs.tsv" --json >"$tmp/out" 2>"$tmp/err"
out_has '"eval_accuracy": 0.5, "eval_pairs_accuracy": 0.5, "eval_samples": 2'
printf 'form\tclass\tlen_prefix\tsent\nw10\tcorrect\t1\tw1 x w31 <eos>\nw10\twrong\t1\tw1 x w31 <eos>\n' >"$tmp/p.tab"
"$sesame" eval "$tmp/a" --task agreement "$tmp/p.tab" --json >"$tmp/out" 2>"$tmp/err"
out_has '"eval_accuracy": 0.0'
if command -v xz >/dev/null && "$sesame" --version --verbose | grep -q 'texts compressed with xz.*: in this build'; then
    printf 'good\tbad\nw1 w10\tw1 w1 w1 w1 w1 w1\n' | xz >"$tmp/pairs.tsv.xz"
    "$sesame" eval "$tmp/a" --task blimp "$tmp/pairs.tsv.xz" --json >"$tmp/out" 2>"$tmp/err"
    out_has '"eval_accuracy": 1.0'
fi
printf 'a\tb\n1\t2\n' >"$tmp/pairs.tsv"
"$sesame" eval "$tmp/a" --task blimp "$tmp/pairs.tsv" >"$tmp/out" 2>"$tmp/err"
err_has 'expected the columns good and bad'

# Errors.
echo '[{}]' >"$tmp/array.json"
gives 3 -c "$tmp/c" --tokenizer "$tmp/t.json" --config "$tmp/array.json" -o "$tmp/x"
err_has 'sesame: '"$tmp"'/array.json: an object expected, not an array'
echo '{"model_type": "bert"}' >"$tmp/bare-config.json"
gives 3 -c "$tmp/c" --tokenizer "$tmp/t.json" --config "$tmp/bare-config.json" -o "$tmp/x"
err_has 'sesame: '"$tmp"'/bare-config.json: "vocab_size" is missing'
"$sesame" train-tokenizer --type wordpiece --vocab-size 60 -q -o "$tmp/other.json" "$tmp/text"
gives 3 -c "$tmp/c" --tokenizer "$tmp/other.json" -p bert-tiny -o "$tmp/x"
err_has 'was built with another tokenizer'
gives 3 $common --length 600 -o "$tmp/x"
err_has 'has positions for 512 tokens'
gives 2 $common --length 128:0.5,256:0.4 -o "$tmp/x"
err_has 'the fractions add up to 0.9'
gives 2 $common --length x -o "$tmp/x"
gives 2 $common --max-time soon -o "$tmp/x"
err_has 'expected a duration'
gives 3 $common --objective mlm,tea -o "$tmp/x"
err_has 'unknown objective "tea"'
gives 2 -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-huge -o "$tmp/x"
err_has 'neither a config.json nor a preset'
gives 2 $common --set hidden_size -o "$tmp/x"
err_has 'expected KEY=VALUE'
gives 2 -c "$tmp/c" --tokenizer "$tmp/t.json" -o "$tmp/x"
err_has 'expected exactly one of --preset, --config and --model'
head -c 5000 "$tmp/c" >"$tmp/short-file"
gives 3 -c "$tmp/short-file" --tokenizer "$tmp/t.json" -p bert-tiny -o "$tmp/x"
err_has 'truncated'
printf 'w1 w10\n\nw4 w31\n\nw2 w17\n' >"$tmp/short.txt"
"$sesame" corpus build --tokenizer "$tmp/t.json" -o "$tmp/short" "$tmp/short.txt" >"$tmp/out"
gives 3 -c "$tmp/short" --tokenizer "$tmp/t.json" -p bert-tiny --objective mlm,nsp -o "$tmp/x"
err_has 'has two sentences'
"$sesame" train-tokenizer --type wordpiece --special-tokens '[UNK],[CLS],[SEP]' --vocab-size 150 -q -o "$tmp/bare.json" "$tmp/text"
"$sesame" corpus build --tokenizer "$tmp/bare.json" -o "$tmp/bare" "$tmp/text" >"$tmp/out"
gives 3 -c "$tmp/bare" --tokenizer "$tmp/bare.json" -p bert-tiny -o "$tmp/x"
err_has 'needs a mask token'
}
if [ ! -e "$tmp/x" ]; then pass; else fail 'a failed command leaves a folder'; fi

# The example program of the library's interface.
if "$build/examples/pretrain" "$tmp/text" "$tmp/example" >"$tmp/out" 2>"$tmp/err"; then pass; else fail 'the example pretrain'; fi
out_has 'eval loss'
err_has 'epoch 3.00'
there "$tmp/example/model.safetensors" "$tmp/example/tokenizer.json" "$tmp/example/README.md" "$tmp/example/trainer_state.json"
if "$sesame" fill-mask -m "$tmp/example" 'w1 w10 [MASK] w4' >"$tmp/out" 2>"$tmp/err"; then pass; else fail 'its model'; fi
if [ "$(wc -l <examples/pretrain.c)" -le 80 ]; then pass; else fail 'examples/pretrain.c is longer than 80 lines'; fi
if "$build/examples/pretrain" "$tmp/absent" "$tmp/y" >"$tmp/out" 2>"$tmp/err"; then fail 'no text'; else pass; fi
err_has 'absent'

counted
