/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sentence for people, in addition to a negative errno. It is for functions whose errors a person
 * can mend (config, command line, handshakes). Callers that do not need it pass NULL.
 */
#pragma once

struct cw_err {
	char text[512];
};

/* Fills err (NULL allowed) and returns -errno_value. */
int cw_err_set(struct cw_err *err, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
