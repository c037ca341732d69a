/* The data of the map page, see page/map.js. */
#ifndef SES_ANALYSIS_MAP_PAGE_H
#define SES_ANALYSIS_MAP_PAGE_H

#include "analysis/map/map_layout.h"
#include "analysis/map/map_points.h"
#include "figure/report.h"

/* Adds the points and their layouts as data blocks. color: index of a column, or n_columns: none. */
bool ses_map_page_add(ses_report *r, const ses_map_points *p, const ses_map_layout *l, size_t layouts,
                      size_t color, const char *method, ses_err *e);

#endif
