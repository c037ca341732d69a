/* JSON lines of evaluations: facts of LAMA and templates of relations, cases of CheckList. The first byte
 * selects the reader. */
#include "data/checklist_cases.h"
#include "data/lama_facts.h"
#include "fuzz.h"

static void read_cases(ses_json_lines *l, ses_err *e)
{
    ses_arena mem = { 0 };
    const ses_json *v = NULL;
    ses_checklist_case c;
    while (ses_json_lines_next(l, &v, e) && v && ses_checklist_case_read(v, &mem, &c, e)) {
        MUST(c.n && c.tolerance >= 0 && c.tolerance <= 1 && strlen(c.name.p) == c.name.n);
        for (size_t i = 0; i < c.n; i++) MUST(strlen(c.text[i].text.p) == c.text[i].text.n);
        ses_arena_reset(&mem);
    }
    ses_arena_free(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    ses_err e = { 0 };
    ses_json_lines l = { 0 };
    ses_lama_fact f;
    bool end = false;
    ses_lama_facts *facts = ses_lama_facts_new(data[0] & 2 ? "[X] is [Y] ." : NULL, NULL, &e);
    MUST(facts);
    ses_json_lines_from_text(&l, (const char *)data + 1, n - 1);
    if (data[0] & 1)
        read_cases(&l, &e);
    else if (data[0] & 4)
        ses_lama_facts_add_templates(facts, &l, &e);
    else
        while (ses_lama_facts_next(facts, &l, &f, &end, &e) && !end)
            MUST(f.answer.n && f.relation.n && (f.masks == 1 || (!f.before.n && !f.after.n)));
    MUST(!e.code || e.code == SES_EFORMAT || e.code == SES_EARG);
    ses_lama_facts_free(facts);
    ses_json_lines_free(&l);
    return 0;
}
