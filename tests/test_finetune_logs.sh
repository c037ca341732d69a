#!/bin/sh
# What a run leaves to follow it by: logs, events, energy, the summary.
# Usage: test_finetune_logs.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

echo '{"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 100, "n_positions": 64}' >"$tmp/gpt.json"

tune() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/$dir" "$@"
}
events() { find "$tmp/$1" -name 'events.out.tfevents.*.sesame' | wc -l; }

ok "a run" exits 0 tune one --epochs 2
ok "a log in its folder" test "$(grep -c '"grad_norm"' "$tmp/one/log.jsonl")" -eq 20
ok "its evaluations" test "$(grep -c '"eval_loss"' "$tmp/one/log.jsonl")" -eq 2
ok "every score" grep -q '"eval_pos_f1"' "$tmp/one/log.jsonl"
ok "events" test "$(events one/runs)" -eq 1
ok "energy in the summary" out_has '^Energy .*CO2 ('
for key in train_energy_kwh train_co2_kg train_peak_memory_bytes; do
    ok "$key" above "$(score $key "$tmp/one/all_results.json")" 1e-12
done
ok "how it is known" grep -q '"train_energy_source": "\(estimate; \|RAPL: \)' "$tmp/one/all_results.json"
ok "where everything lies" out_has '^Files  *in .*one: README.md'
ok "the logs" out_has '^Logs .*/one/log.jsonl; tensorboard --logdir'
ok "what to do next" out_has '^Next  *sesame eval .*one FILE;'

# The model card: what the hub reads, labels, scores, classes, settings, how to load it.
card() { grep -q -- "$1" "$tmp/one/README.md" || { cat "$tmp/one/README.md"; return 1; }; }
ok "card: begins with what programs read" test "$(head -1 "$tmp/one/README.md")" = ---
ok "card: pipeline" card '^pipeline_tag: text-classification$'
ok "card: emissions" card '^  emissions: [0-9]'
ok "card: score" card '^    - type: "accuracy"$'
ok "card: labels" card '^Labels: neg, pos.$'
ok "card: classes" card '^| pos | [01]\.[0-9]* | '
ok "card: matrix" card '^| | neg | pos |$'
ok "card: data" card '^| data | train.tsv, 80 sequences, '
ok "card: command" card '^sesame finetune --task classify .*--lr 0.003'
ok "card: use" card '^sesame text-classification --model FOLDER'
# Each metric once: no second loss, no micro averages that repeat the accuracy, no scores of the classes below.
listed() { awk '/^\| score/ { on = 1 } on && !/^\|/ { exit } on { print $2 }' "$1/README.md" | tail -n +3; }
ok "card: scores" test "$(listed "$tmp/one" | head -5 | tr '\n' ' ')" = 'loss accuracy precision recall f1 '
ok "card: each once" test -z "$(listed "$tmp/one" | grep 'micro\|pos\|neg')"
ok "card: metadata too" sh -c "! grep -q 'type: \"f1_micro\|type: \"pos_f1' '$tmp/one/README.md'"
ok "metrics that share a score" exits 0 tune twice --epochs 1 --metrics 'accuracy|f1|accuracy'
ok "card: the score once" test "$(listed "$tmp/twice" | grep -c accuracy)" -eq 1
ok "JSON: the score once" test "$(grep -c '"eval_accuracy"' "$tmp/twice/all_results.json")" -eq 1
printf '%s\n' 'good film .' 'bad film .' 'the good film' 'a bad film was it' >"$tmp/lines.txt"
# shellcheck disable=SC2086
ok "a causal model" exits 0 "$sesame" finetune --config "$tmp/gpt.json" --tokenizer "$tmp/vocab.txt" --threads 1 --lr 3e-3 \
    --task continue --lines --train "$tmp/lines.txt" --eval "$tmp/lines.txt" --epochs 1 -o "$tmp/causal"
ok "card: its loss once" test "$(listed "$tmp/causal" | tr '\n' ' ')" = 'loss perplexity word\_perplexity '
sed 's/pos$/<b>|p_"s/; s/neg$/a\\b/' "$tmp/train.tsv" >"$tmp/odd.tsv"
# shellcheck disable=SC2086
exits 0 "$sesame" finetune $small --task classify --train "$tmp/odd.tsv" --eval "$tmp/odd.tsv" --epochs 1 -o "$tmp/odd/"
ok "card: the folder's name without its slash" grep -qx "# odd" "$tmp/odd/README.md"
ok "card: odd labels" grep -qF 'Labels: &lt;b>\|p\_"s, a\\b.' "$tmp/odd/README.md"
ok "again" exits 0 tune one --epochs 1 --overwrite
ok "a new log" test "$(grep -c '"grad_norm"' "$tmp/one/log.jsonl")" -eq 10
ok "new events" test "$(events one/runs)" -eq 1
cp "$tmp/one/all_results.json" "$tmp/results"
ok "resumed at its end" exits 0 tune one --epochs 1 --resume
ok "resumed at its end: message" err_has 'the run is complete, with update 10; nothing to resume'
ok "resumed at its end: the results are unchanged" cmp -s "$tmp/one/all_results.json" "$tmp/results"
ok "resumed at its end: no events" test "$(events one/runs)" -eq 1
ok "resumed at its end, as JSON" exits 0 tune one --epochs 1 --resume --json
ok "resumed at its end: stored results" out_has '"train_loss":'
ok "the log is continued" test "$(grep -c '"grad_norm"' "$tmp/one/log.jsonl")" -eq 10
rm -rf "$tmp/one/checkpoint-10" && printf '{"step": 11, "lo' >>"$tmp/one/log.jsonl"
ok "after an incomplete line" exits 0 tune stopped --epochs 1 --log "$tmp/one/log.jsonl" --resume
ok "a run that starts anew has its own lines" test "$(grep -c '^{.*}$' "$tmp/one/log.jsonl")" -eq 11
ok "no others" test "$(wc -l <"$tmp/one/log.jsonl")" -eq 11
ok "no more events" test "$(events one/runs)" -eq 1
ok "elsewhere" exits 0 tune two --epochs 1 --log "$tmp/two.log" --tensorboard "$tmp/board"
ok "a log elsewhere" test -s "$tmp/two.log"
ok "events elsewhere" test "$(events board)" -eq 1
ok "none here" test ! -e "$tmp/two/log.jsonl"
mkdir "$tmp/mine" && echo mine >"$tmp/mine/log.jsonl"
ok "a log of someone else's" exits 3 tune mine --epochs 1
ok "is as it was" test "$(cat "$tmp/mine/log.jsonl")" = mine
ok "no room for events" exits 3 tune three --epochs 1 --tensorboard /dev/null/x
ok "names the file" err_has '/dev/null/x'

# A resumed run reports the whole run: loss, time, energy and speed.
close() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-6 * a) ^ 2) }' || { echo "$1, not $2"; return 1; }; }
ok "whole" exits 0 tune whole --steps 12 --save-every 5 --keep 9
mkdir "$tmp/second" && cp -r "$tmp/whole/checkpoint-5" "$tmp/whole/times.jsonl" "$tmp/second/"
ok "totals of a checkpoint" grep -q '"loss_sum": [0-9]' "$tmp/second/checkpoint-5/run.json"
ok "times beside it" grep -q '^{"step": 5, "batches": 5, "ranks": 1, "seconds": [0-9]' "$tmp/second/times.jsonl"
seconds=$(sed -n 's/.*"step": 5,.*"seconds": \([^,]*\),.*/\1/p' "$tmp/second/times.jsonl")
ok "second part" exits 0 tune second --steps 12 --save-every 5 --keep 9 --resume
ok "loss of the whole run" close "$(score train_loss "$tmp/whole/all_results.json")" "$(score train_loss "$tmp/second/all_results.json")"
ok "resumed step" test "$(score train_resumed_step "$tmp/second/all_results.json")" -eq 5
ok "summary: no part" sh -c '! grep -q "since update" "$1"' sh "$tmp/out"
ok "time since the start" above "$(score train_runtime "$tmp/second/all_results.json")" "$seconds"
ok "same weights" cmp -s "$tmp/whole/model.safetensors" "$tmp/second/model.safetensors"

# A run that was killed after update 63 continues from update 60: log and checkpoints have the same bytes as
# without. The mean of updates 51 to 100 is in log_history.
in_folder() { (mkdir -p "$tmp/$1" && cd "$tmp/$1" && shift && "$@"); }
bin=$(cd "$(dirname "$sesame")" && pwd)/$(basename "$sesame")
long() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    in_folder "$dir" "$bin" finetune $small --task classify --train ../train.tsv --eval ../dev.tsv -o out \
        --steps 110 --eval-every 30 --save-every 20 --keep 9 "$@"
}
ok "uninterrupted" exits 0 long a --threads 2
mkdir -p "$tmp/b/out"
for name in checkpoint-30 checkpoint-40 checkpoint-60 times.jsonl .lock; do cp -r "$tmp/a/out/$name" "$tmp/b/out/"; done
grep -B100 '"step": 63' "$tmp/a/out/log.jsonl" >"$tmp/b/out/log.jsonl" && printf '{"epoch": 6, "lo' >>"$tmp/b/out/log.jsonl"
ok "killed and resumed" exits 0 long b --threads 1 --resume
ok "the same log" cmp "$tmp/a/out/log.jsonl" "$tmp/b/out/log.jsonl"
ok "the same state" cmp "$tmp/a/out/trainer_state.json" "$tmp/b/out/trainer_state.json"
for n in 80 100 110; do ok "checkpoint $n: the same bytes" diff -r "$tmp/a/out/checkpoint-$n" "$tmp/b/out/checkpoint-$n"; done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
