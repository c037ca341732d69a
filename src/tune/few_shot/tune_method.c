/* The list of methods and their options. */
#include "tune_method.h"

#include <string.h>

static const ses_tune_method *const methods[] = {
#define SES_TUNE_METHOD(name) &ses_tune_method_##name,
#include "tune_methods.def"
#undef SES_TUNE_METHOD
};

const ses_tune_method *ses_tune_method_at(size_t i) { return i < SES_LEN(methods) ? methods[i] : NULL; }

const ses_tune_method *ses_tune_method_find(const char *name)
{
    for (size_t i = 0; i < SES_LEN(methods); i++)
        if (!strcmp(methods[i]->name, name)) return methods[i];
    return NULL;
}

static const ses_opt opt[] = {
    SES_OPT_INT(ses_tune_settings, repetitions, "repetitions", "3", 1, 100,
                "pet, ipet: models of each pattern"),
    SES_OPT_INT(ses_tune_settings, member_steps, "member-steps", "100", 1, 1e9,
                "pet, ipet: updates of each of these models"),
    SES_OPT_CHOICE(ses_tune_settings, member_weight, "member-weights", "accuracy", "accuracy|equal",
                   "pet, ipet: weights of their scores; accuracy: on the training data before training"),
    SES_OPT_REAL(ses_tune_settings, mlm_weight, "mlm-weight", "1e-4", 0, 0.999,
                 "pet, ipet: part of the loss of masked tokens of unlabeled texts; 0: none"),
    SES_OPT_REAL(ses_tune_settings, temperature, "soft-temperature", "2", 1e-3, 1e3,
                 "pet, ipet: temperature of the labels that the final model learns"),
    SES_OPT_INT(ses_tune_settings, generations, "generations", "3", 1, 20,
                "ipet: times the models are trained, each time on more texts"),
    SES_OPT_REAL(ses_tune_settings, growth, "growth", "5", 1, 1e6,
                 "ipet: factor of the training set from generation to generation"),
    SES_OPT_REAL(ses_tune_settings, voters, "voters", "0.25", 0, 1,
                 "ipet: fraction of the other models that label texts for one; at least one"),
    SES_OPT_INT(ses_tune_settings, rounds, "rounds", "3", 1, 1000,
                "self-training: models trained one after another"),
    SES_OPT_REAL(ses_tune_settings, threshold, "threshold", "0.9", 0, 1,
                 "self-training: least probability of a label that the next model learns"),
    SES_OPT_INT(ses_tune_settings, pairs, "pair-draws", "20", 1, 1e6,
                "setfit: pairs of each text with texts of its label, and as many with other texts"),
    SES_OPT_INT(ses_tune_settings, demonstration_sets, "demonstration-sets", "4", 1, 64,
                "lm-bff: times a text is read with other demonstrations; scores are averaged"),
    SES_OPT_INT(ses_tune_settings, search_words, "search-words", "0", 0, 1000,
                "lm-bff: replace the words of labels by the best of N candidates each; 0: keep them"),
};
const ses_opt_table ses_tune_option_table = { opt, SES_LEN(opt), "method" };
