#!/bin/sh
# bench/peers/run without any package: its list, what it refuses; and the turns that `sesame bench` takes with it.
set -u
. tests/counted.sh
here=$(cd "$(dirname "$0")/.." && pwd)
model=$here/tests/fixtures/adapters/bert/base

gives() {
    want=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "$*: exit $got, wanted $want"; fi
}
has() { if grep -q -- "$2" "$tmp/$1"; then pass; else fail "$1 lacks \"$2\""; fi; }
has_lines() {
    lines=$(grep -c -- "$2" "$tmp/out")
    if [ "$lines" -eq "$1" ]; then pass; else fail "$lines lines with \"$2\", wanted $1"; fi
}

if command -v python3 >/dev/null; then
    export PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1
    gives 0 "$here/bench/peers/run" --list
    has out '^bert-f32 .*1x8, 1x128, 8x128, 1x512; against onnxruntime, openvino, torch'
    has out '^growth '
    gives 0 "$here/bench/peers/run" --list --jobs gpt2,cold
    has_lines 2 'wanted: '
    gives 1 "$here/bench/peers/run" --list --jobs gpt3
    has err 'unknown job gpt3; see --list'
else
    skipped=$((skipped + 7))
fi

printf '\n\nnext\n\n' >"$tmp/in"
gives 0 "$sesame" bench model --model "$model" --load 2x4 --load 3+5+1 --turns --quick --json --threads 1 <"$tmp/in"
has_lines 1 '^{"ready": \["model.forward 2x4"\]}$'
has_lines 1 '^{"ready": \["model.forward 9 in 3"\]}$'
has_lines 3 '^{"seconds": \[[0-9.e-]*\]}$'
gives 0 "$sesame" bench model --model "$model" --load 3+5+1 --train --recompute --turns --quick --threads 1 <"$tmp/in"
has_lines 2 '^{"seconds": \[[0-9.e-]*\]}$'
gives 2 "$sesame" bench gemm --only 'no such row' --quick --threads 1 --quiet </dev/null
gives 0 "$sesame" bench gemm --only 'gemm_i8 8x768x768' --turns --quick --threads 1 --json --quiet <"$tmp/in"
has_lines 1 '^{"ready": \["gemm_i8 8x768x768"\]}$'
has_lines 2 '^{"seconds": \[[0-9.e-]*\]}$'
has_lines 1 '"bench": "gemm_i8"'
gives 2 "$sesame" bench model --load 1x8
has err '--model and --load require each other'
gives 2 "$sesame" bench model --model "$model" --load 1x8 --recompute
has err '--recompute requires --train'
for wrong in 0x8 1x 1x2x3 3++4 3+ x 8x99999999; do
    gives 2 "$sesame" bench model --model "$model" --load $wrong
    has err "load $wrong: expected COUNTxLENGTH such as 8x128"
done
for options in "--model $model" '--load 1x8' --train --recompute --also-dense; do
    # shellcheck disable=SC2086  # several options
    gives 2 "$sesame" bench pipelines $options
    has err "${options%% *} applies to bench model, as in .sesame bench model --model DIR --load 8x128., not to bench pipelines\$"
done
gives 2 "$sesame" bench serve --model "$model" --load 1x8
has err '--load applies to bench model, .*, not to bench serve$'
gives 3 "$sesame" bench model --model "$tmp/nowhere" --load 1x8
gives 3 "$sesame" bench model --model "$model" --load 1x4000
has err '1x4000: '

# Every class: passes and training steps on invented ids and labels of all its heads.
trained=0
for folder in "$here"/tests/golden/*; do
    gives 0 "$sesame" bench model --model "$folder" --load 2x6 --turns --quick --threads 1 --quiet </dev/null
    "$sesame" bench model --model "$folder" --load 2x6 --train --turns --quick --threads 1 --quiet </dev/null \
        >"$tmp/out" 2>"$tmp/err"
    case $? in
    0) trained=$((trained + 1)) ;;
    2) has err ' has no loss: --train needs a class with a head$' ;;
    *) fail "$folder: $(cat "$tmp/err")" ;;
    esac
done
if [ $trained -ge 130 ]; then pass; else fail "only $trained classes are trained"; fi
counted
