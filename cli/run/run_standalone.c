/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_standalone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/nearest.h"
#include "cli/paths.h"
#include "cli/run/run_environment.h"
#include "cli/run/run_peers.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/unixsock.h"
#include "report/bundle.h"
#include "report/doc/incident_facts.h"
#include "report/html/render_html.h"

#define READY_WITHIN_NS (10 * CW_NS_PER_S)
#define POLL_NS (20 * CW_NS_PER_MS)
#define BUNDLES "state/incidents"
/* The daemon ends with this status if it rejects its configuration. */
#define DAEMON_REFUSES 1

static int make_dir(struct run_standalone *s, struct cw_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char socket[PATH_MAX + 16];
	int r;

	/*
	 * We do not use $XDG_RUNTIME_DIR. When the user logs out, the system removes that
	 * directory, and the incidents would be lost with it.
	 */
	if (snprintf(s->dir, sizeof(s->dir), "%s/collwatch-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
	    (int)sizeof(s->dir))
		return cw_err_set(err, EINVAL, "TMPDIR is too long");
	(void)snprintf(socket, sizeof(socket), "%s/control.sock", s->dir);
	r = run_environment_check_socket("TMPDIR", socket, err);
	if (r < 0) {
		*s->dir = '\0';
		return r;
	}
	if (!mkdtemp(s->dir)) {
		r = cw_err_set(err, errno, "%s: %s", s->dir, strerror(errno));
		*s->dir = '\0';
		return r;
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path); /* if this fails, the user finds the file in the temporary directory */
	return 0;
}

static void remove_dir(const struct run_standalone *s)
{
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the daemon's configuration ---- */

int run_setting_check(const char *setting, struct cw_err *err)
{
	/* Settings that `run` itself makes: the paths of the daemon's files, and its peers. */
	static const char *const own[] = { "agent_socket", "control_socket", "state_dir",
					   "peers",        "peers_from",     "peer_key_file" };
	size_t len = strspn(setting, "abcdefghijklmnopqrstuvwxyz_");

	if (!len || setting[len] != '=')
		return cw_err_set(err, EINVAL, "\"%s\" is not of the form KEY=VALUE", setting);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == len && !strncmp(setting, own[i], len))
			return cw_err_set(err, EINVAL, "%s is set by run itself", own[i]);
	/* The configuration has the value in quotes, so the value must not end them. */
	if (strpbrk(setting + len, "\"\\\n") || strstr(setting + len, "${"))
		return cw_err_set(err, EINVAL,
				  "\"%s\": a value must not contain quotes, backslashes or ${",
				  setting);
	return 0;
}

/* Returns the node name that the user set; NULL = use the host's. */
static const char *node_name(const struct run_standalone_options *options)
{
	static const char key[] = "node_name=";
	const char *name = NULL;

	for (unsigned i = 0; i < options->n_settings; i++)
		if (!strncmp(options->settings[i], key, sizeof(key) - 1))
			name = options->settings[i] + sizeof(key) - 1;
	return name;
}

static int write_config(const struct run_standalone *s, struct cw_err *err)
{
	char path[PATH_MAX + 16];
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "%s/conf", s->dir);
	f = fopen(path, "we");
	if (!f)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	fprintf(f,
		"agent_socket = \"%s/agent.sock\"\ncontrol_socket = \"%s/control.sock\"\n"
		"state_dir = \"%s/state\"\n",
		s->dir, s->dir, s->dir);
	r = run_peers_configure(f, s->dir, node_name(&s->options), err);
	for (unsigned i = 0; i < s->options.n_settings; i++) {
		const char *setting = s->options.settings[i], *value = strchr(setting, '=') + 1;

		fprintf(f, "%.*s \"%s\"\n", (int)(value - setting), setting, value);
	}
	if (ferror(f) | fclose(f) && r == 0)
		return cw_err_set(err, EIO, "cannot write %s", path);
	return r;
}

/*
 * Runs the daemon's program and reads its output up to a limit. Returns its exit status; -1 = none.
 */
static int ask_daemon(const char *program, const char *const argv[], char *text, size_t len)
{
	_cleanup_(closep) int from = -1;
	int ends[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	from = ends[0];
	pid = fork();
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(127);
		/* the daemon then logs to standard error, which we read */
		(void)unsetenv("JOURNAL_STREAM");
		(void)execv(program, (char *const *)argv);
		_exit(127);
	}
	closep(&ends[1]);
	if (pid < 0)
		return -1;
	while (used < len - 1 && (n = read(from, text + used, len - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	closep(&from);
	from = -1;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Suggests a known key if the key of --set is unknown, but close to it. */
static int suggest_key(const struct run_standalone *s, const char *program, struct cw_err *err)
{
	const char *const argv[] = { "collwatchd", "--keys", NULL };
	char keys[8192], *rest = keys, *key;

	if (ask_daemon(program, argv, keys, sizeof(keys)) != 0)
		return 0;
	for (unsigned i = 0; i < s->options.n_settings; i++) {
		const char *setting = s->options.settings[i];
		char typed[64], list[sizeof(keys)];
		struct cw_nearest near = { .typed = typed };
		bool is_key = false;

		(void)snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(setting, "="), setting);
		(void)strcpy(list, keys);
		for (rest = list; (key = strsep(&rest, "\n"));) {
			is_key |= *key && strcmp(key, typed) == 0;
			if (*key)
				cw_nearest_offer(&near, key);
		}
		if (!is_key && near.word)
			return cw_err_set(err, EINVAL, "--set %s: did you mean %s?", setting,
					  near.word);
	}
	return 0;
}

/*
 * Returns the daemon's message without "<3>", the daemon's name and the path of a temporary file.
 */
static const char *words_of(char *text, const char *path)
{
	char *at = strstr(text, path);

	if (at) {
		at += strlen(path);
		at += *at == ':';
		at += strspn(at, "0123456789");
		text = at + strspn(at, ": ");
	}
	text[strcspn(text, "\n")] = '\0';
	cw_text_sanitise_line(text);
	return text;
}

/*
 * Lets the daemon check the configuration before we start it. The daemon has the table of keys; we
 * do not.
 */
static int check_config(const struct run_standalone *s, const char *program, struct cw_err *err)
{
	char path[PATH_MAX + 16], text[1024];
	const char *const argv[] = { "collwatchd", "--check-config", "--config", path, NULL };
	int r;

	snprintf(path, sizeof(path), "%s/conf", s->dir);
	if (ask_daemon(program, argv, text, sizeof(text)) != DAEMON_REFUSES)
		return 0; /* if the daemon cannot run, its start reports the error */
	r = suggest_key(s, program, err);
	return r < 0 ? r : cw_err_set(err, EINVAL, "--set: %.400s", words_of(text, path));
}

static void become_daemon(const struct run_standalone *s, const char *program, pid_t parent)
{
	char path[PATH_MAX + 16];
	int fd;

	/*
	 * The kernel ends the daemon if this process ends for any reason. The new process group
	 * keeps Ctrl-C from the daemon, because it is for the program only.
	 */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || setpgid(0, 0) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/log", s->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/conf", s->dir);
	execl(program, "collwatchd", "--config", path, (char *)NULL);
	dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
	_exit(1);
}

static void wait_a_moment(void)
{
	const struct timespec t = { .tv_nsec = POLL_NS };

	(void)nanosleep(&t, NULL); /* a signal only shortens it */
}

static int wait_until_ready(struct run_standalone *s, struct cw_err *err)
{
	int64_t deadline = cw_clock_now_ns(&cw_clock_system) + READY_WITHIN_NS;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/control.sock", s->dir);
	while (cw_clock_now_ns(&cw_clock_system) < deadline) {
		int fd = cw_unix_connect(path, 100);

		if (fd >= 0) {
			closep(&fd);
			return 0;
		}
		if (waitpid(s->daemon, NULL, WNOHANG) == s->daemon) {
			s->daemon = 0;
			return cw_err_set(err, ECHILD,
					  "the daemon of this run does not start: see %s/log",
					  s->dir);
		}
		wait_a_moment();
	}
	return cw_err_set(err, ETIMEDOUT, "the daemon of this run does not answer: see %s/log",
			  s->dir);
}

int run_standalone_start(struct run_standalone *s, const struct run_standalone_options *options,
			 struct cw_err *err)
{
	char program[PATH_MAX];
	pid_t self = getpid();
	int r;

	*s = (struct run_standalone){ .options = *options };
	r = cw_paths_find(CW_PART_DAEMON, program, err);
	if (r == 0)
		r = make_dir(s, err);
	if (r == 0)
		r = write_config(s, err);
	if (r == 0)
		r = check_config(s, program, err);
	if (r < 0) {
		if (*s->dir)
			remove_dir(s);
		return r;
	}
	s->daemon = fork();
	if (s->daemon == 0)
		become_daemon(s, program, self);
	if (s->daemon < 0)
		return cw_err_set(err, errno, "fork: %s", strerror(errno));
	return wait_until_ready(s, err);
}

/* ---- incidents found ---- */

static int is_bundle(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static enum run_standing standing_of(const struct cw_incident_facts *incident)
{
	if (incident->closed_as.number == CW_CLOSED_AS_SLOW)
		return RUN_GOES_ON;
	if (incident->closed_as.text)
		return RUN_ENDED;
	return incident->severity.number == CW_SEVERITY_NOTICE ? RUN_NOTICE : RUN_PAGE;
}

static void print_found(const char *what, const char *summary, const char *path)
{
	_cleanup_(freep) char *command = cw_text_command("collwatch report", path);

	fprintf(stderr, "collwatch: %s%s\ncollwatch: more: %s\n", what, summary,
		command ? command : path);
}

/* Prints an incident that is new or has changed. t: its state when it was last printed. */
static void print_change(const struct run_printed *t, bool is_new, enum run_standing standing,
			 const char *summary, const char *path)
{
	bool is_same = !is_new && t->summary && strcmp(t->summary, summary) == 0;

	switch (standing) {
	case RUN_NOTICE:
	case RUN_PAGE:
		if (!is_same || t->standing != standing)
			print_found(standing == RUN_NOTICE ? "notice: " : "", summary, path);
		break;
	case RUN_GOES_ON:
		if (is_new || t->standing != standing)
			print_found("the job goes on; before: ", summary, path);
		break;
	case RUN_ENDED: /* the program has ended too, so we print the incident only if it changed */
		if (!is_same)
			print_found("", summary, path);
		break;
	}
}

static void note_printed(struct run_printed *t, const struct cw_incident_facts *incident,
			 const char *summary)
{
	int severity = incident->severity.number;

	free(t->summary);
	t->summary = strdup(summary);
	t->standing = standing_of(incident);
	/* An incident that was a page counts as one. So does one of an unknown severity. */
	if (t->severity != CW_SEVERITY_PAGE)
		t->severity = severity < 0 ? CW_SEVERITY_PAGE : (enum cw_severity)severity;
}

/* Returns true if the bundle's document is another file than the one that we read before. */
static bool is_another_file(struct run_printed *t, const char *bundle)
{
	char path[PATH_MAX + 340];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/incident.json", bundle);
	if (stat(path, &st) < 0 || (st.st_ino == t->doc.st_ino && st.st_size == t->doc.st_size &&
				    st.st_mtim.tv_sec == t->doc.st_mtim.tv_sec &&
				    st.st_mtim.tv_nsec == t->doc.st_mtim.tv_nsec))
		return false;
	t->doc = st;
	return true;
}

static struct run_printed *find_printed(struct run_standalone *s, const char *name)
{
	for (unsigned i = 0; i < s->n_printed; i++)
		if (!strcmp(s->printed[i].name, name))
			return &s->printed[i];
	return NULL;
}

static void print_one(struct run_standalone *s, const char *name)
{
	struct run_printed *t = find_printed(s, name);
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts incident;
	char path[PATH_MAX + 320];
	bool is_new = !t;

	if (is_new) {
		if (s->n_printed == RUN_MAX_PRINTED || strlen(name) >= sizeof(t->name))
			return;
		t = &s->printed[s->n_printed];
		*t = (struct run_printed){ .summary = NULL };
		(void)snprintf(t->name, sizeof(t->name), "%s", name);
	}
	snprintf(path, sizeof(path), "%s/" BUNDLES "/%s", s->dir, name);
	if (!is_another_file(t, path))
		return;
	if (cw_bundle_read(path, &bundle, NULL) == 0 &&
	    cw_incident_facts_read(bundle.incident, &arena, &incident, NULL, NULL) == 0) {
		const char *summary =
			incident.summary.text ? incident.summary.text : "a hang was found";

		print_change(t, is_new, standing_of(&incident), summary, path);
		note_printed(t, &incident, summary);
		s->n_printed += is_new;
	} else {
		t->doc = (struct stat){ 0 }; /* read the document again in the next second */
	}
}

/*
 * Prints new and changed incidents. The daemon renames complete bundles into place, and no other
 * process writes here, so we never see half a bundle.
 */
void run_standalone_print(struct run_standalone *s)
{
	char dir[PATH_MAX + 32];
	struct dirent **names;
	int n;

	snprintf(dir, sizeof(dir), "%s/" BUNDLES, s->dir);
	n = scandir(dir, &names, is_bundle, NULL);
	for (int i = 0; i < n; i++) {
		print_one(s, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* ---- pages ---- */

static int write_page(const struct run_standalone *s, const char *name, const char *page)
{
	struct cw_bundle bundle = { 0 };
	char path[PATH_MAX + 320];
	FILE *f = NULL;
	int r;

	snprintf(path, sizeof(path), "%s/" BUNDLES "/%s", s->dir, name);
	r = cw_bundle_read(path, &bundle, NULL);
	if (r == 0 && !(f = fopen(page, "we")))
		r = -errno;
	if (f) {
		r = cw_render_html(f, &bundle);
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	cw_bundle_fini(&bundle);
	return r;
}

/*
 * Opens the page with the desktop's program. That program outlives us and is not a rank, so we
 * remove the agent from its environment.
 */
static void open_page(char *page)
{
	char program[] = "xdg-open", *argv[] = { program, page, NULL };
	pid_t pid;

	(void)unsetenv("LD_PRELOAD");
	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY") && !getenv("BROWSER"))
		fputs("collwatch: there is no display to open the page on\n", stderr);
	else if (posix_spawnp(&pid, program, NULL, NULL, argv, environ) != 0)
		fputs("collwatch: there is no xdg-open to open the page with\n", stderr);
}

static void write_pages(const struct run_standalone *s)
{
	bool is_open = !s->options.opens;

	for (unsigned i = 0; i < s->n_printed; i++) {
		char page[PATH_MAX + 128];
		int r;

		snprintf(page, sizeof(page), "%s/%s.html", s->dir, s->printed[i].name);
		r = write_page(s, s->printed[i].name, page);
		if (r < 0) {
			fprintf(stderr, "collwatch: cannot write %s: %s\n", page, strerror(-r));
			continue;
		}
		fprintf(stderr, "collwatch: as a page: %s\n", page);
		if (!is_open)
			open_page(page);
		is_open = true;
	}
}

static void print_count(const struct run_standalone *s)
{
	static const struct {
		enum cw_severity severity;
		const char *word;
	} kinds[] = { { CW_SEVERITY_PAGE, "hang" },
		      { CW_SEVERITY_FAILED, "post-mortem" },
		      { CW_SEVERITY_NOTICE, "notice" } };
	const char *before = "collwatch: ";

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		unsigned n = 0;

		for (unsigned i = 0; i < s->n_printed; i++)
			n += s->printed[i].severity == kinds[k].severity;
		if (!n)
			continue;
		fprintf(stderr, "%s%u %s%s", before, n, kinds[k].word, n == 1 ? "" : "s");
		before = " and ";
	}
	fprintf(stderr, " found, kept in %s\n", s->dir);
}

void run_standalone_stop(struct run_standalone *s)
{
	if (s->daemon > 0) {
		(void)kill(s->daemon, SIGTERM);
		(void)waitpid(s->daemon, NULL, 0);
	}
	if (!*s->dir)
		return;
	run_standalone_print(s);
	if (s->n_printed) {
		print_count(s);
		if (s->options.has_pages || s->options.opens)
			write_pages(s);
	} else {
		remove_dir(s);
	}
	for (unsigned i = 0; i < s->n_printed; i++)
		free(s->printed[i].summary);
	s->n_printed = 0;
}
