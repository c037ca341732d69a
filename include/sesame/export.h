/* Linkage of the public headers: C names in C++ programs, and visible symbols in the shared library, which
 * hides everything else. Every public header puts its declarations between the two macros. */
#ifndef SESAME_EXPORT_H
#define SESAME_EXPORT_H

#if defined __GNUC__
#define SES_VISIBILITY_PUSH _Pragma("GCC visibility push(default)")
#define SES_VISIBILITY_POP _Pragma("GCC visibility pop")
#else
#define SES_VISIBILITY_PUSH
#define SES_VISIBILITY_POP
#endif

/* clang-format off */
#ifdef __cplusplus
#define SES_BEGIN_DECLS SES_VISIBILITY_PUSH extern "C" {
#define SES_END_DECLS } SES_VISIBILITY_POP
#else
#define SES_BEGIN_DECLS SES_VISIBILITY_PUSH
#define SES_END_DECLS SES_VISIBILITY_POP
#endif
/* clang-format on */

#endif
