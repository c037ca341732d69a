#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/file.h"
#include "io/pickle.h"
#include "io/safetensors_impl.h"
#include "torch_fixture.h"

#include <unistd.h>

static zip_file z;
static char dir[64];

static bool open_memory(void *ctx, ses_err *e)
{
    (void)ctx;
    ses_safetensors *s = ses_tensors_from_memory(ses_torch_add, z.b.data, z.b.n, "x", e);
    bool ok = s != NULL;
    if (s) CHECK(ses_safetensors_count(s) == 3 && ses_safetensors_find(s, "turned"));
    ses_safetensors_free(s);
    return ok;
}

static bool open_folder(void *ctx, ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(ctx, e);
    bool ok = s != NULL;
    if (s) CHECK(ses_safetensors_count(s) == 3);
    ses_safetensors_free(s);
    return ok;
}

/* The documented memory bound, on worst-case pickles: `head`, then a piece repeated up to the limit. */
static void check_bound(void)
{
    static const struct {
        const char *head, *piece;
    } kinds[] = {
        { "", "}" },
        { "", "] x94" },
        { "", "N" },
        { "", "K x07" },
        { "]", "N a" },
        { "] q x00", "h x00 a" },
        { "", "] N a" },
        { "", "} N N s" },
        { "", "} q x01 0" },
        { "(", "N" },
        { "N", "x85" },
        { "", "x8c x00" },
        { "", "} x94 ( N N u" },
        { "( N", "t ( h x00" },
    };
    enum { SIZE = 1 << 20 };
    unsigned char *big = malloc(SIZE);
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        static bytes head, piece;
        size_t n = 0;
        head.n = piece.n = 0;
        put_pickle(&head, P_HEAD);
        put_pickle(&head, kinds[i].head);
        put_pickle(&piece, kinds[i].piece);
        memcpy(big, head.data, head.n);
        for (n = head.n; n + piece.n <= SIZE; n += piece.n) memcpy(big + n, piece.data, piece.n);
        size_t before = oom.bytes;
        oom.peak = oom.bytes;
        CHECK(!ses_pickle_read(big, n, NULL, 0, NULL)); /* no STOP */
        CHECK_MSG(oom.peak - before <= 56 * n + 32768, "kind %zu: %zu for %zu", i, oom.peak - before, n);
    }
    free(big);
}

/* Huge sizes in the file cause no huge allocations. */
static void check_claims(void)
{
    static const char *const claims[] = {
        P_HEAD "} r xff xff xff x00 .",
        P_HEAD "} 'w " P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #100000000 x85 #0 x85") "s .",
        P_HEAD "X xff xff xff x7f",
    };
    for (size_t i = 0; i < SES_LEN(claims); i++) {
        make_torch_of(&z, claims[i], false);
        size_t before = oom.bytes;
        oom.peak = oom.bytes;
        CHECK(!ses_tensors_from_memory(ses_torch_add, z.b.data, z.b.n, "x", NULL));
        CHECK_MSG(oom.peak - before <= 40000, "claim %zu: %zu", i, oom.peak - before);
    }
}

/* Non-contiguous tensors are copied, in total at most as many bytes as the file has. */
static void check_copies(void)
{
    static bytes pickle;
    put_pickle(&pickle, P_HEAD "} ");
    put_pickle(&pickle, "@torch._utils:_rebuild_tensor "
                        "( " P_STORAGE("Float", "0", "6") "#0 #6 x85 #0 x85 t R q x00 0");
    for (int i = 0; i < 500; i++) {
        char words[32];
        snprintf(words, sizeof words, "'t%d h x00 s", i);
        put_pickle(&pickle, words);
    }
    put_pickle(&pickle, ".");
    make_torch(&z, pickle.data, pickle.n, false);
    ses_err e = { 0 };
    CHECK(!ses_tensors_from_memory(ses_torch_add, z.b.data, z.b.n, "x", &e));
    CHECK(strstr(e.msg, "not contiguous, and its 6 elements exceed the size of the file"));
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-torch-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    char one[96], index[128], shard[96];
    static const char map[] = "{\"weight_map\":{\"a\":\"one.bin\",\"b\":\"one.bin\",\"turned\":\"one.bin\"}}";
    snprintf(one, sizeof one, "%s/pytorch_model.bin", dir);
    snprintf(index, sizeof index, "%s/pytorch_model.bin.index.json", dir);
    snprintf(shard, sizeof shard, "%s/one.bin", dir);
    make_torch_of(&z, TORCH_GOOD, false);
    oom_sweep("open", open_memory, NULL);
    make_old(&z.b, OLD_GOOD, OLD_KEYS);
    oom_sweep("open an old file", open_memory, NULL);
    make_torch_of(&z, TORCH_GOOD, false);
    CHECK(ses_file_write(one, z.b.data, z.b.n, true, NULL));
    oom_sweep("open folder", open_folder, dir);
    unlink(one);
    CHECK(ses_file_write(shard, z.b.data, z.b.n, true, NULL) &&
          ses_file_write(index, map, sizeof map - 1, true, NULL));
    oom_sweep("open shards", open_folder, dir);
    unlink(shard), unlink(index);
    check_bound();
    check_claims();
    check_copies();
    CHECK(rmdir(dir) == 0 && oom.live == 0);
    return check_report();
}
