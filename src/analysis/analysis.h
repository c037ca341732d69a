/* An analysis: a function from a model and data to a report of tables and pictures. Each analysis is one
 * file analysis_NAME.c and one line in analyses.def; the command line and the web UI are its clients.
 *
 * Ownership: analyses are constant tables; a call borrows everything it points to from the client.
 * Threads: an analysis runs in one thread; it may use the device's threads inside. */
#ifndef SES_ANALYSIS_ANALYSIS_H
#define SES_ANALYSIS_ANALYSIS_H

#include "base/opt_table.h"
#include "figure/report.h"
#include "layer_set.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

/* How the client opens the model before it calls `run`. */
typedef enum {
    SES_ANALYSIS_NO_MODEL,      /* not at all: the analysis opens what it needs from model_dir */
    SES_ANALYSIS_HIDDEN_STATES, /* without its head */
    SES_ANALYSIS_CLASS,         /* the class in config.json, with its heads */
    SES_ANALYSIS_GRADIENTS,     /* the same, in f32 and with gradients */
    SES_ANALYSIS_F32            /* the same, in f32, for gradients of captured tensors only */
} ses_analysis_model_use;

typedef struct ses_analysis_call {
    const struct ses_analysis *analysis;
    const void *args;      /* struct filled from the analysis's options */
    char *const *operands; /* then NULL */
    int n_operands;
    const char *model_name, *model_dir; /* as the user wrote it, and the folder; NULL: none */
    const char *tmp_dir;                /* folder of temporary files; NULL: /tmp */
    const char *adapter;                /* LoRA adapter folder; NULL: none */
    ses_device *dev;
    ses_model *model;         /* NULL: SES_ANALYSIS_NO_MODEL */
    ses_tokenizer *tokenizer; /* NULL: SES_ANALYSIS_NO_MODEL */
    uint64_t seed;
    ses_layer_set layers; /* the layers the user chose */
    bool overwrite;       /* existing outputs may be replaced */
    bool html, json;      /* outputs the user asked for: data of others need not be made */
    /* Shows progress; total 0: unknown. NULL: no progress is shown. */
    void (*progress)(void *ctx, const char *label, int64_t done, int64_t total);
    void *progress_ctx;
    /* Called before each part of the work. False and an error: the client wants it to end. NULL: never. */
    bool (*may_continue)(void *ctx, ses_err *e);
    void *may_continue_ctx;
    ses_report *report;
} ses_analysis_call;

typedef struct ses_analysis {
    const char *operands;    /* "TEXT", "FILE..." */
    const char *description; /* paragraphs separated by \n\n */
    const ses_usage_example *examples;
    const ses_opt *opt;
    size_t n_opt, args_size;
    int min_operands, max_operands; /* max_operands < 0: unlimited */
    const char *default_model_of;   /* its bundled model is the default; NULL: --model is required */
    bool has_model_operand;         /* the first operand is the model, unless --model gives it */
    bool reads_decoder;             /* --layers names layers of the decoder, if there is one */
    bool (*asks_decoder)(
        const void
            *args);    /* the same, if the arguments ask for it: the model is opened with it; NULL: never */
    bool text_operand; /* its first operand is a text: "-" on the command line is standard input */
    bool takes_text;   /* a text is all it needs: the server runs it, too */
    ses_analysis_model_use model;
    /* NULL, or true for arguments that need no model: call->model and model_dir are then NULL. */
    bool (*needs_no_model)(const void *args);
    /* Fills call->report. False and an error: the report is discarded. */
    bool (*run)(ses_analysis_call *call, ses_err *e);
} ses_analysis;

#define SES_ANALYSIS(id, name, summary) extern const ses_analysis ses_analysis_##id;
#include "analyses.def"
#undef SES_ANALYSIS

typedef struct ses_analysis_entry {
    const char *name, *summary;
    const ses_analysis *analysis;
} ses_analysis_entry;

const ses_analysis_entry *ses_analysis_entries(void);          /* ends with a NULL name */
const ses_analysis_entry *ses_analysis_find(const char *name); /* NULL: none */

/* Whether the call reads the decoder of an encoder-decoder. */
bool ses_analysis_asks_decoder(const ses_analysis *a, const void *args);
/* The last layer that --layers may name. */
int64_t ses_analysis_last_layer(const ses_analysis *a, const void *args, const ses_model *m);

/* The hidden states of a model without its head, sharing its weights: the encoder or the only stack; decoder:
 * a whole encoder-decoder, or NULL and an error that names --decoder. Free it before m, with
 * ses_model_free. */
ses_model *ses_analysis_part(const ses_model *m, bool decoder, ses_err *e);

/* Asks the client whether it still wants the result. */
bool ses_analysis_may_continue(const ses_analysis_call *call, ses_err *e);

/* Calls the progress function, if there is one. */
void ses_analysis_progress(const ses_analysis_call *call, const char *label, int64_t done, int64_t total);

#endif
