/* Spelling of bytes in vocabularies: printable characters (byte-level BPE) and <0xXX> (byte fallback). */
#ifndef SES_TEXT_BYTE_CHARS_H
#define SES_TEXT_BYTE_CHARS_H

#include "sesame/base.h"

/* Byte-level BPE (GPT-2): each byte is one printable character, U+0021 to U+0143. */
uint32_t ses_byte_char(uint8_t byte);
int ses_char_byte(uint32_t c); /* -1: not such a character */

/* Byte fallback (SentencePiece): <0x00> to <0xFF>. */
enum { SES_BYTE_TOKEN = 6 };
size_t ses_byte_token(uint8_t byte, char out[SES_BYTE_TOKEN]); /* bytes written */

#endif
