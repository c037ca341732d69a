/* Models by name: ses_model_resolve with paths, names, search paths and SESAME_MODELS; opening by name. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "sesame/sentence.h"

#include <stdlib.h>
#include <string.h>

static void resolves(const char *name, const char *search_path, const char *end)
{
    ses_err e = { 0 };
    char *dir = ses_model_resolve(name, search_path, &e);
    size_t n = dir ? strlen(dir) : 0;
    CHECK_MSG(dir && n >= strlen(end) && !strcmp(dir + n - strlen(end), end), "%s: %s", name,
              dir ? dir : e.msg);
    free(dir);
}

static void fails(const char *name, const char *search_path, const char *message)
{
    ses_err e = { 0 };
    char *dir = ses_model_resolve(name, search_path, &e);
    CHECK_MSG(!dir && e.code == SES_EIO && strstr(e.msg, message), "%s: %s", name, dir ? dir : e.msg);
    free(dir);
}

static void test_resolve(void)
{
    resolves("tests/golden/bert-classify", NULL, "tests/golden/bert-classify"); /* paths stay as they are, */
    resolves("no/such/folder", NULL, "no/such/folder"); /* even if they do not exist */
    resolves("tests", NULL, "tests");
    resolves("bert-classify", "tests/golden", "/tests/golden/bert-classify");
    resolves("bert-classify", ":nowhere:tests/golden:", "/tests/golden/bert-classify");
    fails("bert-classify", "tests", "no such folder");
    fails("bert-classify", "tests", "/tests"); /* the searched folders are listed */
    fails("sesame-smal", "tests", "sesame-small");
    CHECK_STR(ses_model_default("fill-mask"), "sesame-small");
    CHECK(!ses_model_default("no-such-task"));
}

/* SESAME_MODELS is the default search path of every function that opens a model. */
static void test_open(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    setenv("SESAME_MODELS", "tests/golden", 1);
    resolves("bert-classify", NULL, "/tests/golden/bert-classify");
    fails("bert-classify", "", "no such folder"); /* an explicit path replaces it */
    ses_model *m = ses_model_open("bert-classify", dev, NULL, &e);
    CHECK_MSG(m && !strcmp(ses_model_class_name(m), "BertForSequenceClassification"), "%s", e.msg);
    ses_sentence *s = ses_sentence_open("bert-classify", dev, NULL, &e);
    CHECK_MSG(s, "%s", e.msg);
    ses_sentence_free(s);
    ses_model_free(m);
    unsetenv("SESAME_MODELS");
    CHECK(!ses_model_open("bert-classify", dev, NULL, &e) && e.code == SES_EIO);
    ses_device_free(dev);
}

int main(void)
{
    test_resolve();
    test_open();
    return check_report();
}
