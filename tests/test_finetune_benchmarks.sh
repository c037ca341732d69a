#!/bin/sh
# finetune, eval and predict of benchmarks by name, from small files in their forms.
# Usage: test_finetune_benchmarks.sh BUILD_DIR, from the source folder.
sesame=$(cd "$1" && pwd)/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' good bad film the a was it not paris london anna bob lives in \
    of '##s' who where '?' . 1 2 3 >"$tmp/vocab.txt"
cat >"$tmp/config.json" <<END
{"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 64, "type_vocab_size": 2, "vocab_size": 100}
END

run() # what, then a command that must succeed
{
    what=$1
    shift
    if "$@" >"$tmp/out" 2>"$tmp/err"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $what"
        cat "$tmp/err"
    fi
}

benchmark() # name, file, score, lines of predict
{
    run "$1: finetune" "$sesame" finetune --config "$tmp/config.json" --tokenizer "$tmp/vocab.txt" --threads 1 --task "$1" \
        --train "$2" --eval "$2" --steps 1 -o "$tmp/$1"
    run "$1: eval" "$sesame" eval "$tmp/$1" "$2" --task "$1" --json
    mv "$tmp/out" "$tmp/scores"
    run "$1: its score" grep "\"eval_$3\"" "$tmp/scores"
    run "$1: predict" "$sesame" predict "$tmp/$1" "$2" --task "$1"
    lines=$(wc -l <"$tmp/out")
    run "$1: a line each" test "$lines" -eq "$4"
}

cd "$tmp" || exit 1
cat >boolq.jsonl <<'END'
{"question": "was it good", "passage": "the film was good .", "idx": 0, "label": true}
{"question": "was it bad", "passage": "the film was good .", "idx": 1, "label": false}
END
cat >cb.jsonl <<'END'
{"premise": "the film was good", "hypothesis": "it was good", "label": "entailment", "idx": 0}
{"premise": "the film was good", "hypothesis": "it was bad", "label": "contradiction", "idx": 1}
{"premise": "the film was good", "hypothesis": "anna lives in paris", "label": "neutral", "idx": 2}
END
cat >wic.jsonl <<'END'
{"word": "film", "sentence1": "the film", "sentence2": "a film", "idx": 0, "label": true, "start1": 4, "start2": 2, "end1": 8, "end2": 6, "version": 1.1}
{"word": "film", "sentence1": "the film", "sentence2": "bad film", "idx": 1, "label": false, "start1": 4, "start2": 4, "end1": 8, "end2": 8, "version": 1.1}
END
cat >wsc.jsonl <<'END'
{"text": "anna lives in paris . it was good .", "target": {"span1_index": 3, "span2_index": 5, "span1_text": "paris", "span2_text": "it"}, "idx": 0, "label": true}
{"text": "anna lives in paris . it was good .", "target": {"span1_index": 0, "span2_index": 5, "span1_text": "anna", "span2_text": "it"}, "idx": 1, "label": false}
END
cat >multirc.jsonl <<'END'
{"idx": 0, "passage": {"text": "anna lives in paris .", "questions": [{"question": "who ?", "answers": [{"text": "anna", "idx": 0, "label": 1}, {"text": "bob", "idx": 1, "label": 0}], "idx": 0}]}}
END
cat >axg.jsonl <<'END'
{"premise": "anna lives in paris .", "hypothesis": "it was good .", "label": "entailment", "idx": 0, "pair_id": 1}
{"premise": "bob lives in paris .", "hypothesis": "it was good .", "label": "not_entailment", "idx": 1, "pair_id": 1}
END
printf 'sentid\tsentence\nanna.bob.0.male.txt\tanna lives in paris .\nanna.bob.1.male.txt\tit was good .\n' >winogender.tsv
cat >record.jsonl <<'END'
{"source": "x", "passage": {"text": "anna lives in paris .", "entities": [{"start": 0, "end": 3}]}, "qas": [{"query": "@placeholder was good", "answers": [{"start": 0, "end": 3, "text": "anna"}], "idx": 0}, {"query": "in @placeholder", "answers": [{"start": 14, "end": 18, "text": "paris"}], "idx": 1}], "idx": 0}
END
cat >copa.jsonl <<'END'
{"premise": "the film was bad", "choice1": "it was not good", "choice2": "anna lives in paris", "question": "cause", "idx": 0, "label": 0}
{"premise": "the film was good", "choice1": "bob", "choice2": "it was good", "question": "effect", "idx": 1, "label": 1}
END
cat >swag.csv <<'END'
,video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label
0,a,1,x,the film was good .,it,gold,was good .,was bad .,lives .,"in paris, london .",0
1,b,2,x,anna lives in paris .,bob,gold,was good .,was bad .,lives in london .,of .,2
END
printf 'question\tA\tB\tC\tD\tE\tanswer\nwho ?\tanna\tbob\tfilm\tparis\tit\tB\nwhere ?\tin\tof\tparis\tnot\twas\tC\n' >csqa.tsv
benchmark boolq boolq.jsonl accuracy 2
benchmark cb cb.jsonl f1_macro 3
benchmark wic wic.jsonl accuracy 2
benchmark wsc wsc.jsonl accuracy 2
benchmark multirc multirc.jsonl exact_match 2
benchmark axg axg.jsonl gender_parity 2
benchmark winogender winogender.tsv gender_parity 2
benchmark record record.jsonl exact_match 2
benchmark superglue-copa copa.jsonl accuracy 2
benchmark swag swag.csv accuracy 2
benchmark commonsenseqa csqa.tsv accuracy 2

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
