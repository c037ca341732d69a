/* BertProcessing: [CLS] A [SEP] and [CLS] A [SEP] B [SEP]; type id 1 for B and the last [SEP]. */
#include "text/stage/shared/named_id.h"

typedef struct bert {
    ses_named_id sep, cls;
    ses_template_item single[3], pair[5];
} bert;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    bert *b = ses_arena_array(mem, 1, sizeof *b, e);
    if (!b || !ses_named_id_read(&b->sep, settings, "sep", mem, e) ||
        !ses_named_id_read(&b->cls, settings, "cls", mem, e))
        return NULL;
    ses_template_item cls = { SES_TEMPLATE_SPECIAL, b->cls.id, 0, b->cls.token };
    ses_template_item sep = { SES_TEMPLATE_SPECIAL, b->sep.id, 0, b->sep.token };
    ses_template_item last = { SES_TEMPLATE_SPECIAL, b->sep.id, 1, b->sep.token },
                      a = { .kind = SES_TEMPLATE_A, .id = -1 },
                      second = { .kind = SES_TEMPLATE_B, .id = -1, .type_id = 1 };
    b->single[0] = b->pair[0] = cls;
    b->single[1] = b->pair[1] = a;
    b->single[2] = b->pair[2] = sep;
    b->pair[3] = second;
    b->pair[4] = last;
    return b;
}

static void save(const void *self, ses_json_writer *w)
{
    const bert *b = self;
    ses_named_id_save(&b->sep, "sep", w);
    ses_named_id_save(&b->cls, "cls", w);
}

static ses_post_template post_template(const void *self, bool pair)
{
    const bert *b = self;
    return pair ? (ses_post_template){ .item = b->pair, .n = 5 }
                : (ses_post_template){ .item = b->single, .n = 3 };
}

const ses_stage ses_stage_post_bert = {
    .type = "BertProcessing",
    .kind = SES_POST_PROCESSOR,
    .open = open,
    .save = save,
    .post_template = post_template,
};
