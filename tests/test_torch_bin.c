#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "io/safetensors_impl.h"
#include "sesame/base.h"
#include "sesame/model.h"
#include "sesame/unstable/tensor.h"
#include "torch_fixture.h"

#include <unistd.h>

static zip_file z; /* too large for a small stack */

static ses_safetensors *open_bytes(const void *p, size_t n, ses_err *e)
{
    return ses_tensors_from_memory(ses_torch_add, p, n, "x", e);
}

/* Opens the archive in z from a block of its exact size; want: NULL, or the message after "x: ". */
static void check_z(const char *what, ses_code code, const char *want)
{
    ses_err e = { 0 };
    unsigned char *exact = malloc(z.b.n ? z.b.n : 1);
    memcpy(exact, z.b.data, z.b.n);
    ses_safetensors *s = open_bytes(exact, z.b.n, &e);
    char full[512];
    snprintf(full, sizeof full, "x: %s", want ? want : "");
    if (!want)
        CHECK_MSG(s, "%s: %s", what, e.msg);
    else
        CHECK_STR(s ? what : e.msg, full);
    CHECK_MSG(e.code == code, "%s: code %d", what, (int)e.code);
    ses_safetensors_free(s);
    free(exact);
}

/* ---- accepted files ---- */

static void check_floats(const ses_safetensors *s, const char *name, int rank, const int64_t *dim,
                         const float *want)
{
    const ses_tensor_entry *t = ses_safetensors_find(s, name);
    if (!CHECK_MSG(t, "no %s", name)) return;
    float got[64];
    CHECK_MSG(t->rank == rank && !memcmp(t->dim, dim, (size_t)rank * sizeof *dim), "%s", name);
    CHECK((size_t)t->count * ses_dtype_size(t->dtype) == t->bytes);
    CHECK_STR(t->file, "x");
    if (t->count <= 64 && CHECK(ses_tensor_entry_to_f32(t, got, NULL)))
        CHECK_MSG(!memcmp(got, want, (size_t)t->count * sizeof *got), "%s", name);
}

static void check_good(bool plain)
{
    ses_err e = { 0 };
    make_torch_of(&z, TORCH_GOOD, plain);
    ses_safetensors *s = open_bytes(z.b.data, z.b.n, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    const float *x = torch_numbers();
    const float turned[] = { x[0], x[3], x[1], x[4], x[2], x[5] };
    CHECK(ses_safetensors_count(s) == 3 && !ses_safetensors_meta_count(s));
    check_floats(s, "a", 2, (const int64_t[]){ 2, 3 }, x);
    check_floats(s, "turned", 2, (const int64_t[]){ 3, 2 }, turned);
    const ses_tensor_entry *a = ses_safetensors_at(s, 0), *b = ses_safetensors_at(s, 1);
    CHECK_STR(b->name, "b");
    CHECK(a->data == z.b.data + z.data[2]); /* in offset */
    CHECK(b->data == z.b.data + z.data[3] + 16 && b->bytes == 32 && b->dtype == SES_I64);
    if (!plain) CHECK(z.data[2] % 64 == 0 && z.data[3] % 64 == 0);
    ses_safetensors_free(s);
}

/* One tensor each, as pickled words, and the expected result. */
static const struct {
    const char *words;
    ses_dtype dtype;
    int rank;
    int64_t count;
    size_t offset; /* expected offset of its data in archive entry `entry`; SIZE_MAX: a copy */
    size_t entry;
} good[] = {
    { T_A, SES_F32, 2, 6, 0, 2 },
    { P_TENSOR(P_STORAGE("Half", "0", "12"), "#3 #9 x85 #1 x85"), SES_F16, 1, 9, 6, 2 },
    { P_TENSOR(P_STORAGE("BFloat16", "0", "12"), "#3 #9 x85 #1 x85"), SES_BF16, 1, 9, 6, 2 },
    { P_TENSOR(P_STORAGE("Double", "0", "3"), "#1 #2 x85 #1 x85"), SES_F64, 1, 2, 8, 2 },
    { P_TENSOR(P_STORAGE("Long", "0", "3"), "#1 #2 x85 #1 x85"), SES_I64, 1, 2, 8, 2 },
    { P_TENSOR(P_STORAGE("Int", "0", "6"), "#5 #1 x85 #1 x85"), SES_I32, 1, 1, 20, 2 },
    { P_TENSOR(P_STORAGE("Short", "0", "12"), "#1 #2 x85 #1 x85"), SES_I16, 1, 2, 2, 2 },
    { P_TENSOR(P_STORAGE("Char", "0", "24"), "#1 #2 x85 #1 x85"), SES_I8, 1, 2, 1, 2 },
    { P_TENSOR(P_STORAGE("Byte", "0", "24"), "#1 #2 x85 #1 x85"), SES_U8, 1, 2, 1, 2 },
    { P_TENSOR(P_STORAGE("Bool", "0", "24"), "#23 #1 x85 #1 x85"), SES_BOOL, 1, 1, 23, 2 },
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#5 ) )"), SES_F32, 0, 1, 20, 2 }, /* a scalar */
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #0 x85 #1 x85"), SES_F32, 1, 0, 0, 2 },
    { P_TENSOR(P_STORAGE("Float", "2", "0"), "#0 #3 #0 x86 #1 #1 x86"), SES_F32, 2, 0, 0, 4 },
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #1 #6 x86 #999 #1 x86"), SES_F32, 2, 6, 0,
      2 }, /* 1: any stride */
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#1 #2 x85 #3 x85"), SES_F32, 1, 2, SIZE_MAX, 2 },
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #3 x85 #0 x85"), SES_F32, 1, 3, SIZE_MAX,
      2 }, /* one element, three times */
    { P_TENSOR(P_STORAGE("Float", "1", "24"), "#0 #2 #3 #4 x87 #1 #2 #6 x87"), SES_F32, 3, 24, SIZE_MAX, 3 },
    { P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 @torch:Size #6 x85 x85 R #1 x85"), SES_F32, 1, 6, 0, 2 },
    { "@torch._utils:_rebuild_tensor ( " P_STORAGE("Float", "0", "6") "#0 #6 x85 #1 x85 t R ", SES_F32, 1, 6,
      0, 2 },
    { "@torch._utils:_rebuild_tensor_v2 ( " P_STORAGE("Float", "0", "6") "#0 #6 x85 #1 x85 x88 N N t R ",
      SES_F32, 1, 6, 0, 2 },
    { "@torch._utils:_rebuild_parameter " T_A "x88 " P_ORDERED "x87 R ", SES_F32, 2, 6, 0, 2 },
    { "@torch._utils:_rebuild_tensor_v3 ( ( 'storage @torch.storage:UntypedStorage '0 'cpu #24 t Q #1 #2 x85 "
      "#1 x85 "
      "x89 N @torch:bfloat16 t R ",
      SES_BF16, 1, 2, 2, 2 },
    { "@torch._utils:_rebuild_tensor_v2 ( ( 'storage @torch.storage:UntypedStorage '0 'cpu #24 t Q #1 #2 x85 "
      "#1 x85 "
      "x89 N t R ",
      SES_U8, 1, 2, 1, 2 },
    { "( 'storage q x05 @torch:FloatStorage r x06 x00 x00 x00 '0 'cpu #6 t Q x94 0 "
      "@torch._utils:_rebuild_tensor_v2 "
      "( j x02 x00 x00 x00 #0 #6 x85 #1 x85 x89 ] N a ( N N e t R ",
      SES_F32, 1, 6, 0, 2 },
    { "@torch._utils:_rebuild_tensor_v2 ( " P_STORAGE("Float", "0",
                                                      "6") "K x00 M x06 x00 x85 x8a x01 x01 x85 x89 "
                                                           "G x00 x00 x00 x00 x00 x00 x00 x00 C x01 x00 t R ",
      SES_F32, 1, 6, 0, 2 },
    { "x8c x0c t o r c h . _ u t i l s x8c x12 _ r e b u i l d _ t e n s o r _ v 2 x93 ( " P_STORAGE(
          "Float", "0", "6") "x8a x00 #6 x85 x8b x01 x00 x00 x00 x01 x85 x89 N t R ",
      SES_F32, 1, 6, 0, 2 },
};

static void check_tensors(void)
{
    for (size_t i = 0; i < SES_LEN(good); i++) {
        char words[1024];
        ses_err e = { 0 };
        snprintf(words, sizeof words, P_HEAD "} 'w %ss .", good[i].words);
        make_torch_of(&z, words, false);
        ses_safetensors *s = open_bytes(z.b.data, z.b.n, &e);
        const ses_tensor_entry *t = ses_safetensors_find(s, "w");
        if (CHECK_MSG(t, "%zu: %s", i, e.msg)) {
            const unsigned char *offset = z.b.data + z.data[good[i].entry] + good[i].offset;
            bool inside = (const unsigned char *)t->data >= z.b.data &&
                          (const unsigned char *)t->data < z.b.data + z.b.n;
            CHECK_MSG(t->dtype == good[i].dtype && t->rank == good[i].rank && t->count == good[i].count,
                      "%zu", i);
            CHECK_MSG(good[i].offset == SIZE_MAX ? !inside : t->data == offset, "%zu", i);
        }
        ses_safetensors_free(s);
    }
}

/* Elements of the copies. */
static void check_copies(void)
{
    ses_err e = { 0 };
    const float *x = torch_numbers();
    make_torch_of(
        &z,
        P_STATE("'every~third " P_TENSOR(P_STORAGE("Float", "0", "6"), "#1 #2 x85 #3 x85") "'same " P_TENSOR(
            P_STORAGE("Float", "0", "6"),
            "#2 #3 x85 #0 x85") "'cube " P_TENSOR(P_STORAGE("Float", "1", "24"),
                                                  "#0 #2 #3 #4 x87 #1 #2 #6 x87")),
        false);
    ses_safetensors *s = open_bytes(z.b.data, z.b.n, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    float cube[24];
    for (int i = 0; i < 24; i++) cube[i] = x[6 + i / 12 + i / 4 % 3 * 2 + i % 4 * 6];
    check_floats(s, "every third", 1, (const int64_t[]){ 2 }, (const float[]){ x[1], x[4] });
    check_floats(s, "same", 1, (const int64_t[]){ 3 }, (const float[]){ x[2], x[2], x[2] });
    check_floats(s, "cube", 3, (const int64_t[]){ 2, 3, 4 }, cube);
    ses_safetensors_free(s);
}

/* ---- pickles that are refused ---- */

#define F SES_EFORMAT
#define U SES_EUNSUPPORTED
#define ONE(value) P_HEAD "} 'w " value "s ."
#define SHAPE(rest) ONE(P_TENSOR(P_STORAGE("Float", "0", "6"), rest))
#define PERSID(id) ONE("@torch._utils:_rebuild_tensor ( " id "#0 #6 x85 #1 x85 t R ")
#define PARTS "tensor \"w\": storage: (\"storage\", type, key, device, size) expected"

#define W_IS_DICT \
    "tensor \"w\": a dict, not a tensor: save the state dict alone, torch.save(model.state_dict(), FILE)"
static const struct {
    const char *words;
    ses_code code;
    const char *want;
} bad[] = {
    { "", F, "data.pkl: not a pickle of protocol 2 to 5" },
    { "x80", F, "data.pkl: not a pickle of protocol 2 to 5" },
    { "} .", F, "data.pkl: not a pickle of protocol 2 to 5" },
    { "x80 x01 } .", U, "data.pkl: pickle of protocol 1, expected 2 to 5" },
    { "x80 x06 } .", U, "data.pkl: pickle of protocol 6, expected 2 to 5" },
    { P_HEAD, F, "data.pkl: byte 2: ends without STOP" },
    { P_HEAD "}", F, "data.pkl: byte 3: ends without STOP" },
    { P_HEAD ".", F, "data.pkl: byte 2: STOP: 0 values and 0 marks left, one value expected" },
    { P_HEAD "} } .", F, "data.pkl: byte 4: STOP: 2 values and 0 marks left, one value expected" },
    { P_HEAD "} ( .", F, "data.pkl: byte 4: STOP: 1 values and 1 marks left, one value expected" },
    { P_HEAD "} . .", F, "data.pkl: byte 3: STOP: 1 bytes follow" },
    { P_HEAD "x80 x02 } .", F, "data.pkl: byte 2: PROTO: not at the start" },
    /* names */
    { P_HEAD "@os:system 'rm ~", U, "data.pkl: byte 2: GLOBAL: refused global os.system" },
    { P_HEAD "@posix:system ( 'id t R .", U, "data.pkl: byte 2: GLOBAL: refused global posix.system" },
    { P_HEAD "@builtins:eval", U, "data.pkl: byte 2: GLOBAL: refused global builtins.eval" },
    { P_HEAD "@torch:load", U, "data.pkl: byte 2: GLOBAL: refused global torch.load" },
    { P_HEAD "@torch._utils:_rebuild_tensor_v2.x", U,
      "data.pkl: byte 2: GLOBAL: refused global torch._utils._rebuild_tensor_v2.x" },
    { P_HEAD "@torch:_utils._rebuild_tensor_v2", U,
      "data.pkl: byte 2: GLOBAL: refused global torch._utils._rebuild_tensor_v2" },
    { P_HEAD "@collections:OrderedDic", U,
      "data.pkl: byte 2: GLOBAL: refused global collections.OrderedDic" },
    { P_HEAD "@:", U, "data.pkl: byte 2: GLOBAL: refused global ." },
    { P_HEAD "@\x1b[2J:x", U, "data.pkl: byte 2: GLOBAL: refused global \\x1b[2J.x" },
    { P_HEAD "@torch:float8_e4m3fn", U, "data.pkl: byte 2: GLOBAL: refused global torch.float8_e4m3fn" },
    { P_HEAD "@torch:QInt8Storage", U, "data.pkl: byte 2: GLOBAL: refused global torch.QInt8Storage" },
    { P_HEAD "'os 'system x93", U, "data.pkl: byte 20: STACK_GLOBAL: refused global os.system" },
    { P_HEAD "'os #1 x93", F, "data.pkl: byte 14: STACK_GLOBAL: two strings expected" },
    { P_HEAD "'os x93", F, "data.pkl: byte 9: STACK_GLOBAL: needs 2 values, found 1" },
    { P_HEAD "c o s", F, "data.pkl: byte 2: GLOBAL: truncated" },
    { P_HEAD "c o x0a s", F, "data.pkl: byte 2: GLOBAL: truncated" },
    /* calls */
    { P_HEAD "'os ) R", U, "data.pkl: byte 10: REDUCE: calls a string" },
    { P_HEAD "@torch:Size 'x R", F, "data.pkl: byte 20: REDUCE: arguments are a string, not a tuple" },
    { P_HEAD "@torch:Size ) R", F,
      "data.pkl: byte 15: REDUCE: calls torch.Size, expected one tuple as its argument" },
    { P_HEAD "@torch:FloatStorage ) R", U, "data.pkl: byte 23: REDUCE: calls torch.FloatStorage: refused" },
    { P_HEAD "@torch:float32 ) R", U, "data.pkl: byte 18: REDUCE: calls torch.float32: refused" },
    { P_HEAD "@collections:OrderedDict ] x85 R", U,
      "data.pkl: byte 29: REDUCE: calls collections.OrderedDict with arguments" },
    { P_HEAD ") R", F, "data.pkl: byte 3: REDUCE: needs 2 values, found 1" },
    { P_HEAD "'w } b", U, "data.pkl: byte 9: BUILD: sets the state of a string to a dict" },
    { P_HEAD "} N b", U, "data.pkl: byte 4: BUILD: sets the state of a dict to None" },
    { P_HEAD T_A "} b", U, "data.pkl: byte 148: BUILD: sets the state of a call to a dict" },
    /* unsupported and unknown opcodes */
    { P_HEAD "i", U, "data.pkl: byte 2: INST: unsupported opcode" },
    { P_HEAD "( o", U, "data.pkl: byte 3: OBJ: unsupported opcode" },
    { P_HEAD ") x81", F, "data.pkl: byte 3: NEWOBJ: needs 2 values, found 1" },
    { P_HEAD "x92", U, "data.pkl: byte 2: NEWOBJ_EX: unsupported opcode" },
    { P_HEAD "x82 x01", U, "data.pkl: byte 2: EXT1: unsupported opcode" },
    { P_HEAD "P", U, "data.pkl: byte 2: PERSID: unsupported opcode" },
    { P_HEAD "} 2", U, "data.pkl: byte 3: DUP: unsupported opcode" },
    { P_HEAD "x97", U, "data.pkl: byte 2: NEXT_BUFFER: unsupported opcode" },
    { P_HEAD "x00", F, "data.pkl: byte 2: 0x00: unknown opcode" },
    { P_HEAD "xff", F, "data.pkl: byte 2: 0xff: unknown opcode" },
    /* the stack */
    { P_HEAD "0", F, "data.pkl: byte 2: POP: needs 1 values, found 0" },
    { P_HEAD "1", F, "data.pkl: byte 2: POP_MARK: needs a mark, found none" },
    { P_HEAD "t", F, "data.pkl: byte 2: TUPLE: needs a mark, found none" },
    { P_HEAD "N x86", F, "data.pkl: byte 3: TUPLE2: needs 2 values, found 1" },
    { P_HEAD "N ( N x86", F, "data.pkl: byte 5: TUPLE2: needs 2 values, found 1" },
    { P_HEAD "( Q", F, "data.pkl: byte 3: BINPERSID: needs 1 values, found 0" },
    { P_HEAD "N N a", F, "data.pkl: byte 4: APPEND: needs a list, found None" },
    { P_HEAD "( N e", F, "data.pkl: byte 4: APPENDS: needs 2 values, found 1" },
    { P_HEAD "] N N s", F, "data.pkl: byte 5: SETITEM: needs a dict, found a list" },
    { P_HEAD "N ( u", F, "data.pkl: byte 4: SETITEMS: needs a dict, found None" },
    { P_HEAD "} ( N u", F, "data.pkl: byte 5: SETITEMS: a key without a value" },
    { P_HEAD T_A "N N s", F, "data.pkl: byte 149: SETITEM: needs a dict, found a call" },
    { P_HEAD "( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( (", U,
      "data.pkl: byte 34: MARK: more than 32 open marks" },
    /* operands and the memo */
    { P_HEAD "J x01 x02", F, "data.pkl: byte 2: BININT: truncated" },
    { P_HEAD "X x05 x00 x00 x00 a", F, "data.pkl: byte 2: BINUNICODE: 5 bytes, only 1 left" },
    { P_HEAD "X xff xff xff xff a", F, "data.pkl: byte 2: BINUNICODE: 4294967295 bytes, only 1 left" },
    { P_HEAD "x8d xff xff xff xff xff xff xff xff a", F,
      "data.pkl: byte 2: BINUNICODE8: 18446744073709551615 bytes, only 1 left" },
    { P_HEAD "x8c x03 a xff b", F,
      "data.pkl: byte 2: SHORT_BINUNICODE: invalid UTF-8 at byte 1 of the string" },
    { P_HEAD "x8a x09 1 2 3 4 5 6 7 8 9", U, "data.pkl: byte 2: LONG1: an integer of 9 bytes" },
    { P_HEAD "x95 x03 x00 x00 x00 x00 x00 x00 x00 } .", F, "data.pkl: byte 2: FRAME: 3 bytes, only 2 left" },
    { P_HEAD "h x00", F, "data.pkl: byte 2: BINGET: memo 0 is empty" },
    { P_HEAD "} q x01 h x00", F, "data.pkl: byte 5: BINGET: memo 0 is empty" },
    { P_HEAD "} j xff xff xff xff", F, "data.pkl: byte 3: LONG_BINGET: memo 4294967295 is empty" },
    { P_HEAD "} r xff xff xff xff .", F,
      "data.pkl: byte 3: LONG_BINPUT: memo 4294967295 in a pickle of 9 bytes" },
    { P_HEAD "q x00", F, "data.pkl: byte 2: BINPUT: needs 1 values, found 0" },
    { P_HEAD "x94", F, "data.pkl: byte 2: MEMOIZE: needs 1 values, found 0" },
    /* contents */
    { P_HEAD "N .", U, "contains None, expected a dict of tensors" },
    { P_HEAD ") .", U, "contains a tuple, expected a dict of tensors" },
    { P_HEAD T_A ".", U, "contains a call, expected a dict of tensors" },
    { P_HEAD "} #1 N s .", U, "a key of the dict is an integer, expected a tensor name" },
    { ONE("#3 "), U, "tensor \"w\": an integer, not a tensor" },
    { ONE("} "), U, W_IS_DICT },
    { ONE("@torch:FloatStorage "), U, "tensor \"w\": a global, not a tensor" },
    { ONE(P_STORAGE("Float", "0", "6")), U, "tensor \"w\": a persistent id, not a tensor" },
    { P_HEAD "} X x01 x00 x00 x00 x00 " T_A "s .", F, "tensor \"\\x00\": NUL in its name" },
    { P_HEAD "} 'w " T_A "s 'w " T_A "s .", F, "tensor \"w\" appears twice" },
    { P_HEAD "} q x00 'w h x00 s .", U, W_IS_DICT }, /* contains itself */
    /* tensors */
    { ONE("@torch._utils:_rebuild_tensor_v2 ) R "), F, "tensor \"w\": 0 arguments for _rebuild_tensor_v2" },
    { ONE("@torch._utils:_rebuild_tensor ( N N N N N t R "), F,
      "tensor \"w\": 5 arguments for _rebuild_tensor" },
    { ONE("@torch._utils:_rebuild_parameter ) R "), F,
      "tensor \"w\": parameter with 0 arguments, expected 3" },
    { ONE("@torch._utils:_rebuild_parameter N N N x87 R "), U, "tensor \"w\": None, not a tensor" },
    { ONE("@torch._utils:_rebuild_parameter @torch._utils:_rebuild_parameter " T_A "N N x87 R N N x87 R "), U,
      "tensor \"w\": a call, not a tensor" },
    { ONE("@torch._utils:_rebuild_tensor_v3 ( " P_STORAGE("Float", "0", "6") "#0 #6 x85 #1 x85 x89 N N t R "),
      F, "tensor \"w\": dtype: a torch dtype expected" },
    { PERSID("N "), F, "tensor \"w\": storage: a persistent id expected, not None" },
    { PERSID("N Q "), F, "tensor \"w\": storage: a persistent id of 5 elements expected" },
    { PERSID("( N N N N t Q "), F, "tensor \"w\": storage: a persistent id of 5 elements expected" },
    { PERSID("( 'module @torch:FloatStorage '0 'cpu #6 t Q "), F, PARTS },
    { PERSID("( 'storage @torch:float32 '0 'cpu #6 t Q "), F, PARTS },
    { PERSID("( 'storage @torch:Size '0 'cpu #6 t Q "), F, PARTS },
    { PERSID("( 'storage 'FloatStorage '0 'cpu #6 t Q "), F, PARTS },
    { PERSID("( 'storage @torch:FloatStorage #0 'cpu #6 t Q "), F, PARTS },
    { PERSID("( 'storage @torch:FloatStorage '0 'cpu '6 t Q "), F, PARTS },
    { PERSID("( 'storage @torch:FloatStorage '0 'cpu #-1 t Q "), F, PARTS },
    { PERSID(P_STORAGE("Float", "7", "6")), F, "tensor \"w\": storage \"7\" is not in the archive" },
    { PERSID(P_STORAGE("Float", "../version", "6")), F,
      "tensor \"w\": storage \"../version\" is not in the archive" },
    { PERSID(P_STORAGE("Float", "0", "7")), F,
      "tensor \"w\": storage \"0\" has 24 bytes, expected 7 elements of F32" },
    { PERSID(P_STORAGE("Half", "0", "6")), F,
      "tensor \"w\": storage \"0\" has 24 bytes, expected 6 elements of F16" },
    { PERSID(P_STORAGE("Long", "0", "2305843009213693955")), F,
      "tensor \"w\": storage \"0\" has 24 bytes, expected 2305843009213693955 elements of I64" },
    { SHAPE("#-1 #6 x85 #1 x85"), F, "tensor \"w\": the storage offset is not an integer of at least 0" },
    { SHAPE("'0 #6 x85 #1 x85"), F, "tensor \"w\": the storage offset is not an integer of at least 0" },
    { SHAPE("#0 ] #1 x85"), F, "tensor \"w\": shape and strides: tuples expected, not a list and a tuple" },
    { SHAPE("#0 #6 x85 N"), F, "tensor \"w\": shape and strides: tuples expected, not a tuple and None" },
    { SHAPE("#0 #6 x85 )"), F, "tensor \"w\": shape of 1 axes, but 0 strides" },
    { SHAPE("#0 ( N N N N N N N N N t )"), U, "tensor \"w\": shape of 9 axes, the maximum is 8" },
    { SHAPE("#0 #-6 x85 #1 x85"), F, "tensor \"w\": shape[0] is not an integer of at least 0" },
    { SHAPE("#0 N x85 #1 x85"), F, "tensor \"w\": shape[0] is not an integer of at least 0" },
    { SHAPE("#0 #6 x85 #-1 x85"), F, "tensor \"w\": stride[0] is not an integer of at least 0" },
    { SHAPE("#0 #7 x85 #1 x85"), F, "tensor \"w\": uses element 6 of a storage of 6" },
    { SHAPE("#6 ) )"), F, "tensor \"w\": uses element 6 of a storage of 6" },
    { SHAPE("#1 #2 #3 x86 #3 #1 x86"), F, "tensor \"w\": uses element 6 of a storage of 6" },
    { SHAPE("#0 #3 x85 #3 x85"), F, "tensor \"w\": uses element 6 of a storage of 6" },
    { SHAPE("#9223372036854775807 #2 x85 #9223372036854775807 x85"), F,
      "tensor \"w\": uses element 18446744073709551614 of a storage of 6" },
    { SHAPE("#9223372036854775807 #3 x85 #9223372036854775807 x85"), F,
      "tensor \"w\": the last offset exceeds 64 bits" },
    { SHAPE("#0 #4294967296 #4294967296 x86 #0 #0 x86"), F,
      "tensor \"w\": the number of elements exceeds 63 bits" },
    { SHAPE("#0 #4000000000000 x85 #0 x85"), U,
      "tensor \"w\": not contiguous, and its 4000000000000 elements exceed the size of the file" },
    { SHAPE("#0 #4611686018427387905 x85 #0 x85"), U,
      "tensor \"w\": not contiguous, and its 4611686018427387905 elements exceed the size of the file" },
};

static void check_pickles(void)
{
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        make_torch_of(&z, bad[i].words, i & 1);
        check_z(bad[i].words, bad[i].code, bad[i].want);
    }
}

/* ---- folders ---- */

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][160];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, 160, "%s/%s", dir, name);
    return p;
}

static bool put_torch(const char *name, const char *words)
{
    make_torch_of(&z, words, false);
    return ses_file_write(in_dir(name), z.b.data, z.b.n, true, NULL);
}

static bool put_text(const char *name, const char *text)
{
    return ses_file_write(in_dir(name), text, strlen(text), true, NULL);
}

static void check_open(const char *path, size_t count, const char *last, const char *want)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(path, &e);
    char full[512];
    snprintf(full, sizeof full, "%s%s", path, want ? want : "");
    if (want)
        CHECK_STR(s ? "accepted" : e.msg, full);
    else
        CHECK_MSG(ses_safetensors_count(s) == count, "%s", e.msg);
    if (s && count) CHECK_STR(ses_safetensors_at(s, count - 1)->file, last);
    ses_safetensors_free(s);
}

static void check_folders(void)
{
    static const char *const names[] = { "pytorch_model.bin", "one.bin", "two.bin",
                                         "pytorch_model.bin.index.json", "model.safetensors" };
    CHECK(put_torch("pytorch_model.bin", TORCH_GOOD));
    check_open(dir, 3, "pytorch_model.bin", NULL);
    check_open(in_dir("pytorch_model.bin"), 3, "pytorch_model.bin", NULL);
    CHECK(put_torch("pytorch_model.bin", P_HEAD "@os:system"));
    check_open(dir, 0, "", "/pytorch_model.bin: data.pkl: byte 2: GLOBAL: refused global os.system");
    z.b.n = 0;
    put_pickle(&z.b, P_MAGIC);
    CHECK(ses_file_write(in_dir("pytorch_model.bin"), z.b.data, z.b.n, true, NULL));
    check_open(in_dir("pytorch_model.bin"), 0, "",
               ": pickle of the version, at byte 15: not a pickle of protocol 2 to 5");
    make_old(&z.b, OLD_GOOD, OLD_KEYS);
    CHECK(ses_file_write(in_dir("pytorch_model.bin"), z.b.data, z.b.n, true, NULL));
    check_open(dir, 3, "pytorch_model.bin", NULL);
    unlink(in_dir("pytorch_model.bin"));

    CHECK(put_torch("one.bin", P_STATE("'a " T_A)) && put_torch("two.bin", P_STATE("'b " T_B)));
    CHECK(put_text("pytorch_model.bin.index.json", "{\"weight_map\":{\"a\":\"one.bin\",\"b\":\"two.bin\"}}"));
    check_open(dir, 2, "two.bin", NULL);
    CHECK(put_text("pytorch_model.bin.index.json", "{\"weight_map\":{\"a\":\"one.bin\",\"b\":\"one.bin\"}}"));
    check_open(dir, 0, "", "/pytorch_model.bin.index.json: tensor \"b\" is not in one.bin");
    CHECK(put_text("pytorch_model.bin.index.json", "{\"weight_map\":{\"a\":\"../one.bin\"}}"));
    check_open(
        dir, 0, "",
        "/pytorch_model.bin.index.json: weight_map: tensor \"a\": \"../one.bin\" is not a plain file name");
    CHECK(put_torch("two.bin", P_STATE("'a " T_A)));
    CHECK(put_text("pytorch_model.bin.index.json", "{\"weight_map\":{\"a\":\"one.bin\",\"b\":\"two.bin\"}}"));
    check_open(dir, 0, "", "/pytorch_model.bin.index.json: two.bin: tensor \"a\" is also in one.bin");
    CHECK(put_text("model.safetensors", "")); /* preferred */
    check_open(dir, 0, "", "/model.safetensors: file of 0 bytes, too short for the header length (8 bytes)");
    for (size_t i = 0; i < SES_LEN(names); i++) unlink(in_dir(names[i]));
}

/* ---- a whole model ---- */

enum { MODEL_TENSORS = ZIP_RECORDS - 1 };

/* The tensors of a safetensors file as torch.save would write them, each in its own storage. */
static void put_model(const ses_safetensors *s)
{
    static char name[MODEL_TENSORS][24];
    static bytes pickle;
    zip_record r[ZIP_RECORDS] = { { "pytorch_model/data.pkl", pickle.data, 0 } };
    size_t n = ses_safetensors_count(s);
    if (n > MODEL_TENSORS) abort();
    put_pickle(&pickle, P_HEAD P_ORDERED "( ");
    for (size_t i = 0; i < n; i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        char words[512], sizes[96] = "", strides[96] = "";
        int64_t step = t->count;
        for (int k = 0; k < t->rank; k++) {
            step /= t->dim[k];
            snprintf(sizes + strlen(sizes), 24, "#%lld ", (long long)t->dim[k]);
            snprintf(strides + strlen(strides), 24, "#%lld ", (long long)step);
        }
        snprintf(
            words, sizeof words,
            "'%s @torch._utils:_rebuild_tensor_v2 ( ( 'storage @torch:FloatStorage '%zu 'cuda:0 #%lld t Q #0 "
            "( %st ( %st x89 " P_ORDERED "t R ",
            t->name, i, (long long)t->count, sizes, strides);
        put_pickle(&pickle, words);
        snprintf(name[i], sizeof name[i], "pytorch_model/data/%zu", i);
        r[i + 1] = (zip_record){ name[i], t->data, t->bytes };
    }
    put_pickle(&pickle, "u .");
    r[0].n = pickle.n;
    make_zip(&z, r, n + 1, false);
}

/* A model read from a .bin is mapped; saved as safetensors, it equals the file of transformers. */
static void check_model(void)
{
    static const char from[] = "tests/golden/bert-masked-lm";
    static const char *const files[] = { "pytorch_model.bin", "config.json", "out/config.json",
                                         "out/model.safetensors" };
    ses_err e = { 0 };
    size_t n = 0, m = 0;
    ses_safetensors *s = ses_checkpoint_open(from, &e);
    char *config = ses_file_read("tests/golden/bert-masked-lm/config.json", 100000, &n, &e);
    if (!CHECK_MSG(s && config, "%s", e.msg)) return;
    put_model(s);
    CHECK(ses_file_write(in_dir("pytorch_model.bin"), z.b.data, z.b.n, false, &e) &&
          ses_file_write(in_dir("config.json"), config, n, false, &e));
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_model *model = ses_model_open(dir, dev, NULL, &e);
    CHECK_MSG(model && ses_model_save(model, in_dir("out"), &(ses_save_options){ .dtype = SES_F32 }, &e),
              "%s", e.msg);
    char *got = ses_file_read(in_dir("out/model.safetensors"), 1000000, &n, &e);
    char *want = ses_file_read("tests/golden/bert-masked-lm/model.safetensors", 1000000, &m, &e);
    CHECK_MSG(got && want && n == m && !memcmp(got, want, n), "%s", e.msg);
    ses_model_free(model);
    ses_device_free(dev);
    ses_safetensors_free(s);
    ses_free(config), ses_free(got), ses_free(want);
    for (size_t i = 0; i < SES_LEN(files); i++) unlink(in_dir(files[i]));
    rmdir(in_dir("out"));
}

/* A file that torch wrote, in the zip or the legacy format: "t" is the transpose of "param", "view" its rows
 * 2 and 3, "exp" one element expanded to three. */
static void check_real(const char *path, bool aligned)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(path, &e);
    if (!CHECK_MSG(ses_safetensors_count(s) == 19, "%s", e.msg)) return;
    float param[24] = { 0 }, t[24] = { 0 }, half[24] = { 0 }, one[3] = { 0 };
    CHECK(ses_tensor_entry_to_f32(ses_safetensors_find(s, "param"), param, NULL) &&
          ses_tensor_entry_to_f32(ses_safetensors_find(s, "t"), t, NULL) &&
          ses_tensor_entry_to_f32(ses_safetensors_find(s, "half"), half, NULL) &&
          ses_tensor_entry_to_f32(ses_safetensors_find(s, "exp"), one, NULL));
    for (int i = 0; i < 24; i++) {
        float far = half[i] - param[i];
        CHECK(t[i % 4 * 6 + i / 4] == param[i] && far < 0.002f && far > -0.002f && param[i] != 0);
    }
    CHECK(one[0] == 1 && one[1] == 1 && one[2] == 1);
    CHECK(!memcmp(ses_safetensors_find(s, "view")->data, param + 8, 32));
    if (aligned) CHECK((uintptr_t)ses_safetensors_find(s, "param")->data % 64 == 0); /* mapped */
    ses_safetensors_free(s);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-torch-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    check_good(false);
    check_good(true);
    check_tensors();
    check_copies();
    check_pickles();
    check_folders();
    check_model();
    check_real("tests/fuzz/corpus/fuzz_zip/torch-1.13.bin", true);
    check_real("tests/fuzz/corpus/fuzz_zip/torch-old.bin", false);
    CHECK_MSG(rmdir(dir) == 0, "something is left in %s", dir);
    return check_report();
}
