#!/bin/sh
# Six objectives on 2 MB of text, vocabulary 4k, models of four layers x 256: at most TIME each (15m).
#     sh docs/recipes/pretrain.sh TEXT OUT [OBJECTIVE...]
# leaves OUT/NAME/ with the model, its scores and curve.svg.
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
    [ -e "$out/$t.ids" ] || "$sesame" corpus build --tokenizer "$out/$t.json" --held-out 5% -q -o "$out/$t.ids" "$text"
done

run() { # NAME TOKENIZER PRESET OPTION...
    name=$1 t=$2 preset=$3
    shift 3
    "$sesame" pretrain --corpus "$out/$t.ids" --tokenizer "$out/$t.json" --preset "$preset" --output "$out/$name" \
        --objective "$name" --max-time "${TIME:-15m}" --tokens-per-batch 1024 --lr 1e-3 --eval-every 200 \
        --eval-tokens 20000 --save-every -1 --overwrite "$@"
}
for name; do
    case $name in
    mlm) run mlm word bert-mini ;;
    rtd) run rtd word electra-small --set num_hidden_layers=4 ;;
    t5) run t5 byte t5-small --set d_model=256 --set d_ff=1024 --set num_layers=2 --set num_decoder_layers=2 --set num_heads=4 ;;
    bart) run bart byte bart-base --set d_model=256 --set encoder_layers=2 --set decoder_layers=2 \
        --set encoder_ffn_dim=1024 --set decoder_ffn_dim=1024 --set encoder_attention_heads=4 \
        --set decoder_attention_heads=4 ;;
    plm) run plm byte xlnet-base --set d_model=256 --set n_layer=4 --set n_head=4 --set d_inner=1024 ;;
    clm) run clm byte gpt2 --set n_embd=256 --set n_layer=4 --set n_head=4 ;;
    *) echo "no recipe for $name" >&2; exit 2 ;;
    esac
done
