/* Formats of word vectors as options. */
#include "vector_format_option.h"

#include "base/str.h"
#include "sesame/vectors.h"

const char *ses_vector_format_name(int choice)
{
    const char *item, *name;
    size_t n;
    if (choice < 0 || !ses_list_at(SES_VECTOR_FORMAT_CHOICES, (size_t)choice, &item, &n)) return NULL;
    for (size_t i = 0; (name = ses_vectors_writable_format(i)); i++)
        if (ses_equal(item, n, name)) return name;
    return NULL;
}
