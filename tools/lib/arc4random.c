/* SPDX-License-Identifier: Apache-2.0 */
/* What Debian 12's libevent takes from glibc 2.36, for programs that run on an older one. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *buf, size_t len);
uint32_t arc4random(void);

/* There is no way to say that there is nothing random: glibc's ends the program, too. */
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
