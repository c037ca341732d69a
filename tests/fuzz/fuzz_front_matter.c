/* Front matter of a model card to JSON, and the checks of the card. */
#include "fuzz.h"
#include "hub/card.h"

static bool count(void *ctx, ses_card_level level, const char *what)
{
    MUST(level == SES_CARD_ERROR || level == SES_CARD_HINT);
    MUST(what && *what);
    ++*(int *)ctx;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_card card = { 0 };
    int problems = 0;
    bool ok = ses_card_parse(&card, (const char *)data, n, &e);
    MUST(ok == (e.code == SES_OK));
    if (ok) {
        MUST(!card.meta || ses_json_type_of(ses_json_root(card.meta)) == SES_JSON_OBJECT);
        MUST(card.body <= n);
        ses_card_check(&card, NULL, count, &problems);
        ses_card_has(&card, "language", "en");
    }
    ses_card_free(&card);
    return 0;
}
