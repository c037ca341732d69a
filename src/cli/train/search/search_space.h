/* The space of a search of `finetune`: each --grid is an axis, a list of values or a range of numbers. Points
 * are all combinations, or drawn at random. Strings live in the arena of the caller; one thread. */
#ifndef SES_CLI_SEARCH_SPACE_H
#define SES_CLI_SEARCH_SPACE_H

#include "base/arena.h"
#include "base/opt_table.h"

enum { SES_SEARCH_AXES = 16 };

typedef struct ses_search_axis {
    ses_opt opt;
    const char **value; /* [n]; n 0: a range */
    size_t n;
    double low, high;
    bool is_log;
} ses_search_axis;

typedef struct ses_search_space {
    ses_search_axis axis[SES_SEARCH_AXES];
    size_t n_axes;
    const char **drawn; /* [points, n_axes] of a random search; NULL: all combinations */
} ses_search_space;

/* Adds "NAME=VALUE,VALUE" or "NAME=LOW..HIGH[:log]". */
bool ses_search_space_add(ses_search_space *s, const char *text, ses_arena *mem, ses_err *e);
/* Number of combinations; 0: an axis is a range. Stops counting above max. */
size_t ses_search_space_points(const ses_search_space *s, size_t max);
/* Draws n points from (seed, number of the point): a longer list begins with the shorter one. */
bool ses_search_space_draw(ses_search_space *s, size_t n, uint64_t seed, ses_arena *mem, ses_err *e);
/* The value of an axis at a point; of combinations the last axis moves fastest. */
const char *ses_search_space_value(const ses_search_space *s, size_t point, size_t axis);

#endif
