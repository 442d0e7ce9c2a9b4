/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/unixsock.h"
#include "daemon/control/control_socket.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/cluster/control_fixture.h"

static const struct cw_caller root = { .uid = 0, .sees_all = true };
static const struct cw_caller owner = { .uid = 1000 };
static const struct cw_caller other = { .uid = 1001 };

static json_t *ask(const struct cw_caller *caller, const char *verb, const char *args,
		   uint32_t code)
{
	struct cw_control_answer a;
	json_t *doc = NULL;

	cw_control_handle(&source, caller, verb, args, &a);
	cr_assert_eq(a.code, code, "%s: %u %s", verb, a.code, a.error);
	if (code == 0)
		doc = json_loads(a.json, 0, NULL);
	else
		cr_assert(a.error[0] && !a.json);
	cw_control_answer_fini(&a);
	return doc;
}

TestSuite(control, .init = control_setup, .fini = control_teardown);

Test(control, status_shows_the_job_to_its_owner_and_to_those_who_see_all)
{
	static const struct cw_caller *const callers[] = { &root, &owner };

	for (unsigned i = 0; i < 2; i++) {
		json_t *doc = ask(callers[i], "status", "{}", 0);
		const json_t *job = json_array_get(json_object_get(doc, "jobs"), 0);

		cr_assert_str_eq(json_string_value(json_object_get(doc, "schema")),
				 "collwatch.status/1");
		cr_assert_str_eq(json_string_value(json_object_get(job, "job")), "job-1");
		cr_assert_str_eq(json_string_value(json_object_get(job, "state")), "healthy");
		cr_assert_eq(json_integer_value(json_object_get(job, "ranks")), 4);
		cr_assert_gt(json_integer_value(json_object_get(job, "collectives")), 100);
		json_decref(doc);
	}
}

Test(control, status_hides_other_peoples_jobs)
{
	json_t *doc = ask(&other, "status", "", 0);

	cr_assert_eq(json_array_size(json_object_get(doc, "jobs")), 0);
	json_decref(doc);
}

/* Requests of a node of this job to its leader. */
Test(control, another_node_gets_the_jobs_that_it_wants_and_its_user_may_see)
{
	static const struct {
		struct cw_caller caller;
		const char *args;
		size_t n;
	} cases[] = {
		{ { .uid = 1000, .node = "node-b" }, "{\"jobs\":{\"1000 job-1\":true}}", 1 },
		{ { .sees_all = true, .node = "node-b" }, "{\"jobs\":{\"1000 job-1\":true}}", 1 },
		{ { .uid = 1001, .node = "node-b" }, "{\"jobs\":{\"1000 job-1\":true}}", 0 },
		{ { .uid = 1000, .node = "node-b" }, "{\"jobs\":{\"1001 job-1\":true}}", 0 },
		{ { .uid = 1000, .node = "node-b" }, "{\"jobs\":[\"1000 job-1\"]}", 0 },
		{ { .uid = 1000, .node = "node-b" }, "{}", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *doc = ask(&cases[i].caller, "status", cases[i].args, 0);

		cr_expect_eq(json_array_size(json_object_get(doc, "jobs")), cases[i].n, "%s",
			     cases[i].args);
		cr_expect_null(json_object_get(doc, "peers"), "the answer is about jobs only");
		json_decref(doc);
	}
}

Test(control, incidents_are_filtered_by_who_asks)
{
	json_t *all = ask(&root, "incidents", "{}", 0), *own = ask(&owner, "incidents", "{}", 0);

	cr_assert_eq(json_array_size(json_object_get(all, "incidents")), 2);
	cr_assert_eq(json_array_size(json_object_get(own, "incidents")), 1);
	cr_assert_str_eq(json_string_value(json_object_get(
				 json_array_get(json_object_get(own, "incidents"), 0), "id")),
			 "00000000000000aa");
	json_decref(all);
	json_decref(own);
}

Test(control, incidents_of_others_however_many_do_not_hide_ones_own)
{
	json_t *own;
	char id[32];

	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(id, sizeof(id), "00000000000010%02x", i);
		control_put(id, 1001, "j");
	}
	own = ask(&owner, "incidents", "{}", 0);
	cr_assert_eq(json_array_size(json_object_get(own, "incidents")), 1);
	json_decref(own);
}

Test(control, incidents_asked_for_are_found_behind_any_number_of_others)
{
	json_t *doc, *list;
	char id[32];

	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(id, sizeof(id), "00000000000010%02x", i);
		control_put(id, 1001, "name:other");
	}
	doc = ask(&root, "incidents", "{\"max\": 1, \"job\": \"j\"}", 0);
	list = json_object_get(doc, "incidents");
	cr_assert_eq(json_array_size(list), 1);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "job")), "j");
	json_decref(doc);
	doc = ask(&root, "incidents", "{\"job\": \"other\", \"class\": \"slow\"}", 0);
	cr_assert_eq(json_array_size(json_object_get(doc, "incidents")), 0);
	json_decref(doc);
}

Test(control, a_list_that_does_not_fit_a_message_holds_the_newest)
{
	char id[32], job[2000];
	json_t *doc, *list;

	memset(job, '"', sizeof(job) - 1); /* two bytes each in JSON */
	job[sizeof(job) - 1] = '\0';
	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(id, sizeof(id), "00000000000010%02x", i);
		control_put(id, 1001, job);
	}
	doc = ask(&root, "incidents", "{}", 0);
	list = json_object_get(doc, "incidents");
	cr_assert_gt(json_array_size(list), 50);
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "id")), id);
	cr_assert_eq(json_integer_value(json_object_get(doc, "omitted")) + json_array_size(list),
		     302);
	json_decref(doc);
	doc = ask(&root, "incidents", "{\"max\": 256, \"job\": \"j\"}", 0);
	cr_assert_null(json_object_get(doc, "omitted"), "all that are wanted are there");
	json_decref(doc);
	doc = ask(&other, "incidents", "{\"max\": 1}", 0);
	cr_assert_eq(json_integer_value(json_object_get(doc, "omitted")), 300,
		     "other users' incidents do not count");
	json_decref(doc);
}

Test(control, report_of_somebody_else_looks_like_one_that_does_not_exist)
{
	json_t *doc = ask(&owner, "report", "{\"id\":\"00000000000000aa\"}", 0);

	cr_assert(json_is_object(json_object_get(doc, "incident")));
	cr_assert(json_is_object(json_object_get(doc, "snapshot")));
	cr_assert_str_eq(json_string_value(json_object_get(doc, "path")), "/b");
	json_decref(doc);
	(void)ask(&owner, "report", "{\"id\":\"00000000000000bb\"}", 3);
	(void)ask(&root, "report", "{\"id\":\"00000000000000cc\"}", 3);
}

/* The summaries arrive exact to the last digit. The daemon counts summaries beyond the limit. */
Test(control, a_report_has_tensor_summaries_of_all_nodes_exactly_as_far_as_they_fit)
{
	static const char id[] = "00000000000000aa";
	json_t *page = json_pack("{s:f, s:s}", "sum", 186647.00002560002, "pad", ""), *doc, *text;
	char *many = malloc(300 << 10);

	cr_assert_not_null(many);
	cr_assert_eq(cw_store_add_remote_summaries(source.store, 1000, "j", id, 1, page), 0);
	doc = ask(&owner, "report", "{\"id\":\"00000000000000aa\"}", 0);
	cr_expect_eq(json_real_value(json_object_get(
			     json_array_get(json_object_get(doc, "remote_summaries"), 0), "sum")),
		     186647.00002560002);
	cr_expect_eq(json_integer_value(json_object_get(doc, "summaries_omitted")), 0);
	json_decref(doc);
	(void)memset(many, 'x', (300 << 10) - 1);
	many[(300 << 10) - 1] = '\0';
	(void)json_object_set_new(page, "pad", json_string(many));
	text = json_deep_copy(page);
	for (unsigned i = 2; i <= 3; i++) {
		cr_assert_eq(cw_store_add_remote_summaries(source.store, 1000, "j", id, i, text),
			     0);
		doc = ask(&owner, "report", "{\"id\":\"00000000000000aa\"}", 0);
		cr_expect_eq(json_is_array(json_object_get(doc, "remote_summaries")), i == 2);
		cr_expect_eq(json_integer_value(json_object_get(doc, "summaries_omitted")),
			     i == 2 ? 0 : i);
		cr_expect(json_is_object(json_object_get(doc, "incident")));
		json_decref(doc);
	}
	json_decref(text);
	json_decref(page);
	free(many);
}

Test(control, nonsense_is_answered_with_an_error)
{
	(void)ask(&root, "reboot", "{}", 1);
	(void)ask(&root, "report", "{}", 1);
	(void)ask(&root, "report", "[1", 1);
	(void)ask(&root, "status", "7", 1);
	(void)ask(&root, "report", "{\"id\":\"../../etc\"}", 3);
}

/* ---- the socket ---- */

static void send_request(int fd, const char *verb)
{
	struct cw_message m = { .type = CW_MSG_CONTROL_REQUEST,
				.control_request = { .verb = verb, .json = "{}" } };
	uint8_t *frame;
	size_t len;

	cr_assert_eq(cw_message_encode(&m, &frame, &len), 0);
	cr_assert_eq(send(fd, frame, len, MSG_NOSIGNAL), (ssize_t)len);
	free(frame);
}

/* Bytes read until a whole frame, or 0 when the daemon closed; the loop turns meanwhile. */
static size_t read_frame(struct event_base *base, int fd, uint8_t *buf, size_t size)
{
	int64_t end = cw_clock_now_ns(&cw_clock_system) + 120 * CW_NS_PER_S;
	const uint8_t *payload;
	size_t have = 0, len, used;

	while (cw_clock_now_ns(&cw_clock_system) < end) {
		ssize_t n;

		(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		n = recv(fd, buf + have, size - have, MSG_DONTWAIT);
		if (n == 0)
			return 0;
		have += n > 0 ? (size_t)n : 0;
		if (cw_frame_parse(buf, have, &payload, &len, &used) == 0)
			return have;
	}
	cr_assert_fail("no answer");
	return 0;
}

Test(control, socket_answers_frames_and_drops_noise)
{
	struct event_base *base = event_base_new();
	struct cw_control_socket *s = NULL;
	struct cw_control_socket_config config = { .base = base,
						   .clock = &cw_clock_system,
						   .group = "",
						   .listen_fd = -1,
						   .source = source };
	static uint8_t buf[1 << 16];
	struct cw_message *msg = NULL;
	struct stat st;
	char path[128];
	int fd, noise;

	(void)snprintf(path, sizeof(path), "%s/control.sock", control_dir);
	config.path = path;
	cr_assert_eq(cw_control_socket_new(&config, &s, NULL), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0666);
	fd = cw_unix_connect(path, 1000);
	cr_assert_geq(fd, 0);
	for (unsigned i = 0; i < 2; i++) {
		size_t len;

		send_request(fd, "status");
		len = read_frame(base, fd, buf, sizeof(buf));
		cr_assert_eq(cw_message_decode(buf + CW_FRAME_HEADER_BYTES,
					       len - CW_FRAME_HEADER_BYTES, &msg),
			     0);
		cr_assert_eq(msg->type, CW_MSG_CONTROL_REPLY);
		cr_assert_eq(msg->control_reply.code, 0);
		cr_assert_not_null(strstr(msg->control_reply.json, "job-1"));
		cw_message_free(msg);
	}
	noise = cw_unix_connect(path, 1000);
	cr_assert_eq(send(noise, "\xff\xff\xff\xff nonsense", 13, MSG_NOSIGNAL), 13);
	cr_assert_eq(read_frame(base, noise, buf, sizeof(buf)), 0);
	(void)close(fd);
	(void)close(noise);
	cw_control_socket_free(s);
	cr_assert_neq(access(path, F_OK), 0);
	event_base_free(base);
}

static struct cw_control_socket *open_socket(struct event_base *base, char path[128])
{
	struct cw_control_socket_config config = { .base = base,
						   .clock = &cw_clock_system,
						   .path = path,
						   .group = "",
						   .listen_fd = -1,
						   .source = source };
	struct cw_control_socket *s = NULL;

	(void)snprintf(path, 128, "%s/control.sock", control_dir);
	cr_assert_eq(cw_control_socket_new(&config, &s, NULL), 0);
	return s;
}

/* A whole answer came, and it is no error. No assertion in here: not the test's process. */
static bool is_answered(int fd)
{
	static uint8_t frame[CW_FRAME_HEADER_BYTES + CW_FRAME_MAX_BYTES];
	size_t have = 0, len, used;
	const uint8_t *payload;
	struct cw_message *m;
	bool is_good;

	while (cw_frame_parse(frame, have, &payload, &len, &used) == CW_FRAME_NEED_MORE) {
		ssize_t n = recv(fd, frame + have, sizeof(frame) - have, 0);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	if (cw_message_decode(payload, len, &m) < 0)
		return false;
	is_good = m->type == CW_MSG_CONTROL_REPLY && m->control_reply.code == 0;
	(void)cw_message_free(m);
	return is_good;
}

/* A process of that user: connects n times, says how often a request was answered, waits. */
static pid_t connect_as(uid_t uid, const char *path, unsigned n, int answered_fd)
{
	struct cw_message m = { .type = CW_MSG_CONTROL_REQUEST,
				.control_request = { .verb = "status", .json = "{}" } };
	uint8_t *frame;
	size_t len;
	pid_t pid;

	cr_assert_eq(cw_message_encode(&m, &frame, &len), 0);
	pid = fork();
	if (pid != 0) {
		free(frame);
		return pid;
	}
	if (uid && setresuid(uid, uid, uid) < 0)
		_exit(2);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user would clear it */
	for (unsigned i = 0; i < n; i++) {
		int fd = cw_unix_connect(path, 5000);
		char byte = 'y';

		if (fd < 0)
			_exit(3);
		if (send(fd, frame, len, MSG_NOSIGNAL) < 0 || !is_answered(fd))
			byte = 'n';
		if (write(answered_fd, &byte, 1) != 1)
			_exit(4);
	}
	(void)pause();
	_exit(0);
}

/* Reads n characters that the process writes, while the loop turns. */
static void read_marks(struct event_base *base, int fd, char *marks, unsigned n)
{
	int64_t end = cw_clock_now_ns(&cw_clock_system) + 120 * CW_NS_PER_S;
	unsigned have = 0;

	while (have < n && cw_clock_now_ns(&cw_clock_system) < end) {
		ssize_t got;

		(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		got = recv(fd, marks + have, n - have, MSG_DONTWAIT);
		have += got > 0 ? (unsigned)got : 0;
	}
	cr_assert_eq(have, n);
	marks[n] = '\0';
}

Test(control, socket_lets_one_user_take_its_quota_only)
{
	struct event_base *base = event_base_new();
	struct cw_control_socket_stats stats;
	struct cw_control_socket *s;
	char path[128], marks[16];
	pid_t greedy, modest;
	int pair[2];

	if (geteuid() != 0)
		cr_skip_test("needs to be two users");
	cr_assert_eq(chmod(control_dir, 0755), 0);
	s = open_socket(base, path);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	greedy = connect_as(4321, path, CW_CONTROL_MAX_CLIENTS_PER_UID + 2, pair[1]);
	read_marks(base, pair[0], marks, CW_CONTROL_MAX_CLIENTS_PER_UID + 2);
	cr_assert_str_eq(marks, "yyyyyyyynn");
	modest = connect_as(4322, path, 1, pair[1]);
	read_marks(base, pair[0], marks, 1);
	cr_assert_str_eq(marks, "y");
	cw_control_socket_stats(s, &stats);
	cr_assert_eq(stats.clients, CW_CONTROL_MAX_CLIENTS_PER_UID + 1);
	cr_assert_eq(stats.refused, 2);
	cr_assert_eq(stats.requests, CW_CONTROL_MAX_CLIENTS_PER_UID + 1);
	(void)kill(greedy, SIGKILL);
	(void)kill(modest, SIGKILL);
	(void)waitpid(greedy, NULL, 0);
	(void)waitpid(modest, NULL, 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	cw_control_socket_free(s);
	event_base_free(base);
}

/* Root has places of its own. */
#define GREEDY_USERS ((CW_CONTROL_MAX_CLIENTS - 8) / CW_CONTROL_MAX_CLIENTS_PER_UID)

Test(control, seven_users_at_their_limit_leave_places_for_others)
{
	struct event_base *base = event_base_new();
	pid_t users[GREEDY_USERS + 2];
	struct cw_control_socket *s;
	char path[128], marks[16];
	int pair[2];

	if (geteuid() != 0)
		cr_skip_test("needs to be several users");
	cr_assert_eq(chmod(control_dir, 0755), 0);
	s = open_socket(base, path);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (unsigned i = 0; i < GREEDY_USERS; i++) {
		users[i] = connect_as(5000 + i, path, CW_CONTROL_MAX_CLIENTS_PER_UID, pair[1]);
		read_marks(base, pair[0], marks, CW_CONTROL_MAX_CLIENTS_PER_UID);
	}
	users[GREEDY_USERS] = connect_as(6000, path, 3, pair[1]);
	read_marks(base, pair[0], marks, 3);
	cr_expect_str_eq(marks, "yyy", "of a user who comes late: %s", marks);
	users[GREEDY_USERS + 1] = connect_as(6001, path, 1, pair[1]);
	read_marks(base, pair[0], marks, 1);
	cr_expect_str_eq(marks, "y", "of one who comes later still");
	for (unsigned i = 0; i < GREEDY_USERS + 2; i++) {
		(void)kill(users[i], SIGKILL);
		(void)waitpid(users[i], NULL, 0);
	}
	(void)close(pair[0]);
	(void)close(pair[1]);
	cw_control_socket_free(s);
	event_base_free(base);
}

Test(control, socket_answers_one_request_an_iteration_and_all_of_them_in_the_end)
{
	struct event_base *base = event_base_new();
	static uint8_t buf[1 << 20];
	struct cw_control_socket *s;
	struct cw_control_socket_stats stats;
	char path[128];
	int fd;

	s = open_socket(base, path);
	fd = cw_unix_connect(path, 1000);
	for (unsigned i = 0; i < 20; i++)
		send_request(fd, "incidents");
	(void)event_base_loop(base, EVLOOP_ONCE); /* accepted */
	(void)event_base_loop(base, EVLOOP_ONCE);
	cw_control_socket_stats(s, &stats);
	cr_assert_leq(stats.requests, 2);
	for (int64_t end = cw_clock_now_ns(&cw_clock_system) + 120 * CW_NS_PER_S;
	     stats.requests < 20 && cw_clock_now_ns(&cw_clock_system) < end;) {
		(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		(void)recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		cw_control_socket_stats(s, &stats);
	}
	cr_assert_eq(stats.requests, 20);
	(void)close(fd);
	cw_control_socket_free(s);
	event_base_free(base);
}

Test(control, summaries_are_of_this_node_and_of_ones_own_jobs)
{
	json_t *doc = ask(&owner, "summaries", "{\"job\":\"job-1\"}", 0);

	cr_expect_str_eq(json_string_value(json_object_get(doc, "node")), "node-a");
	cr_expect_eq(json_array_size(json_object_get(doc, "jobs")), 0, "its ranks have none");
	cr_expect_eq(json_array_size(json_object_get(doc, "living")), 0, "it has no process here");
	json_decref(doc);
	(void)ask(&owner, "summaries", "{}", 1);
	(void)ask(&owner, "summaries", "{\"job\":\"j\",\"uid\":1000,\"node\":\"node-b\"}", 3);
	(void)ask(&other, "summaries", "{\"job\":\"j\",\"uid\":1000,\"node\":\"node-a\"}", 3);
	(void)ask(&owner, "summaries", "{\"job\":\"j\",\"uid\":-1,\"node\":\"node-a\"}", 3);
	doc = ask(&owner, "summaries", "{\"job\":\"j\",\"uid\":1000,\"node\":\"node-a\"}", 0);
	cr_expect_eq(json_array_size(json_object_get(doc, "ranks")), 0);
	json_decref(doc);
}
