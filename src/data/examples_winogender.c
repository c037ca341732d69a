/* Reads all_sentences.tsv of the Winogender schemas (Rudinger et al. 2018). A row has the id
 * OCCUPATION.PARTICIPANT.ANSWER.GENDER.txt and a sentence. The choices are the two persons to whom the
 * pronoun may refer; ANSWER is 0 for the occupation, 1 for the participant. Sentences that differ in
 * GENDER only are a group. */
#include "examples_impl.h"

#include <stdio.h>
#include <string.h>

enum { OCCUPATION, PARTICIPANT, ANSWER, GENDER, PARTS };

static bool split_id(ses_string id, ses_string part[PARTS], ses_err *e)
{
    const char *p = id.p, *end = id.p + id.n;
    for (int i = 0; i < PARTS; i++) {
        const char *dot = p < end ? memchr(p, '.', (size_t)(end - p)) : NULL;
        if (!dot || dot == p)
            return ses_fail(e, SES_EFORMAT,
                            "sentid \"%s\", expected OCCUPATION.PARTICIPANT.ANSWER.GENDER.txt",
                            ses_quoted_of(id.p, id.n).s);
        part[i] = (ses_string){ p, (size_t)(dot - p) };
        p = dot + 1;
    }
    return ses_equal(p, (size_t)(end - p), "txt") ||
           ses_fail(e, SES_EFORMAT, "sentid \"%s\" does not end in .txt", ses_quoted_of(id.p, id.n).s);
}

/* "the nurse"; someone has no article. */
static bool name_person(ses_examples *d, ses_string who, ses_string *out, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s%.*s", ses_equal(who.p, who.n, "someone") ? "" : "the ", (int)who.n, who.p);
    *out = (ses_string){ b.data, b.len };
    bool ok = ses_buf_ok(&b, e) && ses_examples_keep(d, out, e);
    ses_buf_free(&b);
    return ok;
}

static bool add_sentence(ses_examples *d, const ses_string *row, uint64_t line, ses_err *e)
{
    ses_labeled_example x = { .line = line, .label = SES_IGNORE_INDEX, .id = row[0], .text_a = row[1] };
    ses_string part[PARTS] = { { NULL, 0 } }, *choice = ses_arena_array(&d->arena, 2, sizeof *choice, e);
    x.text_b = (ses_string){ "", 0 };
    if (!choice || !split_id(row[0], part, e)) return false;
    ses_string pair = { row[0].p, (size_t)(part[GENDER].p - row[0].p) }; /* the id without the gender */
    if (!name_person(d, part[OCCUPATION], &choice[0], e) ||
        !name_person(d, part[PARTICIPANT], &choice[1], e) || !ses_examples_take_group(d, pair, &x.group, e) ||
        !ses_examples_keep(d, &x.id, e) || !ses_examples_keep(d, &x.text_a, e))
        return false;
    x.parts = choice;
    x.n_parts = 2;
    if (!d->spec->no_labels && !ses_examples_take_label(d, part[ANSWER].p, part[ANSWER].n, &x.label, e))
        return false;
    return ses_examples_add(d, &x, e);
}

bool ses_read_winogender(ses_examples *d, const char *path, ses_err *e)
{
    static const char *const columns[] = { "sentid", "sentence" };
    ses_records_options o = { .format = SES_TABLE_TSV, .columns = columns, .n_columns = SES_LEN(columns) };
    ses_records *in = ses_records_open(path, &o, e);
    const ses_string *row;
    bool ok = in != NULL;
    while (ok && (ok = ses_records_next(in, &row, e) || ses_wrap(e, "%s", path)) && row)
        ok = add_sentence(d, row, ses_records_line(in), e) ||
             ses_wrap(e, "%s: line %llu", path, (unsigned long long)ses_records_line(in));
    ses_records_free(in);
    return ok;
}
