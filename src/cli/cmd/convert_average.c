/* Opens the models of convert, and computes the mean of several. */
#include "base/alloc.h"
#include "convert_model.h"
#include "model/sentence/sentence_impl.h"
#include "sesame/pretrain.h"
#include "text/tokenizer_files.h"
#include "train/average.h"

bool ses_convert_open(ses_convert_source *s, const ses_convert_open_options *o, ses_err *e)
{
    ses_model_options values = { .no_packing = true }; /* read the values of int8 weights, too */
    if (ses_sentence_is_encoder_dir(s->dir)) {
        s->sentence = ses_sentence_open(s->dir, o->dev, &(ses_sentence_options){ .no_packing = true }, e);
        s->model = s->sentence ? ses_sentence_open_whole(s->sentence, o->dev, &values, e) : NULL;
    } else {
        values.strict = o->strict, values.base = o->base, values.class_name = o->class_name;
        s->model = ses_model_open(s->dir, o->dev, &values, e);
    }
    return s->model != NULL;
}

void ses_convert_close(ses_convert_source *s)
{
    ses_model_free(s->model);
    ses_sentence_free(s->sentence);
    *s = (ses_convert_source){ 0 };
}

char *ses_convert_tokenizer_dir(const ses_convert_source *s, const char *base, ses_err *e)
{
    const char *dir = s->sentence ? ses_sentence_dir(s->sentence) : s->dir;
    return ses_dir_has_tokenizer(dir) ? ses_strdup(dir, e) : ses_model_base_dir(dir, base, e);
}

/* The fingerprint of the tokenizer; 0 for a model without one. */
static bool tokenizer_print(const ses_convert_source *s, const char *base, uint64_t *print, ses_err *e)
{
    char *dir = ses_convert_tokenizer_dir(s, base, e);
    bool has = dir && ses_dir_has_tokenizer(dir);
    ses_tokenizer *t = has ? ses_tokenizer_open(dir, e) : NULL;
    *print = 0;
    bool ok = dir && (!has || (t && ses_tokenizer_fingerprint(t, print, e)));
    ses_tokenizer_free(t);
    ses_free(dir);
    return ok;
}

static bool check_modules(const ses_convert_source *s, ses_err *e)
{
    if (!s->sentence || !ses_store_count(ses_sentence_store(s->sentence))) return true;
    return ses_fail(e, SES_EUNSUPPORTED, "has modules with weights after the model, which are not averaged");
}

static bool same_modules(const ses_convert_source *a, const ses_convert_source *b, ses_err *e)
{
    size_t n = a->sentence ? ses_sentence_module_count(a->sentence) : 0;
    size_t m = b->sentence ? ses_sentence_module_count(b->sentence) : 0;
    if (n == m) return check_modules(b, e);
    return ses_fail(e, SES_EARG, "has %zu modules of a sentence encoder instead of %zu", m, n);
}

/* print: of the tokenizer of sum. */
static bool add_model(const ses_convert_source *sum, uint64_t print, const ses_convert_open_options *o,
                      const char *name, bool *same_dtype, ses_err *e)
{
    uint64_t theirs = 0;
    char *dir = ses_model_resolve(name, NULL, e);
    ses_convert_source s = { .dir = dir };
    bool ok = dir && ses_convert_open(&s, o, e) && same_modules(sum, &s, e) &&
              tokenizer_print(&s, o->base, &theirs, e);
    if (ok && print && theirs && print != theirs)
        ok = ses_fail(e, SES_EARG, "has another tokenizer than %s", sum->dir);
    ok = ok && ses_model_add_weights(sum->model, s.model, e);
    if (ok) *same_dtype &= ses_model_dtype(s.model) == ses_model_dtype(sum->model);
    ses_convert_close(&s);
    ses_free(dir);
    return ok || ses_wrap(e, "--average %s", name);
}

bool ses_convert_average(ses_convert_source *s, const ses_convert_open_options *o, const ses_opt_list *more,
                         bool *same_dtype, ses_err *e)
{
    uint64_t print;
    *same_dtype = true;
    if (!more->n) return true;
    if (!check_modules(s, e)) return ses_wrap(e, "--average: %s", s->dir);
    if (!tokenizer_print(s, o->base, &print, e)) return false;
    for (size_t i = 0; i < more->n; i++)
        if (!add_model(s, print, o, more->item[i], same_dtype, e)) return false;
    return ses_model_scale_weights(s->model, 1.0 / (double)(more->n + 1), e);
}
