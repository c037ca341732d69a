#!/bin/sh
# What a run leaves to follow it by: logs, events, energy, the summary.
# Usage: test_finetune_logs.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

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
ok "energy in the summary" prints '^Energy .*CO2 ('
for key in train_energy_kwh train_co2_kg train_peak_memory_bytes; do
    ok "$key" above "$(score $key "$tmp/one/all_results.json")" 1e-12
done
ok "how it is known" grep -q '"train_energy_source": "\(estimate; \|RAPL: \)' "$tmp/one/all_results.json"
ok "again" exits 0 tune one --epochs 1 --overwrite
ok "a new log" test "$(grep -c '"grad_norm"' "$tmp/one/log.jsonl")" -eq 10
ok "new events" test "$(events one/runs)" -eq 1
ok "resumed at its end" exits 0 tune one --epochs 1 --resume
ok "the log goes on" test "$(grep -c '"grad_norm"' "$tmp/one/log.jsonl")" -eq 10
ok "more events" test "$(events one/runs)" -eq 2
ok "elsewhere" exits 0 tune two --epochs 1 --log "$tmp/two.log" --tensorboard "$tmp/board"
ok "a log elsewhere" test -s "$tmp/two.log"
ok "events elsewhere" test "$(events board)" -eq 1
ok "none here" test ! -e "$tmp/two/log.jsonl"
mkdir "$tmp/mine" && echo mine >"$tmp/mine/log.jsonl"
ok "a log of someone else's" exits 3 tune mine --epochs 1
ok "is as it was" test "$(cat "$tmp/mine/log.jsonl")" = mine
ok "no room for events" exits 3 tune three --epochs 1 --tensorboard /dev/null/x
ok "says where" says '/dev/null/x'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
