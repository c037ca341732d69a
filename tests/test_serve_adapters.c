/* Adapters of a server (LoRA, prefix and prompt tuning, bottleneck): requests select them, all share the
 * weights of their base model, and results equal the results of the command line. */
#define _GNU_SOURCE
#include "serve/serve_impl.h"
#include "serve_fixture.h"
#include "sesame/unstable/store.h"

static char spec[4][300];
static const char *const TEXT = "{\"inputs\":\"The bell rings.\",\"model\":\"%s\"}";

/* An adapter of `base` with other numbers than at the start. */
static void make_adapter(const char *base, const char *name, const char *kind, uint64_t seed)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_adapter_options adapter = {
        .rank = 2, .alpha = 4, .kind = kind, .virtual_tokens = 3, .reduction = 4
    };
    ses_model_options o = { .train = true, .adapter_options = &adapter };
    ses_model *m = dev ? ses_model_open(tmp_path(base), dev, &o, &e) : NULL;
    if (!CHECK_MSG(m, "%s", e.msg)) exit(check_report());
    ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *p = ses_store_at(s, i);
        if (!strstr(p->name, ".lora_B") && strncmp(p->name, "adapter.", 8)) continue;
        for (int64_t k = 0; k < ses_count(p->tensor); k++)
            p->tensor->f[k] = (float)((seed * 31 + (uint64_t)k * 7) % 11) / 5 - 1;
    }
    CHECK_MSG(ses_model_save(m, tmp_path(name), NULL, &e), "%s", e.msg);
    ses_model_free(m);
    ses_device_free(dev);
}

static float score_of(const char *dir)
{
    ses_err e = { 0 };
    float score = -1;
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("text-classification", dir, dev, NULL, &e) : NULL;
    const ses_result *out =
        p ? ses_pipeline_run(p, &(ses_item){ .text = { "The bell rings.", 15 } }, &e) : NULL;
    if (CHECK_MSG(out, "%s: %s", dir, e.msg)) score = (float)out->row[0].score;
    ses_pipeline_free(p);
    ses_device_free(dev);
    return score;
}

static float served_score(serving *s, const char *model)
{
    char body[128];
    snprintf(body, sizeof body, TEXT, model);
    return (float)number_at(post(s, "/predict", body, 200), "0/score");
}

/* The share of a model's elements that are in the memory of another one. */
static double shared_part(serving *s, const char *model, const ses_model **with)
{
    ses_served_model *m = ses_registry_find(ses_server_registry(s->server), model, NULL);
    const ses_store *store = ses_model_store(m->model);
    int64_t n = 0;
    for (size_t i = 0; i < ses_store_count(store); i++) {
        const ses_param *p = ses_store_at(store, i);
        if (p->borrowed) n += ses_count(p->tensor);
    }
    *with = m->base ? m->base->model : m->model;
    double part = (double)n / (double)ses_store_element_count(store);
    ses_served_model_release(m);
    return part;
}

static void check_models(serving *s, const char *const *names, size_t n, size_t owner)
{
    const ses_model *with, *first = NULL;
    for (size_t i = 0; i < n; i++) {
        double part = shared_part(s, names[i], &with);
        if (!first) first = with;
        CHECK_MSG(with == first, "%s has another base model", names[i]);
        CHECK_MSG(i == owner ? part == 0 : part > 0.5, "%s: %g", names[i], part);
        for (int k = 0; k < 3; k++) { /* packed on the second use */
            float want = score_of(tmp_path(names[i])), got = served_score(s, names[i]);
            CHECK_MSG(got == want, "%s: %.9g, %.9g alone", names[i], (double)got, (double)want);
        }
    }
}

static ses_server_options options(const char *const *names, size_t n)
{
    static const char *models[4];
    for (size_t i = 0; i < n; i++) {
        snprintf(spec[i], sizeof spec[i], "%s=%s", names[i], tmp_path(names[i]));
        models[i] = spec[i];
    }
    return (ses_server_options){ .models = models, .n_models = n, .admin = true };
}

static void test_orders(void)
{
    static const struct {
        const char *name[3];
        size_t n, owner; /* n: the owner is not among them */
    } list[] = {
        { { "base", "polite", "terse" }, 3, 0 },
        { { "polite", "base", "terse" }, 3, 3 },
        { { "polite", "terse" }, 2, 2 },
        { { "kind", "calm", "terse" }, 3, 3 },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        serving s;
        ses_server_options o = options(list[i].name, list[i].n);
        serving_start(&s, &o);
        check_models(&s, list[i].name, list[i].n, list[i].owner);
        serving_stop(&s);
    }
}

/* Adapters outlive their unloaded base model; a reload reads changed weights of it. */
static void test_reload(void)
{
    static const char *const names[] = { "base", "polite", "terse" };
    serving s;
    ses_server_options o = options(names, 3);
    serving_start(&s, &o);
    float polite = served_score(&s, "polite");
    post(&s, "/admin/models/base/unload", "", 200);
    CHECK(served_score(&s, "polite") == polite);
    copy_files("tests/pipelines/bert-label", tmp_path("new"), model_files);
    make_nan("new"); /* other weights */
    char from[300], to[300];
    snprintf(from, sizeof from, "%s/model.safetensors", tmp_path("new"));
    snprintf(to, sizeof to, "%s/model.safetensors", tmp_path("base"));
    CHECK(!rename(from, to));
    CHECK(served_score(&s, "polite") == polite); /* the file it has mapped */
    post(&s, "/admin/models/terse/reload", "", 200);
    CHECK(served_score(&s, "polite") == polite);
    post(&s, "/predict", "{\"inputs\":\"a\",\"model\":\"terse\"}", 500); /* NaN */
    post(&s, "/admin/models/polite/reload", "", 200);
    post(&s, "/predict", "{\"inputs\":\"a\",\"model\":\"polite\"}", 500);
    serving_stop(&s);
}

int main(void)
{
    make_models();
    copy_files("tests/pipelines/bert-label", tmp_path("base"), model_files);
    make_adapter("base", "polite", "lora", 1);
    make_adapter("base", "terse", "prefix", 2);
    make_adapter("base", "kind", "bottleneck", 3);
    make_adapter("base", "calm", "prompt", 4);
    CHECK(score_of(tmp_path("polite")) != score_of(tmp_path("terse")));
    test_orders();
    test_reload();
    remove_models();
    return check_report();
}
