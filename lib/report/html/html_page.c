/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_page.h"

#include <errno.h>

#include "report/html/html_style.h"

void html_page_begin(FILE *out)
{
	fputs("<!DOCTYPE html>\n"
	      "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
	      "<meta charset=\"utf-8\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	      "<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>",
	      out);
}

void html_page_body(FILE *out)
{
	fputs("</title>\n<style>\n", out);
	fputs(html_style, out);
	fputs("</style>\n</head>\n<body>\n", out);
}

int html_page_end(FILE *out)
{
	fputs("</body>\n</html>\n", out);
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
