/* How likely a model finds a text: log-probabilities token by token.
 *
 * A causal model reads the text in windows that overlap, and each token is judged once, by what stands
 * before it in its window. A masked model is asked about each token with a mask in its place
 * (pseudo-log-likelihood, Salazar et al. 2020), seeing what stands around it. */
#ifndef SESAME_SCORE_H
#define SESAME_SCORE_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

typedef struct ses_scorer_options {
    int64_t window; /* tokens the model sees at once; 0: as many as it takes */
    int64_t stride; /* of a causal model: windows begin so many tokens apart; 0: half a window */
    /* of a causal model: the text follows the token texts begin with, so its first is judged too */
    bool prepend_bos;
} ses_scorer_options;

typedef struct ses_text_score {
    double logprob;   /* of all tokens judged, together */
    int64_t n_scored; /* judged */
    const int32_t *id;
    const float *token_logprob; /* [n]: of each token; NAN: not judged */
    int64_t n;
} ses_text_score;

typedef struct ses_scorer ses_scorer;

/* model, tokenizer and dir (the folder both are from) outlive it. One thread. */
ses_scorer *ses_scorer_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                           const ses_scorer_options *o, ses_err *e);
void ses_scorer_free(ses_scorer *s);
/* Texts that go through the model together, as many at a time as fill a pass. Borrowed until the next
 * call. */
bool ses_scorer_score(ses_scorer *s, const ses_string *text, size_t n, ses_text_score *out, ses_err *e);
bool ses_scorer_score_text(ses_scorer *s, const char *text, size_t n, ses_text_score *out, ses_err *e);

SES_END_DECLS

#endif
