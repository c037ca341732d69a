/* Descriptions of runs. */
#include "run_text.h"

#include "base/hash.h"

#include <inttypes.h>
#include <string.h>

static bool is_listed(const char *list, const char *name)
{
    const char *item;
    size_t len;
    for (size_t i = 0; ses_list_at(list, i, &item, &len); i++)
        if (ses_equal(item, len, name)) return true;
    return false;
}

char *ses_vector_run_text(const ses_vector_job *job, const ses_word_vocab *v, const int32_t *id, int64_t n,
                          const char * not, ses_err *e)
{
    const ses_hash_key key = { 0x5e5a3e, 0x77d2c1 };
    uint64_t words = 0;
    ses_buf out = { 0 };
    ses_buf_appendf(&out, "1 %s %s", job->trainer->name, ses_vector_job_level(job));
    for (size_t i = 0; i < job->trainer->n_settings; i++)
        if (!is_listed(not, job->trainer->setting[i].name))
            ses_buf_appendf(&out, " %s=%s", job->trainer->setting[i].name, job->text[i]);
    for (size_t i = 0; i < v->n; i++)
        words = ses_hash((ses_hash_key){ key.k0, words }, v->word[i].text, v->word[i].len);
    ses_buf_appendf(&out, " text=%zu,%" PRId64 ",%016" PRIx64 ",%016" PRIx64, v->n, n, words,
                    ses_hash(key, id, (size_t)n * sizeof *id));
    if (ses_buf_ok(&out, e)) return out.data;
    ses_buf_free(&out);
    return NULL;
}
