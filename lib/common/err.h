/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sentence for people, in addition to a negative errno. Functions whose errors a person can mend
 * (config, command line, handshakes) fill it in. Callers that do not need the sentence pass NULL.
 */
#pragma once

struct cw_err {
	char text[512];
};

/* Writes the sentence to err, which may be NULL, and returns -errno_value. */
int cw_err_set(struct cw_err *err, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
