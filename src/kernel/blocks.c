#include "blocks.h"

/* Tuned on Zen 4: 32 KB L1, 1 MB L2, 32 MB L3 near the cores. */
static const ses_blocks standard = { .rows = 1024, .packed_rows = 128, .strip_rows = 96, .strip_cols = 768 };

/* Chosen with a prototype on Emerald Rapids: 48 KB L1, 2 MB L2, 300 MB L3 far from the cores. A's part of a
 * pass stays in the L2 cache beside the panels of B. */
static const ses_blocks large_l2 = {
    .rows = 512, .packed_rows = 64, .strip_rows = 192, .strip_cols = 768, .far_memory = true
};

static int within(int value, int standard_value, int max)
{
    return value <= 0 ? standard_value : value > max ? max : value;
}

ses_blocks ses_blocks_complete(ses_blocks b)
{
    enum { MAX = 1 << 20, MAX_STRIP_ROWS = 1024 }; /* the strips of a pass fit into the scratch memory */
    return (ses_blocks){
        .rows = within(b.rows, standard.rows, MAX),
        .packed_rows = within(b.packed_rows, standard.packed_rows, MAX),
        .strip_rows = within(b.strip_rows, standard.strip_rows, MAX_STRIP_ROWS),
        .strip_cols = within(b.strip_cols, standard.strip_cols, MAX),
        .far_memory = b.far_memory,
    };
}

ses_blocks ses_blocks_of_caches(ses_cpu_caches c)
{
    enum {
        LARGE_L2 = 1280 << 10,
        SHARED_L2 = 8 << 20
    }; /* an L2 as large as this is shared by several cores */
    return c.l2 >= LARGE_L2 && c.l2 < SHARED_L2 ? large_l2 : standard;
}
