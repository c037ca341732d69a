/* The mock hub (mock_hub.h) as a program, for scripts: hub_mock ROOT [SLOW_MS] prints its port and runs until
 * its input ends. */
#define _GNU_SOURCE
#include "mock_hub.h"

int main(int argc, char **argv)
{
    mock_hub h = { .root = argc > 1 ? argv[1] : ".",
                   .lfs_from = 4096,
                   .token = getenv("MOCK_TOKEN"),
                   .cdn = getenv("MOCK_CDN") };
    if (argc > 2) atomic_store(&h.slow_ms, (int)strtol(argv[2], NULL, 10));
    if (!mock_start(&h)) return 1;
    printf("%d\n", h.port);
    fflush(stdout);
    while (getchar() != EOF) continue;
    fprintf(stderr, "%d requests, %d for files, %d with ranges, tokens: %d here, %d elsewhere\n",
            atomic_load(&h.requests), atomic_load(&h.file_requests), atomic_load(&h.ranges),
            atomic_load(&h.tokens_here), atomic_load(&h.tokens_elsewhere));
    return 0;
}
