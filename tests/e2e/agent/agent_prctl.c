/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before the agent: notes each name of a tracer (PR_SET_PTRACER) in the file PRCTL_LOG,
 * and does not pass it on, so that it needs no Yama. All else reaches the kernel.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_PTRACER && getenv("PRCTL_LOG")) {
		int fd = open(getenv("PRCTL_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

		dprintf(fd, "%d %d %lu\n", (int)getpid(), (int)syscall(SYS_gettid), arg[0]);
		(void)close(fd);
		return 0;
	}
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}
