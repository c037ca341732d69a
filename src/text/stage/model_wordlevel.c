/* WordLevel: each word is one token, or unknown. */
#include "base/str.h"
#include "text/stage.h"
#include "text/vocab/vocab.h"

typedef struct self_type {
    ses_vocab vocab; /* must be first: see vocab.h */
    ses_string unk;
    int32_t unk_id; /* -1: not in the vocabulary */
} self_type;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    self_type *m = ses_arena_array(mem, 1, sizeof *m, e);
    const ses_json *vocab = ses_json_get(settings, "vocab");
    if (!m || !ses_setting_string(settings, "unk_token", NULL, mem, &m->unk, e)) return NULL;
    if (!vocab) return ses_fail(e, SES_EFORMAT, "key \"vocab\" is missing"), NULL;
    if (!ses_vocab_open(&m->vocab, vocab, mem, e)) return ses_wrap(e, "vocab"), NULL;
    m->unk_id = ses_vocab_id(&m->vocab, m->unk.p, m->unk.n);
    return m;
}

static void save(const void *self, ses_json_writer *w)
{
    const self_type *m = self;
    ses_json_put_key(w, "vocab");
    ses_vocab_save(&m->vocab, w);
    ses_json_member_stringn(w, "unk_token", m->unk.p, m->unk.n);
}

static bool tokenize(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e)
{
    const self_type *m = self;
    (void)scratch;
    int32_t id = ses_vocab_id(&m->vocab, word, n);
    if (id < 0) id = m->unk_id;
    if (id < 0)
        return ses_fail(e, SES_EFORMAT, "unknown word, and unk_token \"%s\" is not in the vocabulary",
                        ses_quoted_of(m->unk.p, m->unk.n).s);
    return ses_token_list_put(out, id, 0, n, e);
}

const ses_stage ses_stage_model_wordlevel = {
    .type = "WordLevel",
    .kind = SES_MODEL_STAGE,
    .open = open,
    .save = save,
    .tokenize = tokenize,
    .size = ses_vocab_model_size,
    .count = ses_vocab_model_count,
    .token = ses_vocab_model_token,
    .id = ses_vocab_model_id,
};
