/* AWD-LSTM: five steps of SGD with carried state against fastai (tests/golden/awd-lstm-lm), a carried state
 * against one long pass, windows of truncated backpropagation, penalties, names of other state dicts. Outputs
 * and gradients against fastai: test_golden. */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "op/op.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/optim.h"

#include <math.h>
#include <unistd.h>

#define FOLDER "tests/golden/awd-lstm-lm"
enum { STEPS = 5, WINDOW = 7, SEQS = 3, LONG = STEPS * WINDOW + 1, VOCAB = 41 };

static ses_device *dev;

static ses_model *open_model(const char *dir, bool train)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .train = train }, &e);
    CHECK_MSG(m, "%s", e.msg);
    return m;
}

/* The texts of the carried steps: [SEQS, LONG]. */
static void read_texts(int32_t *text, double *losses)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_safetensors_open(FOLDER "/golden.safetensors", &e);
    const ses_tensor_entry *ids = ses_safetensors_find(s, "carried.input_ids"),
                           *l = ses_safetensors_find(s, "carried.losses");
    CHECK(ids && ids->count == SEQS * LONG && l && l->count == STEPS);
    for (int64_t i = 0; i < SEQS * LONG; i++) text[i] = (int32_t)((const int64_t *)ids->data)[i];
    memcpy(losses, l->data, STEPS * sizeof *losses);
    ses_safetensors_free(s);
}

/* Tokens from .. from + n - 1 of every text as a batch; labels are the ids. */
typedef struct text_part {
    int32_t ids[SEQS * LONG], cu[SEQS + 1];
    ses_batch b;
} text_part;

static void take_texts(text_part *c, const int32_t *text, int from, int n)
{
    c->cu[0] = 0;
    for (int s = 0; s < SEQS; s++) {
        memcpy(c->ids + s * n, text + s * LONG + from, (size_t)n * sizeof *text);
        c->cu[s + 1] = (s + 1) * n;
    }
    c->b =
        (ses_batch){ .seqs = SEQS, .tokens = SEQS * n, .cu_seqlens = c->cu, .ids = c->ids, .labels = c->ids };
}

static void read_output(ses_tape *t, const ses_outputs *out, const char *name, ses_real *to, int64_t n)
{
    const ses_output *x = ses_outputs_find(out, name);
    CHECK_MSG(x && ses_count(x->tensor) == n, "%s", name);
    if (x && ses_count(x->tensor) == n) CHECK(ses_tape_read(t, x->tensor, to));
}

static void test_carried_steps(void)
{
    ses_err e = { 0 };
    int32_t text[SEQS * LONG];
    double want[STEPS];
    read_texts(text, want);
    ses_model *m = open_model(FOLDER, true);
    ses_optim_options o;
    CHECK(ses_optim_defaults("sgd", &o, &e));
    o.momentum = 0;
    ses_optim *optim = ses_optim_new(ses_model_store(m), &o, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    int64_t size = ses_model_state_size(m);
    CHECK(size == 2 * (20 + 20 + 12));
    ses_real *state = ses_alloc_array((size_t)(SEQS * size), sizeof *state, &e);
    for (int w = 0; w < STEPS; w++) {
        text_part c;
        ses_outputs out;
        ses_real loss = 0;
        ses_real *before = ses_alloc_array((size_t)(SEQS * size), sizeof *state, &e);
        memcpy(before, state, (size_t)(SEQS * size) * sizeof *state);
        take_texts(&c, text, w * WINDOW,
                   WINDOW); /* the state after the window, by the weights before the step */
        c.b.rnn_state = before;
        ses_tape_reset(t, &(ses_tape_options){ 0 });
        CHECK_MSG(ses_model_forward(m, t, &c.b, &(ses_output_request){ .rnn_state = true }, &out, &e), "%s",
                  e.msg);
        read_output(t, &out, "rnn_state", state, SEQS * size);
        take_texts(&c, text, w * WINDOW, WINDOW + 1);
        c.b.rnn_state = w ? before : NULL;
        ses_tape_reset(t, &(ses_tape_options){ .record = true });
        ses_store_zero_grad(ses_model_store(m));
        CHECK_MSG(ses_model_forward(m, t, &c.b, NULL, &out, &e), "%s", e.msg);
        ses_backward(t, out.loss);
        CHECK(ses_tape_read(t, out.loss, &loss));
        ses_optim_step(optim, 0.5, 1);
        CHECK_MSG(fabs((double)loss - want[w]) < 1e-5, "window %d: %.8f, not %.8f", w, (double)loss, want[w]);
        ses_free(before);
    }
    ses_free(state);
    ses_tape_free(t);
    ses_optim_free(optim);
    ses_model_free(m);
}

/* Logits of a long pass have the bits of passes over its parts with a carried state, in any batch. */
static void test_state(void)
{
    ses_err e = { 0 };
    int32_t text[SEQS * LONG];
    double unused[STEPS];
    read_texts(text, unused);
    ses_model *m = open_model(FOLDER, false);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    int64_t size = ses_model_state_size(m);
    ses_real *state = ses_alloc_array((size_t)(SEQS * size), sizeof *state, &e),
             *all = ses_alloc_array(SEQS * LONG * VOCAB, sizeof *all, &e),
             *part = ses_alloc_array(SEQS * LONG * VOCAB, sizeof *part, &e);
    ses_output_request want = { .logits = true, .rnn_state = true };
    ses_outputs out;
    text_part c;
    take_texts(&c, text, 0, LONG);
    ses_tape_reset(t, &(ses_tape_options){ 0 });
    CHECK(ses_model_forward(m, t, &c.b, &want, &out, &e));
    read_output(t, &out, "logits", all, SEQS * LONG * VOCAB);
    for (int from = 0, n = 1; from<LONG; from += n, n = n + 4> LONG - from ? LONG - from : n + 3) {
        take_texts(&c, text, from, n);
        if (from) c.b.rnn_state = state;
        ses_tape_reset(t, &(ses_tape_options){ 0 });
        CHECK_MSG(ses_model_forward(m, t, &c.b, &want, &out, &e), "%s", e.msg);
        read_output(t, &out, "logits", part, SEQS * n * VOCAB);
        for (int s = 0; s < SEQS; s++)
            CHECK_MSG(!memcmp(part + s * n * VOCAB, all + (s * LONG + from) * VOCAB,
                              (size_t)(n * VOCAB) * sizeof *all),
                      "text %d, tokens %d to %d", s, from, from + n);
        read_output(t, &out, "rnn_state", state, SEQS * size);
        if (from + n == LONG) break;
    }
    const int32_t alone[] = { 0, LONG };
    c.b = (ses_batch){ .seqs = 1, .tokens = LONG, .cu_seqlens = alone, .ids = text + LONG };
    ses_tape_reset(t, &(ses_tape_options){ 0 });
    CHECK(ses_model_forward(m, t, &c.b, &want, &out, &e));
    read_output(t, &out, "logits", part, LONG * VOCAB);
    CHECK(!memcmp(part, all + LONG * VOCAB, LONG * VOCAB * sizeof *all));
    ses_free(state);
    ses_free(all);
    ses_free(part);
    ses_tape_free(t);
    ses_model_free(m);
}

static double *gradients(const ses_model *m, int64_t *n)
{
    const ses_store *s = ses_model_store(m);
    double *g = calloc((size_t)ses_store_element_count(s), sizeof *g);
    *n = 0;
    for (size_t i = 0; i < ses_store_count(s); i++)
        for (int64_t j = 0; j < ses_count(ses_store_at(s, i)->tensor); j++)
            g[(*n)++] = (double)ses_store_at(s, i)->tensor->grad[j];
    return g;
}

/* Adds the gradients of one batch times `weight`; returns its loss. */
static double add_gradients(const ses_model *m, ses_tape *t, const ses_batch *b, double weight,
                            ses_real *state, ses_tape_options o)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_real loss = 0;
    ses_tape_reset(t, &o);
    CHECK_MSG(ses_model_forward(m, t, b, &(ses_output_request){ .rnn_state = state }, &out, &e), "%s", e.msg);
    if (state) read_output(t, &out, "rnn_state", state, b->seqs * ses_model_state_size(m));
    ses_backward(t, ses_scale(t, out.loss, weight));
    CHECK(ses_tape_read(t, out.loss, &loss));
    return (double)loss;
}

/* One pass with windows has the gradients of a pass over each window, from the state before it. */
static void test_windows(void)
{
    ses_err e = { 0 };
    int32_t text[SEQS * LONG], labels[SEQS * LONG];
    double unused[STEPS];
    int64_t n = 0, size;
    read_texts(text, unused);
    ses_model *m = open_model(FOLDER, true);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    size = ses_model_state_size(m);
    ses_real *state = ses_alloc_array((size_t)(SEQS * size), sizeof *state, &e),
             *before = ses_alloc_array((size_t)(SEQS * size), sizeof *state, &e);
    static const int length[SEQS] = { LONG - 1, 2 * WINDOW + 3,
                                      WINDOW }; /* ragged: texts end in other windows */
    ses_tape_options record = { .record = true };
    text_part c;
    int32_t at = 0, labeled = 0;
    for (int s = 0; s < SEQS; s++) {
        c.cu[s] = at;
        for (int i = 0; i < length[s]; i++, at++) {
            c.ids[at] = text[s * LONG + i];
            labels[at] = i % WINDOW ? c.ids[at] : SES_IGNORE_INDEX; /* no label at the start of a window */
            labeled += i % WINDOW != 0;
        }
    }
    c.cu[SEQS] = at;
    c.b = (ses_batch){ .seqs = SEQS, .tokens = at, .cu_seqlens = c.cu, .ids = c.ids, .labels = labels };
    ses_store_zero_grad(ses_model_store(m));
    double whole = add_gradients(m, t, &c.b, 1, NULL, record);
    double *full = gradients(m, &n);
    c.b.window = WINDOW;
    ses_store_zero_grad(ses_model_store(m));
    double windowed = add_gradients(m, t, &c.b, 1, NULL, record);
    double *got = gradients(m, &n), sum = 0, differs = 0;
    CHECK_MSG(whole == windowed, "%.9g, not %.9g", windowed, whole);

    ses_store_zero_grad(ses_model_store(m));
    for (int s = 0; s < SEQS; s++) {
        memset(state, 0, (size_t)size * sizeof *state);
        for (int from = 0; from < length[s]; from += WINDOW) {
            int len = length[s] - from < WINDOW ? length[s] - from : WINDOW;
            const int32_t cu[] = { 0, len };
            memcpy(before, state, (size_t)size * sizeof *state);
            ses_batch b = { .seqs = 1,
                            .tokens = len,
                            .cu_seqlens = cu,
                            .ids = c.ids + c.cu[s] + from,
                            .labels = labels + c.cu[s] + from,
                            .rnn_state = before };
            double part = (double)(len - 1) / labeled;
            sum += part * add_gradients(m, t, &b, part, state, record);
        }
    }
    double *want = gradients(m, &n);
    CHECK_MSG(fabs(sum - whole) < 1e-6, "%.9g, not %.9g", sum, whole);
    for (int64_t i = 0; i < n; i++) {
        differs = fmax(differs, fabs(full[i] - want[i]));
        if (!(fabs(got[i] - want[i]) < 1e-6)) CHECK_MSG(false, "%d: %g, not %g", (int)i, got[i], want[i]);
    }
    CHECK_MSG(differs > 1e-4, "truncation changes nothing");
    free(full), free(got), free(want);
    ses_free(state);
    ses_free(before);
    ses_tape_free(t);
    ses_model_free(m);
}

/* Training adds alpha mean(h^2) + beta mean((h_t+1 - h_t)^2) to the loss, an evaluation does not. */
static void test_penalties(void)
{
    ses_err e = { 0 };
    int32_t text[SEQS * LONG];
    double unused[STEPS];
    read_texts(text, unused);
    ses_json_doc *doc = ses_model_config_open(FOLDER, NULL, &e);
    ses_model *plain = open_model(FOLDER, true);
    char config[2048];
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, &e);
    ses_json_put_value(w, ses_json_root(doc));
    const char *json = ses_json_writer_text(w, &n, &e);
    snprintf(config, sizeof config, "%.*s,\"alpha\":2,\"beta\":1}", (int)n - 1, json);
    ses_json_doc *with = ses_json_parse(config, strlen(config), &e);
    ses_model *m =
        ses_model_open(FOLDER, dev, &(ses_model_options){ .train = true, .config = ses_json_root(with) }, &e);
    CHECK_MSG(m, "%s", e.msg);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    text_part c;
    ses_outputs out;
    enum { N = 10, WIDTH = 12 };
    static ses_real h[SEQS * N * WIDTH];
    take_texts(&c, text, 0, N);
    ses_tape_reset(t, &(ses_tape_options){ 0 });
    CHECK(ses_model_forward(plain, t, &c.b, &(ses_output_request){ .hidden_states = true }, &out, &e));
    read_output(t, &out, "hidden_states.3", h, SEQS * N * WIDTH);
    double ar = 0, tar = 0;
    for (int s = 0; s < SEQS; s++)
        for (int i = 0; i < N * WIDTH; i++) {
            const ses_real *x = h + s * N * WIDTH + i;
            ar += (double)*x * (double)*x / (SEQS * N * WIDTH);
            if (i < (N - 1) * WIDTH) tar += pow((double)(x[WIDTH] - *x), 2) / (SEQS * (N - 1) * WIDTH);
        }
    ses_tape_options record = { .record = true, .train = true };
    double loss = add_gradients(plain, t, &c.b, 1, NULL, record);
    CHECK(fabs(add_gradients(m, t, &c.b, 1, NULL, record) - loss - 2 * ar - tar) < 1e-5);
    record.train = false;
    CHECK(fabs(add_gradients(m, t, &c.b, 1, NULL, record) - loss) < 1e-6);
    ses_tape_free(t);
    ses_model_free(m);
    ses_model_free(plain);
    ses_json_writer_free(w);
    ses_json_free(with);
    ses_json_free(doc);
}

/* State dicts as other programs write them: the names of the tensors of an encoder, and of the rest. */
typedef struct layout {
    const char *folder, *class_name;
    const char *encoder;      /* before the encoder's names */
    const char *head;         /* before the names of the head; NULL: left out */
    const char *raw;          /* before weight_hh_l0_raw; the module of other tensors is "module." */
    const char *head_dropout; /* number of the linear layer in the modules of the classifier */
    bool copies;              /* with the copies of modules for dropout */
} layout;

#define CLASSIFY "tests/golden/awd-lstm-classify"
static const layout layouts[] = {
    { FOLDER, NULL, "", "", "module.", "2", false },     /* awd-lstm-lm */
    { FOLDER, NULL, "0.", "1.", "", "2", true },         /* fastai, SequentialRNN(AWD_LSTM, LinearDecoder) */
    { FOLDER, "AwdLstmModel", "", NULL, "", "2", true }, /* fastai, save_encoder */
    /* fastai, SequentialRNN(SentenceEncoder(AWD_LSTM), PoolingLinearClassifier) */
    { CLASSIFY, NULL, "0.module.", "1.", "", "2", true },
    { CLASSIFY, NULL, "0.module.", "1.", "", "1", true }, /* made without dropout */
    { CLASSIFY, "AwdLstmModel", "0.module.", "1.", "", "2", true },
};

/* The name of a tensor in the layout; false: it has none there. */
static bool rename_tensor(const layout *l, const char *own, char *buf, size_t n)
{
    int layer;
    char rest[64];
    if (sscanf(own, "rnns.%d.%63s", &layer, rest) == 2 && strcmp(rest, "weight_hh_l0") != 0)
        return snprintf(buf, n, "%srnns.%d.module.%s", l->encoder, layer, rest) > 0;
    if (!strncmp(own, "rnns.", 5))
        return snprintf(buf, n, "%srnns.%d.%sweight_hh_l0_raw", l->encoder, layer, l->raw) > 0;
    if (!strncmp(own, "encoder.", 8)) return snprintf(buf, n, "%s%s", l->encoder, own) > 0;
    if (sscanf(own, "layers.%d.2.%63s", &layer, rest) == 2 && l->head)
        return snprintf(buf, n, "%slayers.%d.%s.%s", l->head, layer, l->head_dropout, rest) > 0;
    return l->head && snprintf(buf, n, "%s%s", l->head, own) > 0;
}

static void put_copies(const layout *l, const ses_safetensors *s, ses_safetensors_writer *w)
{
    ses_err e = { 0 };
    char name[96];
    static const float zero = 0; /* read when the file is saved */
    const ses_tensor_entry *x = ses_safetensors_find(s, "encoder.weight"),
                           *h = ses_safetensors_find(s, "rnns.0.weight_hh_l0");
    snprintf(name, sizeof name, "%sencoder_dp.emb.weight", l->encoder);
    CHECK(ses_safetensors_writer_add(w, name, x->dtype, x->rank, x->dim, x->data, &e));
    snprintf(name, sizeof name, "%srnns.0.module.weight_hh_l0", l->encoder); /* older versions */
    CHECK(ses_safetensors_writer_add(w, name, h->dtype, h->rank, h->dim, h->data, &e));
    if (strcmp(l->folder, CLASSIFY) != 0) return;
    snprintf(name, sizeof name, "%slayers.0.0.num_batches_tracked", l->head);
    CHECK(ses_safetensors_writer_add(w, name, SES_F32, 0, NULL, &zero, &e));
}

static void put_layout(const layout *l, const char *dir)
{
    ses_err e = { 0 };
    char path[128], name[96];
    snprintf(path, sizeof path, "%s/model.safetensors", l->folder);
    ses_safetensors *s = ses_safetensors_open(path, &e);
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(s, i);
        if (rename_tensor(l, x->name, name, sizeof name))
            CHECK(ses_safetensors_writer_add(w, name, x->dtype, x->rank, x->dim, x->data, &e));
    }
    if (l->copies) put_copies(l, s, w);
    size_t n;
    snprintf(path, sizeof path, "%s/config.json", l->folder);
    char *config = ses_file_read(path, 1 << 16, &n, &e);
    CHECK(ses_dir_make(dir, &e));
    snprintf(path, sizeof path, "%s/config.json", dir);
    CHECK(ses_file_write(path, config, n, true, &e));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CHECK_MSG(ses_safetensors_save(w, path, true, &e), "%s", e.msg);
    ses_safetensors_writer_free(w);
    ses_safetensors_free(s);
    ses_free(config);
}

/* The same weights under the names of awd-lstm-lm and of fastai; their copies count as used. */
static void test_names(void)
{
    char dir[64];
    snprintf(dir, sizeof dir, "/tmp/sesame-awd-%ld", (long)getpid());
    for (size_t k = 0; k < SES_LEN(layouts); k++) {
        const layout *l = &layouts[k];
        ses_err e = { 0 };
        put_layout(l, dir);
        ses_model_options o = { .class_name = l->class_name };
        ses_model *m = ses_model_open(l->folder, dev, &o, &e);
        o.strict = !l->class_name || !l->head;
        ses_model *other = ses_model_open(dir, dev, &o, &e);
        if (!CHECK_MSG(m && other, "layout %zu: %s", k, e.msg)) continue;
        CHECK_STR(ses_model_missing_keys(other), "");
        for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
            const ses_tensor *a = ses_store_at(ses_model_store(m), i)->tensor,
                             *b = ses_store_at(ses_model_store(other), i)->tensor;
            CHECK(a->f && b->f && !memcmp(a->f, b->f, (size_t)ses_count(a) * sizeof *a->f));
        }
        ses_model_free(other);
        ses_model_free(m);
        ses_dir_remove(dir, NULL);
    }
}

/* The classifier in training: its loss, and the running statistics after one batch. */
static void test_batch_norm(void)
{
    static const char folder[] = CLASSIFY;
    ses_err e = { 0 };
    enum { ROWS = 3, LEN = 11 };
    int32_t ids[ROWS * LEN], labels[ROWS];
    const int32_t cu[] = { 0, LEN, 2 * LEN, 3 * LEN };
    char path[96];
    snprintf(path, sizeof path, "%s/golden.safetensors", folder);
    ses_safetensors *s = ses_safetensors_open(path, &e);
    const ses_tensor_entry *x = ses_safetensors_find(s, "input.input_ids"),
                           *y = ses_safetensors_find(s, "input.labels"),
                           *want = ses_safetensors_find(s, "train.loss");
    CHECK(x && x->count == ROWS * LEN && y && y->count == ROWS && want);
    for (int i = 0; i < ROWS * LEN; i++) ids[i] = (int32_t)((const int64_t *)x->data)[i];
    for (int i = 0; i < ROWS; i++) labels[i] = (int32_t)((const int64_t *)y->data)[i];
    ses_model *m = open_model(folder, true);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_batch b = { .seqs = ROWS, .tokens = ROWS * LEN, .cu_seqlens = cu, .ids = ids, .labels = labels };
    double loss = add_gradients(m, t, &b, 1, NULL, (ses_tape_options){ .record = true, .train = true });
    CHECK_MSG(fabs(loss - (double)*(const float *)want->data) < 1e-5, "%g", loss);
    int compared = 0;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        char name[96] = "train.";
        const ses_tensor *p = ses_store_at(ses_model_store(m), i)->tensor;
        CHECK(ses_model_tensor_name(m, i, name + 6, sizeof name - 6));
        const ses_tensor_entry *stat = ses_safetensors_find(s, name);
        for (int64_t j = 0; stat && j < stat->count; j++, compared++)
            CHECK_MSG(fabs((double)p->f[j] - (double)((const float *)stat->data)[j]) < 1e-5, "%s", name);
    }
    CHECK(compared == 2 * (36 + 7));
    ses_tape_free(t);
    ses_model_free(m);
    ses_safetensors_free(s);
}

/* 100,000 time steps. */
static void test_long(void)
{
    enum { N = 100000 };
    ses_err e = { 0 };
    ses_model *m = open_model(FOLDER, false);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    int32_t *ids = ses_alloc_array(N, sizeof *ids, &e), row = N - 1;
    const int32_t cu[] = { 0, N };
    for (int i = 0; i < N; i++) ids[i] = 5 + i % 30;
    ses_batch b = { .seqs = 1, .tokens = N, .cu_seqlens = cu, .ids = ids };
    ses_outputs out;
    ses_real logits[VOCAB] = { NAN };
    CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true, .rows = &row, .n_rows = 1 },
                                &out, &e),
              "%s", e.msg);
    read_output(t, &out, "logits", logits, VOCAB);
    CHECK(isfinite(logits[0]) && isfinite(logits[VOCAB - 1]));
    ses_free(ids);
    ses_tape_free(t);
    ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_carried_steps();
    test_state();
    test_windows();
    test_penalties();
    test_names();
    test_batch_norm();
    test_long();
    ses_device_free(dev);
    return check_report();
}
