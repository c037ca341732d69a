/* Options and steps that several actions of `sesame vectors` share. */
#include "vector_options.h"

#include "base/file.h"
#include "cli/train/train_monitor.h"
#include "sesame/vectors.h"
#include "vectors/word_corpus.h"

const char *ses_vector_format_name(int choice)
{
    const char *item, *name;
    size_t n;
    if (choice < 0 || !ses_list_at(SES_VECTOR_FORMAT_CHOICES, (size_t)choice, &item, &n)) return NULL;
    for (size_t i = 0; (name = ses_vectors_writable_format(i)); i++)
        if (ses_equal(item, n, name)) return name;
    return NULL;
}

bool ses_output_file_check(const char *path, bool overwrite, ses_err *e)
{
    return overwrite || !ses_path_exists(path) ||
           ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path);
}

void ses_show_stop(ses_err *e)
{
    if (!e->code || !ses_train_monitor_should_stop()) return;
    fprintf(stderr, "sesame: %s\n", e->msg);
    *e = (ses_err){ 0 };
}

void ses_warn_skipped(const char *path, const ses_words_skipped *s)
{
    ses_buf text = { 0 };
    if (ses_words_skipped_text(s, &text) && text.data)
        fprintf(stderr, "sesame: warning: %s: %s\n", path, text.data);
    ses_buf_free(&text);
}
