/* Six small trees and random states for the tests of structural probes. */
#ifndef TESTS_STRUCTURAL_FIXTURE_H
#define TESTS_STRUCTURAL_FIXTURE_H

#include "analysis/probe/structural.h"
#include "check.h"

enum { TOY_TREES = 6, TOY_WORDS = 25, TOY_WIDTH = 6, TOY_RANK = 4 };

typedef struct toy {
    ses_tree tree[TOY_TREES];
    ses_conllu_word word[TOY_WORDS];
    ses_treebank bank, dev_bank; /* dev: all but the first two */
    ses_structural_gold gold, dev_gold;
    ses_real x[TOY_WORDS * TOY_WIDTH];
    ses_structural_set train, dev;
} toy;

static inline bool toy_new(toy *t, ses_err *e)
{
    static const int heads[TOY_WORDS] = { 0, 2, 0, 2, 0, 2, 2, 0, 5, 5, 2, 0, 1,
                                          2, 3, 4, 1, 3, 1, 0, 6, 6, 3, 6, 3 };
    static const size_t length[TOY_TREES] = { 1, 2, 3, 5, 6, 8 };
    *t = (toy){ 0 };
    size_t at = 0, dev_first = length[0] + length[1];
    ses_tree *dev_tree = t->tree + 2;
    for (size_t i = 0; i < TOY_TREES; at += length[i++])
        t->tree[i] = (ses_tree){ .n = length[i], .word = t->word + at, .first = at };
    for (size_t i = 0; i < TOY_WORDS; i++) {
        const char *upos = i == TOY_WORDS - 1 ? "PUNCT" : "X";
        t->word[i] =
            (ses_conllu_word){ .head = heads[i], .upos = { upos, strlen(upos) }, .deprel = { "_", 1 } };
    }
    static ses_tree shifted[TOY_TREES - 2];
    for (size_t i = 0; i < TOY_TREES - 2; i++) {
        shifted[i] = dev_tree[i];
        shifted[i].first -= dev_first;
    }
    t->bank = (ses_treebank){ .tree = t->tree, .n = TOY_TREES, .words = TOY_WORDS };
    t->dev_bank = (ses_treebank){ .tree = shifted, .n = TOY_TREES - 2, .words = TOY_WORDS - dev_first };
    ses_rng_key key = { 7, 0, 9 };
    for (size_t i = 0; i < TOY_WORDS * TOY_WIDTH; i++)
        t->x[i] = (ses_real)(float)(2 * (double)ses_rand_unit(key, i) - 1);
    t->train = (ses_structural_set){ &t->gold, t->x };
    t->dev = (ses_structural_set){ &t->dev_gold, t->x + dev_first * TOY_WIDTH };
    return ses_structural_gold_new(&t->gold, &t->bank, e) &&
           ses_structural_gold_new(&t->dev_gold, &t->dev_bank, e);
}

static inline void toy_free(toy *t)
{
    ses_structural_gold_free(&t->gold);
    ses_structural_gold_free(&t->dev_gold);
}

static inline ses_structural_options toy_options(ses_structural_kind kind)
{
    ses_structural_options o = ses_structural_defaults(kind, TOY_WIDTH);
    o.rank = TOY_RANK;
    o.batch = 2;
    o.epochs = 3;
    o.rate = 0.02;
    o.seed = 11;
    return o;
}

#endif
