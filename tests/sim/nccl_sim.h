/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the simulated NCCL, libnccl.so.2. The files, in the order an op goes through them:
 *
 *	nccl_api.c	public functions: check the arguments, make a task
 *	nccl_group.c	collect the tasks of a group; at its end connect and launch
 *	nccl_launch.c	queue a launch on a stream; take turns within a communicator
 *	nccl_coll.c	run a collective when the stream gets there
 *	nccl_p2p.c	run a batch of sends and receives
 *	nccl_link.c	messages over one connection
 *	nccl_reduce.c	arithmetic on data types
 *
 * and for communicators nccl_comm.c (life), nccl_bootstrap.c (how ranks find each other) and
 * nccl_net.c (sockets).
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda.h"
#include "nccl.h"

/* Defines ncclX (weak) and pncclX as two names of one function, as NCCL does. */
#define NCCL_API(ret, name, ...)                                                                   \
	ret pnccl##name(__VA_ARGS__) __attribute__((alias("nccl" #name)));                         \
	__attribute__((weak)) ret nccl##name(__VA_ARGS__)

/* ---- nccl_error.c ---- */

/* Keeps the text for ncclGetLastError (and stderr, with NCCL_DEBUG=WARN) and returns @result. */
ncclResult_t sim_fail(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- nccl_cuda.c: the driver functions used, looked up at first use ---- */

struct sim_cuda {
	CUresult (*init)(unsigned int);
	CUresult (*get_ctx)(CUcontext *);
	CUresult (*set_ctx)(CUcontext);
	CUresult (*push_ctx)(CUcontext);
	CUresult (*pop_ctx)(CUcontext *);
	CUresult (*get_device)(CUdevice *);
	CUresult (*device_count)(int *);
	CUresult (*retain_primary)(CUcontext *, CUdevice);
	CUresult (*launch_host_fn)(CUstream, CUhostFn, void *);
	CUresult (*event_create)(CUevent *, unsigned int);
	CUresult (*event_destroy)(CUevent);
	CUresult (*event_record)(CUevent, CUstream);
	CUresult (*wait_event)(CUstream, CUevent, unsigned int);
	CUresult (*mem_alloc)(CUdeviceptr *, size_t);
	CUresult (*mem_free)(CUdeviceptr);
	CUresult (*memcpy_dtoh)(void *, CUdeviceptr, size_t);
};

/* NULL when there is no driver; the error text is set. Any thread. */
const struct sim_cuda *sim_cuda(void);
/* The current context and its device; without one, device 0's primary context is made current. */
ncclResult_t sim_cuda_current(CUcontext *ret_ctx, int *ret_dev);

/* ---- nccl_net.c: sockets. abort_fd: becomes readable when the caller is to give up, or -1 ---- */

enum sim_hello_type {
	SIM_HELLO_INIT = 1,
	SIM_HELLO_SPLIT,
	SIM_HELLO_MESH,
	SIM_HELLO_P2P,
};

/* The first message on every connection: who calls and what for. */
struct sim_hello {
	uint64_t key; /* secret shared by the communicator's members */
	uint32_t type;
	uint32_t ordinal; /* which split of the communicator */
	int32_t rank;
	int32_t nranks;
	int32_t color;
	int32_t split_key;
	struct sockaddr_in addr; /* where the caller itself listens */
};

struct sim_pending; /* a connection that came before somebody asked for it */

struct sim_listener {
	int fd;
	int abort_fd;
	uint64_t key;
	struct sockaddr_in addr;
	struct sim_pending *pending;
};

int sim_listener_open(struct sim_listener *l, uint64_t key, int abort_fd);
void sim_listener_close(struct sim_listener *l);
/*
 * Waits for a connection with that type and ordinal whose rank has @wanted[rank] set; NULL wants
 * everybody. Others are kept until asked for. Returns the socket or -errno.
 */
int sim_listener_take(struct sim_listener *l, enum sim_hello_type type, uint32_t ordinal,
		      const bool *wanted, int num_ranks, struct sim_hello *ret_hello);
/* Connects and says hello. Returns the socket or -errno. */
int sim_connect(const struct sockaddr_in *addr, const struct sim_hello *hello, int abort_fd);
int sim_send_all(int fd, const void *buf, size_t len, int abort_fd);
int sim_recv_all(int fd, void *buf, size_t len, int abort_fd);

/* ---- nccl_link.c: messages over one connection ---- */

enum sim_msg_type {
	SIM_MSG_COLL = 1, /* a rank's part of a collective */
	SIM_MSG_DATA,     /* a send */
	SIM_MSG_ACK,      /* the receive for the oldest send not yet acknowledged was posted */
};

/*
 * What goes over the wire before the data. As with the real thing there is no sequence number, no
 * data type and no reduction operator: a rank that disagrees about those is not noticed.
 */
struct sim_msg_header {
	uint32_t type;
	uint32_t kind;
	int32_t root;
	uint32_t reserved;
	uint64_t units; /* elements of a reduction, else bytes */
	uint64_t bytes; /* of data that follow */
};

struct sim_msg {
	struct sim_msg *next;
	struct sim_msg_header header;
	char data[];
};

struct sim_out {
	struct sim_out *next;
	struct sim_msg_header header;
	const void *data; /* the user's buffer: an op does not end before it is written */
	size_t done;      /* bytes of header and data written */
};

struct sim_link {
	int fd;        /* -1: not connected (or oneself) */
	bool in_dead;  /* the peer is gone: nothing will ever arrive, nobody is told */
	bool out_dead; /* nothing can be sent any more; what arrived before is still good */
	struct sim_msg_header in_header;
	size_t in_done; /* bytes of the incoming message read, header included */
	struct sim_msg *in_msg;
	struct sim_msg *queue; /* complete messages */
	size_t queued_bytes;
	struct sim_out *out;
};

void sim_link_init(struct sim_link *l, int fd);
void sim_link_fini(struct sim_link *l);
/* Queues a message. @data is borrowed until the message has left. Returns 0 or -ENOMEM. */
int sim_link_post(struct sim_link *l, const struct sim_msg_header *header, const void *data);
/* Writes and, if @wants_input, reads what is possible without waiting. */
void sim_link_pump(struct sim_link *l, bool wants_input);
/* Takes the oldest complete message, or NULL. The caller frees it. */
struct sim_msg *sim_link_take(struct sim_link *l);
/* The poll events that would let the link make progress; 0 if nothing can. */
short sim_link_events(const struct sim_link *l, bool wants_input);

/* ---- nccl_comm.c ---- */

#define SIM_COMM_MAGIC 0x636f6d6du

struct sim_redop {
	struct sim_redop *next;
	ncclRedOp_t handle;
	ncclDataType_t dtype;
	double scalar;
};

struct ncclComm {
	uint32_t magic;
	int refs;
	int rank;
	int nranks;
	int device;
	CUcontext ctx;
	bool is_blocking;
	bool is_revoked;
	volatile bool is_aborted;
	int abort_fd; /* eventfd; readable for ever after an abort */
	pthread_mutex_t lock;
	pthread_cond_t turn; /* launches_done has grown, or abort */
	uint64_t launches;   /* tickets given out in the order of the calls */
	uint64_t launches_done;
	ncclResult_t async;        /* ncclInProgress while a non-blocking call goes on */
	pthread_mutex_t host_lock; /* one host call at a time uses the listener */
	struct sim_listener listener;
	struct sockaddr_in *addrs; /* where each rank listens */
	struct sim_link *coll;     /* one per rank, connected at init */
	struct sim_link *p2p;      /* one per rank, connected at first use */
	uint32_t splits;
	struct sim_redop *redops;
	int next_redop;
};

/* A communicator without connections, bound to the calling thread's current device. */
ncclResult_t sim_comm_new(int nranks, int rank, const ncclConfig_t *config,
			  const struct ncclComm *parent, ncclComm_t *ret_comm);
void sim_comm_ref(ncclComm_t comm);
void sim_comm_unref(ncclComm_t comm);
/* ncclSuccess if the handle is a communicator whose last operation has ended. */
ncclResult_t sim_comm_check(ncclComm_t comm);
void sim_comm_set_async(ncclComm_t comm, ncclResult_t result);
/* Ends what waits for peers; after that the communicator can be split, not used. Blocks. */
void sim_comm_revoke(ncclComm_t comm);
struct sim_redop *sim_comm_find_redop(ncclComm_t comm, ncclRedOp_t handle);

/* ---- nccl_bootstrap.c; all of it blocks until the peers arrive ---- */

ncclResult_t sim_bootstrap_init(ncclComm_t comm, const ncclUniqueId *id);

struct sim_split {
	ncclComm_t parent;
	const ncclConfig_t *config; /* NULL: the parent's */
	uint32_t ordinal;           /* which split of the parent */
	int color;
	int split_key;
	const int *group; /* the parent's ranks that take part, ascending */
	int num_group;
};

/* @ret_comm: NULL for NOCOLOR. */
ncclResult_t sim_bootstrap_split(const struct sim_split *split, ncclComm_t *ret_comm);
/* Connects to every rank with @wanted[rank] that has no p2p connection yet. */
ncclResult_t sim_bootstrap_p2p(ncclComm_t comm, const bool *wanted);

/* ---- tasks: what a public function asks for ---- */

enum sim_kind {
	SIM_ALL_REDUCE = 1,
	SIM_BROADCAST,
	SIM_REDUCE,
	SIM_ALL_GATHER,
	SIM_REDUCE_SCATTER,
	SIM_SEND,
	SIM_RECV,
};

struct sim_task {
	struct sim_task *next;
	enum sim_kind kind;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t dtype;
	ncclRedOp_t op;
	double scalar; /* of a user-made operator */
	int root;      /* or peer */
	ncclComm_t comm;
	CUstream stream;
};

static inline bool sim_is_p2p(const struct sim_task *t)
{
	return t->kind == SIM_SEND || t->kind == SIM_RECV;
}

/* ---- nccl_group.c ---- */

/* Something blocking to be done at the group's end: init, or split if @group is there. */
struct sim_job {
	struct sim_job *next;
	ncclComm_t comm; /* the new one, of a split the parent; holds a reference */
	ncclComm_t *newcomm;
	ncclResult_t result;
	ncclUniqueId id;
	int *group; /* owned */
	int num_group;
	uint32_t ordinal;
	int color;
	int split_key;
	bool has_config;
	ncclConfig_t config;
};

void sim_group_start(void);
ncclResult_t sim_group_end(void);
/* Forgets what the group collected; launches nothing. */
ncclResult_t sim_group_drop(void);
/* Copies the task into the open group. */
ncclResult_t sim_group_add(const struct sim_task *task);
/* The same for a job; takes job->group and the reference job->comm, also on failure. */
ncclResult_t sim_group_add_job(const struct sim_job *job);
/* Remembers that a call inside the group failed, so that the group does. */
ncclResult_t sim_group_note(ncclResult_t result);

/* ---- nccl_launch.c ---- */

/* Queues the tasks (one collective, or a batch of p2p; taken) on their stream. Does not block. */
ncclResult_t sim_launch(ncclComm_t comm, struct sim_task *tasks);
/* Blocks until everything launched on the communicator has run. */
void sim_launch_drain(ncclComm_t comm);
/* Blocks until a link has something to do or the communicator is aborted. */
void sim_links_wait(ncclComm_t comm, struct sim_link *links, const bool *wants_input);
void sim_tasks_free(struct sim_task *tasks);

/* ---- nccl_coll.c, nccl_p2p.c: run on the stream, return when done or aborted ---- */

void sim_coll_run(ncclComm_t comm, const struct sim_task *task);
void sim_p2p_run(ncclComm_t comm, const struct sim_task *tasks);

/* ---- nccl_reduce.c ---- */

size_t sim_dtype_size(ncclDataType_t dtype);
bool sim_dtype_can_reduce(ncclDataType_t dtype);

/* One element on its way through a reduction. */
union sim_value {
	double f;
	int64_t i;
	uint64_t u;
};

/* acc = data (first contribution) or acc = acc op data. */
void sim_reduce_first(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype);
void sim_reduce_next(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype,
		     ncclRedOp_t op);
void sim_reduce_store(void *dst, const union sim_value *acc, size_t count, ncclDataType_t dtype,
		      ncclRedOp_t op, int nranks);
/* data *= scalar, in the data type. */
void sim_reduce_scale(void *data, size_t count, ncclDataType_t dtype, double scalar);
/* One element as a number. */
double sim_value_to_double(const void *data, ncclDataType_t dtype);
