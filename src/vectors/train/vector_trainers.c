/* The list of trainers, and their settings by name. */
#include "vector_trainer.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

static const ses_vector_trainer *const list[] = {
#define SES_VECTOR_TRAINER(name) &ses_vector_trainer_##name,
#include "vector_trainers.def"
#undef SES_VECTOR_TRAINER
};

const ses_vector_trainer *ses_vector_trainer_find(const char *name, ses_err *e)
{
    ses_buf names = { 0 };
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    for (size_t i = 0; i < SES_LEN(list); i++) ses_buf_appendf(&names, "%s%s", i ? ", " : "", list[i]->name);
    ses_fail(e, SES_EUSAGE, "--model \"%s\": unknown; expected one of %s", name,
             names.data ? names.data : "");
    ses_buf_free(&names);
    return NULL;
}

static bool choose(const ses_vector_setting *s, const char *text, double *value, ses_err *e)
{
    const char *item;
    size_t len;
    for (size_t i = 0; ses_list_at(s->choices, i, &item, &len); i++)
        if (ses_equal(item, len, text)) return *value = (double)i, true;
    return ses_fail(e, SES_EUSAGE, "--%s \"%s\": expected one of %s", s->name, text, s->choices);
}

static bool parse(const ses_vector_setting *s, const char *text, double *value, ses_err *e)
{
    if (s->type == SES_VECTOR_CHOICE) return choose(s, text, value, e);
    if (!ses_parse_number(text, strlen(text), value) ||
        (s->type == SES_VECTOR_INTEGER && *value != floor(*value)))
        return ses_fail(e, SES_EUSAGE, "--%s \"%s\": expected %s", s->name, text,
                        s->type == SES_VECTOR_INTEGER ? "an integer" : "a number");
    if (*value < s->low || *value > s->high)
        return ses_fail(e, SES_EUSAGE, "--%s %s: expected a number from %.10g to %.10g", s->name, text,
                        s->low, s->high);
    return true;
}

static size_t setting_of(const ses_vector_trainer *t, const char *name, size_t n)
{
    size_t i = 0;
    while (i < t->n_settings && !ses_equal(name, n, t->setting[i].name)) i++;
    return i;
}

/* Fails if a setting that was given has no effect beside the others. */
static bool check_idle(const ses_vector_job *job, const ses_vector_setting *s, ses_err *e)
{
    const ses_vector_trainer *t = job->trainer;
    if (!s->idle) return true;
    const char *value = strchr(s->idle, '=') + 1;
    size_t i = setting_of(t, s->idle, (size_t)(value - 1 - s->idle));
    double idle;
    if (!parse(&t->setting[i], value, &idle, e)) return false;
    return job->value[i] != idle ||
           ses_fail(e, SES_EUSAGE, "--%s has no effect with --%s %s%s", s->name, t->setting[i].name,
                    job->text[i], job->text[i] == t->setting[i].def ? ", the default" : "");
}

bool ses_vector_job_set(ses_vector_job *job, const ses_vector_trainer *t, const char *const *name,
                        const char *const *value, size_t n, ses_err *e)
{
    job->trainer = t;
    for (size_t i = 0; i < t->n_settings; i++) job->text[i] = t->setting[i].def;
    for (size_t k = 0; k < n; k++) {
        if (!value[k]) continue;
        size_t i = setting_of(t, name[k], strlen(name[k]));
        if (i == t->n_settings)
            return ses_fail(e, SES_EUSAGE, "--%s is not an option of --model %s", name[k], t->name);
        job->text[i] = value[k];
    }
    for (size_t i = 0; i < t->n_settings; i++)
        if (!parse(&t->setting[i], job->text[i], &job->value[i], e)) return false;
    for (size_t i = 0; i < t->n_settings; i++)
        if (job->text[i] != t->setting[i].def && !check_idle(job, &t->setting[i], e)) return false;
    return true;
}

const char *ses_vector_job_level(const ses_vector_job *job)
{
    return !job->device           ? ses_isa_name(ses_isa_vectors(ses_isa_best()))
           : job->device->is_host ? "ref"
                                  : "cuda";
}

char *ses_vector_checkpoint_path(const ses_vector_job *job, ses_err *e)
{
    ses_buf path = { 0 };
    char *output = ses_strdup(job->output, e);
    if (!output) return NULL;
    ses_path_trim(output); /* a folder may have a slash at its end */
    ses_buf_appendf(&path, "%s.checkpoint", output);
    ses_free(output);
    if (ses_buf_ok(&path, e)) return path.data;
    ses_buf_free(&path);
    return NULL;
}
