/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent does besides recording calls, as one table: agent/agent.c lists who does what, and
 * whoever knows that something happened names nobody. What happens on every call is not in here:
 * that is called directly.
 */
#pragma once

/* NULL where a feature has nothing to do. */
struct cw_feature {
	/* The record is there, the agent not armed yet. In a thread of the application. */
	void (*start)(void);
	/*
	 * A communicator exists. Any thread, also NCCL's own, where nothing of NCCL, CUDA or the
	 * loader may be called.
	 */
	void (*armed)(void);
	/* NCCL reported a communicator ready; before armed(). Any thread; may call CUDA. */
	void (*comm_ready)(int c);
	/* The entry is about to be used for another communicator. Under the registry's lock. */
	void (*comm_forget)(int c);
	/* Once a second. The helper thread only. */
	void (*beat)(void);
};

/* Keeps the table, which stays. Once, before the agent is armed; without it nothing is done. */
void cw_features_set(const struct cw_feature *table, unsigned count);

/* Each calls the function of that name of every feature, in the order of the table. */
void cw_features_start(void);
void cw_features_armed(void);
void cw_features_comm_ready(int c);
void cw_features_comm_forget(int c);
void cw_features_beat(void);
