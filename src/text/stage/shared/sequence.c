/* The Sequence stages of all kinds: reading, flattening and saving a list of stages. */
#include "sequence.h"

#include <string.h>

typedef struct sequence {
    ses_stage_instance *own, *flat; /* as in the file; and with nested sequences flattened */
    size_t n_own, n_flat;
} sequence;

static bool flatten(sequence *s, ses_arena *mem, ses_err *e)
{
    size_t total = 0, n;
    for (size_t i = 0; i < s->n_own; i++) {
        const ses_stage *stage = s->own[i].stage;
        if (stage && stage->steps)
            stage->steps(s->own[i].self, &n), total += n;
        else
            total += stage != NULL;
    }
    s->flat = ses_arena_array(mem, total + 1, sizeof *s->flat, e);
    if (!s->flat) return false;
    for (size_t i = 0; i < s->n_own; i++) {
        const ses_stage *stage = s->own[i].stage;
        const ses_stage_instance *from = &s->own[i];
        n = stage != NULL;
        if (stage && stage->steps) from = stage->steps(s->own[i].self, &n);
        memcpy(s->flat + s->n_flat, from, n * sizeof *from);
        s->n_flat += n;
    }
    return true;
}

void *ses_sequence_open(ses_stage_kind kind, const ses_json *settings, const char *key, ses_arena *mem,
                        ses_err *e)
{
    const ses_json *list = ses_json_get(settings, key);
    if (ses_json_type_of(list) != SES_JSON_ARRAY) {
        ses_fail(e, SES_EFORMAT, "key \"%s\" must be an array", key);
        return NULL;
    }
    sequence *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !(s->own = ses_arena_array(mem, ses_json_len(list) + 1, sizeof *s->own, e))) return NULL;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!ses_stage_instance_open(&s->own[i], kind, ses_json_at(list, i), mem, e)) {
            ses_wrap(e, "%s[%zu]", key, i);
            goto fail;
        }
        s->n_own++;
    }
    if (flatten(s, mem, e)) return s;
fail:
    ses_sequence_close(s);
    return NULL;
}

void ses_sequence_close(void *self)
{
    sequence *s = self;
    for (size_t i = 0; i < s->n_own; i++) ses_stage_instance_close(&s->own[i]);
}

void ses_sequence_save(const void *self, const char *key, ses_json_writer *w)
{
    const sequence *s = self;
    ses_json_put_key(w, key);
    ses_json_begin_array(w);
    for (size_t i = 0; i < s->n_own; i++) ses_stage_instance_save(&s->own[i], w);
    ses_json_end_array(w);
}

const ses_stage_instance *ses_sequence_steps(const void *self, size_t *n)
{
    const sequence *s = self;
    *n = s->n_flat;
    return s->flat;
}
