#!/bin/sh
# Runs of several processes: the same bytes for any number of ranks, resumed with another number, after signals and
# killed ranks; errors of one rank. Usage: test_ranks.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh
. tests/ranks_fixture.sh
# Data for evaluation fill several batches of 4096 tokens, so that each rank has some.
more() { yes "$1" | head -"$2" | while read -r file; do cat "$file"; done; } # a file several times
{ head -1 "$tmp/train.tsv"; more "$tmp/rows" 25; } >"$tmp/many.tsv"
tune="$small --task classify --train $tmp/train.tsv --eval $tmp/many.tsv -o out -q --lanes 4"
awk 'BEGIN { srand(1); for (i = 0; i < 2400; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 70% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 30% -o "$tmp/c2" "$tmp/text" >"$tmp/out" || exit 1
model="--set hidden_size=32 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=64"
pretrain="pretrain -c $tmp/c --tokenizer $tmp/t.json -p bert-tiny $model --threads 1 -o out -q --lanes 4 --batch-size 4"

codes_are() { [ "$codes" = "$1" ] || { echo "exit codes$codes, expected$1"; cat "$tmp/err"; return 1; }; }
# Exactly one line, with this text.
one_line() { [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q -- "$1" "$tmp/err" || { echo "expected: $1"; cat "$tmp/err"; return 1; }; }
no_leftovers() { test -z "$(find "$tmp/$1/out" -name '.sesame-*')"; }

# shellcheck disable=SC2086  # lists of options
{
# The same bytes for 1, 2 and 3 ranks; evaluation batches are more than ranks.
for r in 1 2 3; do
    ranks $r tune$r finetune $tune --steps 14 --eval-every 5 --save-every 4 --keep 9 --accumulate 2
    ok "finetune, $r ranks" codes_are "$(yes ' 0' | head -$r | tr -d '\n')"
    ranks $r pre$r $pretrain --steps 12 --eval-every 5 --save-every 4 --keep 9 --lr 1e-3 --ema 0.9 --loss-mean tokens
    ok "pretrain, $r ranks" codes_are "$(yes ' 0' | head -$r | tr -d '\n')"
    [ $r -eq 1 ] && continue
    for name in README.md eval_results.json; do rm -f "$tmp/tune1/out/$name" "$tmp/tune$r/out/$name"; done # times
    ok "finetune: $r ranks as one" same_folder tune1 tune$r
    ok "pretrain: $r ranks as one" same_folder pre1 pre$r
done
ok "results: ranks" grep -q '"train_ranks": 3' "$tmp/pre3/out/train_results.json"
ok "results: lanes" grep -q '"train_lanes": 4' "$tmp/pre3/out/train_results.json"
ok "the state is in slices" test "$(find "$tmp/pre3/out/checkpoint-12" -name '*.safetensors' | wc -l)" -eq 2

# Other tasks: outputs per word with a CRF, groups of sequences, vectors.
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%s B-PER\nlives O\nin O\n%s B-LOC\n. O\n\n", i % 2 ? "anna" : "bob", i % 3 ? "paris" : "london" }' >"$tmp/tags"
more "$tmp/tags" 30 >"$tmp/many.tags"
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%s film was,%s,%s,%d\n", i % 2 ? "the" : "a", i % 3 ? "bad ." : "good .", i % 3 ? "good ." : "bad .", i % 2 }' >"$tmp/choices"
{ echo text,a,b,label; cat "$tmp/choices"; } >"$tmp/choose.csv"
{ echo text,a,b,label; more "$tmp/choices" 20; } >"$tmp/many.csv"
awk 'BEGIN { print "sentence1\tsentence2\tscore"; for (i = 0; i < 40; i++) printf "the film was %s\tit was %s\t%d\n", i % 2 ? "good" : "bad", i % 3 ? "good" : "bad", (i % 2) == (i % 3 > 0) }' >"$tmp/pairs.tsv"
kind() # folder, then options: one rank and three
{
    kind=$1
    shift
    for k in 1 3; do ranks $k "$kind$k" finetune $small -o out -q --lanes 3 --epochs 2 "$@"; done
    for k in 1 3; do rm -f "$tmp/$kind$k/out/README.md" "$tmp/$kind$k/out/eval_results.json"; done # times
    ok "$kind: exit codes" codes_are " 0 0 0"
    ok "$kind: 3 ranks as one" same_folder "${kind}1" "${kind}3"
}
kind tag --task tag --crf --train "$tmp/tags" --eval "$tmp/many.tags"
kind choose --task choose --choices 'a|b' --train "$tmp/choose.csv" --eval "$tmp/many.csv"
kind embed --task embed --loss cosine --train "$tmp/pairs.tsv" --eval "$tmp/pairs.tsv"

# A generator, LAMB, a time budget.
lamb="$pretrain -p electra-small --objective rtd --optimizer lamb --steps 6 --save-every 3 --keep 9 --eval-every -1"
ranks 1 rtd1 $lamb
ranks 3 rtd3 $lamb
ok "rtd and LAMB: 3 ranks as one" same_folder rtd1 rtd3
for k in 1 3; do ranks $k tied$k $pretrain -p electra-small --objective rtd --generator-tying all --steps 4 --eval-every -1; done
ok "one encoder for generator and model: 3 ranks as one" same_folder tied1 tied3
ranks 2 timed $pretrain --max-time 2s --eval-every -1
ok "a time budget" codes_are " 0 0"

# A signal to one rank stops all at the same update; another number of ranks continues.
long="--steps 600 --eval-every 60 --save-every 50 --keep 2"
ranks 1 whole $pretrain $long
start 3 stopped $pretrain $long
reaches stopped 60
kill -TERM "$(cat "$tmp/pid.1")"
finish
ok "SIGTERM to rank 1" codes_are " 143 143 143"
ok "SIGTERM: one line" one_line '^stopped after update [0-9]* of 600; the same command with --resume continues$'
start 2 stopped pretrain -o out --resume -q
reaches stopped 150
kill -USR1 "$(cat "$tmp/pid.0")"
finish
ok "SIGUSR1 to rank 0" codes_are " 138 138"
# Ranks, update, rank, exit codes: kills the rank; one line names it. On a machine with many more processes than cores, two
# of 60 kills gave another number of lines: a second try decides.
killed()
{
    for update in "$2" $(($2 + 30)); do
        start "$1" stopped pretrain -o out --resume -q
        reaches stopped "$update"
        kill -9 "$(cat "$tmp/pid.$3")"
        finish
        codes_are "$4" && one_line "^sesame: rank $3 on " && return 0
    done
    return 1
}
ok "a killed rank" killed 4 230 2 " 1 1 137 1"
ok "rank 0 is killed" killed 3 300 0 " 137 1 1"
ranks 1 stopped pretrain -o out --resume -q
ok "the last part" codes_are " 0"
ok "interrupted four times: the same bytes" same_folder whole stopped

# Other lanes are refused; without --lanes the stored ones are used.
ranks 2 stopped $pretrain $long --lanes 2 --resume
ok "other lanes" codes_are " 1 1"
ok "other lanes: message" one_line 'started with lanes 4, not 2'
ranks 5 none $pretrain --steps 4
ok "more ranks than lanes" one_line '^sesame: 5 ranks, but 4 lanes'

# One rank that differs, or fails: one line, exit 1 everywhere, nothing is left.
rank1_options='--lr 1e-3' && ranks 3 none finetune $tune --steps 4
ok "other settings" one_line '^sesame: rank 1 on .*: lr is 0.001, but on rank 0 it is 0.003$'
ok "other settings: codes" codes_are " 1 1 1"
rank1_options="-c $tmp/c2" && ranks 2 none $pretrain --steps 4
ok "another corpus" one_line '^sesame: the corpus differs: rank 0 on '
rank1_options="--config $tmp/absent.json" && ranks 2 none finetune $tune --steps 4
ok "a file that one rank lacks" one_line '^sesame: rank 1 on .*absent.json'
rank1_options="--isa ref" && ranks 2 none finetune $tune --steps 4
ok "another instruction set" one_line '^sesame: the instruction set, '
rank1_options='' && ranks 2 none finetune $tune --stps 4
ok "a misspelled option" test "$(grep -c '^sesame:' "$tmp/err")" -eq 1
if command -v prlimit >/dev/null 2>&1; then
    rank1_before='prlimit --fsize=20000' && ranks 3 full finetune $tune --steps 40 --eval-every -1 --save-every 10
    ok "no space on one rank" one_line '^sesame: rank 1 on .*checkpoint of update 10: .*cannot be written'
    ok "no space: codes" codes_are " 1 1 1"
    ok "no space: nothing is left" no_leftovers full
    rank1_before=''
    ranks 2 full finetune $tune --steps 40 --eval-every -1 --save-every 10 --resume
    ok "with space" codes_are " 0 0"
else
    skipped=$((skipped + 1))
fi
rank1_before='' rank1_options=''

# mpirun: the same bytes, and its signals.
if command -v mpirun >/dev/null 2>&1; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
    mkdir -p "$tmp/mpi"
    (cd "$tmp/mpi" && exec timeout 60 mpirun --oversubscribe -n 2 "$bin" $pretrain $long >"$tmp/out" 2>"$tmp/err") &
    mpi=$!
    reaches mpi 60
    kill -USR1 "$(pgrep -P $mpi -x mpirun || echo $mpi)"
    wait $mpi
    ok "SIGUSR1 to mpirun" test $? -eq 138
    (cd "$tmp/mpi" && timeout 60 mpirun --oversubscribe -n 3 "$bin" pretrain -o out --resume -q >"$tmp/out" 2>"$tmp/err")
    ok "mpirun" test $? -eq 0
    ok "mpirun: the same bytes" same_folder whole mpi
else
    echo 'skipped: mpirun is not installed (Debian: openmpi-bin)'
    skipped=$((skipped + 3))
fi
}
counted
