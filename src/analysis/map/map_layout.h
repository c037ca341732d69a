/* The map of one set of vectors: PCA, t-SNE or UMAP, and how well it keeps neighbourhoods. */
#ifndef SES_ANALYSIS_MAP_LAYOUT_H
#define SES_ANALYSIS_MAP_LAYOUT_H

#include "math/projection/map_quality.h"
#include "math/projection/tsne.h"

typedef enum { SES_MAP_PCA, SES_MAP_TSNE, SES_MAP_UMAP } ses_map_method;

enum { SES_MAP_COLUMNS = 50 }; /* most columns that t-SNE and UMAP read, after PCA */

typedef struct ses_map_settings {
    ses_map_method method;
    double perplexity;  /* 0: 30, or less for few points */
    int64_t neighbours; /* UMAP, with the point itself; 0: 15 */
    double min_dist;    /* UMAP; 0: 0.1 */
    int64_t iterations; /* t-SNE after the exaggeration, UMAP epochs; 0: the default */
    uint64_t seed;
} ses_map_settings;

typedef struct ses_map_layout {
    int64_t layer;         /* -1: given vectors */
    double *x, *y;         /* [n]; y is NULL before the layout; one block, owned */
    double kl;             /* t-SNE, to the vectors after PCA; else NaN */
    double explained;      /* variance along the two components, of 1; PCA, else NaN */
    double perplexity;     /* t-SNE: the one used */
    const char *repulsion; /* t-SNE: "exact", "tree" or "grid" */
    ses_map_quality quality;
} ses_map_layout;

/* Maps x [n, width], which is centred in place. Fails if a number is not finite, names its row, and if the
 * method needs more points. */
bool ses_map_layout_make(ses_map_layout *l, const ses_math *m, ses_real *x, int64_t n, int64_t width,
                         const ses_map_settings *s, ses_err *e);
/* Rotates and reflects a layout to be as near as possible to another one of the same points. */
void ses_map_layout_align(ses_map_layout *l, const ses_map_layout *to, int64_t n);
void ses_map_layout_free(ses_map_layout *l);
/* Fails, with an estimate of time and memory, if n points are too many for the method. */
bool ses_map_layout_check(const ses_map_settings *s, int64_t n, int64_t width, ses_err *e);

#endif
