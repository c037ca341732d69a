/* Opens the models of convert, and computes the mean of several. */
#include "base/alloc.h"
#include "convert_model.h"
#include "model/sentence_impl.h"
#include "sesame/corpus.h"
#include "text/tokenizer_files.h"
#include "train/average.h"

ses_model *ses_convert_open(const ses_convert_reading *r, const char *dir, ses_sentence **sentence,
                            ses_err *e)
{
    ses_model_options values = { .no_packing = true }; /* read the values of int8 weights, too */
    if (ses_sentence_is_encoder_dir(dir)) {
        *sentence = ses_sentence_open(dir, r->dev, &(ses_sentence_options){ .no_packing = true }, e);
        return *sentence ? ses_sentence_open_whole(*sentence, r->dev, &values, e) : NULL;
    }
    values.strict = r->strict, values.base = r->base, values.class_name = r->class_name;
    return ses_model_open(dir, r->dev, &values, e);
}

/* Sets *print to 0 for a folder without a tokenizer. */
static bool tokenizer_print(const char *dir, uint64_t *print, ses_err *e)
{
    char *home = ses_tokenizer_home(dir, e);
    bool has = home && ses_dir_has_tokenizer(home);
    ses_tokenizer *t = has ? ses_tokenizer_open(home, e) : NULL;
    *print = 0;
    bool ok = home && (!has || (t && ses_tokenizer_fingerprint(t, print, e)));
    ses_tokenizer_free(t);
    ses_free(home);
    return ok;
}

/* A folder without a tokenizer is not checked. */
static bool same_tokenizer(const char *a, const char *b, ses_err *e)
{
    uint64_t x, y;
    if (!tokenizer_print(a, &x, e) || !tokenizer_print(b, &y, e)) return false;
    return !x || !y || x == y || ses_fail(e, SES_EARG, "has another tokenizer than %s", a);
}

static bool add_model(const ses_convert_reading *r, ses_model *sum, const char *dir, const char *other,
                      ses_err *e)
{
    ses_sentence *sentence = NULL;
    ses_model *m = ses_convert_open(r, other, &sentence, e);
    bool ok = m != NULL;
    if (ok && sentence && ses_store_count(ses_sentence_store(sentence)))
        ok = ses_fail(e, SES_EUNSUPPORTED, "has modules with weights after the model");
    ok = ok && same_tokenizer(dir, other, e) && ses_model_add_weights(sum, m, e);
    if (m && !ok) ses_wrap(e, "--average: %s", other);
    ses_model_free(m);
    ses_sentence_free(sentence);
    return ok;
}

bool ses_convert_average(const ses_convert_reading *r, ses_model *m, const char *dir,
                         const ses_opt_list *more, ses_err *e)
{
    for (size_t i = 0; i < more->n; i++)
        if (!add_model(r, m, dir, more->item[i], e)) return false;
    return !more->n || ses_model_scale_weights(m, 1.0 / (double)(more->n + 1), e);
}
