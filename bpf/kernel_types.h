/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel fields that our BPF programs read. When libbpf loads the programs, it adjusts each
 * access to the running kernel's offsets (CO-RE). The build therefore needs no kernel's BTF, and
 * one object fits every kernel with these names. NAME___suffix is another layout of NAME.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* bpf_helpers.h expects these types. */
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int16_t __s16;
typedef int32_t __s32;
typedef int64_t __s64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint32_t __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
};
enum {
	BPF_F_NO_PREALLOC = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	int64_t counter;
} atomic_long_t;

/* ---- processes ---- */

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

enum pid_type {
	PIDTYPE_PID,
	PIDTYPE_TGID,
	PIDTYPE_PGID,
	PIDTYPE_SID,
	PIDTYPE_MAX,
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct mm_struct;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[PIDTYPE_MAX];
	struct mm_struct *oom_mm;
};

struct kernel_siginfo {
	int si_code;
};

struct css_set;

struct sched_info {
	uint64_t last_arrival;
};

struct sched_entity {
	uint64_t sum_exec_runtime;
	uint64_t prev_sum_exec_runtime;
};

struct task_struct {
	unsigned int __state;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid;
	struct pid *thread_pid;
	int tgid;
	int exit_code;
	unsigned int flags;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct mm_struct *mm;
	struct css_set *cgroups;
	char comm[16];
};

/* The field's name before Linux 5.14. */
struct task_struct___v513 {
	long state;
};

/* ---- iterators ---- */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* ---- memory ---- */

struct percpu_counter {
	int64_t count;
};

/* Linux 6.2 and later */
struct mm_struct {
	struct percpu_counter rss_stat[4];
};

struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___v61 {
	struct mm_rss_stat rss_stat;
};

enum cgroup_subsys_id {
	memory_cgrp_id,
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct page_counter {
	atomic_long_t usage;
	unsigned long max;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
};

#pragma clang attribute pop
