#!/bin/sh
# sesame explain against values of captum 0.9 and transformers on small checkpoints: bench/peers/analysis/explain_methods.py computes
# them. Every method on an encoder, a decoder and an encoder-decoder; XLNet's predicted position; multiple choice.
set -u
. tests/counted.sh

# words of one or two pieces: wN and ##vN have the id N
awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"w2\",\"continuing_subword_prefix\":\"##\","
    printf "\"max_input_chars_per_word\":100,\"vocab\":{"
    for (i = 0; i < 71; i++) printf "%s\"%s%d\":%d", i ? "," : "", i < 40 ? "w" : "##v", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
for model in bert-classify gpt2-lm t5-v1.0 xlnet-permutation-lm bert-choice; do
    cp -r "tests/golden/$model" "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
    echo '{"mask_token": "w3", "unk_token": "w2"}' >"$tmp/$model/tokenizer_config.json"
done

text='w5 w9v47 w30 w17v50'
# KEY VALUES MODEL ARGUMENTS...: the array KEY of the result, null for "-", 1e-4 of the largest value
gives() {
    key=$1 want=$2 model=$3
    shift 3
    "$sesame" explain -m "$tmp/$model" "$text" "$@" --json >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$(tr -d '\n ' <"$tmp/out" | sed -n "s/.*\"$key\":\[\([^]]*\)\].*/\1/p" | tr ',' ' ')
    if awk -v got="$got" -v want="$want" 'BEGIN {
        n = split(got, g, " "); m = split(want, w, " ")
        for (i = 1; i <= m; i++) { x = w[i] < 0 ? -w[i] : w[i]; if (w[i] != "-" && x > top) top = x }
        bad = n != m
        for (i = 1; i <= m; i++) {
            if ((w[i] == "-") != (g[i] == "null")) bad = 1
            d = w[i] == "-" ? 0 : g[i] - w[i]
            if (d < 0) d = -d
            if (d > 1e-4 * top) bad = 1
        }
        exit bad }'; then pass; else fail "$model $*: $key: $got, wanted $want"; fi
}

gives values '-0.124519 0.0378593 -0.0938515 0.0159203 -0.0889354 -0.0262388' bert-classify --method ig
gives values '0.186726 0.251114 0.174102 0.0813139 0.247447 0.120659' bert-classify --method gradient
gives values '0.100073 -0.218482 0.141243 -0.00945097 0.250288 -0.0637038' bert-classify --method input-gradient
gives values '0.00904249 -0.293453 0.123727 0.00434701 -0.0815814 -0.0437261' bert-classify --method occlude --occlude mask --unit piece
gives values '0.465455 -0.0622126 0.229818 0.150031 0.204333 0.0264751' bert-classify --method occlude --occlude delete --unit piece
gives values '0.157247 -0.175368 0.112288 0.0262618 0.286375 -0.024633' bert-classify --method erase --unit piece
gives values '0.00904249 -0.148599 -0.148599 0.00434701 -0.0554199 -0.0554199' bert-classify --method occlude --occlude mask --unit word
gives values '0.465455 -0.1438 -0.1438 0.150031 0.0776054 0.0776054' bert-classify --method occlude --occlude delete --unit word
gives values '0.157247 -0.123774 -0.123774 0.0262618 0.108756 0.108756' bert-classify --method erase --unit word
gives values '-0.0976466 -0.110412 -0.110412 -0.0760265 -0.0288765 -0.0288765' bert-classify --method occlude --occlude mask --unit ngram
gives values '-0.0923488 -0.0807586 -0.0807586 -0.0127281 0.0437121 0.0437121' bert-classify --method occlude --occlude delete --unit ngram
gives values '-0.00677678 -0.0345113 -0.0345113 0.00142523 0.0650963 0.0650963' bert-classify --method erase --unit ngram
gives values '0.024997 0.344613 0.243165 0.0089293 0.11699 0.261306' bert-classify --method value-zero
gives values '0.761012 0.904458 0.485049 1.22427 1.06545 8.83826' gpt2-lm --method ig
gives values '0.36614 0.558732 0.465378 1.71211 0.489379 3.88695' gpt2-lm --method gradient
gives values '-0.0669578 -0.256922 -0.16326 0.553851 0.273305 -0.270227' gpt2-lm --method input-gradient
gives values '-0.968933 -1.29996 -1.33199 -1.10723 -0.807714 3.87388' gpt2-lm --method occlude --occlude mask --unit piece
gives values '17.0543 16.8603 16.2329 14.5546 15.1878 -' gpt2-lm --method occlude --occlude delete --unit piece
gives values '-0.0994038 -0.104862 -0.15521 0.46301 0.193469 6.40372' gpt2-lm --method erase --unit piece
gives values '-0.968933 -0.963766 -0.963766 -1.10723 0.947825 0.947825' gpt2-lm --method occlude --occlude mask --unit word
gives values '17.0543 2.39902 2.39902 14.5546 - -' gpt2-lm --method occlude --occlude delete --unit word
gives values '-0.0994038 -0.0929346 -0.0929346 0.46301 3.57046 3.57046' gpt2-lm --method erase --unit word
gives values '-0.593519 -0.76904 -0.76904 0.0118224 0.968205 0.968205' gpt2-lm --method occlude --occlude mask --unit ngram
gives values '2.73769 2.70341 2.70341 - - -' gpt2-lm --method occlude --occlude delete --unit ngram
gives values '-0.0932021 -0.00970194 -0.00970194 1.6636 3.25341 3.25341' gpt2-lm --method erase --unit ngram
gives values '0.440571 0.1079 0.0973514 0.129266 0.062226 0.162686' gpt2-lm --method value-zero
gives values '-0.0492031 -0.0518214 -0.0518214 0.270773 0.0260323 0.0260323' bert-classify --method value-zero-score
gives values '0.0584081 0.104543 -0.279855 -0.16058 -0.221932 0.0400963' t5-v1.0 --method ig --target 'w4 w8v52' --token w4
gives target_values '0' t5-v1.0 --method ig --target 'w4 w8v52' --token w4
gives values '0.404776 0.171719 0.451627 0.448386 0.250623 0.356422' t5-v1.0 --method gradient --target 'w4 w8v52' --token w4
gives target_values '0.829498' t5-v1.0 --method gradient --target 'w4 w8v52' --token w4
gives values '-0.0445228 -0.14726 -0.14726 -0.336287 -0.0513472 -0.0513472' t5-v1.0 --method occlude --target 'w4 w8v52' --token w4
gives values '0.0837644 -0.202709 -0.321724 -0.183167 -0.0704843 0.062315' t5-v1.0 --method ig --target 'w4 w8v52' --token '##v52'
gives target_values '0 0.370058 0.677978' t5-v1.0 --method ig --target 'w4 w8v52' --token '##v52'
gives values '0.665506 0.45723 0.680651 0.725222 0.191249 0.594053' t5-v1.0 --method gradient --target 'w4 w8v52' --token '##v52'
gives target_values '0.194041 0.276393 0.475411' t5-v1.0 --method gradient --target 'w4 w8v52' --token '##v52'
gives values '0.00965139 -0.0271057 -0.0271057 -0.0672469 0.014604 0.014604' t5-v1.0 --method occlude --target 'w4 w8v52' --token '##v52'
gives values '0.0550032 0.0405374 0.118232 0.10048 0.0681558 0.174029' t5-v1.0 --method value-zero --target 'w4 w8v52' --token '##v52'
gives target_values '0.205181 0.0997057 0.138676' t5-v1.0 --method value-zero --target 'w4 w8v52' --token '##v52'
# no token attends to the word, whose first piece is predicted
gives values '0 0 0 -0.192344 0.140567 -0.50165' xlnet-permutation-lm --method ig --word w9v47
gives values '1.83349 0 0 1.93905 1.45113 1.46326' xlnet-permutation-lm --method gradient --word w9v47
gives values '-1.73679 - - -5.05743 -1.13202 -1.13202' xlnet-permutation-lm --method occlude --word w9v47
text='w5 w9v47'
gives values '0.417711 -0.155472 0.0447694 0.0180632' bert-choice w30 'w20 w33'
gives values '0.243648 -0.0711835 -0.0711835 0.224098' bert-choice w30 'w20 w33' --method erase
counted
