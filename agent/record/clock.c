/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"

#define NS_PER_S UINT64_C(1000000000)
/* Least time between two comparisons of the clocks, for a rate accurate to 1 ppm. */
#define APART_MIN_NS (NS_PER_S / 2)
/* A rate is valid for several seconds, because the helper thread may be late. */
#define VALID_NS (4 * NS_PER_S)
/*
 * With a larger difference the clocks have drifted apart. The kernel slews its clock by less in
 * VALID_NS.
 */
#define PARTED_NS 2000000u
#define TRIES 5

CW_HOT_DATA struct cw_clock cw_clock;

/* Only the helper thread uses the next two variables. */
static enum { NOT_ASKED, WATCHING, GIVEN_UP } state;
static struct cw_clock_point last; /* last comparison; 0 = none yet */

/*
 * Returns whether the kernel uses the tsc as its clock. The kernel checks its clock sources. If it
 * trusts the tsc, we trust it too.
 */
static bool kernel_trusts_ticks(void)
{
	char name[8] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	(void)close(fd);
	return n == 4 && memcmp(name, "tsc\n", 4) == 0;
}

/*
 * Reads both clocks at the same moment. We make TRIES readings and use the one that took the least
 * time.
 */
static struct cw_clock_point look(void)
{
	struct cw_clock_point best = { 0 };
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = CW_CLOCK_TICKS(), ns = cw_now_ns(), after = CW_CLOCK_TICKS();

		if (after - before < width) {
			width = after - before;
			best = (struct cw_clock_point){ .ticks = before + width / 2, .ns = ns };
		}
	}
	return best;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Returns whether the published rate still gives the kernel's time. */
static bool holds(const struct cw_clock_rate *r, const struct cw_clock_point *now)
{
	uint64_t since = now->ticks - r->ticks;

	if (now->ticks < r->ticks)
		return false;
	return now->ns - r->ns > VALID_NS || /* the rate has expired, so no reader used it */
	       apart(r->ns + (uint64_t)((unsigned __int128)since * r->mult >> 32), now->ns) <
		       PARTED_NS;
}

static void publish(const struct cw_clock_point *now)
{
	/* The number counts from 1, once a second, so it never wraps. */
	uint32_t generation = cw_clock.rate_generation + 1;
	struct cw_clock_rate *r;
	uint64_t ns = now->ns - last.ns, ticks = now->ticks - last.ticks;

	/*
	 * A slow reader may still use the rate that we overwrite. The fence makes the reader see
	 * the change of rate_generation before it sees our stores to the rate.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	r = &cw_clock.rates[generation % 2];
	__atomic_store_n(&r->ticks, now->ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&r->ns, now->ns, __ATOMIC_RELAXED);
	__atomic_store_n(&r->mult, (uint64_t)(((unsigned __int128)ns << 32) / ticks),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&r->valid, (uint64_t)((unsigned __int128)VALID_NS * ticks / ns),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&cw_clock.rate_generation, generation, __ATOMIC_RELEASE);
}

bool cw_clock_calibrate(struct cw_clock_point now)
{
	bool is_first = !last.ns;

	if (!is_first && now.ns - last.ns < APART_MIN_NS)
		return true;
	if (now.ticks <= last.ticks ||
	    (cw_clock.rate_generation &&
	     !holds(&cw_clock.rates[cw_clock.rate_generation % 2], &now))) {
		__atomic_store_n(&cw_clock.rate_generation, 0, __ATOMIC_RELEASE);
		state = GIVEN_UP;
		return false;
	}
	if (!is_first)
		publish(&now);
	last = now;
	return true;
}

void cw_clock_step(void)
{
	if (state == NOT_ASKED)
		state = CW_CLOCK_TICKS() && kernel_trusts_ticks() ? WATCHING : GIVEN_UP;
	if (state == WATCHING && !cw_clock_calibrate(look()))
		cw_log("the processor's clock left the kernel's: not used any more");
}
