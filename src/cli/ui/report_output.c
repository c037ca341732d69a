/* Reports of commands: on the terminal and in files. */
#include "report_output.h"

#include "base/file.h"
#include "cli/standard_output.h"

bool ses_report_write_files(ses_report *r, const ses_report_head *h, const char *svg, const char *html,
                            bool overwrite, ses_err *e)
{
    ses_buf picture = { 0 }, page = { 0 };
    bool ok = (!html || (ses_report_html(r, h, &page, e) && ses_buf_ok(&page, e) &&
                         ses_file_write(html, page.data, page.len, overwrite, e))) &&
              (!svg || (ses_report_svg(r, h, &picture, e) && ses_buf_ok(&picture, e) &&
                        ses_file_write(svg, picture.data, picture.len, overwrite, e)));
    ses_buf_free(&picture);
    ses_buf_free(&page);
    return ok;
}

bool ses_report_print(const ses_report *r, const ses_term *t, ses_err *e)
{
    ses_buf out = { 0 };
    ses_report_draw(r, &(ses_draw){ t->width, t->color, t->unicode }, &out);
    bool ok = ses_buf_ok(&out, e) && (!out.len || ses_stdout_write(out.data, out.len, e));
    ses_buf_free(&out);
    return ok;
}
