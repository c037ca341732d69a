/* The scripts and style sheets of page/, in the program: page_data.c, written by cmake/page.cmake. Constant
 * data, safe in all threads. */
#ifndef SES_FIGURE_PAGE_FILE_H
#define SES_FIGURE_PAGE_FILE_H

#include "sesame/base.h"

typedef struct ses_page_file {
    const char *name; /* "view.js" */
    const unsigned char *data;
    size_t size;
    unsigned char sha256[32]; /* hash of data, for the content security policy */
} ses_page_file;

extern const ses_page_file ses_page_files[]; /* ends with a NULL name */

const ses_page_file *ses_page_file_find(const char *name); /* NULL: none */

#endif
