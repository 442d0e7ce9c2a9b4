/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor summaries out of flight records in files, honest ones and others. */
#include "numerics/read/numerics_files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/op.h"
#include "record/record_process.h"
#include "tests/support/record/record_writer.h"

#define RANKS 2

static struct cw_test_record *writers[RANKS];
static int comms[RANKS];
static char dir[] = "/tmp/test_numerics.XXXXXX", paths[RANKS][64];
static char *argv[RANKS] = { paths[0], paths[1] };
static struct cw_numerics_input in;
static struct cw_err err;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	for (int i = 0; i < RANKS; i++) {
		writers[i] = cw_test_record_new();
		writers[i]->header->rank_label = i;
		writers[i]->header->has |= CW_REC_HAS_SUMMARIES;
		writers[i]->header->created_wall_ns = 1000;
		comms[i] = cw_test_record_comm(writers[i], 0x77, RANKS, i);
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.record", dir, i);
	}
}

static void teardown(void)
{
	char command[128];

	cw_numerics_input_fini(&in);
	for (int i = 0; i < RANKS; i++)
		cw_test_record_free(writers[i]);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(numerics_files, .init = setup, .fini = teardown);

/* An all_reduce of the rank and its input, in entry `entry`. */
static struct cw_rec_summary *sample(int rank, unsigned entry, uint64_t publish)
{
	struct cw_test_record *w = writers[rank];
	uint64_t op = cw_test_record_collective(w, comms[rank], CW_OP_ALL_REDUCE, 10);
	struct cw_rec_summary *s = &w->summaries[entry];

	cw_test_record_return(w, comms[rank], op, 0);
	*s = (struct cw_rec_summary){ .publish = publish,
				      .op_index = op,
				      .seq = op,
				      .comm = (uint32_t)comms[rank],
				      .comm_generation = w->comms[comms[rank]].generation,
				      .kind = CW_OP_ALL_REDUCE,
				      .dtype = CW_DTYPE_FP32,
				      .elements = 10,
				      .offered = 10,
				      .abs_max = 2,
				      .mean = 1 };
	return s;
}

static int read_all(void)
{
	for (int i = 0; i < RANKS; i++) {
		FILE *f = fopen(paths[i], "w");

		cr_assert_eq(fwrite(writers[i]->header, 1, writers[i]->bytes, f),
			     writers[i]->bytes);
		fclose(f);
	}
	cw_numerics_input_fini(&in);
	return cw_numerics_files_read(argv, RANKS, -1, NULL, &in, &err);
}

Test(numerics_files, joins_the_communicators_of_ranks)
{
	sample(0, CW_REC_SUMMARY_FIRSTS, 1);
	sample(1, CW_REC_SUMMARY_FIRSTS, 1);
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_assert_eq(in.job.n_comms, 1);
	cr_assert_eq(in.job.comms[0].id, 0x77);
	cr_assert_eq(in.job.comms[0].nranks, RANKS);
	cr_assert_eq(in.job.n_samples, 2);
	cr_assert_eq(in.job.samples[0].comm, in.job.samples[1].comm);
	cr_assert_eq(in.job.samples[1].rank, 1);
	cr_assert_eq(in.sources[0].n_samples, 1);
}

Test(numerics_files, knows_what_the_call_was)
{
	struct cw_rec_summary *s = sample(0, CW_REC_SUMMARY_FIRSTS, 1);

	writers[0]->ring[0].redop = CW_REDOP_AVG;
	writers[0]->comms[comms[0]].ops[0].redop = CW_REDOP_AVG;
	s->is_output = 1;
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_assert_eq(in.job.n_samples, 1);
	cr_assert_eq(in.job.samples[0].redop, CW_REDOP_AVG);
	cr_assert_eq(in.job.samples[0].is_output, 1);
	cr_assert_gt(in.job.samples[0].at_ns, 0);
}

Test(numerics_files, knows_what_a_rank_runs_on)
{
	struct cw_rec_header *h = writers[1]->header;

	sample(0, CW_REC_SUMMARY_FIRSTS, 1);
	sample(1, CW_REC_SUMMARY_FIRSTS, 1);
	writers[1]->comms[comms[1]].device = 2;
	strcpy(h->device_models[0], "of another communicator");
	memset(h->device_models[2], 'y', sizeof(h->device_models[2]));
	h->device_models[2][0] = '\x1b';
	h->cuda_driver_version = 12040;
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_expect_str_eq(in.job.ranks[0].device, "", "an agent that does not say");
	cr_expect_eq(strlen(in.job.ranks[1].device), CW_REC_MODEL_BYTES - 1);
	cr_expect_eq(strncmp(in.job.ranks[1].device, "?yy", 3), 0);
	cr_expect_eq(in.job.ranks[1].cuda_driver, 12040);
	cr_expect_eq(in.job.ranks[1].nccl, h->nccl_version);
	cr_expect_neq(h->nccl_version, 0);
}

Test(numerics_files, of_a_rank_with_devices_of_two_models_none_is_known)
{
	struct cw_test_record *w = writers[0];
	int first = comms[0];

	sample(0, CW_REC_SUMMARY_FIRSTS, 1);
	comms[0] = cw_test_record_comm(w, 0x78, RANKS, 0);
	w->comms[comms[0]].device = 1;
	sample(0, CW_REC_SUMMARY_FIRSTS + 1, 2);
	strcpy(w->header->device_models[0], "A");
	strcpy(w->header->device_models[1], "A");
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_expect_str_eq(in.job.ranks[0].device, "A");
	strcpy(w->header->device_models[1], "B");
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_expect_str_eq(in.job.ranks[0].device, "");
	w->comms[comms[0]].device = -1;
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_expect_str_eq(in.job.ranks[0].device, "", "one comm's device is unknown");
	comms[0] = first;
}

Test(numerics_files, keeps_the_first_only_once)
{
	struct cw_rec_summary *s = sample(0, CW_REC_SUMMARY_FIRSTS + 1, 1);

	s->nans = 1;
	writers[0]->summaries[0] = *s;
	sample(0, CW_REC_SUMMARY_FIRSTS + 2, 2);
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_assert_eq(in.job.n_samples, 2);
	cr_assert(in.job.ranks[0].is_whole);
	writers[0]->summaries[CW_REC_SUMMARY_FIRSTS + 2].publish =
		122; /* the ring has gone round */
	cr_assert_eq(read_all(), 0);
	cr_assert_not(in.job.ranks[0].is_whole);
}

Test(numerics_files, believes_no_stranger)
{
	struct cw_rec_summary *s = sample(0, CW_REC_SUMMARY_FIRSTS, 1);

	s->abs_max = NAN;
	s->abs_min_nonzero = -1;
	s = sample(0, CW_REC_SUMMARY_FIRSTS + 1, 2);
	s->nans = 11; /* of ten */
	s = sample(0, CW_REC_SUMMARY_FIRSTS + 2, 3);
	s->comm = 4000000000u;
	s = sample(0, CW_REC_SUMMARY_FIRSTS + 3, 4);
	s->comm_generation++;
	cr_assert_eq(read_all(), 0, "%s", err.text);
	cr_assert_eq(in.job.n_samples, 1);
	cr_assert_eq(in.job.samples[0].abs_max, 0);
	cr_assert_eq(in.job.samples[0].abs_min, 0);
}

Test(numerics_files, refuses_two_records_of_one_rank)
{
	writers[1]->header->rank_label = 0;
	cr_assert_eq(read_all(), -EEXIST);
	cr_assert_not_null(strstr(err.text, "both of rank 0"), "%s", err.text);
}

Test(numerics_files, names_what_is_no_record)
{
	cr_assert_eq(read_all(), 0);
	unlink(paths[1]);
	cr_assert_eq(cw_numerics_files_read(argv, RANKS, -1, NULL, &in, &err), -ENOENT);
	cr_assert_not_null(strstr(err.text, paths[1]), "%s", err.text);
}

/* ---- of living processes: this one has the records of all ranks ---- */

static int read_of(int64_t uid, const char *what)
{
	char *args[] = { (char *)what };

	cw_numerics_input_fini(&in);
	return cw_numerics_files_read(args, 1, uid, NULL, &in, &err);
}

static int read_one(const char *what)
{
	return read_of(-1, what);
}

Test(numerics_files, finds_the_record_of_a_process)
{
	char pid[16];

	sample(0, CW_REC_SUMMARY_FIRSTS, 1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	cr_assert_eq(read_one(pid), 0, "%s", err.text);
	cr_assert_eq(in.job.n_ranks, 1);
	cr_assert_eq(in.job.n_samples, 1);
	cr_assert_not_null(strstr(in.sources[0].path, pid), "%s", in.sources[0].path);
}

Test(numerics_files, finds_all_records_of_a_job_once)
{
	char job[48];
	pid_t child;
	int status;

	for (int i = 0; i < RANKS; i++) {
		sample(i, CW_REC_SUMMARY_FIRSTS, 1);
		snprintf(writers[i]->header->job_label, sizeof(writers[i]->header->job_label),
			 "name:numerics-%d", getpid());
	}
	snprintf(job, sizeof(job), "numerics-%d", getpid());
	/* A child that has the same descriptors. */
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	cr_expect_eq(read_one(job), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, RANKS);
	cr_expect_eq(in.job.n_samples, RANKS);
	cr_assert_eq(kill(child, SIGKILL), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(read_one(writers[0]->header->job_label), 0, "by the whole label, too");
}

Test(numerics_files, a_job_and_one_of_its_processes_are_the_same_rank_twice)
{
	char job[48], pid[16];
	char *args[] = { pid, job };

	for (int i = 0; i < RANKS; i++)
		snprintf(writers[i]->header->job_label, sizeof(writers[i]->header->job_label),
			 "name:numerics-%d", getpid());
	snprintf(job, sizeof(job), "numerics-%d", getpid());
	snprintf(pid, sizeof(pid), "%d", getpid());
	cr_assert_eq(cw_numerics_files_read(args, 2, -1, NULL, &in, &err), -EEXIST, "%s", err.text);
}

/* The rank's own process is named, though its daemon has the record, too. */
Test(numerics_files, a_rank_is_named_by_its_own_process)
{
	char job[48], name[32];

	snprintf(writers[0]->header->job_label, sizeof(writers[0]->header->job_label),
		 "name:numerics-%d", getpid());
	snprintf(job, sizeof(job), "numerics-%d", getpid());
	writers[0]->header->pid = 4711; /* has ended; this process has its record */
	writers[0]->header->process_start_ticks = 1;
	cr_assert_eq(read_one(job), 0, "%s", err.text);
	cr_assert_eq(in.job.n_ranks, 1);
	cr_expect_str_eq(in.sources[0].path, "process 4711");
	cr_expect(!in.sources[0].lives);
	writers[0]->header->pid = (uint32_t)getpid();
	cr_assert_eq(read_one(job), 0, "%s", err.text);
	cr_expect(!in.sources[0].lives, "began at another time");
	writers[0]->header->process_start_ticks = 0;
	cr_assert_eq(read_one(job), 0, "%s", err.text);
	snprintf(name, sizeof(name), "process %d", getpid());
	cr_expect_str_eq(in.sources[0].path, name);
	cr_expect(in.sources[0].lives);
}

/* A user that takes the name of another user's job gets no rank into it. */
Test(numerics_files, a_job_is_its_name_and_its_users)
{
	char job[48], uid[16];
	struct stat st;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs to be several users");
	for (int i = 0; i < RANKS; i++)
		snprintf(writers[i]->header->job_label, sizeof(writers[i]->header->job_label),
			 "name:numerics-%d", getpid());
	snprintf(job, sizeof(job), "numerics-%d", getpid());
	fd = cw_record_process_open(getpid(), &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_eq(fchown(fd, 4711, (gid_t)-1), 0);
	close(fd);

	cr_assert_eq(read_one(job), -ENOTUNIQ);
	snprintf(uid, sizeof(uid), "%u", (unsigned)st.st_uid);
	cr_expect(strstr(err.text, "4711") && strstr(err.text, uid), "%s", err.text);
	cr_assert_eq(read_of(st.st_uid, job), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, RANKS - 1);
	cr_assert_eq(read_of(4711, job), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
	cr_assert_eq(read_of(4712, job), -ENOENT);
}

Test(numerics_files, says_what_it_looked_for)
{
	cr_assert_eq(read_one("no-such-job"), -ENOENT);
	cr_assert_not_null(strstr(err.text, "no-such-job: no such file"), "%s", err.text);
	cr_assert_eq(read_one("2147483647"), -ENOENT);
	cr_assert_not_null(strstr(err.text, "no process"), "%s", err.text);
	cr_assert_eq(read_one("/no/such/file"), -ENOENT);
	cr_assert_not_null(strstr(err.text, "No such file"), "%s", err.text);
}
