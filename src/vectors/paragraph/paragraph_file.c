/* Files of paragraph vectors. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "io/safetensors_impl.h"
#include "paragraph.h"

#include <string.h>

/* ---- settings ---- */

enum {
    METHOD,
    RULE,
    DIM,
    WINDOW,
    NEGATIVE,
    EPOCHS,
    MIN_COUNT,
    RATE,
    SAMPLE,
    SEED,
    EPOCH,
    NEXT_DOC,
    STEPS,
    LOSS_SUM,
    LOSS,
    N_NUMBERS
};
static const struct {
    const char *name;
    double low, high;
} number[N_NUMBERS] = {
    [METHOD] = { "method", SES_PV_DBOW, SES_PV_DM_CONCAT },
    [RULE] = { "words_rule", SES_WORDS_BLANK, SES_WORDS_TEXT },
    [DIM] = { "dim", 1, SES_PV_MAX_DIM },
    [WINDOW] = { "window", 1, SES_PV_MAX_WINDOW },
    [NEGATIVE] = { "negative", 1, SES_PV_MAX_NEGATIVE },
    [EPOCHS] = { "epochs", 0, 1e6 },
    [MIN_COUNT] = { "min_count", 0, 1e15 },
    [RATE] = { "lr", 0, 1e6 },
    [SAMPLE] = { "sample", 0, 1 },
    [SEED] = { "seed", 0, 0x1p53 },
    [EPOCH] = { "epochs_done", 0, 1e6 },
    [NEXT_DOC] = { "next_document", 0, 2147483647 },
    [STEPS] = { "steps", 0, 0x1p53 },
    [LOSS_SUM] = { "loss_sum", 0, 1e300 },
    [LOSS] = { "loss", 0, 1e300 },
};

static void get_numbers(const ses_pv_model *m, double *x)
{
    const ses_pv_settings *o = &m->o;
    x[METHOD] = o->method, x[RULE] = o->rule, x[DIM] = (double)o->dim, x[WINDOW] = (double)o->window;
    x[NEGATIVE] = (double)o->negative, x[EPOCHS] = (double)o->epochs, x[MIN_COUNT] = (double)o->min_count;
    x[RATE] = o->rate, x[SAMPLE] = o->sample, x[SEED] = (double)o->seed, x[EPOCH] = (double)m->epoch;
    x[NEXT_DOC] = (double)m->next_doc, x[STEPS] = (double)m->steps, x[LOSS_SUM] = m->loss_sum,
    x[LOSS] = m->loss;
}

static ses_pv_settings settings_of(const double *x)
{
    return (ses_pv_settings){ .method = (ses_pv_method)x[METHOD],
                              .rule = (ses_words_rule)x[RULE],
                              .dim = (int64_t)x[DIM],
                              .window = (int64_t)x[WINDOW],
                              .negative = (int64_t)x[NEGATIVE],
                              .epochs = (int64_t)x[EPOCHS],
                              .min_count = (int64_t)x[MIN_COUNT],
                              .rate = x[RATE],
                              .sample = x[SAMPLE],
                              .seed = (uint64_t)x[SEED] };
}

static const char *meta(const ses_safetensors *s, const char *name)
{
    const char *key, *value;
    for (size_t i = 0; ses_safetensors_meta_at(s, i, &key, &value); i++)
        if (!strcmp(key, name)) return value;
    return "";
}

static bool read_numbers(const ses_safetensors *s, double *x, ses_err *e)
{
    for (int i = 0; i < N_NUMBERS; i++) {
        const char *value = meta(s, number[i].name);
        if (!ses_parse_number(value, strlen(value), &x[i]) ||
            !(x[i] >= number[i].low && x[i] <= number[i].high))
            return ses_fail(
                e, SES_EFORMAT,
                "metadata: \"%s\" is missing or not a number from %g to %g: not a file of paragraph "
                "vectors?",
                number[i].name, number[i].low, number[i].high);
    }
    return true;
}

static void set_progress(ses_pv_model *m, const double *x)
{
    m->epoch = (int64_t)x[EPOCH], m->next_doc = (int64_t)x[NEXT_DOC], m->steps = (int64_t)x[STEPS];
    m->loss_sum = x[LOSS_SUM], m->loss = x[LOSS];
}

/* ---- weights: padded rows in memory, without padding in the file ---- */

typedef struct matrix {
    const char *name;
    float *x;
    int64_t rows, parts; /* parts: vectors of a row */
    int64_t dim, stride;
} matrix;

enum { DOCUMENTS, WORDS, OUTPUT, N_MATRICES };

static void list_matrices(const ses_pv_model *m, matrix *to)
{
    int64_t words = (int64_t)m->vocab.n, dim = m->o.dim;
    bool concat = m->o.method == SES_PV_DM_CONCAT;
    to[DOCUMENTS] = (matrix){ "documents", m->doc, m->docs, 1, dim, m->stride };
    to[WORDS] = (matrix){ "words", m->word, words + concat, 1, dim, m->stride };
    to[OUTPUT] = (matrix){ "output", m->out, words, m->out_cols / m->stride, dim, m->stride };
}

static bool matrix_source(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    const matrix *m = ctx;
    (void)e;
    for (size_t done = 0; done < bytes;) {
        size_t at = offset + done, row_bytes = (size_t)m->dim * sizeof(float), in_row = at % row_bytes,
               part = row_bytes - in_row < bytes - done ? row_bytes - in_row : bytes - done;
        const char *row = (const char *)(m->x + at / row_bytes * (size_t)m->stride);
        memcpy((char *)out + done, row + in_row, part);
        done += part;
    }
    return true;
}

static bool read_matrix(const matrix *m, const ses_safetensors *s, ses_err *e)
{
    const ses_tensor_entry *t = ses_safetensors_find(s, m->name);
    int64_t vectors = m->rows * m->parts;
    if (!t || t->dtype != SES_F32 || t->count != vectors * m->dim)
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\": expected %lld vectors of %lld numbers (F32)", m->name,
                        (long long)vectors, (long long)m->dim);
    for (int64_t i = 0; i < vectors; i++) {
        float *to = m->x + i * m->stride;
        memcpy(to, (const char *)t->data + (size_t)(i * m->dim) * sizeof *to, (size_t)m->dim * sizeof *to);
        for (int64_t c = 0; c < m->dim; c++)
            if (!isfinite(to[c]))
                return ses_fail(e, SES_EFORMAT, "tensor \"%s\": row %lld is not finite", m->name,
                                (long long)i);
    }
    return true;
}

static bool read_matrices(const ses_pv_model *m, const ses_safetensors *s, ses_err *e)
{
    matrix list[N_MATRICES];
    list_matrices(m, list);
    for (int i = 0; i < N_MATRICES; i++)
        if (list[i].x && !read_matrix(&list[i], s, e)) return false;
    return true;
}

/* ---- saving ---- */

static bool add_all(ses_safetensors_writer *w, const ses_pv_model *m, matrix *list, const ses_buf *text,
                    const int64_t *count, ses_err *e)
{
    double x[N_NUMBERS];
    get_numbers(m, x);
    for (int i = 0; i < N_NUMBERS; i++) {
        char value[SES_NUMBER_CHARS];
        ses_format_double(x[i], value);
        if (!ses_safetensors_writer_add_meta(w, number[i].name, value, e)) return false;
    }
    list_matrices(m, list);
    for (int i = 0; i < N_MATRICES; i++) {
        const int64_t dim[] = { list[i].rows, list[i].parts * list[i].dim };
        if (list[i].x &&
            !ses_safetensors_writer_add_source(w, list[i].name, SES_F32, 2, dim, matrix_source, &list[i], e))
            return false;
    }
    return ses_safetensors_writer_add(w, "vocabulary", SES_U8, 1, (const int64_t[]){ (int64_t)text->len },
                                      text->data, e) &&
           ses_safetensors_writer_add(w, "counts", SES_I64, 1, (const int64_t[]){ (int64_t)m->vocab.n },
                                      count, e);
}

bool ses_pv_save(const ses_pv_model *m, const char *path, const char *run, bool overwrite, ses_err *e)
{
    ses_buf text = { 0 };
    matrix list[N_MATRICES];
    int64_t *count = ses_alloc_array(m->vocab.n, sizeof *count, e);
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    for (size_t i = 0; count && i < m->vocab.n; i++) {
        ses_buf_append(&text, m->vocab.word[i].text, m->vocab.word[i].len);
        ses_buf_put(&text, '\n');
        count[i] = m->vocab.word[i].count;
    }
    bool ok = count && w && ses_buf_ok(&text, e) && ses_safetensors_writer_add_checksum(w, e) &&
              add_all(w, m, list, &text, count, e) &&
              (!run || ses_safetensors_writer_add_meta(w, "run", run, e)) &&
              ses_safetensors_save(w, path, overwrite, e);
    ses_safetensors_writer_free(w);
    ses_buf_free(&text);
    ses_free(count);
    return ok;
}

/* ---- loading ---- */

/* Words in their order: counted once, then given the counts of the file. */
static bool read_vocabulary(ses_word_vocab *v, const ses_safetensors *s, ses_err *e)
{
    const ses_tensor_entry *text = ses_safetensors_find(s, "vocabulary"),
                           *counts = ses_safetensors_find(s, "counts");
    if (!text || text->dtype != SES_U8 || !counts || counts->dtype != SES_I64 || counts->count < 1)
        return ses_fail(e, SES_EFORMAT, "no vocabulary (U8) or no counts (I64)");
    const char *at = text->data, *end = at + text->bytes;
    int64_t tokens = 0;
    for (int64_t i = 0; i < counts->count; i++) {
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        int64_t count;
        memcpy(&count, (const char *)counts->data + (size_t)i * sizeof count, sizeof count);
        if (!stop || stop == at || stop - at > SES_WORD_MAX || count < 1 || count > INT64_MAX / 2 - tokens)
            return ses_fail(e, SES_EFORMAT, "word %lld of the vocabulary is invalid", (long long)i);
        int32_t id = ses_word_vocab_count(v, at, (size_t)(stop - at), e);
        if (id < 0) return false;
        if (id != i) return ses_fail(e, SES_EFORMAT, "word %lld of the vocabulary repeats", (long long)i);
        v->word[i].count = count;
        tokens += count;
        at = stop + 1;
    }
    v->tokens = v->kept_tokens = tokens;
    return at == end || ses_fail(e, SES_EFORMAT, "the vocabulary has more words than counts");
}

/* The sizes of the weights, before memory is allocated for them. */
static bool check_sizes(const ses_safetensors *s, const ses_pv_settings *o, int64_t words, ses_err *e)
{
    const ses_tensor_entry *docs = ses_safetensors_find(s, "documents"),
                           *out = ses_safetensors_find(s, "output");
    int64_t dim = o->dim * (o->method == SES_PV_DM_CONCAT ? 2 * o->window + 1 : 1);
    if (!docs || docs->rank != 2 || docs->dim[1] != o->dim)
        return ses_fail(e, SES_EFORMAT, "tensor \"documents\": expected vectors of %lld numbers",
                        (long long)o->dim);
    if (!out || out->rank != 2 || out->dim[0] != words || out->dim[1] != dim)
        return ses_fail(e, SES_EFORMAT, "tensor \"output\": expected [%lld, %lld]", (long long)words,
                        (long long)dim);
    return true;
}

static bool load(ses_pv_model *m, const ses_safetensors *s, ses_err *e)
{
    double x[N_NUMBERS];
    ses_word_vocab vocab = { 0 };
    if (!read_numbers(s, x, e)) return false;
    ses_pv_settings o = settings_of(x);
    bool ok = read_vocabulary(&vocab, s, e) && check_sizes(s, &o, (int64_t)vocab.n, e) &&
              ses_pv_init(m, &vocab, ses_safetensors_find(s, "documents")->dim[0], &o, e) &&
              read_matrices(m, s, e);
    set_progress(m, x);
    ses_word_vocab_free(&vocab);
    return ok;
}

bool ses_pv_load_bytes(ses_pv_model *m, const void *bytes, size_t n, ses_err *e)
{
    ses_safetensors *s = ses_safetensors_from_memory(bytes, n, "memory", e);
    bool ok = s && load(m, s, e);
    ses_safetensors_free(s);
    return ok;
}

bool ses_pv_load(ses_pv_model *m, const char *path, ses_err *e)
{
    ses_safetensors *s = ses_safetensors_open(path, e);
    bool ok = s && (load(m, s, e) || ses_wrap(e, "%s", path));
    ses_safetensors_free(s);
    return ok;
}

bool ses_pv_resume(ses_pv_model *m, const char *path, const char *run, ses_err *e)
{
    double x[N_NUMBERS];
    ses_safetensors *s = ses_safetensors_open(path, e);
    if (!s) return false;
    bool ok = true;
    if (strcmp(meta(s, "run"), run) != 0)
        ok = ses_fail(e, SES_EARG,
                      "belongs to a run with other settings, another text or another processor: \"%.300s\"",
                      meta(s, "run"));
    ok = ok && read_numbers(s, x, e) && read_matrices(m, s, e);
    if (ok && x[NEXT_DOC] > (double)m->docs) ok = ses_fail(e, SES_EFORMAT, "not a checkpoint of this run");
    if (ok) set_progress(m, x);
    ses_safetensors_free(s);
    return ok || ses_wrap(e, "%s", path);
}
