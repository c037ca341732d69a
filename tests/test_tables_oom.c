/* Readers of labeled text with every allocation failing in turn. */
#include "io/conllu.h"
#include "oom.h"
#include "sesame/unstable/table.h"

static bool records(const char *text, ses_table_format format, ses_err *e)
{
    const char *columns[] = { "b", "a" };
    ses_records_options o = { .format = format, .columns = columns, .n_columns = 2 };
    ses_records *r = ses_records_from_text(text, strlen(text), &o, e);
    const ses_string *row;
    bool ok = r != NULL;
    while (ok && (ok = ses_records_next(r, &row, e)) && row) {}
    ses_records_free(r);
    return ok;
}

static bool csv(void *ctx, ses_err *e)
{
    (void)ctx;
    return records(
        "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r\n"
        "\"x\ny\",2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,a field that is longer than others by far\n",
        SES_TABLE_CSV, e);
}
static bool jsonl(void *ctx, ses_err *e)
{
    (void)ctx;
    return records("{\"a\":1,\"b\":[\"x\",2]}\n{\"b\":null,\"a\":2.5}\n", SES_TABLE_JSONL, e);
}
static bool file(void *ctx, ses_err *e)
{
    ses_records *r = ses_records_open(ctx, NULL, e);
    const ses_string *row;
    bool ok = r != NULL;
    while (ok && (ok = ses_records_next(r, &row, e)) && row) {}
    ses_records_free(r);
    return ok;
}
static bool conll(void *ctx, ses_err *e)
{
    ses_conll *c = ses_conll_from_text(ctx, strlen(ctx), NULL, e);
    ses_conll_sentence s;
    bool ok = c != NULL;
    while (ok && (ok = ses_conll_next(c, &s, e)) && s.n) {}
    ses_conll_free(c);
    return ok;
}
static bool conllu(void *ctx, ses_err *e)
{
    ses_conllu *c = ses_conllu_from_text(ctx, strlen(ctx), NULL, e);
    ses_conllu_sentence s;
    bool ok = c != NULL;
    while (ok && (ok = ses_conllu_next(c, &s, e)) && s.n) {}
    ses_conllu_free(c);
    return ok;
}
static bool squad(void *ctx, ses_err *e)
{
    ses_squad *q = ses_squad_from_text(ctx, strlen(ctx), NULL, e);
    ses_question x;
    bool end = false, ok = q != NULL;
    while (ok && (ok = ses_squad_next(q, &x, &end, e)) && !end) {}
    ses_squad_free(q);
    return ok;
}

int main(void)
{
    char lines[2000] = "a b\n";
    for (int i = 0; i < 100; i++) {
        size_t n = strlen(lines);
        snprintf(lines + n, sizeof lines - n, "token%d O\n%s", i, i == 70 ? "\n" : "");
    }
    char trees[8000] = "";
    for (int i = 0; i < 100; i++) {
        size_t n = strlen(trees);
        snprintf(trees + n, sizeof trees - n, "%d\tword%d\tl\tU\tx\t_\t%d\tdep\t_\t_\n", i + 1, i, i);
    }
    char json[] =
        "{\"data\":[{\"paragraphs\":[{\"context\":\"a cat\",\"qas\":[{\"id\":\"1\",\"question\":\"Q\","
        "\"answers\":[{\"text\":\"cat\",\"answer_start\":2}]}]}]}]}";
    char path[] = "tests/fuzz/corpus/fuzz_records/csv";
    oom_sweep("CSV", csv, NULL);
    oom_sweep("JSON lines", jsonl, NULL);
    oom_sweep("a file", file, path);
    oom_sweep("CoNLL", conll, lines);
    oom_sweep("CoNLL-U", conllu, trees);
    oom_sweep("SQuAD", squad, json);
    return check_report();
}
