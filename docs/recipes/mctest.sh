#!/bin/sh
# Makes a table of MCTest with one question per row, for the task mctest, of a file and its answers:
# mctest.sh mc160.test.tsv mc160.test.ans > mc160.tsv; then sesame eval MODEL mc160.tsv --task mctest --shots 0
set -eu
[ $# -eq 2 ] || { echo "usage: mctest.sh STORIES.tsv ANSWERS.ans" >&2; exit 2; }
awk -F '\t' -v OFS='\t' -v answers="$2" '
BEGIN { print "story", "question", "A", "B", "C", "D", "answer" }
{
    if ((getline line < answers) <= 0) { print "mctest.sh: too few answers" > "/dev/stderr"; exit 1 }
    split(line, answer, "\t")
    for (q = 0; q < 4; q++) {
        question = $(4 + 5 * q)
        sub(/^(one|multiple): */, "", question)
        print $3, question, $(5 + 5 * q), $(6 + 5 * q), $(7 + 5 * q), $(8 + 5 * q), answer[q + 1]
    }
}' "$1"
