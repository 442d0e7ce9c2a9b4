/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of glibc 2.36 that Debian 12's libevent uses, for programs that run on an older one. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *buf, size_t len);
uint32_t arc4random(void);

/* The function cannot report an error: without randomness glibc's also ends the program. */
void arc4random_buf(void *buf, size_t len)
{
	char *to = buf;

	while (len) {
		ssize_t n = getrandom(to, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort();
		to += n;
		len -= (size_t)n;
	}
}

uint32_t arc4random(void)
{
	uint32_t number;

	arc4random_buf(&number, sizeof(number));
	return number;
}
