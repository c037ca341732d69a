/* The ranks of a training run: their lanes, their folder, what they must have in common. Rank 0 writes the
 * output folder; docs/SCALE.md describes the whole.
 *
 * Nothing is kept between calls. All ranks make the same calls; a communicator of NULL is one rank. One
 * thread. */
#ifndef SES_TRAIN_RANKS_H
#define SES_TRAIN_RANKS_H

#include "sesame/json.h"
#include "sesame/model.h"
#include "sesame/training.h"

/* Sets r->lanes if it is 0: the lanes of the newest checkpoint in r->output if the run is resumed, else the
 * number of ranks. Fails if there are more ranks than lanes. */
bool ses_ranks_set_lanes(ses_training_options *r, ses_err *e);

/* Fails unless all ranks see the folder of rank 0, which exists: they write checkpoints together. */
bool ses_ranks_check_folder(ses_comm *c, const char *dir, ses_err *e);

/* A property that the ranks of a run share: its name, and a text that is equal on all of them. */
typedef struct ses_rank_value {
    const char *what, *text;
} ses_rank_value;

/* Fails, naming the first rank that differs: version, device and instruction set, the values in their order,
 * the weights. */
bool ses_ranks_agree(const ses_training_options *r, const ses_rank_value *value, size_t n,
                     ses_model *const *model, size_t n_models, ses_err *e);

/* The same for settings, a JSON object: names the first setting that differs from that of rank 0. */
bool ses_ranks_agree_settings(ses_comm *c, const char *settings, ses_err *e);
/* Options that decide when a run evaluates, saves and ends, as members of a JSON object: ranks that differ
 * would wait for each other. */
void ses_ranks_put_control(const ses_training_options *r, ses_json_writer *w);
/* The text of a finished object; frees the writer. Free with ses_free. */
char *ses_ranks_settings_text(ses_json_writer *w, ses_err *e);

/* A failed rank's error, for the line that the run reports: "rank 2 on node7: ...". An error that names a
 * rank stays. Returns false. */
bool ses_ranks_wrap(const ses_comm *c, ses_err *e);

#endif
