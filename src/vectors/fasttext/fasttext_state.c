/* The state of an interrupted supervised training, as a safetensors file: both matrices, the hidden
 * vectors of the next batch, and as metadata the position and everything the result depends on. */
#include "fasttext_trainer_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "io/safetensors_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings and sums of the data: a state of other ones is refused. */
static void describe(const ses_fasttext_trainer *t, ses_buf *b)
{
    const ses_fasttext_settings *s = &t->o->set;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < t->bags.n_rows; i++) sum = (sum ^ (uint32_t)t->bags.row[i]) * 1099511628211u;
    for (size_t i = 0; i < t->bags.n_labels; i++) sum = (sum ^ (uint32_t)t->bags.label[i]) * 1099511628211u;
    ses_buf_appendf(
        b,
        "dim=%d epoch=%d neg=%d loss=%d lr=%.17g seed=%lld batch=%zu rows=%zu labels=%zu texts=%zu "
        "data=%016llx",
        s->dim, s->epoch, s->neg, s->loss, t->o->lr, (long long)t->o->seed, t->batch, t->in_rows, t->labels,
        t->bags.n, (unsigned long long)sum);
}

bool ses_fasttext_state_save(const ses_fasttext_trainer *t, ses_err *e)
{
    ses_buf text = { 0 };
    char position[96];
    size_t batches = (t->bags.n + t->batch - 1) / t->batch, epoch = t->epoch, at = t->at;
    if (at == batches) epoch++, at = 0; /* the end of an epoch; the hidden vectors are computed again */
    double loss = at ? t->loss : 0;
    uint64_t bits;
    memcpy(&bits, &loss, sizeof bits);
    snprintf(position, sizeof position, "%zu %zu %llu %lld", epoch, at, (unsigned long long)bits,
             at ? (long long)t->trained : 0);
    describe(t, &text);
    ses_fasttext_move_frequent(t, true);
    const int64_t in[] = { (int64_t)t->in_rows, (int64_t)t->stride }, out[] = { (int64_t)t->labels, in[1] },
                  hidden[] = { (int64_t)t->batch, in[1] };
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    bool ok = w && ses_buf_ok(&text, e) && ses_safetensors_writer_add(w, "input", SES_F32, 2, in, t->in, e) &&
              ses_safetensors_writer_add(w, "output", SES_F32, 2, out, t->out, e) &&
              ses_safetensors_writer_add(w, "hidden", SES_F32, 2, hidden, t->hidden[at % 2], e) &&
              ses_safetensors_writer_add_meta(w, "run", text.data, e) &&
              ses_safetensors_writer_add_meta(w, "position", position, e) &&
              ses_safetensors_writer_add_checksum(w, e) && ses_safetensors_save(w, t->run->state, true, e);
    ses_safetensors_writer_free(w);
    ses_buf_free(&text);
    return ok;
}

static const char *meta(const ses_safetensors *s, const char *key)
{
    const char *k, *value;
    for (size_t i = 0; ses_safetensors_meta_at(s, i, &k, &value); i++)
        if (!strcmp(k, key)) return value;
    return "";
}

static bool copy(const ses_safetensors *s, const char *name, size_t rows, size_t stride, float *to,
                 ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(s, name);
    if (!x || x->dtype != SES_F32 || x->count != (int64_t)(rows * stride))
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\" is absent or has another shape", name);
    memcpy(to, x->data, rows * stride * sizeof *to);
    return true;
}

static bool read_position(ses_fasttext_trainer *t, const char *text, ses_err *e)
{
    char *end;
    size_t batches = (t->bags.n + t->batch - 1) / t->batch;
    unsigned long long epoch = strtoull(text, &end, 10), at = strtoull(end, &end, 10);
    uint64_t loss = strtoull(end, &end, 10);
    long long trained = strtoll(end, &end, 10);
    if (*end || !*text || epoch > (unsigned long long)t->o->set.epoch || at >= batches || trained < 0)
        return ses_fail(e, SES_EFORMAT, "position is not valid");
    t->epoch = (size_t)epoch;
    t->at = (size_t)at;
    memcpy(&t->loss, &loss, sizeof loss);
    t->trained = trained;
    t->tokens_done = (int64_t)epoch * t->bags.all_tokens;
    return true;
}

bool ses_fasttext_state_load(ses_fasttext_trainer *t, ses_err *e)
{
    ses_buf text = { 0 };
    ses_safetensors *s = ses_safetensors_open(t->run->state, e);
    describe(t, &text);
    bool ok = s && ses_buf_ok(&text, e);
    if (ok && strcmp(meta(s, "run"), text.data) != 0)
        ok = ses_fail(e, SES_EARG,
                      "the state is of a run with other settings or texts: start again or remove it");
    ok = ok && read_position(t, meta(s, "position"), e) &&
         copy(s, "input", t->in_rows, t->stride, t->in, e) &&
         copy(s, "output", t->labels, t->stride, t->out, e) &&
         copy(s, "hidden", t->batch, t->stride, t->hidden[t->at % 2], e);
    ses_safetensors_free(s);
    ses_buf_free(&text);
    return ok || ses_wrap(e, "%s", t->run->state);
}
