/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's features beyond recording calls, as one table of callbacks. agent/agent.c fills the
 * table. Code that observes an event calls the matching function below and need not know the
 * features. Features of the recording path are not in the table: that path calls them directly.
 */
#pragma once

/* The callbacks of one feature. A callback is NULL if the feature has no use for the event. */
struct cw_feature {
	/*
	 * Runs when the record exists but the agent is not armed yet, in an application's thread.
	 */
	void (*start)(void);
	/*
	 * Runs when a communicator exists, in any thread, including NCCL's own threads. The
	 * callback must call neither NCCL nor CUDA nor the loader.
	 */
	void (*armed)(void);
	/*
	 * Runs when NCCL has reported communicator c ready, before armed(), in any thread. The
	 * callback may call CUDA.
	 */
	void (*comm_ready)(int c);
	/* Runs when the registry of communicators is about to reuse entry c, under its lock. */
	void (*comm_forget)(int c);
	/* Runs once a second, only in the helper thread. */
	void (*beat)(void);
};

/*
 * Sets the table of features. The caller keeps the table for the life of the process, and calls
 * this function once, before the agent is armed. Without a table the functions below do nothing.
 */
void cw_features_set(const struct cw_feature *table, unsigned count);

/* Each function calls the callback of the same name of every feature, in table order. */
void cw_features_start(void);
void cw_features_armed(void);
void cw_features_comm_ready(int c);
void cw_features_comm_forget(int c);
void cw_features_beat(void);
