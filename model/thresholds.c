/* SPDX-License-Identifier: Apache-2.0 */
#include "model/snapshot.h"

#define S INT64_C(1000000000)

struct cw_thresholds cw_thresholds_default(void)
{
	return (struct cw_thresholds){
		.stall_min_ns = 10 * S,
		.stall_max_ns = 120 * S,
		.stall_factor = 5,
		.first_op_ns = 120 * S,
		.first_op_per_rank_ns = 20 * S / 1000,
		.proof_ns = 3 * S,
		.confirm_ns = 2 * S,
		.window_after_ns = 1 * S,
		.no_headway_ns = 60 * S,
		.headway_alert_ns = 300 * S,
		.in_collective_ns = 15 * S,
		.node_silent_ns = 10 * S,
		.bytes_per_s = 0,
	};
}
