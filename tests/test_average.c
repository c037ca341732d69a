/* The mean of the weights of models: values against plain loops, mapped files, and models that do not fit. */
#define _POSIX_C_SOURCE 200809L
#include "base/dir.h"
#include "check.h"
#include "model_fixture.h"
#include "sesame/unstable/store.h"
#include "train/average.h"

#include <math.h>

static const char bert[] = "BertForSequenceClassification";

static ses_json_doc *configs[64]; /* the models borrow them */
static size_t n_configs;

/* A model with random weights. */
static ses_model *new_model(const char *config, const char *class_name, uint64_t seed, ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *c = config ? ses_json_parse(config, strlen(config), &e) : fixture_config(class_name, &e);
    ses_model *m = c ? ses_model_new(ses_json_root(c), dev, NULL, &e) : NULL;
    CHECK_MSG(m, "%s", e.msg);
    if (m) ses_store_init(ses_model_store(m), 0.3, seed);
    configs[n_configs++] = c;
    return m;
}

/* The largest difference of the weights of m from the mean of n models. */
static double distance(const ses_model *m, ses_model *const *of, int n)
{
    const ses_store *s = ses_model_store(m);
    double most = 0;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *t = ses_store_at(s, i)->tensor;
        for (int64_t k = 0; k < ses_count(t); k++) {
            double sum = 0;
            for (int j = 0; j < n; j++) sum += (double)ses_store_at(ses_model_store(of[j]), i)->tensor->f[k];
            double d = fabs((double)t->f[k] - sum / n);
            if (!(d <= most)) most = d; /* also NaN */
        }
    }
    return most;
}

static void test_mean(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *of[3], *m = new_model(NULL, bert, 1, dev);
    for (uint64_t i = 0; i < 3; i++) of[i] = new_model(NULL, bert, i + 1, dev);
    CHECK(distance(m, of, 1) == 0 && distance(m, of, 3) > 0.1);
    CHECK(ses_model_add_weights(m, of[1], &e) && ses_model_add_weights(m, of[2], &e));
    CHECK(ses_model_scale_weights(m, 1.0 / 3, &e));
    CHECK(distance(m, of, 3) < 1e-7);
    ses_model_free(m);
    for (int i = 0; i < 3; i++) ses_model_free(of[i]);
}

/* Weights that are pages of a file are copied, and the file stays as it is. */
static void test_file(ses_device *dev)
{
    ses_err e = { 0 };
    char dir[] = "/tmp/sesame-average-XXXXXX";
    ses_model *of[2] = { new_model(NULL, bert, 4, dev), new_model(NULL, bert, 5, dev) };
    ses_model_options values = { .no_packing = true };
    CHECK(mkdtemp(dir) && ses_model_save(of[0], dir, NULL, &e));
    for (int again = 0; again < 2; again++) {
        ses_model *m = ses_model_open(dir, dev, &values, &e);
        CHECK_MSG(m && distance(m, of, 1) == 0, "%s", e.msg);
        CHECK(m && ses_model_add_weights(m, of[1], &e) && ses_model_scale_weights(m, 0.5, &e));
        CHECK(m && distance(m, of, 2) < 1e-7);
        ses_model_free(m);
    }
    ses_dir_remove_all(dir, NULL);
    ses_model_free(of[0]);
    ses_model_free(of[1]);
}

static void refused(ses_device *dev, const char *config, const char *class_name, const char *message)
{
    ses_err e = { 0 };
    ses_model *m = new_model(NULL, bert, 1, dev), *same = new_model(NULL, bert, 1, dev);
    ses_model *other = new_model(config, class_name, 2, dev);
    CHECK(other && !ses_model_add_weights(m, other, &e));
    CHECK_MSG(strstr(e.msg, message), "got \"%s\"", e.msg);
    CHECK(distance(m, &same, 1) == 0);
    ses_model_free(m);
    ses_model_free(same);
    ses_model_free(other);
}

/* config.json with these heads, width, layers and labels; the fixture has 4, 20, 2 and a, b, c. */
static const char *config(int heads, int width, int layers, const char *labels)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "{\"architectures\": [\"BertForSequenceClassification\"], \"model_type\": \"bert\", "
             "\"vocab_size\": 37, \"num_attention_heads\": %d, \"hidden_size\": %d, "
             "\"num_hidden_layers\": %d, \"intermediate_size\": 28, \"max_position_embeddings\": 16, "
             "\"type_vocab_size\": 2, \"pad_token_id\": 0, \"hidden_dropout_prob\": 0.3, \"id2label\": {%s}}",
             heads, width, layers, labels);
    return text;
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!CHECK(dev)) return 1;
    test_mean(dev);
    test_file(dev);
    refused(dev, NULL, "BertForMaskedLM", "is a BertForMaskedLM instead of a BertForSequenceClassification");
    static const char abc[] = "\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"";
    refused(dev, config(4, 20, 2, "\"0\": \"a\", \"1\": \"b\""), NULL, "has 2 labels instead of 3");
    refused(dev, config(4, 20, 2, "\"0\": \"a\", \"1\": \"c\", \"2\": \"b\""), NULL,
            "label 1 is \"c\" instead of \"b\"");
    refused(dev, config(4, 24, 2, abc), NULL, "has the shape [37, 24] instead of [37, 20]");
    refused(dev, config(4, 20, 1, abc), NULL, "has no weight ");
    refused(dev, config(4, 20, 3, abc), NULL, " weights instead of ");
    refused(dev, config(2, 20, 2, abc), NULL, "config.json: \"num_attention_heads\" is 2 instead of 4");
    ses_model *m = new_model(NULL, bert, 1, dev), *fits = new_model(config(4, 20, 2, abc), NULL, 2, dev);
    CHECK_MSG(ses_model_add_weights(m, fits, &e), "%s", e.msg); /* another dropout only */
    ses_model_free(m);
    ses_model_free(fits);
    while (n_configs) ses_json_free(configs[--n_configs]);
    ses_device_free(dev);
    return check_report();
}
