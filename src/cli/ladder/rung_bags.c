/* Rungs without vectors: majority class, Naive Bayes and NB-SVM with and without bigrams. */
#include "ladder.h"

const ses_rung ses_rung_majority = {
    .name = "majority", .summary = "the most frequent class", .method = "majority", .run = ses_rung_run_classifier
};

const ses_rung ses_rung_nb = { .name = "nb",
                               .summary = "Naive Bayes, words",
                               .method = "nb",
                               .ngrams = 1,
                               .run = ses_rung_run_classifier };

const ses_rung ses_rung_nb_bi = { .name = "nb-bi",
                                       .summary = "Naive Bayes, words and bigrams",
                                       .method = "nb",
                                       .ngrams = 2,
                                       .run = ses_rung_run_classifier };

const ses_rung ses_rung_nb_svm = { .name = "nb-svm",
                                   .summary = "NB-SVM, words",
                                   .method = "nb-svm",
                                   .ngrams = 1,
                                   .run = ses_rung_run_classifier };

const ses_rung ses_rung_nb_svm_bi = { .name = "nb-svm-bi",
                                           .summary = "NB-SVM, words and bigrams",
                                           .method = "nb-svm",
                                           .ngrams = 2,
                                           .run = ses_rung_run_classifier };
