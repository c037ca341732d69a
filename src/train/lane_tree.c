/* The tree of lanes. */
#include "lane_tree.h"

int64_t ses_lane_split(ses_lane_node x)
{
    int64_t p = 1;
    while (2 * p < x.end - x.begin) p *= 2;
    return x.begin + p;
}

bool ses_lane_is_node(int64_t n, ses_lane_node x)
{
    ses_lane_node at = { 0, n };
    while (at.begin != x.begin || at.end != x.end) {
        if (x.begin < at.begin || x.end > at.end || at.end - at.begin < 2) return false;
        int64_t split = ses_lane_split(at);
        if (x.begin < split)
            at.end = split;
        else
            at.begin = split;
    }
    return true;
}

static size_t cover(ses_lane_node at, int64_t begin, int64_t end, ses_lane_node *out, size_t used)
{
    if (at.end <= begin || at.begin >= end) return used;
    if (at.begin >= begin && at.end <= end) {
        if (used < SES_MAX_LANE_NODES) out[used] = at;
        return used + 1;
    }
    int64_t split = ses_lane_split(at);
    used = cover((ses_lane_node){ at.begin, split }, begin, end, out, used);
    return cover((ses_lane_node){ split, at.end }, begin, end, out, used);
}

size_t ses_lane_cover(int64_t n, int64_t begin, int64_t end, ses_lane_node out[SES_MAX_LANE_NODES])
{
    return n > 0 ? cover((ses_lane_node){ 0, n }, begin, end, out, 0) : 0;
}

ses_lane_node ses_lanes_of_rank(int64_t lanes, int rank, int size)
{
    return (ses_lane_node){ lanes * rank / size, lanes * (rank + 1) / size };
}
