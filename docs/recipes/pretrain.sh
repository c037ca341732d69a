#!/bin/sh
# Pretrains with six objectives on 2 MB of text: vocabulary 4k, four layers x 256, at most TIME each (15m) on THREADS (2).
#     sh docs/recipes/pretrain.sh TEXT OUT [OBJECTIVE...]
# Writes OUT/NAME/ with the model, its scores and curve.svg.
set -eu
text=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- mlm rtd t5 bart plm clm
sesame=${SESAME:-build/sesame}
mkdir -p "$out"
special='<s>,<pad>,</s>,<unk>,<mask>'
[ -e "$out/word.json" ] ||
    "$sesame" train-tokenizer --type wordpiece --lowercase --vocab-size 4000 -q -o "$out/word.json" "$text"
[ -e "$out/byte.json" ] ||
    "$sesame" train-tokenizer --type bpe --special-tokens "$special" --vocab-size 4000 -q -o "$out/byte.json" "$text"
for t in word byte; do
    [ -e "$out/$t.ids" ] || "$sesame" corpus build --tokenizer "$out/$t.json" --held-out 5% -o "$out/$t.ids" "$text" >/dev/null
done

run() { # NAME TOKENIZER PRESET OPTION...
    name=$1 t=$2 preset=$3
    shift 3
    "$sesame" pretrain --corpus "$out/$t.ids" --tokenizer "$out/$t.json" --preset "$preset" --output "$out/$name" \
        --objective "$name" --max-time "${TIME:-15m}" --threads "${THREADS:-2}" --tokens-per-batch 512 --lr 1e-3 \
        --eval-every 500 --eval-tokens 9000 --save-every -1 --overwrite "$@"
}
# Dynamic masking prevents overfitting, so dropout is 0. A higher mask rate at the start gives more labels per update.
plain='--set hidden_dropout_prob=0 --set attention_probs_dropout_prob=0'
# shellcheck disable=SC2086  # several options
for name; do
    case $name in
    mlm) run mlm word bert-mini $plain --mask-rate 0.3 --mask-rate-end 0.15 ;;
    rtd) run rtd word electra-small --set num_hidden_layers=4 $plain ;;
    t5) run t5 byte t5-small --set d_model=256 --set d_ff=1024 --set num_layers=2 --set num_decoder_layers=2 \
        --set num_heads=4 --set dropout_rate=0 ;;
    bart) run bart byte bart-base --set d_model=256 --set encoder_layers=2 --set decoder_layers=2 \
        --set encoder_ffn_dim=1024 --set decoder_ffn_dim=1024 --set encoder_attention_heads=4 \
        --set decoder_attention_heads=4 ;;
    plm) run plm byte xlnet-base --set d_model=256 --set n_layer=4 --set n_head=4 --set d_inner=1024 --set dropout=0 \
        --mask-rate 0.3 --mask-rate-end 0.17 ;;
    clm) run clm byte gpt2 --set n_embd=256 --set n_layer=4 --set n_head=4 --tokens-per-batch 1024 --weight-decay 0.1 ;;
    *) echo "unknown objective $name: mlm, rtd, t5, bart, plm, clm" >&2; exit 2 ;;
    esac
done
