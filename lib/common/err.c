/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/text.h"

int cw_err_set(struct cw_err *err, int errno_value, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		/* vsnprintf() truncates a text that is too long. */
		(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
		cw_text_sanitise(err->text); /* the text may quote untrusted files and messages */
	}
	return -errno_value;
}
