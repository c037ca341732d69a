#!/bin/sh
# Trees in the command: sesame probe tree, probe text on CoNLL-U, heads on CoNLL-U; bad input.
# Usage: test_probe_tree.sh BUILD_DIR, from the source folder.
. tests/counted.sh

# trees FILE: 40 sentences, "the NOUN VERB a NOUN ." and "NOUN VERB", singular and plural, past and present
awk 'BEGIN {
    split("dog cat child man woman", one); split("dogs cats children men women", many)
    split("saw found liked heard lost", past); split("sees finds likes hears loses", now)
    for (i = 0; i < 40; i++) {
        plural = i % 3 == 0; old = i % 2; noun = plural ? many[i % 5 + 1] : one[i % 5 + 1]
        verb = old ? past[i % 4 + 1] : now[i % 4 + 1]
        number = plural ? "Number=Plur" : "Number=Sing"; tense = (old ? "Tense=Past" : "Tense=Pres") "|VerbForm=Fin"
        n = 0; long = i % 4 > 0; root = long ? 3 : 2
        if (long) printf "%d\tThe\t_\tDET\tDT\t_\t%d\tdet\t_\t_\n", ++n, 2
        printf "%d\t%s\t_\tNOUN\tNN\t%s\t%d\tnsubj\t_\t_\n", ++n, noun, number, root
        printf "%d\t%s\t_\tVERB\tVB\t%s\t0\troot\t_\t_\n", ++n, verb, tense
        if (long) {
            printf "%d\ta\t_\tDET\tDT\t_\t%d\tdet\t_\t_\n", ++n, 5
            printf "%d\t%s\t_\tNOUN\tNN\t%s\t%d\tobj\t_\t_\n", ++n, one[i % 4 + 1], "Number=Sing", 3
            printf "%d\t.\t_\tPUNCT\t.\t_\t%d\tpunct\t_\t_\n", ++n, 3
        }
        print ""
    } }' >"$tmp/trees.conllu"

probe() { "$sesame" probe "$@" >"$tmp/out" 2>"$tmp/err"; }
quick="--layers 4,8 --rank 8 --tree-epochs 2"
that 'structural probes' 'probe tree "$tmp/trees.conllu" $quick --json --threads 1 && cp "$tmp/out" "$tmp/one"'
that 'valid JSON' '"$build/json_valid" <"$tmp/one" >/dev/null'
that 'the same bits on two threads' 'probe tree "$tmp/trees.conllu" $quick --json --threads 2 && cmp -s "$tmp/one" "$tmp/out"'
that 'losses of two epochs' 'grep -qE "\"dev_loss\": ?\[[0-9.e-]+, ?[0-9.e-]+\]" "$tmp/one"'
that 'split into 32, 4 and 4' 'tr -d " \n" <"$tmp/one" | grep -q "\"train\":{\"sentences\":32,.*\"dev\":{\"sentences\":4,.*\"test\":{\"sentences\":4,"'
that 'a drawing' 'probe tree "$tmp/trees.conllu" "$tmp/trees.conllu" $quick --no-random &&
    grep -q "^word order " "$tmp/out" && grep -q "gold above, predicted below" "$tmp/out" && ! grep -q "random" "$tmp/out"'
that 'a page and a picture' 'probe tree "$tmp/trees.conllu" $quick --no-random --html "$tmp/t.html" --svg "$tmp/t.svg" &&
    grep -q "<svg" "$tmp/t.svg" && grep -q "UUAS" "$tmp/t.html"'
that 'the decoder of an encoder is refused' '! probe tree "$tmp/trees.conllu" $quick --decoder && [ "$(wc -l <"$tmp/err")" -le 2 ]'

that 'tasks made from trees' 'probe text "$tmp/trees.conllu" --layers 6 --no-random --no-control --task length,tense,subject-number --json'
that 'three tasks' '[ "$(grep -oE "\"(length|tense|subject-number)\"" "$tmp/out" | sort -u | wc -l)" -eq 3 ]'
that 'an unknown task' '! probe text "$tmp/trees.conllu" --task lengths && grep -q "unknown task \"lengths\", expected all, or of length, depth" "$tmp/err"'

heads() { "$sesame" heads "$@" >"$tmp/out" 2>"$tmp/err"; }
that 'heads and relations' 'heads "$tmp/trees.conllu" --min-cases 20 --distance-texts 0 && grep -q "^det  *60 " "$tmp/out" && grep -q "^nsubj  *40 " "$tmp/out"'
that 'heads: rare relations are counted' 'grep -q "^all  *160 " "$tmp/out" && heads "$tmp/trees.conllu" --min-cases 35 --distance-texts 0 &&
    grep -q "2 relations have fewer than 35 cases" "$tmp/out"'
that 'heads: the hits of all heads' 'heads "$tmp/trees.conllu" --json --distance-texts 0 && "$build/json_valid" <"$tmp/out" >/dev/null &&
    [ "$(grep -o "from_dependent" "$tmp/out" | wc -l)" -ge 72 ]'

# bad input: one line with the file, the line and the expected value
{ cat "$tmp/trees.conllu"; printf '1\ta\t_\tX\t_\t_\t7\tdep\t_\t_\n'; } >"$tmp/bad.conllu"
for command in 'probe tree' 'probe text' heads; do
    that "$command: an invalid head" '! "$sesame" $command "$tmp/bad.conllu" >"$tmp/out" 2>"$tmp/err" &&
        grep -q "bad.conllu: line [0-9]*: HEAD 7, expected 0 to 1" "$tmp/err"'
done
that 'invalid sentences can be skipped' 'probe tree "$tmp/bad.conllu" $quick --no-random --skip-invalid && grep -q "1 invalid sentence" "$tmp/out"'
head -n 3 "$tmp/trees.conllu" >"$tmp/short.conllu"
that 'too few sentences' '! probe tree "$tmp/short.conllu" && grep -q "expected 10 or more" "$tmp/err"'
printf 'EU NNP\n' >"$tmp/columns.conllu"
that 'not CoNLL-U' '! probe tree "$tmp/columns.conllu" && grep -q "line 1: 1 column, expected 10" "$tmp/err"'
that 'too many files' '! probe tree a b c d && grep -q "usage: sesame probe tree" "$tmp/err"'
counted
