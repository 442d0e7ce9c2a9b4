/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that means the daemon harm, by the means of any user on the machine: it connects to the
 * agent's socket. All kinds of attack share this; each runs until the test stops it, and counts its
 * attempts and their outcomes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum answer {
	ANSWER_REFUSED, /* with a reason */
	ANSWER_CLOSED,
	ANSWER_WELCOME,
	ANSWER_NONE, /* none in time */
};

struct hostile {
	const char *path;
	unsigned seed;
	uint64_t tried, refused, closed, welcomed, silent;
	uint64_t wrong; /* let in, and should not have been */
	char fuse[160]; /* the result of the file that cannot be closed; "" = not tried */
	pid_t fuse_server;
};

/* True until SIGTERM. */
bool hostile_goes_on(void);
uint64_t hostile_random(struct hostile *h);

/* Blocking, CLOEXEC; -1 = not now. */
int hostile_connect(const struct hostile *h);
/* All bytes, with n descriptors; false = the other side is gone. */
bool hostile_send(int conn, const void *data, size_t len, const int *fds, unsigned n);
/* A correct hello into buf (64 bytes at least); returns its length. */
size_t hostile_hello(uint8_t *buf);
enum answer hostile_answer(int conn, int timeout_ms);
/* Counts the answer to something that must not be welcome, and closes. */
void hostile_expect_refusal(struct hostile *h, int conn);

/* The attacks. */
void hostile_frames(struct hostile *h);
void hostile_loris(struct hostile *h);
void hostile_flood(struct hostile *h);
void hostile_descriptors(struct hostile *h);
void hostile_records(struct hostile *h);
void hostile_messages(struct hostile *h);

/*
 * A file in a FUSE mount of its own whose close never ends, or -1 where the machine cannot provide
 * it (h->fuse says why). Its device is $CW_HOSTILE_FUSE, else /dev/fuse. The end of the server is
 * the end of all waits for it, this process's own among them: it cannot exit before.
 */
int hostile_fuse_file(struct hostile *h);
void hostile_fuse_end(struct hostile *h, int sent);
