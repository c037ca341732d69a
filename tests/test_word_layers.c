/* Layers of a frozen encoder as vectors of words, against transformers (fixtures/word_layers, made by
 * word_layers.py): one layer, mean, sum, concatenation, layers to be mixed; the syntax after '@'. */
#define _XOPEN_SOURCE 700 /* realpath, symlink */
#include "base/arena.h"
#include "base/json/json_helpers.h"
#include "check.h"
#include "sesame/json.h"
#include "task/words/layer_suffix.h"
#include "task/words/word_stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/fixtures/word_layers"
enum { WIDTH = 8, DEPTH = 3, MAX_WORDS = 32 };

static ses_string word[MAX_WORDS];
static size_t first[MAX_WORDS];
static double state[DEPTH + 1][MAX_WORDS][WIDTH];

static size_t read_states(const ses_json *f, ses_sentences *s)
{
    const ses_json *all = ses_json_get(f, "sentences"), *layers = ses_json_get(f, "layers");
    size_t n = 0;
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const ses_json *x = ses_json_at(all, i);
        for (size_t k = 0; k < ses_json_len(x); k++, n++) {
            const char *text = ses_json_string(ses_json_at(x, k), NULL);
            word[n] = (ses_string){ text, strlen(text) };
        }
        first[i + 1] = n;
    }
    CHECK(ses_json_len(layers) == DEPTH + 1 && n > 10);
    for (size_t l = 0; l <= DEPTH; l++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < WIDTH; j++)
                CHECK(ses_json_real(ses_json_at(ses_json_at(ses_json_at(layers, l), i), j), &state[l][i][j]));
    *s = (ses_sentences){ word, first, ses_json_len(all) };
    return n;
}

/* Compares the vectors with layers from .. to: their sum times scale, or, scale 0, side by side. */
static void compare_folder(ses_device *dev, const ses_sentences *s, const char *folder, const char *suffix,
                           int from, int to, double scale)
{
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_word_features f;
    char list[192];
    snprintf(list, sizeof list, "char,transformer:%s%s", folder, suffix);
    int64_t want = scale > 0 ? WIDTH : WIDTH * (to - from + 1);
    ses_word_stack *w = ses_word_stack_parse(list, dev, &e);
    double worst = 0;
    if (CHECK_MSG(w, "%s: %s", suffix, e.msg) && CHECK(ses_word_stack_width(w) == want) &&
        CHECK_MSG(ses_word_stack_embed(w, s, &mem, &f, &e), "%s", e.msg))
        for (size_t i = 0; i < s->first[s->n]; i++)
            for (int64_t j = 0; j < want; j++) {
                double y = 0;
                for (int l = from; l <= to && scale > 0; l++) y += scale * state[l][i][j];
                if (scale <= 0) y = state[from + j / WIDTH][i][j % WIDTH];
                worst = fmax(worst, fabs(y - (double)f.vectors[(int64_t)i * want + j]));
            }
    CHECK_MSG(worst < 1e-5, "%s: %g", suffix, worst);
    ses_word_stack_free(w);
    ses_arena_free(&mem);
}

static void compare(ses_device *dev, const ses_sentences *s, const char *suffix, int from, int to,
                    double scale)
{
    compare_folder(dev, s, FOLDER, suffix, from, to, scale);
}

/* A folder whose own name ends as a suffix does: its last layer, or the layer of a suffix after it. */
static void check_folder_name(ses_device *dev, const ses_sentences *s)
{
    char link[64], folder[4096];
    snprintf(link, sizeof link, "/tmp/test_word_layers.%d@2", (int)getpid());
    if (!CHECK(realpath(FOLDER, folder) && !symlink(folder, link))) return;
    compare_folder(dev, s, link, "", 3, 3, 1);
    compare_folder(dev, s, link, "@1", 1, 1, 1);
    unlink(link);
}

static void check_refused(ses_device *dev, const char *suffix, const char *message)
{
    ses_err e = { 0 };
    char list[128];
    snprintf(list, sizeof list, "transformer:" FOLDER "%s", suffix);
    ses_word_stack *w = ses_word_stack_parse(list, dev, &e);
    CHECK_MSG(!w && strstr(e.msg, message), "%s: %s", suffix, e.msg);
    ses_word_stack_free(w);
}

static void check_suffix(void)
{
    static const char *const none[] = { "dir",         "org/name@main", "name@v1", "name@4f2a",
                                        "name@1/part", "name@-1/x",     "name@",   "name@allthelayers" };
    static const char *const some[] = { "name@2", "dir/x@-1", "a@b@all", "x@all+mix", "x@-4..-1", "x@1+sum" };
    ses_layer_choice k;
    ses_err e = { 0 };
    for (size_t i = 0; i < SES_LEN(none); i++) CHECK_MSG(!ses_layer_suffix(none[i]), "%s", none[i]);
    for (size_t i = 0; i < SES_LEN(some); i++) CHECK_MSG(ses_layer_suffix(some[i]), "%s", some[i]);
    CHECK(ses_layer_suffix_parse("all+mix", 12, &k, &e) && k.n == 12 && k.layer[0] == 1 &&
          k.layer[11] == 12 && k.combine == SES_COMBINE_MIX);
    CHECK(ses_layer_suffix_parse("-13..2", 12, &k, &e) && k.n == 3 && k.layer[0] == 0 && k.layer[2] == 2 &&
          k.combine == SES_COMBINE_MEAN);
}

int main(void)
{
    ses_err e = { 0 };
    ses_sentences s;
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_json_doc *f = ses_json_load(FOLDER "/states.json", 1 << 20, &e);
    if (CHECK_MSG(dev && f, "%s", e.msg) && read_states(ses_json_root(f), &s)) {
        compare(dev, &s, "", 3, 3, 1);
        compare(dev, &s, "@-1", 3, 3, 1);
        compare(dev, &s, "@0", 0, 0, 1);
        compare(dev, &s, "@-2+mix", 2, 2, 1);
        compare(dev, &s, "@1..3", 1, 3, 1.0 / 3);
        compare(dev, &s, "@-2..-1+sum", 2, 3, 1);
        compare(dev, &s, "@-4..-1+concat", 0, 3, 0);
        compare(dev, &s, "@all+mix", 1, 3, 0);
        check_folder_name(dev, &s);
    }
    check_refused(dev, "@4", "layers 4: the model has layers 0 to 3, or -1 to -4");
    check_refused(dev, "@-5..-1+mix", "the model has layers 0 to 3");
    check_refused(dev, "@3..1", "expected a rising range");
    check_refused(dev, "@1..", "expected a number, a range or all");
    check_refused(dev, "@1..2+max", "combined by mean, sum, concat or mix");
    check_refused(dev, "@-", "expected a number");
    check_refused(dev, "@99999999999999999999", "the model has layers 0 to 3");
    check_suffix();
    ses_json_free(f);
    ses_device_free(dev);
    return check_report();
}
