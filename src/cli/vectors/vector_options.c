/* Options and steps that several actions of `sesame vectors` share. */
#include "vector_options.h"

#include "base/file.h"
#include "base/number_text.h"
#include "cli/train/train_monitor.h"
#include "sesame/vectors.h"
#include "vectors/vectors_impl.h"
#include "vectors/word_corpus.h"

#include <string.h>

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
    if (!ses_path_exists(path)) return true;
    if (ses_path_is_dir(path)) return ses_fail(e, SES_EUSAGE, "%s is a folder; expected a file", path);
    return overwrite || ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path);
}

bool ses_vectors_output_check(const char *path, const char *format, bool overwrite, ses_err *e)
{
    const ses_word_format *f = NULL;
    for (size_t i = 0; format && (f = ses_word_format_at(i)) && strcmp(f->name, format) != 0;) i++;
    if (!f || !f->check_folder || !ses_path_exists(path)) return ses_output_file_check(path, overwrite, e);
    if (!overwrite) return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path);
    return f->check_folder(path, e);
}

void ses_show_stop(ses_err *e)
{
    if (!e->code || !ses_train_monitor_should_stop()) return;
    fprintf(stderr, "sesame: %s\n", e->msg);
    *e = (ses_err){ 0 };
}

void ses_report_duplicate_words(const ses_call *c, const char *path, const ses_vectors *v)
{
    char count[SES_NUMBER_TEXT];
    int64_t n = ses_vectors_duplicates(v);
    if (n && !c->quiet)
        fprintf(stderr, "%s: %s word%s occurred again; the first vector of a word counts\n", path,
                ses_grouped_text(count, n), n == 1 ? "" : "s");
}

void ses_warn_skipped(const char *path, const ses_words_skipped *s)
{
    ses_buf text = { 0 };
    if (ses_words_skipped_text(s, &text) && text.data)
        fprintf(stderr, "sesame: warning: %s: %s\n", path, text.data);
    ses_buf_free(&text);
}
