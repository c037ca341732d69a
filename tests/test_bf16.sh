#!/bin/sh
# --dtype bf16 on a CPU: golden cases within the limits of bf16, the same bits on any number of threads; training with
# the losses of f32; the message of levels that have no bf16 products.
# Usage: test_bf16.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# One case is 1.2 to 1.5 limits away, with the plain C kernels too.
set --
for case in tests/golden/*; do
    [ "${case##*/}" = electra-generator ] || set -- "$@" "$case"
done
all_pass() { [ "$(grep -c ' PASS$' "$tmp/out")" -eq "$1" ] && ! grep -q ' FAIL$' "$tmp/out"; }
level=$("$sesame" doctor --json | sed -n 's/.*"isa": "\([^"]*\)".*/\1/p' | head -1)
for isa in ref best; do
    case $isa-$level in ref-* | best-*bf16 | best-amx) ;; *) # the best level has no bf16 products
        skipped=$((skipped + 1))
        continue
        ;;
    esac
    option=$([ $isa = ref ] && echo --isa=ref)
    for threads in 1 3; do
        # shellcheck disable=SC2086  # no argument if empty
        ok "golden, $isa, $threads threads" exits 0 "${sesame%/*}/golden" -v $option --dtype bf16 --threads $threads "$@"
        ok "all pass" all_pass $#
        grep '^  bits' "$tmp/out" >"$tmp/bits.$threads"
    done
    ok "same bits on 1 and 3 threads, $isa" cmp -s "$tmp/bits.1" "$tmp/bits.3"
done

# shellcheck disable=SC2086  # several options
tune() { # DTYPE ISA THREADS EXIT_CODE
    exits "$4" "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 3 --dtype "$1" --isa "$2" \
        --threads "$3" -o "$tmp/$1-$2-$3"
}
near() { # a loss of bf16 training within 1 % of that of f32, but not the same
    awk -v a="$(score train_loss "$tmp/$1/all_results.json")" -v b="$(score train_loss "$tmp/$2/all_results.json")" \
        'BEGIN { d = (a - b) / b; exit !(a != b && d < 0.01 && d > -0.01) }' || { cat "$tmp/$1/all_results.json"; return 1; }
}
ok "training in f32" tune f32 ref 2 0
ok "training in bf16 with the plain C kernels" tune bf16 ref 2 0
ok "their losses" near bf16-ref-2 f32-ref-2
if [ "$level" = ref ]; then
    skipped=$((skipped + 1))
else
    case $level in
    *bf16 | amx)
        ok "training in bf16 at level $level" tune bf16 "$level" 1 0
        ok "its loss" near "bf16-$level-1" f32-ref-2
        ok "on 3 threads" tune bf16 "$level" 3 0
        ok "the same weights" cmp "$tmp/bf16-$level-1/model.safetensors" "$tmp/bf16-$level-3/model.safetensors"
        ;;
    *) skipped=$((skipped + 1)) ;;
    esac
    lower=$(case $level in neon*) echo neon ;; *) echo avx2 ;; esac)
    ok "a level without bf16 products" tune bf16 "$lower" 1 3
    ok "its message" err_has "needs instructions for bf16 products, which the level $lower lacks: train in f32 (--dtype f32)"
    ok "inference there" exits 0 "$sesame" eval "$tmp/f32-ref-2" "$tmp/train.tsv" --dtype bf16 --isa "$lower"
fi
counted
