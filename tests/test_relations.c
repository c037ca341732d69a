/* Relations of tokens (MiniLM) against PyTorch and transformers (fixtures/relations, made by relations.py):
 * losses, and gradients of every parameter of a narrower student. Also: what does not fit. */
#include "gradient_file.h"
#include "model/model_desc.h"
#include "train/distill.h"

#include <stdio.h>
#include <string.h>

static const char *const TEACHER = "tests/golden/bert-masked-lm", *const STUDENT =
                                                                      "tests/fixtures/relations/student";

static const int32_t cu[] = { 0, 7, 13 };
static const int32_t ids[] = { 2, 9, 4, 36, 3, 8, 2, 7, 7, 11, 30, 8, 3 };
static const ses_batch batch = { .seqs = 2, .tokens = 13, .cu_seqlens = cu, .ids = ids };

static void compare(const ses_model *m, const ses_safetensors *file, const char *name)
{
    int checked = 0;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        char key[256], text[300];
        if (!ses_model_tensor_name(m, i, key, sizeof key)) continue;
        snprintf(text, sizeof text, "%s.%s", name, key);
        if (!ses_safetensors_find(file, text)) continue; /* does not reach the loss */
        /* a bias of all keys changes no softmax: its gradient is rounding error */
        if (strstr(key, "key.bias") && !strcmp(name, "attention")) continue;
        double d = gradient_distance(ses_store_at(ses_model_store(m), i)->tensor, file, text);
        CHECK_MSG(d < 1e-5, "%s: %g", text, d);
        checked++;
    }
    CHECK_MSG(checked > 6, "%s: %d parameters", name, checked);
}

static void run(const char *name, ses_distill_options o, ses_device *dev, const ses_safetensors *file)
{
    ses_err e = { 0 };
    ses_real loss = 0;
    char key[64];
    o.temperature = 1;
    ses_model *student = ses_model_open(STUDENT, dev, &(ses_model_options){ .train = true }, &e);
    ses_model *teacher = ses_model_open(TEACHER, dev, NULL, &e);
    ses_distill *d = student && teacher ? ses_distill_new(&o, student, teacher, &e) : NULL;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    if (d) ses_store_zero_grad(ses_model_store(student));
    ses_tensor *l = d && t ? ses_distill_loss(d, t, &batch, &e) : NULL;
    if (l) ses_backward(t, l);
    CHECK_MSG(l && ses_tape_ok(t, &e) && ses_tape_read(t, l, &loss), "%s: %s", name, e.msg);
    snprintf(key, sizeof key, "%s.loss", name);
    check_loss((double)loss, file, key);
    if (l) compare(student, file, name);
    ses_tape_free(t);
    ses_distill_free(d);
    ses_model_free(teacher);
    ses_model_free(student);
}

static void refuses(ses_distill_options o, const char *message, ses_device *dev)
{
    ses_err e = { 0 };
    o.temperature = o.relation = 1;
    ses_model *student = ses_model_open(STUDENT, dev, &(ses_model_options){ .train = true }, &e);
    ses_model *teacher = ses_model_open(TEACHER, dev, NULL, &e);
    CHECK_MSG(student && teacher, "%s", e.msg);
    ses_distill *d = student && teacher ? ses_distill_new(&o, student, teacher, &e) : NULL;
    CHECK_MSG(!d && strstr(e.msg, message), "\"%s\"", e.msg);
    ses_distill_free(d);
    ses_model_free(teacher);
    ses_model_free(student);
}

static void refuses_recurrent(ses_device *dev)
{
    static const char config[] = "{\"model_type\": \"rnn-encoder\", \"rnn_type\": \"lstm\", "
                                 "\"bidirectional\": true, \"embedding_size\": 8, "
                                 "\"hidden_size\": 8, \"num_hidden_layers\": 1, \"pooling\": \"max\", "
                                 "\"vocab_size\": 71, \"pad_token_id\": 0, "
                                 "\"id2label\": {\"0\": \"LABEL_0\", \"1\": \"LABEL_1\"}}";
    ses_err e = { 0 };
    ses_json_doc *c = ses_json_parse(config, strlen(config), &e);
    ses_model_options o = { .random_init = true, .train = true };
    ses_model *student = c ? ses_model_new(ses_json_root(c), dev, &o, &e) : NULL;
    ses_model *teacher = ses_model_open(TEACHER, dev, NULL, &e);
    CHECK_MSG(student && teacher, "%s", e.msg);
    ses_distill *d =
        student && teacher
            ? ses_distill_new(&(ses_distill_options){ .temperature = 1, .relation = 1 }, student, teacher, &e)
            : NULL;
    CHECK_MSG(!d && (strstr(e.msg, "has no attention") || strstr(e.msg, "labels")), "\"%s\"", e.msg);
    ses_distill_free(d);
    ses_model_free(teacher);
    ses_model_free(student);
    ses_json_free(c);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_safetensors *file = ses_safetensors_open("tests/fixtures/relations/expected.safetensors", &e);
    CHECK_MSG(dev && file, "%s", e.msg);
    if (!dev || !file) return check_report();
    run("attention", (ses_distill_options){ .relation = 1, .relations = "attention,vv", .relation_heads = 2 },
        dev, file);
    run("v2", (ses_distill_options){ .relation = 1, .relation_heads = 8 }, dev, file);
    run("layer",
        (ses_distill_options){ .relation = 1, .relations = "vv", .relation_heads = 4, .teacher_layer = 1 },
        dev, file);
    refuses((ses_distill_options){ .relation_heads = 5 },
            "relation-heads 5: does not divide the width of the student's queries, keys and values, 16", dev);
    refuses((ses_distill_options){ .relation_heads = 16 },
            "relation-heads 16: does not divide the width of the teacher's queries, keys and values, 24",
            dev);
    refuses((ses_distill_options){ .teacher_layer = 3, .relation_heads = 2 },
            "teacher-layer 3: the teacher has layers 1 to 2", dev);
    refuses((ses_distill_options){ .relations = "qq,xx" }, "relations \"qq,xx\": expected a list", dev);
    refuses((ses_distill_options){ .relations = "" }, "relations \"\": expected a list", dev);
    refuses((ses_distill_options){ .relations = "qq," }, "relations \"qq,\": expected a list", dev);
    refuses((ses_distill_options){ .attention = 1, .relation_heads = 2 },
            "attention scores: the student has 4 heads, the teacher 3", dev);
    refuses_recurrent(dev);
    ses_safetensors_free(file);
    ses_device_free(dev);
    return check_report();
}
