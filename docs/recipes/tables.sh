#!/bin/sh
# The tables of docs/TABLES.md: small models that repeat published comparisons.
#     sh docs/recipes/tables.sh [TABLE...]
# TABLES: data (tokenizers and token files only), report (put the results into docs/TABLES.md), masking formats batch steps bert-tasks sizes ner electra generator flops span distil xlnet tlm labels bart t5 random; default: all.
# Run it from the source folder, which has the data sets in data/ (a link is enough). Everything is written to tables/, also the
# tokenizers and token files that the recipes table-*.json name; each table has a folder with ablate.md, ablate.json and plots.
# Finished jobs are skipped, so the same command resumes after an interruption; runs that occur in several tables are trained once.
# Variables: SESAME (build/sesame), DEVICE (cuda), DTYPE, JOBS at a time (16 on a GPU, else 1), CORPUS (data/pretrain-corpus/corpus.txt.xz),
# VALID, BYTES of the corpus (36000000); labels: NETS ("lstm bert"), SIZES, RATE (3e-4), LSTM_STEPS, CURVE_OPTIONS; OPTIONS: further options of ablate, as --set steps=20 --set tune.train-size=100 --seeds 1.
# OPTIONS="--set tune.device=cpu": models are pretrained on the GPU and fine-tuned on the processor cores beside it. Set it from the first call on:
# finished jobs are compared by it.
set -eu
sesame=${SESAME:-build/sesame} data=data out=tables
export SESAME_DEVICE="${DEVICE:-cuda}"
case $SESAME_DEVICE in cuda*) dtype=${DTYPE:-bf16} jobs=${JOBS:-16} ;; *) dtype=${DTYPE:-f32} jobs=${JOBS:-1} ;; esac
corpus=${CORPUS:-$data/pretrain-corpus/corpus.txt.xz} valid=${VALID:-$data/pretrain-corpus/valid.txt.xz}
named=$#
[ $# -gt 0 ] || set -- masking formats batch steps bert-tasks sizes ner electra generator flops span distil xlnet tlm labels bart t5 random
mkdir -p $out

text() { case $1 in *.xz) xz -dc "$1" ;; *) cat "$1" ;; esac; }
absent() { [ ! -e "$out/$1" ]; }

# ---- tokenizers, token files and task data ----

# The first BYTES of the corpus, in whole documents.
make_text() {
    absent corpus.txt || return 0
    text "$corpus" | LC_ALL=C awk -v most="${BYTES:-36000000}" '{ n += length($0) + 1; print } n > most && !NF { exit }' >$out/corpus.part
    [ -s $out/corpus.part ]
    mv $out/corpus.part $out/corpus.txt
}

make_ids() { # NAME, then options of train-tokenizer
    name=$1
    shift
    make_text
    ! absent "$name.json" || "$sesame" train-tokenizer -q --vocab-size 8192 "$@" -o "$out/$name.json" $out/corpus.txt
    ! absent "$name.ids" || "$sesame" corpus build -q --tokenizer "$out/$name.json" -o "$out/$name.ids" $out/corpus.txt >/dev/null
    ! absent "$name-valid.ids" || "$sesame" corpus build -q --tokenizer "$out/$name.json" -o "$out/$name-valid.ids" "$valid" >/dev/null
}
make_word() { make_ids word --type wordpiece --lowercase; }
make_byte() { make_ids byte --type bpe --special-tokens '<s>,<pad>,</s>,<unk>,<mask>'; }

# Questions: SQuAD's 4,000 and the first 8,000 of QAMR, in SQuAD's format.
make_qa() {
    absent qa.json || return 0
    text "$(ls $data/qamr/dev.tsv* | head -n 1)" | LC_ALL=C awk -v most=8000 -f docs/recipes/qamr-squad.awk | tr -d '\n' >$out/qamr.part
    { printf '{"version":"1.1","data":[{"title":"qamr","paragraphs":['; cat $out/qamr.part
      printf ']},'; sed 's/^{"version":"[^"]*","data":\[//' $data/squad/train-v1.1-subset.json; } >$out/qa.part
    mv $out/qa.part $out/qa.json
}

# Multi30k: each language alone, one caption a document; pairs of captions; captions with the topic of the English one, if it has one,
# for a classifier that has English labels only; captions with their translation and another one.
topics() { # ENGLISH TEXTS
    paste "$1" "$2" | awk -F '\t' 'BEGIN { print "text\tlabel" } {
        e = tolower($1); label = ""
        if (e ~ /(^| )dogs?( |,|\.|$)/) label = "dog"
        else if (e ~ /(^| )(boys?|girls?|child|children|kids?|baby|toddler)( |,|\.|$)/) label = "child"
        else if (e ~ /(^| )(people|group|crowd)( |,|\.|$)/) label = "people"
        else if (e ~ /(^| )(woman|women|lady)( |,|\.|$)/) label = "woman"
        else if (e ~ /(^| )(man|men|guys?)( |,|\.|$)/) label = "man"
        if (label != "") { gsub(/"/, "", $2); print $2 "\t" label } }'
}
make_pairs() {
    m=$data/multi30k
    absent en-de.json || return 0
    cat $m/train.en $m/train.de >$out/en-de.txt
    "$sesame" train-tokenizer -q --overwrite --type wordpiece --lowercase --vocab-size 8192 -o $out/en-de.part $out/en-de.txt
    for l in en de; do
        sed G $m/train.$l >$out/$l.txt
        sed G $m/val.$l >$out/$l-valid.txt
    done
    cat $out/en-valid.txt $out/de-valid.txt >$out/both-valid.txt
    paste -d '\n' $m/train.en $m/train.de /dev/null >$out/pairs.txt
    paste -d '\n' $m/val.en $m/val.de /dev/null >$out/pairs-valid.txt
    for n in en de pairs pairs-valid both-valid; do
        "$sesame" corpus build -q --overwrite --tokenizer $out/en-de.part -o $out/$n.ids $out/$n.txt >/dev/null
    done
    topics $m/train.en $m/train.en >$out/topics-en.tsv
    topics $m/test_2016_flickr.en $m/test_2016_flickr.en >$out/topics-en-test.tsv
    topics $m/test_2016_flickr.en $m/test_2016_flickr.de >$out/topics-de-test.tsv
    { tail -n +2 $m/test_2016_flickr.de; head -n 1 $m/test_2016_flickr.de; } >$out/shifted
    { printf 'en\tde\tother\n'; paste $m/test_2016_flickr.en $m/test_2016_flickr.de $out/shifted; } >$out/triplets.tsv
    mv $out/en-de.part $out/en-de.json
}

# ---- runs ----

# A run of one table is also a row of another: link TABLE/RUN to it, and its tasks if they are the same.
share() { # FROM TO [tasks]
    [ -e "$out/$1/job.json" ] && [ ! -e "$out/$2" ] || return 0
    mkdir -p "$out/${2%%/*}"
    ln -s "../$1" "$out/$2"
    if [ $# -eq 3 ] && [ -d "$out/$1,tasks" ]; then
        [ -e "$out/$2,tasks" ] || cp -r "$out/$1,tasks" "$out/$2,tasks"
    fi
}

ablate() { # TABLE
    # shellcheck disable=SC2086  # several options
    "$sesame" ablate "docs/recipes/table-$1.json" -o "$out/$1" --jobs "$jobs" --dtype "$dtype" --device "$SESAME_DEVICE" ${OPTIONS:-}
}

# Label efficiency: networks with and without pretraining, by number of labels. NETS: lstm (a recurrent language model, as ULMFiT's), bert (the
# model "dynamic" of the table masking), small (the bundled encoder).
pretrained() { case $1 in lstm) echo $out/lstm ;; bert) echo $out/masking/dynamic ;; small) echo models/sesame-small ;; esac; }
lstm="--preset awd-lstm --set emb_sz=256 --set n_hid=512 --set n_layers=2 --objective bptt --length 64"
# The same network with random weights.
make_untrained() { # NET
    [ ! -e "$out/untrained-$1/all_results.json" ] || return 0
    ids=$out/word-valid.ids tokenizer=$out/word.json
    case $1 in
    lstm) network=$lstm ;;
    bert) network="--config docs/recipes/tables-bert.json" ;;
    small)
        network="--config docs/recipes/sesame-small.json" ids=$out/small-valid.ids tokenizer=models/sesame-small/tokenizer.json
        "$sesame" corpus build -q --overwrite --tokenizer $tokenizer -o $ids "$valid" >/dev/null ;;
    esac
    # shellcheck disable=SC2086  # several options
    "$sesame" pretrain --corpus $ids --eval $ids --tokenizer $tokenizer $network --steps 1 --lr 0 --batch-size 8 --eval-every -1 \
        --eval-tokens 1000 --save-every -1 --overwrite -o "$out/untrained-$1" -q
}
labels() {
    nets=${NETS:-lstm bert}
    case $nets in *bert*) [ -e $out/masking/dynamic/job.json ] || ablate masking ;; esac
    # shellcheck disable=SC2086
    case $nets in *lstm*)
        [ -e $out/lstm/all_results.json ] ||
            "$sesame" pretrain --corpus $out/word.ids --eval $out/word-valid.ids --tokenizer $out/word.json $lstm --pieces 4 --batch-size 64 \
                --lr 2e-3 --clip 0.4 --steps "${LSTM_STEPS:-1500}" --eval-every -1 --save-every -1 --overwrite -o $out/lstm -q ;;
    esac
    for net in $nets; do
        make_untrained "$net"
        for model in "$(pretrained "$net")" "$out/untrained-$net"; do
            case $model in *untrained*) to=$out/labels/untrained-$net ;; *) to=$out/labels/$net ;; esac
            resume=
            [ ! -e "$to/curve.json" ] || resume=--resume
            # shellcheck disable=SC2086
            "$sesame" curve --task sst2 --train $data/glue/SST-2/train.tsv --eval $data/glue/SST-2/dev.tsv --model "$model" --methods finetune \
                --set finetune:lr="${RATE:-3e-4}" --sizes "${SIZES:-64,256,1024,4096,16384}" --seeds 3 --batch-size 32 --jobs "$jobs" -o "$to" $resume -q ${CURVE_OPTIONS:-}
        done
    done
    # One table of all curves, also of earlier calls.
    for net in lstm bert small; do
        for m in $net untrained-$net; do
            [ ! -e "$out/labels/$m/curve.json" ] || awk -v m="$m" '/"size":/ { size = $2 + 0 } /"mean":/ { mean = 100 * $2 } /"high":/ { print m, size, mean, 100 * $2 - mean }' "$out/labels/$m/curve.json"
        done
    done | awk 'BEGIN { name["lstm"] = "LSTM"; name["bert"] = "Transformer"; name["small"] = "sesame-small" }
        !($2 in at) { at[$2] = ++n; size[n] = $2 }
        !($1 in has) { has[$1] = ++nets; net[nets] = $1 }
        { cell[$1, $2] = sprintf("%.2f \302\261 %.2f", $3, $4) }
        END { printf "# Labels\n\n| labels |"; rule = "|---:|"
              for (k = 1; k <= nets; k++) {
                  m = net[k]; random = sub(/^untrained-/, "", m)
                  printf " %s%s |", name[m], random ? ", random weights" : ""; rule = rule "---:|" }
              print "\n" rule
              for (i = 1; i <= n; i++) {
                  printf "| %d |", size[i]
                  for (k = 1; k <= nets; k++) printf " %s |", (net[k], size[i]) in cell ? cell[net[k], size[i]] : "-"
                  print "" } }' >$out/labels/ablate.md
}

# Puts the tables of ablate.md between the marks of docs/TABLES.md, without the list of intervals.
report() {
    for md in $out/*/ablate.md; do
        name=$(basename "$(dirname "$md")")
        grep -q "^<!-- $name: begin -->" docs/TABLES.md || continue
        awk '/^\| column, run/ { skip = 1 } !NF { skip = 0 } /^#/ || skip { next } { print }' "$md" | cat -s >$out/report.part
        awk -v name="$name" -v from=$out/report.part '
            $0 == "<!-- " name ": end -->" { hidden = 0 }
            !hidden { print }
            $0 == "<!-- " name ": begin -->" { hidden = 1; while ((getline line < from) > 0) print line }' docs/TABLES.md >$out/TABLES.md
        cp $out/TABLES.md docs/TABLES.md
    done
}

for table; do
    case $table in
    report) report; continue ;;
    data)
        make_word
        make_byte
        make_qa
        if [ -d $data/multi30k ]; then make_pairs
        else echo "$data/multi30k is absent: skipped en-de.json and the other files of the table tlm" >&2; fi
        continue
        ;;
    bart | t5) make_byte; make_qa ;;
    tlm)
        if [ ! -d $data/multi30k ]; then
            echo "$data/multi30k is absent: skipped the table tlm" >&2
            [ "$named" = 0 ] || exit 1
            continue
        fi
        make_pairs
        ;;
    ner) ;;
    *) make_word; make_qa ;;
    esac
    case $table in
    formats) share masking/dynamic formats/full-sentences tasks ;;
    batch) share masking/dynamic batch/64-sequences tasks ;;
    steps) share masking/dynamic steps/4000-updates tasks ;;
    bert-tasks) share formats/segment-pairs--NSP 'bert-tasks/BERT-(NSP)' tasks ;;
    sizes) share masking/dynamic sizes/4-layers-of-256 tasks ;;
    electra) share masking/dynamic electra/BERT tasks ;;
    generator) share electra/ELECTRA generator/generator-of-64 tasks ;;
    flops)
        share electra/BERT flops/MLM--4000-updates tasks
        share electra/ELECTRA flops/ELECTRA--4000-updates tasks
        share steps/1000-updates flops/MLM--1000-updates
        share steps/2000-updates flops/MLM--2000-updates
        ;;
    span)
        share formats/segment-pairs--NSP span/subword-tokens tasks
        share masking/spans span/geometric-spans--one-sequence tasks
        ;;
    distil) share sizes/8-layers-of-256 distil/teacher--8-layers tasks ;;
    xlnet) share masking/dynamic xlnet/BERT tasks ;;
    labels)
        labels
        continue
        ;;
    esac
    ablate "$table"
done
