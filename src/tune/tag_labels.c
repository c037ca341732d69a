/* Labels of spans in fine-tuning: their scheme, and conversion of predicted ones. */
#include "finetuner.h"

#include "base/str.h"

#include <string.h>

static ses_tag tag_of(const ses_examples *d, int32_t label)
{
    const char *name = ses_examples_label_name(d, (size_t)label);
    return ses_tag_parse(name ? name : "", name ? strlen(name) : 0);
}

static bool follows(const ses_examples *d, const ses_labeled_example *x, ses_tag_scheme s)
{
    ses_tag before = { 0 };
    for (size_t i = 0; i < x->n_labels; i++) {
        ses_tag now = tag_of(d, x->labels[i]);
        if (!ses_tag_allowed(s, i ? &before : NULL, &now)) return false;
        before = now;
    }
    return !x->n_labels || ses_tag_allowed(s, &before, NULL);
}

ses_tag_scheme ses_tag_names_scheme(const ses_examples *d)
{
    ses_tag_scheme s = SES_TAGS_PLAIN;
    for (size_t i = 0; d && i < ses_examples_label_count(d); i++) {
        char prefix = tag_of(d, (int32_t)i).prefix;
        if (prefix == 'E' || prefix == 'S') return SES_TAGS_BIOES;
        if (prefix == 'B' || prefix == 'I') s = SES_TAGS_BIO;
    }
    return s;
}

ses_tag_scheme ses_tag_labels_scheme(const ses_examples *d)
{
    ses_tag_scheme s = ses_tag_names_scheme(d);
    for (size_t i = 0; s != SES_TAGS_PLAIN && i < ses_examples_count(d); i++)
        if (!follows(d, ses_examples_at(d, i), s)) s = SES_TAGS_PLAIN;
    return s;
}

const char *ses_tag_names_stray(const ses_examples *d)
{
    if (ses_tag_names_scheme(d) == SES_TAGS_PLAIN) return NULL;
    for (size_t i = 0; i < ses_examples_label_count(d); i++)
        if (!tag_of(d, (int32_t)i).prefix) return ses_examples_label_name(d, i);
    return NULL;
}

bool ses_tag_names_convert(const char **label, size_t n, ses_tag_scheme to, ses_arena *mem, ses_err *e)
{
    bool bioes = false;
    ses_tag *tag = ses_arena_array(mem, n + 1, sizeof *tag, e);
    if (!tag) return false;
    for (size_t i = 0; i < n; i++) { /* a word without a label ends a span */
        tag[i] =
            label[i] ? ses_tag_parse(label[i], strlen(label[i])) : (ses_tag){ .prefix = 'O', .type = "" };
        bioes |= tag[i].prefix == 'E' || tag[i].prefix == 'S';
    }
    ses_tags_convert(tag, n, to, bioes);
    for (size_t i = 0; i < n; i++) {
        if (!label[i] || !tag[i].prefix || tag[i].prefix == 'O' || tag[i].prefix == label[i][0]) continue;
        char *name = ses_arena_strndup(mem, label[i], strlen(label[i]), e);
        if (!name) return false;
        name[0] = tag[i].prefix;
        label[i] = name;
    }
    return true;
}
