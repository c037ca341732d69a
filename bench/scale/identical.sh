#!/bin/sh
# Trains with 1 and with more ranks over TCP on this machine and compares all bytes: weights, checkpoints (optimizer
# states included) and logs.
#
#     bench/scale/identical.sh [BUILD [RANKS [UPDATES [DEVICE [DTYPE]]]]]      default: build "2 3 4 8" 200 cpu f32
#
# Models of every kind of attention and recurrence, 8 lanes. Prints a line per comparison; exits with 1 if a byte
# differs. DEVICE cuda:0: all ranks use this GPU. NCCL takes them for ranks of different machines.
set -u
build=${1-build} ranks=${2-2 3 4 8} updates=${3-200} device=${4-cpu} dtype=${5-f32}
sesame=$(realpath "$build")/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

# Learnable sentences: each word determines the next one.
awk 'BEGIN { srand(1); for (i = 0; i < 3000; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' \
    >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1

# run DIR RANKS OPTIONS...: the command on ranks of one thread, with torchrun's variables.
run() {
    dir=$1 size=$2
    shift 2
    port=$((20000 + ($$ + $(date +%N | sed 's/^0*//') / 1000) % 30000))
    pids='' r=0 ok=0
    while [ $r -lt "$size" ]; do
        if [ "$size" -eq 1 ]; then
            "$sesame" pretrain "$@" -o "$dir" >"$tmp/log.$r" 2>&1 &
        else
            RANK=$r LOCAL_RANK=$r WORLD_SIZE=$size MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
                NCCL_HOSTID=rank-$r NCCL_SOCKET_IFNAME=lo \
                "$sesame" pretrain "$@" -o "$dir" >"$tmp/log.$r" 2>&1 &
        fi
        pids="$pids $!" r=$((r + 1))
    done
    for p in $pids; do wait "$p" || ok=1; done
    [ $ok -eq 0 ] || { echo "failed with $size ranks: $*"; cat "$tmp"/log.*; }
    return $ok
}

# All files but the lock and files with times.
compare() {
    diff -rq -x .lock -x runs -x times.jsonl -x train_results.json -x all_results.json -x report.html -x README.md "$1" "$2"
}

bert='--set hidden_size=64 --set num_hidden_layers=2 --set num_attention_heads=2 --set intermediate_size=128'
gpt2='--set n_embd=64 --set n_layer=2 --set n_head=2'
t5='--set d_model=64 --set d_kv=32 --set d_ff=128 --set num_layers=2 --set num_heads=2'
lstm='--set emb_sz=32 --set n_hid=48 --set n_layers=2'
xlnet='--set d_model=128 --set n_layer=2 --set n_head=2 --set d_inner=256' # heads of 64, as the preset has them
each() { # NAME OPTIONS...
    name=$1
    shift
    set -- -c "$tmp/c" --tokenizer "$tmp/t.json" --threads 1 --lanes 8 --batch-size 4 --lr 1e-3 \
        --device "$device" --dtype "$dtype" --steps "$updates" --save-every $((updates / 2)) --eval-every $((updates / 2)) --keep 9 --quiet "$@"
    rm -rf "$tmp/one" "$tmp/many"
    run "$tmp/run" 1 "$@" || { failed=1; return; }
    mv "$tmp/run" "$tmp/one" # both runs have the same output folder, which checkpoints name
    for size in $ranks; do
        if run "$tmp/run" "$size" "$@" && mv "$tmp/run" "$tmp/many" && compare "$tmp/one" "$tmp/many"; then
            echo "identical: $name, $size ranks, $updates updates, $device, $dtype"
        else
            echo "DIFFERENT: $name, $size ranks, $device, $dtype"
            failed=1
        fi
        rm -rf "$tmp/many" "$tmp/run"
    done
}

# shellcheck disable=SC2086  # lists of options
{
each 'BERT, mlm' -p bert-tiny $bert --objective mlm
each 'BERT, mlm and nsp, LAMB, recomputation' -p bert-tiny $bert --objective mlm:1,nsp:1 --optimizer lamb --recompute
each 'ELECTRA, rtd' -p electra-small $bert --set embedding_size=64 --objective rtd
each 'ELECTRA, alltok, accumulation' -p electra-small $bert --set embedding_size=64 --objective alltok --accumulate 2
each 'GPT-2, clm, moving average' -p gpt2 $gpt2 --objective clm --ema 0.99
each 'GPT-2, clm and prefix, token weights' -p gpt2 $gpt2 --objective clm:1,prefix:1 --loss-mean tokens
each 'T5, t5, Adafactor' -p t5-small $t5 --objective t5 --optimizer adafactor
each 'AWD-LSTM, bptt, ASGD' -p awd-lstm $lstm --objective bptt --optimizer asgd
each 'XLNet, plm' -p xlnet-base $xlnet
}
exit $failed
