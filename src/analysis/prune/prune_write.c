/* Writes a model without some of its heads. */
#include "prune.h"

#include "base/alloc.h"
#include "base/file.h"
#include "model/reduce.h"
#include "text/legacy/legacy_files.h"
#include "text/tokenizer_files.h"

static bool copy_tokenizer(const ses_prune *p, const char *dir, ses_err *e)
{
    char *home = ses_tokenizer_home(p->call->model_dir, NULL, e);
    bool done = false, ok = home && ses_tokenizer_convert_original(home, dir, p->call->overwrite, &done, e);
    for (int i = 0; ok && !done && i < SES_TOKENIZER_FILES; i++) {
        char *from = ses_path_join(home, ses_tokenizer_file_names[i], e),
             *to = ses_path_join(dir, ses_tokenizer_file_names[i], e), *text = NULL;
        size_t n;
        ok = from && to;
        if (ok && ses_path_exists(from)) {
            text = ses_file_read(from, (size_t)1 << 31, &n, e);
            ok = text && ses_file_write(to, text, n, p->call->overwrite, e);
        }
        ses_free(from), ses_free(to), ses_free(text);
    }
    ses_free(home);
    return ok;
}

/* Everything stays but these heads. */
static ses_reduction *without_heads(const ses_model *m, const ses_prune_head *const *without, size_t n,
                                    ses_err *e)
{
    ses_reduction *r = ses_reduction_new(m, e);
    for (size_t i = 0; r && i < n; i++)
        r->head[without[i]->part][without[i]->layer * r->heads[without[i]->part] + without[i]->head] = 0;
    return r;
}

bool ses_prune_write(ses_prune *p, const ses_prune_head *const *without, size_t n, const char *dir,
                     ses_err *e)
{
    const char *why = ses_pruned_heads_unsupported(p->m->desc, &p->m->c);
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "--write: heads of a %s model cannot be removed: %s",
                        ses_model_type(p->m), why);
    ses_reduction *r = without_heads(p->m, without, n, e);
    ses_model *m = r ? ses_model_reduce(p->m, r, SES_REDUCED_SMALL, e) : NULL;
    ses_save_options save = { .dtype = SES_F32, .overwrite = p->call->overwrite };
    bool ok = m && ses_model_save(m, dir, &save, e) && copy_tokenizer(p, dir, e);
    ses_model_free(m);
    ses_reduction_free(r);
    return ok || ses_wrap(e, "--write %s", dir);
}
