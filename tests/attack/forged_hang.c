/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: forged_hang SOCKET LABEL ID
 *
 * A job of two ranks that never ran: two processes register forged records, where two ranks make
 * calls that do not fit each other. The daemon proves this hang at once. The communicator is chosen
 * so that an id made of a chain of cw_hash_step() is ID (forge.h). Prints the communicator, then
 * lives until its standard input is closed.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "proto/codec.h"
#include "tests/attack/forge.h"
#include "tests/support/record/record_writer.h"

#define SEQ 1 /* its first collective */
#define RANKS 2

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Field 22 of stat(5), behind the name, which ends at the last ")". */
static uint64_t start_ticks(void)
{
	char text[1024];
	FILE *f = fopen("/proc/self/stat", "re");
	const char *p;
	size_t n;

	must(f, "/proc/self/stat");
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	must(p, "stat");
	return strtoull(p, NULL, 10);
}

static void register_rank(const char *path, const char *label, uint64_t comm_id, int rank)
{
	struct cw_test_record *rec = cw_test_record_new();
	struct cw_message hello = { .type = CW_MSG_AGENT_HELLO,
				    .agent_hello = { CW_WIRE_VERSION_MIN, CW_WIRE_VERSION,
						     rec->bytes } };
	int conn = cw_unix_connect(path, 5000), comm;
	uint8_t *frame;
	size_t len;

	rec->now_ns = cw_clock_now_ns(&cw_clock_system);
	rec->header->rank_label = rank;
	rec->header->local_rank_label = rank;
	rec->header->world_size_label = RANKS;
	rec->header->process_start_ticks = start_ticks();
	rec->header->created_ns = rec->header->beat_ns = (uint64_t)rec->now_ns;
	(void)snprintf(rec->header->job_label, sizeof(rec->header->job_label), "%s", label);
	comm = cw_test_record_comm(rec, comm_id, RANKS, rank);
	(void)cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, rank ? 512 : 1024);
	must(conn >= 0, path);
	must(cw_message_encode(&hello, &frame, &len) == 0, "hello");
	must(cw_unix_send_fd(conn, frame, len, cw_test_record_dup(rec)) >= 0, "send");
	free(frame); /* the record and the connection live as long as the process */
}

int main(int argc, char **argv)
{
	struct forged f = { .uid = getuid(), .seq = SEQ, .is_waited = 1 };
	pid_t parent = getpid();
	uint64_t comm_id;
	int rank = 0;
	char c;

	must(argc == 4, "usage: forged_hang SOCKET LABEL ID");
	f.label = argv[2];
	f.id = strtoull(argv[3], NULL, 16);
	f.start_ticks = start_ticks();
	comm_id = forge_comm_id(&f);
	printf("0x%" PRIx64 "\n", comm_id);
	must(fflush(stdout) == 0, "stdout");
	switch (fork()) {
	case -1:
		must(false, "fork");
		break;
	case 0:
		rank = 1;
		must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent, "parent");
		break;
	}
	register_rank(argv[1], argv[2], comm_id, rank);
	while (rank ? pause() : read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
