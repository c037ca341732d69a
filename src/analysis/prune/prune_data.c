/* Labeled texts as tokens, and the list of heads. */
#include "prune.h"

#include "analysis/labeled_texts.h"

#include "sesame/examples.h"
#include "text/tokenizer_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The class of a label of the file, by name or number. */
static bool read_class(ses_prune *p, const char *value, ses_prune_text *t, ses_err *e)
{
    int64_t found = 0;
    if (!ses_model_find_label(p->m, (ses_string){ value, strlen(value) }, &found, e)) return false;
    t->label = ses_arena_array(&p->mem, 1, sizeof *t->label, e);
    if (t->label) t->label[0] = (int32_t)found;
    t->labels = 1;
    return t->label != NULL;
}

/* The tokens that the decoder writes. */
static bool read_target(ses_prune *p, ses_encode_ctx *k, const char *text, ses_prune_text *t, ses_err *e)
{
    const int32_t *id;
    size_t n;
    int64_t most = ses_model_max_target_tokens(p->m);
    if (!ses_encode_ids(k, text, strlen(text), true, &id, &n, e)) return false;
    if (!n) return ses_fail(e, SES_EFORMAT, "the target has no tokens");
    p->truncated += (int64_t)n > most;
    t->labels = (int64_t)n > most ? most : (int64_t)n;
    t->label = ses_arena_array(&p->mem, (size_t)t->labels, sizeof *t->label, e);
    if (t->label) memcpy(t->label, id, (size_t)t->labels * sizeof *id);
    return t->label != NULL;
}

static bool encode(ses_prune *p, ses_encode_ctx *k, const ses_labeled_example *x, ses_prune_text *t,
                   ses_err *e)
{
    ses_input in = { .text = x->text_a };
    if (x->text_b.n) in.pair = x->text_b;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .full_overflow = true, /* to count truncated texts */
                             .max_length = ses_model_max_tokens(p->m) };
    if (!ses_encode(k, &in, &o, e)) return false;
    const ses_encoding *r = ses_encode_ctx_result(k);
    if (!r->n) return ses_fail(e, SES_EFORMAT, "the text has no tokens");
    p->truncated += ses_encode_ctx_overflow_count(k) > 0;
    t->n = (int64_t)r->n;
    t->id = ses_arena_array(&p->mem, r->n, sizeof *t->id, e);
    t->segment = ses_arena_array(&p->mem, r->n, sizeof *t->segment, e);
    if (!t->id || !t->segment) return false;
    for (size_t i = 0; i < r->n; i++) t->id[i] = r->id[i], t->segment[i] = r->type_id[i];
    return true;
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
        const char *label = ses_examples_label_name(d, (size_t)x->label);
        ok = (encode(p, k, x, &p->text[i], e) && (p->writes ? read_target(p, k, label, &p->text[i], e)
                                                            : read_class(p, label, &p->text[i], e))) ||
             ses_wrap(e, "line %llu", (unsigned long long)x->line);
        p->n_labels += p->text[i].labels;
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
    p->writes = head == &ses_head_seq2seq_lm;
    if (!p->writes && (head != &ses_head_sequence_classification || p->m->c.labels < 2))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s is not a classifier: prune measures the accuracy of a classifier, or of an "
                        "encoder-decoder that writes texts",
                        ses_model_class_name(p->m));
    if (!ses_tokenizer_config_read(&t, p->call->model_dir, ses_model_type(p->m), ses_model_sets_segments,
                                   p->call->tokenizer, e))
        return false;
    p->sets_segments = ses_model_uses_segments(p->m) && t.sets_segments;
    ses_examples *d =
        ses_labeled_texts_open(path, c->text, c->pair, c->label || !p->writes ? c->label : "target", e);
    bool ok = d && (read_texts(p, d, c->most, e) || ses_wrap(e, "%s", path)) && list_heads(p, e);
    ses_examples_free(d);
    return ok;
}
