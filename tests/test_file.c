#define _DEFAULT_SOURCE /* mkdtemp, symlink, mkfifo */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "folder/file_kind.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64]; /* temporary folder of this run */

static const char *in_dir(const char *name)
{
    static char path[8][160];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, 160, "%s/%s", dir, name);
    return p;
}

static bool holds(const char *path, const char *want)
{
    size_t n = 0;
    char *s = ses_file_read(path, 1 << 20, &n, NULL);
    bool same = s && n == strlen(want) && memcmp(s, want, n) == 0;
    ses_free(s);
    return same;
}

static bool count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(int *)ctx;
    return true;
}

static int files_in(const char *path)
{
    int n = 0;
    return ses_dir_each(path, count_name, &n, NULL) ? n : -1;
}

/* Several processes give a finished file or folder the same name at once: one succeeds. */
static void check_names(bool (*rename_to)(const char *from, const char *to, bool overwrite, ses_err *e),
                        bool (*make)(const char *path))
{
    enum { PROCESSES = 8, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid[PROCESSES];
        int gate[2], won = 0;
        char name[24];
        CHECK(pipe(gate) == 0);
        for (int i = 0; i < PROCESSES; i++) {
            snprintf(name, sizeof name, "from%d", i);
            CHECK(ses_path_exists(in_dir(name)) || make(in_dir(name)));
            pid[i] = fork();
            if (pid[i]) continue;
            ses_err e = { 0 };
            char go;
            close(gate[1]);
            bool waited = read(gate[0], &go, 1) == 0, ok = rename_to(in_dir(name), in_dir("to"), false, &e);
            _exit(!waited ? 2 : ok ? 0 : strstr(e.msg, "already exists") ? 1 : 3);
        }
        close(gate[0]), close(gate[1]);
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;
            waitpid(pid[i], &status, 0);
            won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        }
        CHECK_MSG(won == 1, "%d of %d processes succeeded", won, PROCESSES);
        CHECK(ses_dir_remove(in_dir("to"), NULL) || unlink(in_dir("to")) == 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        char name[24];
        snprintf(name, sizeof name, "from%d", i);
        CHECK(ses_dir_remove(in_dir(name), NULL) || unlink(in_dir(name)) == 0);
    }
}

static bool make_file(const char *path) { return ses_file_write(path, "x", 1, false, NULL); }

static bool make_folder(const char *path)
{
    char file[200];
    snprintf(file, sizeof file, "%s/file", path);
    return ses_dir_make(path, NULL) && make_file(file);
}

static void check_read(void)
{
    ses_err e = { 0 };
    size_t n = 7;
    CHECK(ses_file_write(in_dir("five"), "a\0b\nc", 5, false, &e));
    char *s = ses_file_read(in_dir("five"), 5, &n, &e);
    CHECK(s && n == 5 && memcmp(s, "a\0b\nc", 6) == 0);
    ses_free(s);
    char want[256];
    CHECK(!ses_file_read(in_dir("five"), 4, &n, &e) && e.code == SES_EFORMAT);
    snprintf(want, sizeof want, "%s: file of 5 bytes, the maximum is 4", in_dir("five"));
    CHECK_STR(e.msg, want);
    CHECK(ses_file_write(in_dir("empty"), NULL, 0, false, NULL));
    s = ses_file_read(in_dir("empty"), 0, &n, NULL);
    CHECK(s && n == 0 && s[0] == 0);
    ses_free(s);
    ses_mmap m;
    CHECK(ses_mmap_open(&m, in_dir("empty"), NULL) && m.size == 0);
    ses_mmap_free(&m);
    CHECK(ses_mmap_open(&m, in_dir("five"), NULL) && m.size == 5 && memcmp(m.data, "a\0b\nc", 5) == 0);
    ses_mmap_free(&m);
    ses_mmap_free(&m);
    CHECK(m.size == 0 && m.data == NULL);
}

/* Paths that are not readable files, and their errors. */
static void check_refused(void)
{
    CHECK(mkfifo(in_dir("pipe"), 0600) == 0 && symlink("nowhere", in_dir("dangling")) == 0);
    CHECK(symlink("loop", in_dir("loop")) == 0);
    static const char *const cases[][2] = {
        { "absent", "No such file or directory" },
        { "dangling", "No such file or directory" },
        { "loop", "Too many levels of symbolic links" },
        { ".", "Is a directory" },
        { "pipe", "not a regular file" },
        { "five/x", "Not a directory" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char want[256];
        size_t n;
        ses_mmap m;
        ses_err e = { 0 }, f = { 0 };
        snprintf(want, sizeof want, "%s: %s", in_dir(cases[i][0]), cases[i][1]);
        CHECK(!ses_file_read(in_dir(cases[i][0]), 100, &n, &e) && e.code == SES_EIO);
        CHECK_STR(e.msg, want);
        CHECK(!ses_mmap_open(&m, in_dir(cases[i][0]), &f) && f.code == SES_EIO);
        CHECK_STR(f.msg, want);
        CHECK(m.size == 0 && m.data == NULL);
    }
    ses_err e = { 0 };
    if (geteuid() == 0) {
        SKIP("permissions mean nothing to root");
    } else {
        size_t n;
        CHECK(chmod(in_dir("five"), 0) == 0 && !ses_file_read(in_dir("five"), 100, &n, &e));
        CHECK(strstr(e.msg, "Permission denied") != NULL && chmod(in_dir("five"), 0600) == 0);
    }
    unlink(in_dir("pipe")), unlink(in_dir("dangling")), unlink(in_dir("loop"));
}

static void check_write(void)
{
    ses_err e = { 0 };
    char want[256];
    int before = files_in(dir);
    CHECK(ses_file_write(in_dir("a"), "one", 3, false, &e) && holds(in_dir("a"), "one"));
    CHECK(!ses_file_write(in_dir("a"), "two", 3, false, &e) && e.code == SES_EIO);
    snprintf(want, sizeof want, "%s: already exists; use --overwrite to replace it", in_dir("a"));
    CHECK_STR(e.msg, want);
    CHECK(holds(in_dir("a"), "one"));
    CHECK(chmod(in_dir("a"), 0640) == 0);
    CHECK(ses_file_write(in_dir("a"), "two", 3, true, NULL) && holds(in_dir("a"), "two"));
    struct stat st;
    CHECK(stat(in_dir("a"), &st) == 0 && (st.st_mode & 0777) == 0640);
    CHECK(files_in(dir) == before + 1);

    ses_err_clear(&e);
    CHECK(!ses_file_write(in_dir("absent/a"), "x", 1, true, &e));
    snprintf(want, sizeof want, "%s: cannot be written: No such file or directory", in_dir("absent/a"));
    CHECK_STR(e.msg, want);
    ses_err_clear(&e);
    CHECK(!ses_file_write(dir, "x", 1, true, &e) && strstr(e.msg, "Is a directory"));
    ses_err_clear(&e);
    CHECK(mkfifo(in_dir("fifo"), 0600) == 0);
    CHECK(!ses_file_write(in_dir("fifo"), "x", 1, true, &e) && strstr(e.msg, "a device or a pipe"));
    CHECK(stat(in_dir("fifo"), &st) == 0 && S_ISFIFO(st.st_mode) && unlink(in_dir("fifo")) == 0);

    /* Freed before the commit: nothing changes. */
    ses_file_writer *w = ses_file_writer_open(in_dir("a"), true, NULL);
    CHECK(ses_file_writer_put(w, "three", 5, NULL) && files_in(dir) == before + 2);
    ses_file_writer_free(w);
    CHECK(holds(in_dir("a"), "two") && files_in(dir) == before + 1);
    ses_file_writer_free(NULL);

    /* A file created meanwhile is not replaced. */
    ses_err_clear(&e);
    w = ses_file_writer_open(in_dir("race"), false, NULL);
    CHECK(ses_file_writer_put(w, "ours", 4, NULL) &&
          ses_file_write(in_dir("race"), "theirs", 6, false, NULL));
    CHECK(!ses_file_writer_commit(w, &e));
    ses_file_writer_free(w);
    snprintf(want, sizeof want, "%s: already exists; use --overwrite to replace it", in_dir("race"));
    CHECK_STR(e.msg, want);
    CHECK(holds(in_dir("race"), "theirs") && files_in(dir) == before + 2);

    /* No writes after the commit. */
    w = ses_file_writer_open(in_dir("a"), true, NULL);
    CHECK(ses_file_writer_put(w, "x", 1, NULL) && ses_file_writer_sync(w, NULL) &&
          !ses_file_writer_put(w, "y", 1, NULL));
    CHECK(ses_file_writer_commit(w, NULL) && !ses_file_writer_commit(w, NULL));
    ses_file_writer_free(w);
    CHECK(holds(in_dir("a"), "x"));

    ses_err_clear(&e);
    w = ses_file_writer_open(in_dir("a"), true, NULL);
    CHECK(ses_file_writer_check_space(w, 1, NULL) && !ses_file_writer_check_space(w, UINT64_MAX, &e));
    CHECK(strstr(e.msg, "18446744073709551615 bytes needed, ") != NULL);
    CHECK(!ses_file_writer_commit(w, NULL));
    ses_file_writer_free(w);
}

/* Many writes of many sizes, in order. */
static void check_pieces(void)
{
    size_t total = 0, n = 0;
    ses_file_writer *w = ses_file_writer_open(in_dir("pieces"), false, NULL);
    char *piece = malloc(200000);
    bool ok = true;
    for (size_t i = 0; i < 200; i++) {
        size_t len = i * i * 5 % 200000;
        for (size_t j = 0; j < len; j++) piece[j] = (char)((total + j) * 31 >> 3);
        ok = ok && ses_file_writer_put(w, piece, len, NULL);
        total += len;
    }
    CHECK(ok && ses_file_writer_commit(w, NULL));
    ses_file_writer_free(w);
    char *all = ses_file_read(in_dir("pieces"), SIZE_MAX - 1, &n, NULL);
    bool same = all && n == total;
    for (size_t i = 0; same && i < n; i++) same = all[i] == (char)(i * 31 >> 3);
    CHECK(same);
    ses_free(all);
    free(piece);
}

/* A limit of 100,000 bytes per file simulates a full disk. */
static void check_full(void)
{
    struct rlimit old, few = { 100000, RLIM_INFINITY };
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    few.rlim_max = old.rlim_max;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(ses_file_write(in_dir("full"), "old", 3, true, NULL) && setrlimit(RLIMIT_FSIZE, &few) == 0);
    char *big = calloc(1, 300000);
    ses_err e = { 0 };
    int before = files_in(dir);
    CHECK(!ses_file_write(in_dir("full"), big, 300000, true, &e) && e.code == SES_EIO);
    char want[256];
    snprintf(want, sizeof want, "%s: cannot be written: File too large", in_dir("full"));
    CHECK_STR(e.msg, want);
    CHECK(holds(in_dir("full"), "old") && files_in(dir) == before);
    ses_file_writer *w = ses_file_writer_open(in_dir("full"), true, NULL); /* the same in small pieces */
    size_t put = 0;
    while (put < 300000 && ses_file_writer_put(w, big, 1000, NULL)) put += 1000;
    CHECK(put >= 100000 && put < 200000 && !ses_file_writer_put(w, big, 1, NULL) &&
          !ses_file_writer_commit(w, NULL));
    ses_file_writer_free(w);
    CHECK(holds(in_dir("full"), "old") && files_in(dir) == before);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, was);
    free(big);
}

static void check_paths(void)
{
    static const char *const joins[][3] = {
        { "a", "b", "a/b" }, { "a/", "b", "a/b" },        { "", "b", "b" },
        { "/", "b", "/b" },  { "a/b", "c/d", "a/b/c/d" },
    };
    for (size_t i = 0; i < SES_LEN(joins); i++) {
        char *s = ses_path_join(joins[i][0], joins[i][1], NULL);
        CHECK_STR(s, joins[i][2]);
        ses_free(s);
    }
    CHECK_STR(ses_path_basename("a/b/c"), "c");
    CHECK_STR(ses_path_basename("c"), "c");
    CHECK_STR(ses_path_basename("/a/b//"), "b//");
    CHECK_STR(ses_path_basename("/"), "/");
    static const char *const parent[][2] = {
        { "c", "." }, { "a/c", "a" }, { "/c", "/" }, { "/a/b/", "/a" }, { "", "." }
    };
    for (size_t i = 0; i < SES_LEN(parent); i++) {
        char *got = ses_path_parent(parent[i][0], NULL);
        CHECK_STR(got, parent[i][1]);
        ses_free(got);
    }
    CHECK_STR(ses_path_name_of("/a/b//").s, "b");
    CHECK_STR(ses_path_name_of("//").s, "/");
    CHECK_STR(ses_path_name_of("").s, "");
    static const char *const trims[][2] = { { "a/b//", "a/b" }, { "//", "/" }, { "a", "a" }, { "", "" } };
    for (size_t i = 0; i < SES_LEN(trims); i++) {
        char s[8];
        snprintf(s, sizeof s, "%s", trims[i][0]);
        ses_path_trim(s);
        CHECK_STR(s, trims[i][1]);
    }
    CHECK(ses_path_exists(dir) && ses_path_is_dir(dir) && !ses_path_exists(in_dir("absent")));
    if (CHECK(symlink("nowhere", in_dir("link")) == 0)) { /* opening it reports the error */
        CHECK(ses_path_exists(in_dir("link")) && !ses_path_is_dir(in_dir("link")));
        CHECK(unlink(in_dir("link")) == 0);
    }
    CHECK(!ses_path_is_dir(in_dir("five")));
    ses_err e = { 0 };
    CHECK(ses_dir_make(in_dir("x/y//z/"), NULL) && ses_path_is_dir(in_dir("x/y/z")));
    CHECK(ses_dir_make(in_dir("x/y"), NULL));
    CHECK(!ses_dir_make(in_dir("five/y"), &e) && strstr(e.msg, "cannot be written: Not a directory"));
    ses_err_clear(&e);
    CHECK(!ses_dir_make(in_dir("five"), &e) && strstr(e.msg, "five: Not a directory"));
    ses_err_clear(&e);
    CHECK(!ses_dir_check(in_dir("absent"), &e) && strstr(e.msg, "absent: No such file or directory"));
    ses_err_clear(&e);
    CHECK(!ses_dir_each(in_dir("absent"), count_name, NULL, &e) && e.code == SES_EIO);
    bool empty = false;
    CHECK(ses_dir_is_empty(in_dir("x/y/z"), NULL, &empty, NULL) && empty);
    CHECK(ses_dir_is_empty(in_dir("x"), NULL, &empty, NULL) && !empty);
    CHECK(ses_dir_is_empty(in_dir("x"), "y", &empty, NULL) && empty);
    CHECK(!ses_dir_is_empty(in_dir("absent"), NULL, &empty, NULL));
    CHECK(ses_file_remove(in_dir("absent"), NULL) && !ses_file_remove(dir, NULL));
    rmdir(in_dir("x/y/z")), rmdir(in_dir("x/y")), rmdir(in_dir("x"));
}

static void check_buf(void)
{
    ses_buf b = { 0 };
    CHECK(ses_buf_ok(&b, NULL) && ses_buf_append(&b, NULL, 0) && b.data[0] == 0);
    for (int i = 0; i < 1000; i++) ses_buf_appendf(&b, "%d,", i);
    CHECK(b.len == 3890 && strncmp(b.data, "0,1,2,", 6) == 0 && strcmp(b.data + b.len - 4, "999,") == 0);
    ses_buf_free(&b);
    CHECK(b.data == NULL && b.len == 0);
    b.limit = 10;
    CHECK(ses_buf_puts(&b, "0123456789") && !ses_buf_put(&b, 'x') && !ses_buf_puts(&b, "") && b.len == 10);
    ses_err e = { 0 };
    CHECK(!ses_buf_ok(&b, &e) && e.code == SES_ENOMEM);
    CHECK_STR(e.msg, "buffer limit of 10 bytes reached (11 requested)");
    ses_buf_free(&b);
    CHECK(!ses_buf_reserve(&b, SIZE_MAX) && !ses_buf_ok(&b, NULL));
    ses_buf_free(&b);

    char out[16];
    CHECK_STR(ses_quote(out, sizeof out, "plain", 5), "plain");
    CHECK_STR(ses_quote(out, sizeof out, "a\n\x1b\xc3\xa9", 5), "a\\x0a\\x1b\xc3\xa9");
    CHECK_STR(ses_quote(out, sizeof out, "\xff\xc3", 2), "\\xff\\xc3");
    CHECK_STR(ses_quote(out, sizeof out, "\x7f\xc2\x9b", 3),
              "\\x7f\\xc2\\x9b"); /* including a terminal's ESC [ */
    CHECK_STR(ses_quote(out, sizeof out, "~\xc2\xa0", 3), "~\xc2\xa0");
    CHECK_STR(ses_quote(out, sizeof out, "0123456789abcde", 15), "0123456789abcde");
    CHECK_STR(ses_quote(out, sizeof out, "0123456789abcdef", 16), "0123456789ab...");
    CHECK_STR(ses_quote(out, sizeof out, "0123456789a\xe2\x82\xac\xe2\x82\xac", 17), "0123456789a...");
    CHECK_STR(ses_quote(out, 3, "abcd", 4), "..");
    CHECK_STR(ses_quote(out, 1, "abcd", 4), "");
}

static void check_map(void)
{
    enum { N = 20000 };
    static char key[N][8];
    ses_strmap m = { 0 };
    int64_t v = 0;
    bool fresh = false, ok = true;
    CHECK(!ses_strmap_find(&m, "a", 1, &v));
    for (int i = 0; i < N; i++) {
        snprintf(key[i], sizeof key[i], "%x", i);
        ok = ok && ses_strmap_insert(&m, key[i], strlen(key[i]), i, &fresh, NULL) && fresh;
    }
    CHECK(ok && m.count == N);
    for (int i = 0; i < N; i++) {
        ok = ok && ses_strmap_find(&m, key[i], strlen(key[i]), &v) && v == i && m.entry[i].key == key[i];
        int64_t *at = ses_strmap_insert(&m, key[i], strlen(key[i]), -1, &fresh, NULL);
        ok = ok && at && *at == i && !fresh;
    }
    CHECK(ok && m.count == N && !ses_strmap_find(&m, "x", 1, &v) && !ses_strmap_find(&m, "", 0, &v));
    CHECK(ses_strmap_insert(&m, "", 0, 5, &fresh, NULL) && fresh && ses_strmap_find(&m, "", 0, &v) && v == 5);
    CHECK(!ses_strmap_reserve(&m, SIZE_MAX, NULL));
    ses_strmap_free(&m);
    CHECK(m.count == 0 && m.entry == NULL && !ses_strmap_find(&m, "1", 1, &v));
}

/* Published values of SipHash-1-3 with key 00 01 .. 0f for 0 bytes, 1 byte, and 0 to 63 bytes combined. */
static void check_hash(void)
{
    ses_hash_key key = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };
    unsigned char in[64];
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)i;
    CHECK(ses_hash(key, in, 0) == 0xabac0158050fc4dcu && ses_hash(key, in, 1) == 0xc9f49bf37d57ca93u);
    for (size_t i = 0; i < sizeof in; i++) all = all * 31 + ses_hash(key, in, i);
    CHECK_MSG(all == 0x71020056298ad661u, "%llx", (unsigned long long)all);
    ses_hash_key a = ses_hash_key_new(), b = ses_hash_key_new();
    CHECK(a.k0 != b.k0 || a.k1 != b.k1);
}

/* Round trip of every scalar value; everything else is refused. */
static void check_utf8(void)
{
    long bad = 0;
    for (uint32_t cp = 0; cp <= 0x110010; cp++) {
        char s[4];
        uint32_t back = 0;
        size_t n = ses_utf8_encode(cp, s);
        bool scalar = cp <= 0x10FFFF && !(cp >= 0xD800 && cp <= 0xDFFF);
        if (!scalar) {
            bad += n != 0;
            continue;
        }
        bad += n == 0 || ses_utf8_decode(s, n, &back) != n || back != cp || ses_utf8_valid(s, n) != n;
        for (size_t k = 0; k < n; k++) bad += ses_utf8_decode(s, k, &back) != 0;
    }
    CHECK_MSG(!bad, "%ld", bad);
    /* All strings of one to three bytes: valid if and only if they encode scalar values. */
    for (uint32_t x = 0; x < 0x1000000; x += 1 + (x >> 16 < 0xE0 && x >> 16 > 0x80) * 250) {
        char s[3] = { (char)(x >> 16), (char)(x >> 8), (char)x }, t[4];
        uint32_t cp = 0;
        size_t n = ses_utf8_decode(s, 3, &cp);
        bad += n && (ses_utf8_encode(cp, t) != n || memcmp(s, t, n) != 0);
        bad += ses_utf8_valid(s, 3) > 3;
    }
    CHECK_MSG(!bad, "%ld", bad);
    for (uint32_t x = 0xF0000000; x >= 0xF0000000;
         x += x & 0x4000 ? 61 : 257) { /* four bytes, until it wraps */
        char q[4] = { (char)(x >> 24), (char)(x >> 16), (char)(x >> 8), (char)x }, t[4];
        uint32_t cp = 0;
        size_t n = ses_utf8_decode(q, 4, &cp);
        bad += n && (n != 4 || ses_utf8_encode(cp, t) != 4 || memcmp(q, t, 4) != 0);
    }
    CHECK_MSG(!bad, "%ld", bad);
    CHECK(ses_utf8_valid("0123456789abcdef\xc3\xa9z\xffz", 21) == 19 && ses_utf8_valid("", 0) == 0);
}

/* Formats of model files, by their first bytes. */
static void check_kinds(void)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        const char *bytes;
        size_t n;
        const char *name; /* NULL: unknown */
    } cases[] = {
        { BYTES("GGUF\3\0\0\0"), "a GGUF file (llama.cpp)" },
        /* onnx.save: ir_version and opset; an exporter that names itself */
        { BYTES("\x08\x0e:3\n\x0c\n\1x\x12\1y\"\4Relu"), "an ONNX model" },
        { BYTES("\x08\7\x12\7pytorch\x1a"), "an ONNX model" },
        { BYTES("PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0x/data.pkl\x80\2"),
          "PyTorch weights (a zip with a pickle)" },
        { BYTES("PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txtx"), "a zip archive" },
        { BYTES("PK\3\4"), "a zip archive" },
        { BYTES("\x80\2\x8a\x0al\xfc\x9c"), "a pickle (PyTorch weights or a Python object)" },
        { BYTES("\x80\4\x95\x0b"), "a pickle (PyTorch weights or a Python object)" },
        { BYTES("\2\0\0\0\0\0\0\0{}"), "weights in safetensors" },
        { BYTES("\3\0\0\0\0\0\0\0{}"), NULL }, /* a header past the end */
        { BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file (weights of Keras or ELMo)" },
        { BYTES("\xba\x16\x4f\x2f\x0c\0\0\0"), "a fastText model" },
        { BYTES("version https://git-lfs.github.com/spec/v1\noid"), "a Git LFS pointer" },
        { BYTES("<!DOCTYPE html>"), "an HTML page, not a model" },
        { BYTES("{\"model_type\": \"bert\"}"), "a JSON file" },
        { BYTES("some text"), NULL },
        { BYTES("\x08"), NULL },
        { BYTES(""), NULL },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        const char *want = cases[i].name;
        const ses_file_kind *kind = ses_file_kind_of(cases[i].bytes, cases[i].n, cases[i].n);
        CHECK_MSG(want ? kind && !strcmp(kind->name, want) : !kind, "case %zu: %s", i,
                  kind ? kind->name : "none");
    }
    CHECK(!ses_file_kind_at("/dev/zero") && !ses_file_kind_at("/tmp") &&
          !ses_file_kind_at("/tmp/nothing here"));
    CHECK(!strcmp(ses_file_kind_at("tests/golden/bert-model/model.safetensors")->name,
                  "weights in safetensors"));
    ses_err e = { 0 };
    CHECK(!ses_fail_not_model_folder("tests/golden/bert-model/model.safetensors", &e) &&
          strstr(e.msg, "expected the folder of a model: name tests/golden/bert-model"));
#undef BYTES
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-test-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    check_read();
    check_refused();
    check_write();
    check_names(ses_file_place, make_file);
    check_names(ses_dir_place, make_folder);
    check_pieces();
    check_full();
    check_paths();
    check_buf();
    check_map();
    check_hash();
    check_utf8();
    check_kinds();
    static const char *const left[] = { "five", "empty", "a", "race", "pieces", "full" };
    for (size_t i = 0; i < SES_LEN(left); i++) unlink(in_dir(left[i]));
    CHECK_MSG(files_in(dir) == 0 && rmdir(dir) == 0, "something is left in %s", dir);
    return check_report();
}
