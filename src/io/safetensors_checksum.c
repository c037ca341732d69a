/* Checksum in the metadata of safetensors files. */
#include "safetensors_impl.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char ZEROS[] = "0000000000000000";
enum { DIGITS = sizeof ZEROS - 1 };

bool ses_safetensors_writer_add_checksum(ses_safetensors_writer *w, ses_err *e)
{
    return ses_safetensors_writer_add_meta(w, SES_SAFETENSORS_CHECKSUM, ZEROS, e);
}

/* The digits follow the first key of this name: quotes within strings are escaped. */
static char *find_digits(char *head, size_t n)
{
    static const char key[] = "\"" SES_SAFETENSORS_CHECKSUM "\":\"";
    for (char *at = head; n >= sizeof key - 1 + DIGITS; at++, n--)
        if (*at == '"' && !memcmp(at, key, sizeof key - 1)) return at + sizeof key - 1;
    return NULL;
}

bool ses_safetensors_checksum(const void *bytes, size_t n, size_t head, size_t *at, char hex[24], ses_err *e)
{
    char *copy = ses_alloc(head, e), *digits;
    if (!copy) return false;
    memcpy(copy, bytes, head);
    digits = find_digits(copy, head);
    bool ok = digits || ses_fail(e, SES_EFORMAT, "no digits after " SES_SAFETENSORS_CHECKSUM);
    if (ok) {
        memcpy(digits, ZEROS, DIGITS);
        *at = (size_t)(digits - copy);
        uint64_t sum = ses_checksum_join(ses_checksum_chunks(copy, head),
                                         ses_checksum_chunks((const char *)bytes + head, n - head));
        snprintf(hex, 24, "%016" PRIx64, sum);
    }
    ses_free(copy);
    return ok;
}
