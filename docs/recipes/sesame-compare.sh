#!/bin/sh
# The small runs that chose the recipe of sesame-small.sh: each trains for TIME (35s) on the same text, then says how well it knows
# text that was held out, and of 6,700 pairs of sentences (BLiMP) how often it finds the grammatical one likelier. Losses
# compare models of one vocabulary only; the pairs compare all.
#     sh docs/recipes/sesame-compare.sh CORPUS VALID PAIRS OUT [NAME...]
set -eu
corpus=$1 valid=$2 pairs=$3 out=$4
shift 4
[ $# -gt 0 ] || set -- bert modern modern-2e-3 modern-16k
here=$(dirname "$0")
sesame=${SESAME:-build/sesame}
for name; do
    config=$here/sesame-small.json lr=1e-3 vocab=8192
    case $name in
    bert) config=$here/sesame-small-bert.json ;;
    modern) ;;
    modern-2e-3) lr=2e-3 ;;
    modern-16k) vocab=16384 ;;
    *) echo "nothing is called $name" >&2; exit 2 ;;
    esac
    mkdir -p "$out/$vocab"
    CONFIG=$config LR=$lr VOCAB=$vocab TIME=${TIME:-35s} LENGTH=128 EVAL_TOKENS=300000 PARTS=encoder \
        sh "$here/sesame-small.sh" "$corpus" "$valid" "$out/$vocab" >"$out/$name.log" 2>&1 ||
        { tail -3 "$out/$name.log"; continue; }
    rm -rf "${out:?}/$name"
    mv "$out/$vocab/work/encoder" "$out/$name"
    grep -E ' an update: |^Held|mlm_accuracy|^Time' "$out/$name.log" | tr -s ' \n' ' ' | sed "s/^/$name: /; s/ *$//"
    echo
done
for name; do
    [ ! -d "$out/$name" ] || "$sesame" eval "$out/$name" "$pairs" --task blimp --json -q --device "${DEVICE:-cuda}" -t 1 \
        >"$out/$name.blimp" 2>&1 &
done
wait
for name; do
    sed "s/^{\"eval_accuracy\": \([0-9.]*\).*/$name: BLiMP \1/" "$out/$name.blimp" 2>/dev/null || true
done
