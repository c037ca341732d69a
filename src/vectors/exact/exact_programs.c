/* The list of reproduced programs, and their settings by name. */
#include "exact.h"

#include "base/number.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static const ses_exact_program *const list[] = {
#define SES_EXACT(name) &ses_exact_##name,
#include "exact_programs.def"
#undef SES_EXACT
};

const ses_exact_program *ses_exact_find(const char *name, ses_err *e)
{
    ses_buf names = { 0 };
    const ses_exact_program *found = NULL;
    for (size_t i = 0; i < SES_LEN(list); i++) {
        if (!strcmp(list[i]->name, name)) found = list[i];
        ses_buf_appendf(&names, "%s%s", i ? ", " : "", list[i]->name);
    }
    if (!found)
        ses_fail(e, SES_EUSAGE, "--exact \"%s\": unknown program; expected one of %s", name,
                 names.data ? names.data : "");
    ses_buf_free(&names);
    return found;
}

static bool parse(const ses_exact_program *p, size_t i, const char *text, ses_exact_job *job, ses_err *e)
{
    const ses_exact_setting *s = &p->setting[i];
    job->text[i] = text;
    if (!text || s->type == SES_EXACT_WORD) return true;
    if (!ses_parse_number(text, strlen(text), &job->value[i]))
        return ses_fail(e, SES_EUSAGE, "--%s \"%s\": expected a number", s->name, text);
    if (s->type == SES_EXACT_INTEGER && job->value[i] != floor(job->value[i]))
        return ses_fail(e, SES_EUSAGE, "--%s \"%s\": expected an integer", s->name, text);
    return true;
}

bool ses_exact_set(const ses_exact_program *p, const char *const *name, const char *const *value, size_t n,
                   ses_exact_job *job, ses_err *e)
{
    for (size_t i = 0; i < p->n_settings; i++)
        if (!parse(p, i, p->setting[i].def, job, e)) return false;
    for (size_t k = 0; k < n; k++) {
        size_t i = 0;
        if (!value[k]) continue;
        while (i < p->n_settings && strcmp(p->setting[i].name, name[k]) != 0) i++;
        if (i == p->n_settings)
            return ses_fail(e, SES_EUSAGE, "--%s is not an option of %s", name[k], p->name);
        if (!parse(p, i, value[k], job, e)) return false;
    }
    return true;
}

bool ses_exact_range(const ses_exact_program *p, const ses_exact_job *job, size_t i, double low, double high,
                     ses_err *e)
{
    if (job->value[i] >= low && job->value[i] <= high) return true;
    return ses_fail(e, SES_EUSAGE, "--%s %s: expected a number from %.10g to %.10g", p->setting[i].name,
                    job->text[i], low, high);
}
