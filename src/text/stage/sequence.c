/* The Sequence stages of all kinds: reading, flattening and saving a list of stages. */
#include "text/stage.h"

#include <string.h>

typedef struct sequence {
    const char *key;                /* key of the list in the settings */
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

static void close(void *self)
{
    sequence *s = self;
    for (size_t i = 0; i < s->n_own; i++) ses_stage_instance_close(&s->own[i]);
}

static void *open_list(ses_stage_kind kind, const ses_json *settings, const char *key, ses_arena *mem,
                       ses_err *e)
{
    const ses_json *list = ses_json_get(settings, key);
    if (ses_json_type_of(list) != SES_JSON_ARRAY) {
        ses_fail(e, SES_EFORMAT, "key \"%s\" must be an array", key);
        return NULL;
    }
    sequence *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !(s->own = ses_arena_array(mem, ses_json_len(list) + 1, sizeof *s->own, e))) return NULL;
    s->key = key;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!ses_stage_instance_open(&s->own[i], kind, ses_json_at(list, i), mem, e)) {
            ses_wrap(e, "%s[%zu]", key, i);
            goto fail;
        }
        s->n_own++;
    }
    if (flatten(s, mem, e)) return s;
fail:
    close(s);
    return NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    const sequence *s = self;
    ses_json_member_array(w, s->key);
    for (size_t i = 0; i < s->n_own; i++) ses_stage_instance_save(&s->own[i], w);
    ses_json_end_array(w);
}

static const ses_stage_instance *steps(const void *self, size_t *n)
{
    const sequence *s = self;
    *n = s->n_flat;
    return s->flat;
}

static void *open_norm(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    return open_list(SES_NORMALIZER, settings, "normalizers", mem, e);
}

static void *open_pre(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    return open_list(SES_PRE_TOKENIZER, settings, "pretokenizers", mem, e);
}

static void *open_post(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    return open_list(SES_POST_PROCESSOR, settings, "processors", mem, e);
}

static void *open_dec(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    return open_list(SES_DECODER, settings, "decoders", mem, e);
}

const ses_stage ses_stage_norm_sequence = { .type = "Sequence",
                                            .kind = SES_NORMALIZER,
                                            .open = open_norm,
                                            .close = close,
                                            .save = save,
                                            .steps = steps };

const ses_stage ses_stage_pre_sequence = { .type = "Sequence",
                                           .kind = SES_PRE_TOKENIZER,
                                           .open = open_pre,
                                           .close = close,
                                           .save = save,
                                           .steps = steps };

const ses_stage ses_stage_post_sequence = { .type = "Sequence",
                                            .kind = SES_POST_PROCESSOR,
                                            .open = open_post,
                                            .close = close,
                                            .save = save,
                                            .steps = steps };

const ses_stage ses_stage_dec_sequence = {
    .type = "Sequence", .kind = SES_DECODER, .open = open_dec, .close = close, .save = save, .steps = steps
};
