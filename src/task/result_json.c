/* Writes a result as JSON; the result's schema defines the keys and their order. */
#include "pipeline_impl.h"

#include <math.h>

static void put_string(ses_json_writer *w, ses_string s)
{
    if (s.p)
        ses_json_put_stringn(w, s.p, s.n);
    else
        ses_json_put_null(w);
}

static void put_field(ses_json_writer *w, const ses_result *r, const ses_result_row *row,
                      ses_result_field_kind kind)
{
    switch (kind) {
    case SES_FIELD_LABEL: put_string(w, row->label); break;
    case SES_FIELD_WORD: put_string(w, row->word); break;
    case SES_FIELD_TEXT: put_string(w, row->text); break;
    case SES_FIELD_SCORE: ses_json_put_float(w, (float)row->score); break;
    case SES_FIELD_TOKEN: ses_json_put_int(w, row->token); break;
    case SES_FIELD_INDEX: ses_json_put_int(w, row->index); break;
    case SES_FIELD_START: ses_json_put_int(w, row->char_span.begin); break;
    case SES_FIELD_END: ses_json_put_int(w, row->char_span.end); break;
    case SES_FIELD_LAYERS: ses_json_put_int(w, row->layers); break;
    case SES_FIELD_ITEM: put_string(w, r->item->text); break;
    }
}

static void put_logprob(ses_json_writer *w, const ses_token_logprob *x)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "id", x->id);
    ses_json_put_key(w, "token");
    put_string(w, x->token);
    ses_json_put_key(w, "logprob");
    if (isnan(x->logprob))
        ses_json_put_null(w);
    else
        ses_json_put_float(w, x->logprob);
    if (x->top) ses_json_member_array(w, "top_logprobs");
    for (size_t i = 0; i < x->n_top; i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "id", x->top[i].id);
        ses_json_put_key(w, "token");
        put_string(w, x->top[i].token);
        ses_json_put_key(w, "logprob");
        ses_json_put_float(w, x->top[i].logprob);
        ses_json_end_object(w);
    }
    if (x->top) ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_logprobs(ses_json_writer *w, const char *key, const ses_token_logprob *x, size_t n)
{
    if (!x) return;
    ses_json_member_array(w, key);
    for (size_t i = 0; i < n; i++) put_logprob(w, &x[i]);
    ses_json_end_array(w);
}

static void put_row(ses_json_writer *w, const ses_result *r, const ses_result_row *row)
{
    ses_json_begin_object(w);
    for (const ses_result_field *f = r->schema->field; f->key; f++) {
        ses_json_put_key(w, f->key);
        put_field(w, r, row, f->kind);
    }
    put_logprobs(w, "prompt_logprobs", row->prompt_logprobs, row->n_prompt_logprobs);
    put_logprobs(w, "logprobs", row->logprobs, row->n_logprobs);
    ses_json_end_object(w);
}

static void put_rows(ses_json_writer *w, const ses_result *r)
{
    bool nested = r->groups > 1;
    ses_json_begin_array(w);
    for (size_t g = 0, i = 0; g < r->groups; g++) {
        if (nested) ses_json_begin_array(w);
        for (; i < r->n && r->row[i].group == g; i++) put_row(w, r, &r->row[i]);
        if (nested) ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

static void put_columns(ses_json_writer *w, const ses_result *r, bool with_item)
{
    ses_json_begin_object(w);
    for (const ses_result_field *f = r->schema->field; f->key; f++) {
        if (f->kind == SES_FIELD_ITEM && !with_item) continue;
        ses_json_put_key(w, f->key);
        if (f->kind == SES_FIELD_ITEM) {
            put_string(w, r->item->text);
            continue;
        }
        ses_json_begin_array(w);
        for (size_t i = 0; i < r->n; i++) put_field(w, r, &r->row[i], f->kind);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void put_list(ses_json_writer *w, const ses_result *r)
{
    ses_json_begin_array(w);
    for (size_t i = 0; i < r->n; i++) put_field(w, r, &r->row[i], r->schema->field[0].kind);
    ses_json_end_array(w);
}

static void put_vector(ses_json_writer *w, const float *x, int64_t n)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < n; i++) ses_json_put_float(w, x[i]);
    ses_json_end_array(w);
}

static void put_matrix(ses_json_writer *w, const ses_result *r)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < r->n_vectors; i++) put_vector(w, r->vectors + i * r->vector_size, r->vector_size);
    ses_json_end_array(w);
}

void ses_result_write_json(const ses_result *r, ses_json_writer *w)
{
    switch (r->schema->form) {
    case SES_FORM_ROWS: put_rows(w, r); break;
    case SES_FORM_ONE:
        if (r->n)
            put_row(w, r, &r->row[0]);
        else
            ses_json_put_null(w);
        break;
    case SES_FORM_COLUMNS: put_columns(w, r, true); break;
    case SES_FORM_LIST: put_list(w, r); break;
    case SES_FORM_MATRIX: put_matrix(w, r); break;
    case SES_FORM_VECTOR: put_vector(w, r->vectors, r->n_vectors ? r->vector_size : 0); break;
    }
}

/* ---- columns of a table ---- */

static const ses_result_schema *columns_of(const ses_task *t, const void *args)
{
    return t->columns ? t->columns(args) : NULL;
}

size_t ses_task_column_names(const ses_task *t, const void *args, const char *name[8])
{
    const ses_result_schema *s = columns_of(t, args);
    size_t n = 0;
    for (const ses_result_field *f = s ? s->field : NULL; f && f->key; f++)
        if (f->kind != SES_FIELD_ITEM) name[n++] = f->key;
    if (!s) name[n++] = "result";
    return n;
}

bool ses_result_write_columns(const ses_result *r, const ses_task *t, const void *args, ses_json_writer *w,
                              ses_err *e)
{
    const ses_result_schema *s = columns_of(t, args);
    if (s && s->form == SES_FORM_COLUMNS) {
        put_columns(w, r, false);
        return true;
    }
    bool lists = s && r->schema->none; /* a list of all rows in each column */
    if (s && !lists && r->n > 1)
        return ses_fail(e, SES_EARG, "%zu results for one text: the options ask for one", r->n);
    ses_json_begin_object(w);
    for (const ses_result_field *f = s ? s->field : NULL; f && f->key; f++) {
        ses_json_put_key(w, f->key);
        if (lists) {
            ses_json_begin_array(w);
            for (size_t i = 0; i < r->n; i++) put_field(w, r, &r->row[i], f->kind);
            ses_json_end_array(w);
        } else if (r->n)
            put_field(w, r, &r->row[0], f->kind);
        else
            ses_json_put_null(w);
    }
    if (!s) {
        ses_json_put_key(w, "result");
        ses_result_write_json(r, w);
    }
    ses_json_end_object(w);
    return true;
}
