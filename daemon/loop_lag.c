/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_lag.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"

void cw_loop_lag_init(struct cw_loop_lag *lag, int64_t period_ns)
{
	*lag = (struct cw_loop_lag){
		.period_ns = period_ns,
		.run_delay_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
	};
}

void cw_loop_lag_fini(struct cw_loop_lag *lag)
{
	closep(&lag->run_delay_fd);
	lag->run_delay_fd = -1;
}

void cw_loop_lag_tick(struct cw_loop_lag *lag, int64_t now_ns, int64_t run_delay_ns)
{
	int64_t late_ns =
		now_ns - lag->last_ns - lag->period_ns - (run_delay_ns - lag->run_delay_ns);

	if (lag->last_ns && late_ns > lag->max_ns)
		lag->max_ns = late_ns;
	lag->last_ns = now_ns;
	lag->run_delay_ns = run_delay_ns;
}

void cw_loop_lag_end_iteration(struct cw_loop_lag *lag, int64_t cpu_ns)
{
	if (lag->cpu_ns && cpu_ns - lag->cpu_ns > lag->max_ns)
		lag->max_ns = cpu_ns - lag->cpu_ns;
	lag->cpu_ns = cpu_ns;
}

int64_t cw_loop_lag_run_delay_ns(const struct cw_loop_lag *lag)
{
	char text[96], *second;
	ssize_t n = pread(lag->run_delay_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* the file has three numbers: time run, time waited, number of slices */
	(void)strtoull(text, &second, 10);
	return (int64_t)strtoull(second, NULL, 10);
}
