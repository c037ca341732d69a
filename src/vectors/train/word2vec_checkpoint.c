/* Checkpoints of skip-gram and CBOW: the weights between two rounds, as a safetensors file. */
#include "word2vec.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "io/safetensors_impl.h"

#include <inttypes.h>
#include <string.h>

enum { VERSION = 1 };

/* Everything that the weights depend on, in words: the settings, the text, and the level of the kernels. */
static bool describe_run(const ses_w2v *w, ses_buf *out, ses_err *e)
{
    const ses_hash_key key = { 0x5e5a3e, 0x77d2c1 };
    const ses_word_vocab *v = &w->corpus.vocab;
    uint64_t words = 0;
    ses_buf_appendf(out, "%d %s %s", VERSION, w->job->trainer->name, ses_vector_job_level(w->job));
    for (size_t i = 0; i < w->job->trainer->n_settings; i++)
        ses_buf_appendf(out, " %s=%s", w->job->trainer->setting[i].name, w->job->text[i]);
    for (size_t i = 0; i < v->n; i++)
        words = ses_hash((ses_hash_key){ key.k0, words }, v->word[i].text, v->word[i].len);
    ses_buf_appendf(out, " text=%zu,%" PRId64 ",%016" PRIx64 ",%016" PRIx64, v->n, w->corpus.n, words,
                    ses_hash(key, w->corpus.id, (size_t)w->corpus.n * sizeof *w->corpus.id));
    return ses_buf_ok(out, e);
}

static const char *meta(const ses_safetensors *s, const char *name)
{
    const char *key, *value;
    for (size_t i = 0; ses_safetensors_meta_at(s, i, &key, &value); i++)
        if (!strcmp(key, name)) return value;
    return "";
}

static bool add_number(ses_safetensors_writer *f, const char *key, double x, ses_err *e)
{
    char text[SES_NUMBER_CHARS];
    ses_format_double(x, text);
    return ses_safetensors_writer_add_meta(f, key, text, e);
}

bool ses_w2v_save(ses_w2v *w, ses_err *e)
{
    ses_buf run = { 0 };
    ses_safetensors_writer *f = ses_safetensors_writer_new(e);
    int64_t dim[] = { w->in_rows + w->out_rows, w->stride };
    bool ok = f && describe_run(w, &run, e) && ses_safetensors_writer_add_checksum(f, e) &&
              ses_safetensors_writer_add_meta(f, "run", run.data, e) &&
              add_number(f, "round", (double)w->round, e) && add_number(f, "loss", w->pass_loss, e) &&
              add_number(f, "pairs", (double)w->pass_pairs, e) &&
              ses_safetensors_writer_add(f, "weight", SES_F32, 2, dim, w->weight, e) &&
              ses_safetensors_save(f, w->checkpoint, true, e);
    ses_safetensors_writer_free(f);
    ses_buf_free(&run);
    w->saved_at = ses_seconds();
    return ok;
}

static bool read_state(ses_w2v *w, const ses_safetensors *f, const char *run, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(f, "weight");
    double round, loss, pairs;
    const char *text[] = { meta(f, "round"), meta(f, "loss"), meta(f, "pairs") };
    double *to[] = { &round, &loss, &pairs };
    if (strcmp(meta(f, "run"), run) != 0)
        return ses_fail(e, SES_EARG,
                        "belongs to a run with other settings, another text or another processor: \"%.300s\"",
                        meta(f, "run"));
    for (size_t i = 0; i < SES_LEN(text); i++)
        if (!ses_parse_number(text[i], strlen(text[i]), to[i]))
            return ses_fail(e, SES_EFORMAT, "not a checkpoint of word vectors");
    if (!x || x->dtype != SES_F32 || x->rank != 2 || x->dim[0] != w->in_rows + w->out_rows ||
        x->dim[1] != w->stride || !(round >= 0 && round <= (double)(w->rounds * w->epochs)))
        return ses_fail(e, SES_EFORMAT, "not a checkpoint of this run");
    memcpy(w->weight, x->data, x->bytes);
    w->round = (int64_t)round;
    w->pass_loss = loss;
    w->pass_pairs = (int64_t)pairs;
    return true;
}

bool ses_w2v_resume(ses_w2v *w, ses_err *e)
{
    ses_buf run = { 0 };
    if (!ses_path_exists(w->checkpoint))
        return ses_fail(e, SES_EUSAGE, "%s does not exist: nothing to resume", w->checkpoint);
    ses_safetensors *f = ses_safetensors_open(w->checkpoint, e);
    bool ok =
        f && describe_run(w, &run, e) && (read_state(w, f, run.data, e) || ses_wrap(e, "%s", w->checkpoint));
    ses_safetensors_free(f);
    ses_buf_free(&run);
    return ok;
}
