/* Finds stop strings, and the beginnings of stop strings, at the end of a text. */
#include "stop_text.h"

#include <string.h>

size_t ses_stop_text_find(const ses_generate_options *o, const char *text, size_t n, size_t from)
{
    size_t found = n;
    for (int64_t i = 0; i < o->n_stop_strings; i++) {
        size_t m = strlen(o->stop_strings[i]);
        for (size_t at = from; m && at + m <= n && at < found; at++)
            if (!memcmp(text + at, o->stop_strings[i], m)) found = at;
    }
    return found;
}

size_t ses_stop_text_final(const ses_generate_options *o, const char *text, size_t n, size_t from)
{
    size_t final = n;
    for (int64_t i = 0; i < o->n_stop_strings; i++) {
        size_t m = strlen(o->stop_strings[i]), at = n > from + m ? n - m : from;
        while (at < final && memcmp(text + at, o->stop_strings[i], n - at)) at++;
        if (at < final) final = at;
    }
    return final;
}
