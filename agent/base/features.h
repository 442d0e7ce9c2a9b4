/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's features beyond recording calls, as one table of callbacks. agent/agent.c fills the
 * table. Code that observes an event calls the matching function below and need not know the
 * features. The recording path calls its features directly instead of through this table.
 */
#pragma once

/* A callback is NULL if the feature has no use for the event. */
struct cw_feature {
	/* The record exists, but the agent is not armed. Runs in a thread of the application. */
	void (*start)(void);
	/*
	 * A communicator exists. This callback may run in any thread, including NCCL's own. It must
	 * call neither NCCL nor CUDA nor the loader.
	 */
	void (*armed)(void);
	/*
	 * NCCL reported communicator c ready. This callback runs before armed(), in any thread. It
	 * may call CUDA.
	 */
	void (*comm_ready)(int c);
	/* The registry is about to reuse entry c for another communicator and holds its lock. */
	void (*comm_forget)(int c);
	/* Runs once a second, only in the helper thread. */
	void (*beat)(void);
};

/*
 * The caller keeps the table for the life of the process. Call this once, before the agent is
 * armed. Without a table the functions below do nothing.
 */
void cw_features_set(const struct cw_feature *table, unsigned count);

/* Each function calls the callback of the same name of every feature, in table order. */
void cw_features_start(void);
void cw_features_armed(void);
void cw_features_comm_ready(int c);
void cw_features_comm_forget(int c);
void cw_features_beat(void);
