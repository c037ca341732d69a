/* Reports the ranks of a distributed run: what each one sees, and the speed of the links. */
#include "rank_report.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/machine.h"
#include "cli/train/rank_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "comm/comm_impl.h"
#include "sesame/base.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sent by each rank to all others. */
typedef struct rank_record {
    int64_t pid, local_rank, threads, cores;
    uint64_t memory, free;
    int32_t nccl, has_gpu;
    char cpu[128], isa[16], gpu[128], library[64], version[32];
} rank_record;

typedef struct link_speed {
    double latency; /* seconds of a small exchange */
    double rate;    /* bytes per second, in each direction */
} link_speed;

enum { ALL_PAIRS = 4, MAX_LINKS = 64, BYTES = 16 << 20 };

typedef struct report {
    ses_comm *comm;
    int size;
    rank_record *rank; /* [size] */
    int links;
    link_speed link[MAX_LINKS];
    double gather;   /* bytes per second that each rank receives in an allgather */
    ses_device *dev; /* its memory is exchanged; NULL: host memory */
} report;

/* ---- properties ---- */

static void copy_text(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from); }

static void describe_self(const ses_comm *c, const ses_compute_args *a, rank_record *r)
{
    ses_machine m = ses_machine_detect();
    ses_gpu g;
    int local = ses_comm_local_rank(c);
    *r = (rank_record){ .pid = getpid(),
                        .local_rank = local,
                        .threads = ses_rank_threads(c, a),
                        .cores = m.usable,
                        .memory = m.memory,
                        .free = m.free,
                        .nccl = ses_comm_nccl_version(c) };
    copy_text(r->cpu, sizeof r->cpu, m.cpu);
    copy_text(r->isa, sizeof r->isa, ses_isa_name(ses_compute_isa(a)));
    copy_text(r->version, sizeof r->version, ses_version());
    snprintf(r->library, sizeof r->library, "%.60s", ses_comm_library(c));
    r->has_gpu = ses_gpu_describe(local > 0 ? local : 0, &g) || ses_gpu_describe(0, &g);
    if (r->has_gpu) snprintf(r->gpu, sizeof r->gpu, "%.120s", g.name);
}

/* "2.28.9" */
static const char *nccl_text(int version, char out[32])
{
    if (version)
        snprintf(out, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    else
        copy_text(out, 32, "none");
    return out;
}

/* Compared by training when the ranks join; each is a text of a record. */
typedef struct property {
    const char *what;
    void (*text)(const rank_record *r, char out[160]);
    bool of_gpus; /* compared by training on GPUs only */
} property;

static void version_of(const rank_record *r, char out[160]) { copy_text(out, 160, r->version); }
static void isa_of(const rank_record *r, char out[160]) { copy_text(out, 160, r->isa); }
static void gpu_of(const rank_record *r, char out[160]) { copy_text(out, 160, r->has_gpu ? r->gpu : "none"); }
static void nccl_of(const rank_record *r, char out[160]) { nccl_text(r->nccl, out); }
static void library_of(const rank_record *r, char out[160]) { copy_text(out, 160, r->library); }

static const property properties[] = {
    { "Sesame", version_of, false }, { "instruction set", isa_of, false }, { "GPU", gpu_of, true },
    { "NCCL", nccl_of, true },       { "MPI library", library_of, false },
};

/* Text about difference i of the ranks; false: there are fewer. refused: of the differences that training on
 * the report's device refuses, else of the others. */
static bool difference(const report *p, bool refused, int i, char *out, size_t size)
{
    for (size_t f = 0; f < SES_LEN(properties); f++) {
        char first[160], other[160];
        if (refused != (p->dev || !properties[f].of_gpus)) continue;
        properties[f].text(&p->rank[0], first);
        for (int r = 1; r < p->size; r++) {
            properties[f].text(&p->rank[r], other);
            if (!strcmp(first, other)) continue;
            if (i-- > 0) break;
            snprintf(out, size, "%s differs: rank 0 has %s, rank %d on %s has %s", properties[f].what, first,
                     r, ses_comm_host(p->comm, r), other);
            return true;
        }
    }
    return false;
}

/* ---- links ---- */

/* All pairs of a few ranks; neighbors of many. */
static int count_links(int size)
{
    if (size <= ALL_PAIRS) return size * (size - 1) / 2;
    return size < MAX_LINKS ? size : MAX_LINKS;
}

static void ends_of(int size, int i, int *a, int *b)
{
    *a = i;
    *b = (i + 1) % size;
    if (size > ALL_PAIRS) return;
    *a = 0;
    for (*b = 1; i; i--)
        if (++*b == size) *b = ++*a + 1;
}

/* Seconds of an exchange of `bytes` in both directions between ranks a and b, mean of n. */
static bool time_exchange(report *p, int a, int b, char *buffer, size_t bytes, int n, double *seconds,
                          ses_err *e)
{
    int me = ses_comm_rank(p->comm);
    ses_comm_block *block = ses_alloc_array(2 * (size_t)p->size, sizeof *block, e);
    if (!block) return false;
    int peer = me == a ? b : a;
    if (me == a || me == b) {
        block[peer] = (ses_comm_block){ buffer, bytes };
        block[p->size + peer] = (ses_comm_block){ buffer + BYTES, bytes };
    }
    bool ok = ses_comm_barrier(p->comm, e);
    double begin = ses_seconds();
    for (int i = 0; ok && i < n; i++) ok = ses_comm_exchange(p->comm, p->dev, block, block + p->size, e);
    *seconds = (ses_seconds() - begin) / n;
    ses_free(block);
    return ok;
}

static bool measure_link(report *p, int i, char *buffer, int rounds, ses_err *e)
{
    enum { SMALL = 100, SMALL_BYTES = 8, LARGE = 2 };
    link_speed best = { 0 };
    int a, b;
    ends_of(p->size, i, &a, &b);
    for (int round = 0; round < rounds; round++) {
        double latency, large;
        if (!time_exchange(p, a, b, buffer, SMALL_BYTES, SMALL, &latency, e) ||
            !time_exchange(p, a, b, buffer, BYTES, LARGE, &large, e))
            return false;
        if (!round || latency < best.latency) best.latency = latency;
        if (BYTES / large > best.rate) best.rate = BYTES / large;
    }
    /* rank a has measured it */
    if (!ses_comm_bcast(p->comm, &best, sizeof best, a, e)) return false;
    p->link[i] = best;
    return true;
}

static bool measure_gather(report *p, char *buffer, int rounds, ses_err *e)
{
    size_t n = (size_t)p->size, part = 2 * (size_t)BYTES / n;
    size_t *offset = ses_alloc_array(n + 1, sizeof *offset, e);
    bool ok = offset != NULL;
    for (size_t r = 0; ok && r <= n; r++) offset[r] = r * part;
    for (int round = 0; ok && round < rounds; round++) {
        ok = ses_comm_barrier(p->comm, e);
        double begin = ses_seconds();
        ok = ok && ses_comm_allgather(p->comm, p->dev, buffer, offset, e) && ses_comm_barrier(p->comm, e);
        double rate = (double)((n - 1) * part) / (ses_seconds() - begin);
        if (ok && rate > p->gather) p->gather = rate;
    }
    ses_free(offset);
    return ok;
}

static char *new_buffer(report *p, ses_err *e)
{
    return p->dev ? p->dev->mem->alloc(p->dev, 2 * (size_t)BYTES, e) : ses_alloc(2 * (size_t)BYTES, e);
}

static bool measure(report *p, double seconds, ses_err *e)
{
    char *buffer = new_buffer(p, e);
    int n = count_links(p->size), rounds = seconds > 0.5 ? 3 : 1;
    bool ok = ses_comm_all_ok(p->comm, buffer != NULL, e);
    for (int i = 0; ok && i < n; i++) ok = measure_link(p, i, buffer, rounds, e);
    if (ok) p->links = n;
    ok = ok && measure_gather(p, buffer, rounds, e);
    if (buffer && p->dev)
        p->dev->mem->free(p->dev, buffer);
    else
        ses_free(buffer);
    return ok;
}

/* --device cuda: the GPU of this rank, cuda:LOCAL, whose memory is then exchanged. */
static bool open_device(report *p, const ses_compute_args *a, ses_err *e)
{
    char name[32];
    int local = ses_comm_local_rank(p->comm);
    if (strncmp(a->device, "cuda", 4)) return true;
    snprintf(name, sizeof name, "cuda:%d", local > 0 ? local : 0);
    ses_device_options o = ses_compute_device_options(a);
    p->dev = ses_device_open(strcmp(a->device, "cuda") ? a->device : name, &o, e);
    return ses_comm_all_ok(p->comm, p->dev != NULL, e) && ses_comm_attach_device(p->comm, p->dev, e);
}

/* ---- output ---- */

static bool show_ranks(const ses_call *c, const report *p, ses_err *e)
{
    static const int importance[] = { 0, 0, 2, 4, 0, 0, 0, 1, 3 };
    char nccl[32], memory[SES_NUMBER_TEXT];
    ses_text_table *t = ses_text_table_new(">rank|host|>pid|CPU|kernels|>threads|GPU|NCCL|>memory free", e);
    if (!t) return false;
    for (int r = 0; r < p->size; r++) {
        const rank_record *x = &p->rank[r];
        ses_text_table_cell(t, "%d", r);
        ses_text_table_cell(t, "%s", ses_comm_host(p->comm, r));
        ses_text_table_cell(t, "%lld", (long long)x->pid);
        ses_text_table_cell(t, "%s", x->cpu);
        ses_text_table_cell(t, "%s", x->isa);
        if (strcmp(x->isa, p->rank[0].isa)) ses_text_table_style(t, SES_RED);
        ses_text_table_cell(t, "%lld of %lld cores", (long long)x->threads, (long long)x->cores);
        ses_text_table_cell(t, "%s", x->has_gpu ? x->gpu : "none");
        if (p->dev && strcmp(x->gpu, p->rank[0].gpu)) ses_text_table_style(t, SES_RED);
        ses_text_table_cell(t, "%s", nccl_text(x->nccl, nccl));
        if (p->dev && x->nccl != p->rank[0].nccl) ses_text_table_style(t, SES_RED);
        ses_text_table_cell(t, "%s", ses_bytes_text(memory, x->free));
    }
    ses_text_table_fit(t, c->out.width, importance);
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    return ok;
}

static bool show_links(const ses_call *c, const report *p, ses_err *e)
{
    if (!p->links) return true;
    ses_text_table *t = ses_text_table_new("Link|>latency|>each direction", e);
    if (!t) return false;
    for (int i = 0; i < p->links; i++) {
        int a, b;
        ends_of(p->size, i, &a, &b);
        ses_text_table_cell(t, "rank %d - rank %d", a, b);
        ses_text_table_cell(t, "%.1f us", 1e6 * p->link[i].latency);
        ses_text_table_cell(t, "%.2f GB/s", 1e-9 * p->link[i].rate);
    }
    ses_text_table_cell(t, "allgather");
    ses_text_table_cell(t, "%s", "");
    ses_text_table_cell(t, "%.2f GB/s", 1e-9 * p->gather);
    putchar('\n');
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    return ok;
}

static bool show_text(const ses_call *c, const report *p, ses_err *e)
{
    char text[600];
    const char *library = ses_comm_library(p->comm);
    ses_show_line(&c->out, "Sesame", "%s", ses_version());
    ses_show_line(&c->out, "Ranks", "%d, by %s%s%s%s", p->size, ses_comm_transport(p->comm),
                  *library ? " (" : "", library, *library ? ")" : "");
    if (p->size == 1)
        ses_show_line(&c->out, "More ranks", "%s",
                      "mpirun -n 2 sesame doctor --mpi (or srun, torchrun: docs/SCALE.md)");
    if (p->dev) ses_show_line(&c->out, "Memory", "of %s", p->dev->name);
    if (*ses_comm_device_notice(p->comm))
        ses_show_line(&c->out, "Note", "%s", ses_comm_device_notice(p->comm));
    putchar('\n');
    if (!show_ranks(c, p, e)) return false;
    for (int i = 0; difference(p, true, i, text, sizeof text); i++)
        printf("%s%s%s; training refuses this\n", ses_style_on(&c->out, SES_RED), text,
               ses_style_on(&c->out, SES_PLAIN));
    for (int i = 0; difference(p, false, i, text, sizeof text); i++)
        printf("%s; only training with --device cuda refuses this\n", text);
    return show_links(c, p, e);
}

static void json_rank(ses_json_writer *w, const report *p, int r)
{
    const rank_record *x = &p->rank[r];
    char nccl[32];
    ses_json_begin_object(w);
    ses_json_member_int(w, "rank", r);
    ses_json_member_string(w, "host", ses_comm_host(p->comm, r));
    ses_json_member_int(w, "pid", x->pid);
    ses_json_member_int(w, "local_rank", x->local_rank);
    ses_json_member_string(w, "version", x->version);
    ses_json_member_string(w, "cpu", x->cpu);
    ses_json_member_string(w, "isa", x->isa);
    ses_json_member_int(w, "threads", x->threads);
    ses_json_member_int(w, "cores_usable", x->cores);
    ses_json_member_string(w, "gpu", x->has_gpu ? x->gpu : NULL);
    ses_json_member_string(w, "nccl", x->nccl ? nccl_text(x->nccl, nccl) : NULL);
    ses_json_member_string(w, "library", *x->library ? x->library : NULL);
    ses_json_member_uint(w, "memory_bytes", x->memory);
    ses_json_member_uint(w, "memory_free_bytes", x->free);
    ses_json_end_object(w);
}

static bool show_json(const report *p, ses_err *e)
{
    char text[600];
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "size", p->size);
    ses_json_member_string(w, "transport", ses_comm_transport(p->comm));
    ses_json_member_string(w, "memory", p->dev ? p->dev->name : "host");
    ses_json_member_array(w, "ranks");
    for (int r = 0; r < p->size; r++) json_rank(w, p, r);
    ses_json_end_array(w);
    ses_json_member_array(w, "differences");
    for (int i = 0; difference(p, true, i, text, sizeof text); i++) ses_json_put_string(w, text);
    ses_json_end_array(w);
    /* empty with --device cuda: they are among the differences then */
    ses_json_member_array(w, "differences_of_gpus");
    for (int i = 0; difference(p, false, i, text, sizeof text); i++) ses_json_put_string(w, text);
    ses_json_end_array(w);
    ses_json_member_array(w, "links");
    for (int i = 0; i < p->links; i++) {
        int a, b;
        ends_of(p->size, i, &a, &b);
        ses_json_begin_object(w);
        ses_json_member_int(w, "from", a);
        ses_json_member_int(w, "to", b);
        ses_json_member_real(w, "latency_seconds", p->link[i].latency);
        ses_json_member_real(w, "bytes_per_second", p->link[i].rate);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    if (p->links) ses_json_member_real(w, "allgather_bytes_per_second", p->gather);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_rank_report(const ses_call *c, const ses_compute_args *a, bool links, double seconds, ses_err *e)
{
    rank_record mine;
    report p = { .comm = ses_comm_open(NULL, e) };
    if (!p.comm) return false;
    p.size = ses_comm_size(p.comm);
    p.rank = ses_alloc_array((size_t)p.size, sizeof *p.rank, e);
    bool ok = p.rank != NULL;
    if (ok) describe_self(p.comm, a, &mine);
    ok = ok && ses_comm_allgather_equal(p.comm, &mine, sizeof mine, p.rank, e) && open_device(&p, a, e);
    if (ok && links && p.size > 1) ok = measure(&p, seconds, e);
    if (ok && !ses_comm_rank(p.comm)) ok = a->json ? show_json(&p, e) : show_text(c, &p, e);
    if (!ok && !ses_comm_should_report(p.comm)) ses_err_clear(e);
    ses_comm_free(p.comm);
    ses_device_free(p.dev);
    ses_free(p.rank);
    return ok;
}
