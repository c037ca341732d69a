/* Objects of `tokenize --jsonl`. Each line gives a line of output: an encoding or an error. A file that is
 * not text is refused. The first byte selects options. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"
#include "io/text_decoder.h"
#include "sesame/json.h"

static const char first[] = "{\"text\": \"a\"}\n"; /* the file begins as text: it is not decompressed */

static size_t count_lines(const char *s, size_t n)
{
    size_t lines = n && s[n - 1] != '\n';
    for (size_t i = 0; i < n; i++) lines += s[i] == '\n';
    return lines;
}

static bool is_error(const char *line, size_t n)
{
    static const char *const lists[] = { "tokens", "offsets", "word_ids", "type_ids", "special_tokens_mask" };
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse_line(line, n, &e);
    const ses_json *v = ses_json_root(doc);
    MUST(doc && ses_json_type_of(v) == SES_JSON_OBJECT);
    bool failed = ses_json_get(v, "error") != NULL;
    for (size_t i = 0; !failed && i < SES_LEN(lists); i++)
        MUST(ses_json_len(ses_json_get(v, lists[i])) == ses_json_len(ses_json_get(v, "ids")));
    ses_json_free(doc);
    return failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    static const char *const truncations[] = { "longest_first", "only_first", "only_second" };
    char dir[40], path[64], *list[16];
    const char *words[16] = { "--jsonl", "--json", "-m", "tests/pipelines/bert-label/tokenizer.json",
                              "-t",      "1" };
    size_t k = 6, size = sizeof first - 1 + n - 1, out_size, failed = 0;
    char *text = malloc(size);
    MUST(text);
    memcpy(text, first, sizeof first - 1);
    memcpy(text + sizeof first - 1, data + 1, n - 1);
    if (data[0] & 1) words[k++] = "--no-special";
    if (data[0] & 2) {
        words[k++] = "--max-length", words[k++] = "6", words[k++] = "--truncation";
        words[k++] = truncations[(data[0] >> 2) % 3];
    }
    fuzz_folder(dir);
    snprintf(path, sizeof path, "%s/a.jsonl", dir);
    fuzz_file(path, text, size);
    words[k++] = path;
    for (size_t i = 0; i <= k; i++) list[i] = (char *)(uintptr_t)(i < k ? words[i] : NULL);
    ses_err e = { 0 };
    FILE *file = tmpfile();
    MUST(file);
    int before = fuzz_stdout_to(file);
    bool ok = fuzz_command("tokenize", list, &e);
    fuzz_stdout_back(before);
    bool is_text = ses_text_good(text, size) == size;
    MUST(e.code == (is_text ? SES_OK : SES_EFORMAT));
    char *out = fuzz_read_back(file, &out_size);
    MUST(!is_text || count_lines(out, out_size) == count_lines(text, size));
    for (char *at = out, *lf; (lf = strchr(at, '\n')); at = lf + 1) failed += is_error(at, (size_t)(lf - at));
    MUST(ok == (is_text && !failed));
    free(out);
    free(text);
    fclose(file);
    unlink(path);
    rmdir(dir);
    return 0;
}
