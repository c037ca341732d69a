/* Frequencies of rotary position embedding and their scaling to longer texts. */
#ifndef SES_OP_ROPE_H
#define SES_OP_ROPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    SES_ROPE_DEFAULT,
    SES_ROPE_LINEAR,  /* positions are divided by factor */
    SES_ROPE_NTK,     /* a larger theta for every text (GTE) */
    SES_ROPE_DYNAMIC, /* a larger theta for texts of more than `original` tokens, by their length */
    SES_ROPE_YARN,
    SES_ROPE_LLAMA3
} ses_rope_type;

/* Plain values, named as in config.json. 0: the type's default. */
typedef struct ses_rope {
    ses_rope_type type;
    double theta, factor;
    double original;             /* tokens that the model was trained with (dynamic, YaRN, Llama 3) */
    double mixed_b;              /* NTK: exponent of the mixed form; 0: the plain one */
    double beta_fast, beta_slow; /* YaRN: turns within `original` tokens where the ramp begins and ends */
    double attention_factor, mscale, mscale_all_dim;
    bool exact_ramp;            /* YaRN: its ends are not rounded to whole columns */
    double low_freq, high_freq; /* Llama 3: wavelengths of the ramp, as parts of `original` */
} ses_rope;

enum { SES_ROPE_MAX_PAIRS = 256 }; /* heads of at most 512 rotated columns */

/* rate[d], d < pairs: the angle of one position, of the columns d of a head in a text of `length` tokens. */
void ses_rope_rates(const ses_rope *r, int64_t pairs, int64_t length, double *rate);
/* Factor of cos and sin. */
double ses_rope_factor(const ses_rope *r);

#endif
