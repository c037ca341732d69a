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

#define AT(field) offsetof(ses_tune_settings, field)
static const ses_opt opt[] = {
    { .name = "repetitions",
      .type = SES_OPT_INT,
      .offset = AT(repetitions),
      .def = "3",
      .min = 1,
      .max = 100,
      .help = "pet, ipet: models of each pattern" },
    { .name = "member-steps",
      .type = SES_OPT_INT,
      .offset = AT(member_steps),
      .def = "100",
      .min = 1,
      .max = 1e9,
      .help = "pet, ipet: updates of each of these models" },
    { .name = "member-weights",
      .type = SES_OPT_CHOICE,
      .offset = AT(member_weight),
      .def = "accuracy",
      .choices = "accuracy|equal",
      .help = "pet, ipet: weights of their scores; accuracy: on the training data before training" },
    { .name = "mlm-weight",
      .type = SES_OPT_REAL,
      .offset = AT(mlm_weight),
      .def = "1e-4",
      .min = 0,
      .max = 0.999,
      .help = "pet, ipet: part of the loss of masked tokens of unlabeled texts; 0: none" },
    { .name = "soft-temperature",
      .type = SES_OPT_REAL,
      .offset = AT(temperature),
      .def = "2",
      .min = 1e-3,
      .max = 1e3,
      .help = "pet, ipet: temperature of the labels that the final model learns" },
    { .name = "generations",
      .type = SES_OPT_INT,
      .offset = AT(generations),
      .def = "3",
      .min = 1,
      .max = 20,
      .help = "ipet: times the models are trained, each time on more texts" },
    { .name = "growth",
      .type = SES_OPT_REAL,
      .offset = AT(growth),
      .def = "5",
      .min = 1,
      .max = 1e6,
      .help = "ipet: factor of the training set from generation to generation" },
    { .name = "voters",
      .type = SES_OPT_REAL,
      .offset = AT(voters),
      .def = "0.25",
      .min = 0,
      .max = 1,
      .help = "ipet: fraction of the other models that label texts for one; at least one" },
    { .name = "rounds",
      .type = SES_OPT_INT,
      .offset = AT(rounds),
      .def = "3",
      .min = 1,
      .max = 1000,
      .help = "self-training: models trained one after another" },
    { .name = "threshold",
      .type = SES_OPT_REAL,
      .offset = AT(threshold),
      .def = "0.9",
      .min = 0,
      .max = 1,
      .help = "self-training: least probability of a label that the next model learns" },
    { .name = "pair-draws",
      .type = SES_OPT_INT,
      .offset = AT(pairs),
      .def = "20",
      .min = 1,
      .max = 1e6,
      .help = "setfit: pairs of each text with texts of its label, and as many with other texts" },
    { .name = "demonstration-sets",
      .type = SES_OPT_INT,
      .offset = AT(demonstration_sets),
      .def = "4",
      .min = 1,
      .max = 64,
      .help = "lm-bff: times a text is read with other demonstrations; scores are averaged" },
    { .name = "search-words",
      .type = SES_OPT_INT,
      .offset = AT(search_words),
      .def = "0",
      .min = 0,
      .max = 1000,
      .help = "lm-bff: replace the words of labels by the best of N candidates each; 0: keep them" },
};
#undef AT
const ses_opt_table ses_tune_option_table = { opt, SES_LEN(opt) };
