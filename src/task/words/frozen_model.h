/* A model whose hidden states are the vectors of a tagger's words; it is not trained. For the kinds of
 * embeddings that read a model (word_stack.h).
 *
 * Ownership: close frees everything. Threads: one at a time uses a model. */
#ifndef SES_TASK_FROZEN_MODEL_H
#define SES_TASK_FROZEN_MODEL_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

typedef struct ses_frozen_model {
    ses_model *model;
    ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens;
    ses_tape *tape;
    int64_t width; /* columns of the hidden states */
    bool segments; /* the model reads the segments of the encoding */
    char *dir;
} ses_frozen_model;

/* The folder of a model by path or name; NULL and an error: none, or an adapter. Free with ses_free. */
char *ses_frozen_folder(const char *path, ses_err *e);
/* Copies the files of a model's folder to a new folder, without reports, hidden files and folders. */
bool ses_frozen_copy(const char *dir, const char *to, ses_err *e);

/* Opens a folder with a tokenizer. */
ses_frozen_model *ses_frozen_open(const char *path, ses_device *dev, ses_err *e);
void ses_frozen_close(void *self);
bool ses_frozen_save(const void *self, const char *path, ses_err *e);
/* The last hidden states of a text, [n, width] on the host; segments may be NULL. Free with ses_free. */
ses_real *ses_frozen_states(ses_frozen_model *x, const int32_t *id, const uint8_t *segment, size_t n,
                            ses_err *e);

#endif
