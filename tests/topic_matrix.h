/* The small matrix of tests/fixtures/topics.py. */
#ifndef TESTS_TOPIC_MATRIX_H
#define TESTS_TOPIC_MATRIX_H

#include "vectors/topic/term_counts.h"

enum { ROWS = 60, COLS = 40, TOPICS = 5 };

static int64_t row_start[ROWS + 1];
static int32_t columns[ROWS * COLS];
static double values[ROWS * COLS];

static ses_term_counts topic_matrix(void)
{
    ses_term_counts b = { ROWS, COLS, row_start, columns, values };
    int64_t n = 0;
    for (int32_t r = 0; r < ROWS; r++) {
        for (int32_t c = 0; c < COLS && r != 17; c++)
            if ((r * 7 + c * 13 + r * c) % 11 == 0 || (r % 5 == c % 5 && (r + c) % 3 == 0))
                columns[n] = c, values[n++] = 1 + (r + c) % 4;
        row_start[r + 1] = n;
    }
    return b;
}

#endif
