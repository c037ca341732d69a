/* Opcodes of Python pickles (see pickletools.py); included by pickle.c only. */
#ifndef SES_IO_PICKLE_OPS_H
#define SES_IO_PICKLE_OPS_H

#include "sesame/base.h"

/* Operand of an opcode. */
typedef enum {
    ARG_NONE,
    ARG_1, /* a number of 1 byte */
    ARG_2,
    ARG_4,
    ARG_8,
    ARG_BYTES1, /* a length of 1 byte, then that many bytes */
    ARG_BYTES4,
    ARG_BYTES8,
    ARG_LINES /* read by the opcode itself */
} ses_pickle_arg;

/* The supported opcodes; all others are refused. */
static const struct ses_pickle_op {
    char name[18];
    uint8_t arg;
    bool read;
} ses_pickle_ops[256] = {
    [0x80] = { "PROTO", ARG_1, true },
    [0x95] = { "FRAME", ARG_8, true },
    ['.'] = { "STOP", ARG_NONE, true },
    ['('] = { "MARK", ARG_NONE, true },
    ['0'] = { "POP", ARG_NONE, true },
    ['1'] = { "POP_MARK", ARG_NONE, true },
    ['N'] = { "NONE", ARG_NONE, true },
    [0x88] = { "NEWTRUE", ARG_NONE, true },
    [0x89] = { "NEWFALSE", ARG_NONE, true },
    ['J'] = { "BININT", ARG_4, true },
    ['K'] = { "BININT1", ARG_1, true },
    ['M'] = { "BININT2", ARG_2, true },
    [0x8A] = { "LONG1", ARG_BYTES1, true },
    [0x8B] = { "LONG4", ARG_BYTES4, true },
    ['G'] = { "BINFLOAT", ARG_8, true },
    ['X'] = { "BINUNICODE", ARG_BYTES4, true },
    [0x8C] = { "SHORT_BINUNICODE", ARG_BYTES1, true },
    [0x8D] = { "BINUNICODE8", ARG_BYTES8, true },
    ['B'] = { "BINBYTES", ARG_BYTES4, true },
    ['C'] = { "SHORT_BINBYTES", ARG_BYTES1, true },
    [0x8E] = { "BINBYTES8", ARG_BYTES8, true },
    [')'] = { "EMPTY_TUPLE", ARG_NONE, true },
    ['t'] = { "TUPLE", ARG_NONE, true },
    [0x85] = { "TUPLE1", ARG_NONE, true },
    [0x86] = { "TUPLE2", ARG_NONE, true },
    [0x87] = { "TUPLE3", ARG_NONE, true },
    [']'] = { "EMPTY_LIST", ARG_NONE, true },
    ['a'] = { "APPEND", ARG_NONE, true },
    ['e'] = { "APPENDS", ARG_NONE, true },
    ['}'] = { "EMPTY_DICT", ARG_NONE, true },
    ['s'] = { "SETITEM", ARG_NONE, true },
    ['u'] = { "SETITEMS", ARG_NONE, true },
    ['h'] = { "BINGET", ARG_1, true },
    ['j'] = { "LONG_BINGET", ARG_4, true },
    ['q'] = { "BINPUT", ARG_1, true },
    ['r'] = { "LONG_BINPUT", ARG_4, true },
    [0x94] = { "MEMOIZE", ARG_NONE, true },
    ['c'] = { "GLOBAL", ARG_LINES, true },
    [0x93] = { "STACK_GLOBAL", ARG_NONE, true },
    ['R'] = { "REDUCE", ARG_NONE, true },
    [0x81] = { "NEWOBJ", ARG_NONE, true },
    [0x91] = { "FROZENSET", ARG_NONE, true },
    ['b'] = { "BUILD", ARG_NONE, true },
    ['Q'] = { "BINPERSID", ARG_NONE, true },
    /* Unsupported, named for messages. */
    ['i'] = { .name = "INST" },
    ['o'] = { .name = "OBJ" },
    [0x92] = { .name = "NEWOBJ_EX" },
    [0x82] = { .name = "EXT1" },
    [0x83] = { .name = "EXT2" },
    [0x84] = { .name = "EXT4" },
    ['P'] = { .name = "PERSID" },
    ['I'] = { .name = "INT" },
    ['L'] = { .name = "LONG" },
    ['F'] = { .name = "FLOAT" },
    ['S'] = { .name = "STRING" },
    ['T'] = { .name = "BINSTRING" },
    ['U'] = { .name = "SHORT_BINSTRING" },
    ['V'] = { .name = "UNICODE" },
    ['l'] = { .name = "LIST" },
    ['d'] = { .name = "DICT" },
    ['g'] = { .name = "GET" },
    ['p'] = { .name = "PUT" },
    ['2'] = { .name = "DUP" },
    [0x8F] = { .name = "EMPTY_SET" },
    [0x90] = { .name = "ADDITEMS" },
    [0x96] = { .name = "BYTEARRAY8" },
    [0x97] = { .name = "NEXT_BUFFER" },
    [0x98] = { .name = "READONLY_BUFFER" },
};

#endif
