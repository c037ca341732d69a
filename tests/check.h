/* Test macros: CHECK counts, prints a failure and continues; REPORT ends a program with the line "N passed, N
 * failed" (", N skipped" may follow) and its exit code. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_passed, check_failed, check_skipped;

#define CHECK(cond) check_that(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_MSG(cond, ...) \
    (check_that(!!(cond), #cond, __FILE__, __LINE__) || (printf("    " __VA_ARGS__), puts(""), 0))
#define CHECK_STR(got, want) check_str(got, want, __FILE__, __LINE__)
#define SKIP(why) (check_skipped++, printf("skipped: %s\n", why))

static inline int check_that(int ok, const char *what, const char *file, int line)
{
    if (ok) return check_passed++, 1;
    printf("%s:%d: failed: %s\n", file, line, what);
    return check_failed++, 0;
}

static inline int check_str(const char *got, const char *want, const char *file, int line)
{
    if (got && want && !strcmp(got, want)) return check_passed++, 1;
    printf("%s:%d: got  \"%s\"\n%*s want \"%s\"\n", file, line, got ? got : "(null)", (int)strlen(file) + 4,
           "", want ? want : "(null)");
    return check_failed++, 0;
}

/* Folder of the expected outputs, or NULL. */
static inline const char *check_shared(void)
{
    const char *dir = getenv("SESAME_SHARED");
    return dir ? dir : "../shared";
}

static inline int check_report(void)
{
    printf("%d passed, %d failed", check_passed, check_failed);
    if (check_skipped) printf(", %d skipped", check_skipped);
    puts("");
    return check_failed ? 1 : 0;
}

#endif
