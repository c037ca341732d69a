#!/bin/sh
# Makes passages for the task lambada from a text (one paragraph per line): the last word of each passage is a word that
# occurs before, as in LAMBADA, whose words can be guessed from the passage, but not from the last sentence alone.
# Usage: lambada.sh CORPUS.txt [N] > passages.txt; then sesame eval MODEL passages.txt --task lambada
set -eu
corpus=${1?usage: lambada.sh CORPUS.txt [N]} max=${2-1000}
case $corpus in *.xz) xz -dc "$corpus" ;; *) cat "$corpus" ;; esac | awk -v max="$max" '
function plain(w) { gsub(/[^A-Za-z]/, "", w); return tolower(w) }
# A passage: sentences of a paragraph up to one whose last word occurs in an earlier sentence, 30 to 100 words.
{
    n = split($0, word, / +/); begin = 1
    for (i = 1; i <= n; i++) {
        if (word[i] !~ /^[A-Za-z][a-z]*[.]$/ || word[i] ~ /^(Mr|Mrs|Dr|St|vs|etc|No|Jr|Sr|Co|Inc)[.]$/) continue
        length_ = i - begin + 1; target = plain(word[i]); found = 0
        for (k = begin; k <= last; k++) if (plain(word[k]) == target) found = 1
        if (length_ > 100) { begin = i + 1; last = i; continue }
        if (length_ >= 30 && found && length(target) >= 4) {
            text = word[begin]
            for (k = begin + 1; k < i; k++) text = text " " word[k]
            sub(/[.]$/, "", word[i])
            print text " " word[i]
            if (++count >= max) exit
            next # one passage of a paragraph
        }
        last = i # the end of this sentence
    }
    last = 0
}'
