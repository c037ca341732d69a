/* Labeled texts as tokens, and the list of heads. */
#include "prune.h"

#include "sesame/examples.h"
#include "text/tokenizer_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The class of a label of the file, by name or number. */
static bool class_of(const ses_model *m, const ses_examples *d, int32_t label, int32_t *out, ses_err *e)
{
    const char *value = ses_examples_label_name(d, (size_t)label);
    int64_t n = ses_model_label_count(m);
    char *end;
    for (int64_t i = 0; i < n; i++) {
        const char *name = ses_model_label_name(m, i);
        if (name && !strcasecmp(name, value)) return *out = (int32_t)i, true;
    }
    long long number = strtoll(value, &end, 10);
    if (end != value && !*end && number >= 0 && number < n) return *out = (int32_t)number, true;
    ses_buf list = { 0 };
    for (int64_t i = 0; i < n; i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "",
                        ses_model_label_name(m, i) ? ses_model_label_name(m, i) : "?");
    ses_fail(e, SES_EFORMAT, "label \"%s\" is not a label of the model: %s", value,
             list.data ? list.data : "");
    ses_buf_free(&list);
    return false;
}

static bool encode(ses_prune *p, ses_encode_ctx *k, const ses_labeled_example *x, ses_prune_text *t,
                   ses_err *e)
{
    ses_input in = { .text = x->text_a };
    if (x->text_b.n) in.pair = x->text_b;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = ses_model_max_tokens(p->m) };
    if (!ses_encode(k, &in, &o, e)) return ses_wrap(e, "line %llu", (unsigned long long)x->line);
    const ses_encoding *r = ses_encode_ctx_result(k);
    if (!r->n)
        return ses_fail(e, SES_EFORMAT, "line %llu: the text has no tokens", (unsigned long long)x->line);
    t->n = (int64_t)r->n;
    t->id = ses_arena_array(&p->mem, r->n, sizeof *t->id, e);
    t->segment = ses_arena_array(&p->mem, r->n, sizeof *t->segment, e);
    if (!t->id || !t->segment) return false;
    for (size_t i = 0; i < r->n; i++) t->id[i] = r->id[i], t->segment[i] = r->type_id[i];
    return true;
}

static ses_examples *open_examples(const char *path, const ses_prune_columns *c, ses_err *e)
{
    ses_data_spec spec = { .kind = SES_DATA_CLASSIFY,
                           .text_a = c->text ? c->text : "text",
                           .text_b = c->pair,
                           .label = c->label ? c->label : "label" };
    ses_err first = { 0 };
    ses_examples *d = ses_examples_open(path, &spec, NULL, &first);
    if (d) return d;
    if (!c->text) { /* GLUE's name */
        spec.text_a = "sentence";
        d = ses_examples_open(path, &spec, NULL, NULL);
    }
    if (!d) ses_fail(e, first.code, "%s", first.msg);
    return d;
}

static bool read_texts(ses_prune *p, const ses_examples *d, int64_t most, ses_err *e)
{
    size_t n = ses_examples_count(d);
    ses_encode_ctx *k = ses_encode_ctx_new(p->call->tokenizer, e);
    if (most && n > (size_t)most) n = (size_t)most;
    p->text = k ? ses_arena_array(&p->mem, n + 1, sizeof *p->text, e) : NULL;
    bool ok = p->text != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(d, i);
        ok = encode(p, k, x, &p->text[i], e) && class_of(p->m, d, x->label, &p->text[i].label, e);
    }
    ses_encode_ctx_free(k);
    p->n_texts = n;
    return ok && (n || ses_fail(e, SES_EFORMAT, "no examples"));
}

static bool list_heads(ses_prune *p, ses_err *e)
{
    static const ses_part parts[] = { SES_PART_MAIN, SES_PART_DECODER, SES_PART_CROSS };
    for (int fill = 0; fill < 2; fill++) {
        size_t n = 0;
        for (size_t k = 0; k < SES_LEN(parts); k++)
            for (int64_t l = 0; l < ses_model_part_layers(p->m, parts[k]); l++)
                for (int64_t h = 0; h < ses_model_part_heads(p->m, parts[k], l); h++, n++)
                    if (fill) p->head[n] = (ses_prune_head){ .part = parts[k], .layer = l, .head = h };
        p->n_heads = n;
        if (!fill && !(p->head = ses_arena_array(&p->mem, n, sizeof *p->head, e))) return false;
    }
    return true;
}

bool ses_prune_open(ses_prune *p, const char *path, const ses_prune_columns *c, ses_err *e)
{
    const ses_head *head = p->m->class->head[0].head;
    ses_tokenizer_config t;
    if (head != &ses_head_sequence_classification || p->m->c.labels < 2)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s is not a classifier: prune measures accuracy on labeled texts",
                        ses_model_class_name(p->m));
    if (!ses_tokenizer_config_read(&t, p->call->model_dir, ses_model_type(p->m), ses_model_sets_segments,
                                   p->call->tokenizer, e))
        return false;
    p->sets_segments = (p->m->c.embed.segments > 1 || p->m->c.xl.relative_segments) && t.sets_segments;
    ses_examples *d = open_examples(path, c, e);
    bool ok = d && (read_texts(p, d, c->most, e) || ses_wrap(e, "%s", path)) && list_heads(p, e);
    ses_examples_free(d);
    return ok;
}
