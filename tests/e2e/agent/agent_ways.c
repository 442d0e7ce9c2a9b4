/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs in one: "neighbours" asks three libraries, "static" is a rank of a library's own
 * NCCL. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int static_rank(int reduces);
const char *next_of_a(void), *next_of_b(void), *next_of_c(void);
const char *first_of_a(void), *first_of_b(void), *first_of_c(void);
const char *libc_of_a(void), *libc_of_b(void), *libc_of_c(void);

static int neighbours(void)
{
	printf("next %s %s %s\n", next_of_a(), next_of_b(), next_of_c());
	printf("first %s %s %s\n", first_of_a(), first_of_b(), first_of_c());
	printf("libc %s %s %s\n", libc_of_a(), libc_of_b(), libc_of_c());
	printf("parent %s\n", getppid() > 1000000 ? "wrapped" : "plain");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "neighbours") == 0)
		return neighbours();
	if (argc > 1 && strcmp(argv[1], "static") == 0) {
		int r = static_rank(20);

		(void)getchar();
		printf("static %d\n", r);
		return r;
	}
	fprintf(stderr, "usage: agent_ways neighbours|static\n");
	return 2;
}
