/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a pod from an environment and a control group's path, true ones and others. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/job_env.h"
#include "record/pod.h"

#define UID "5f1c2a3b-0d4e-4f60-9a7b-8c9d0e1f2a3b"
#define SLICE_UID "5f1c2a3b_0d4e_4f60_9a7b_8c9d0e1f2a3b"
#define DIGITS "0123456789abcdef0123456789abcdef"
#define ID DIGITS DIGITS

static const char *get(const char *name, const void *user)
{
	for (const char *const *env = user; env[0]; env += 2)
		if (strcmp(env[0], name) == 0)
			return env[1];
	return NULL;
}

static struct cw_pod with(const char *const *env)
{
	struct cw_env e = { .get = get, .user = env };
	struct cw_pod pod;

	cw_pod_of_environment(&e, &pod);
	return pod;
}

static void is(struct cw_pod pod, const char *name, const char *ns, const char *container)
{
	cr_expect_str_eq(pod.name, name);
	cr_expect_str_eq(pod.ns, ns);
	cr_expect_str_eq(pod.container, container);
}

Test(pod, is_what_the_template_says)
{
	is(with((const char *[]){ "COLLWATCH_POD_NAME", "train-0", "COLLWATCH_POD_NAMESPACE", "ml",
				  "COLLWATCH_CONTAINER", "trainer", NULL }),
	   "train-0", "ml", "trainer");
	is(with((const char *[]){ "POD_NAME", "a.b-3", "POD_NAMESPACE", "ml", NULL }), "a.b-3",
	   "ml", "");
	is(with((const char *[]){ "COLLWATCH_POD_NAME", "ours", "POD_NAME", "theirs", NULL }),
	   "ours", "", "");
	is(with((const char *[]){ "COLLWATCH_POD_NAMESPACE", "ml", NULL }), "", "", "");
	is(with((const char *[]){ NULL }), "", "", "");
}

Test(pod, has_no_name_that_kubernetes_would_not_give)
{
	static const char *const wrong[] = { "Train", "a b", "a/b",      "-a",  "a-",
					     ".",     "a\n", "a\033[1m", "<b>", "\xc3\xa4" };
	char longer[CW_POD_NAME_BYTES + 1];

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		is(with((const char *[]){ "POD_NAME", wrong[i], NULL }), "", "", "");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	is(with((const char *[]){ "POD_NAME", longer, NULL }), "", "", "");
	is(with((const char *[]){ "POD_NAME", longer + 1, "POD_NAMESPACE", longer, NULL }),
	   longer + 1, "", "");
}

Test(pod, is_in_the_paths_that_kubelet_makes)
{
	static const struct {
		const char *path, *container;
	} cases[] = {
		{ "/kubepods/burstable/pod" UID "/" ID, "0123456789ab" },
		{ "/kubepods/pod" UID "/" ID, "0123456789ab" },
		{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE_UID
		  ".slice/cri-containerd-" ID ".scope",
		  "0123456789ab" },
		{ "/kubepods.slice/kubepods-pod" SLICE_UID ".slice/crio-" ID ".scope",
		  "0123456789ab" },
		{ "/kubelet.slice/kubelet-kubepods.slice/kubepods-burstable-pod" SLICE_UID
		  ".slice/docker-" ID ".scope/below",
		  "0123456789ab" },
		{ "/../../pod" UID "/" ID, "0123456789ab" }, /* from another namespace */
		{ "/kubepods/burstable/pod" UID, "" },
		{ "/kubepods/burstable/pod" UID "/short", "" },
		{ "/kubepods/burstable/pod" UID "/x" ID, "" },
	};
	struct cw_pod pod;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(cw_pod_of_group(cases[i].path, &pod), "%s", cases[i].path);
		is(pod, UID, "", cases[i].container);
	}
	cr_assert(cw_pod_of_group("/kubepods/pod" DIGITS "/" ID, &pod), "a static pod");
	cr_expect_str_eq(pod.name, DIGITS);
}

Test(pod, is_in_no_other_path)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/user.slice/user-1000.slice/session-2.scope",
		"/pod",
		"/podman/" ID,
		"/kubepods/podtrain-0/" ID,
		"/kubepods/pod" UID "x/" ID,
		"/kubepods/pod5F1C2A3B-0d4e-4f60-9a7b-8c9d0e1f2a3b",
		"/kubepods/pod5f1c2a3b-0d4e-4f60-9a7b-8c9d0e1f2a3",
		"/kubepods/pod5f1c2a3b0-d4e-4f60-9a7b-8c9d0e1f2a3b",
		"/kubepods-pod" SLICE_UID,
		"/kubepods-pod.slice",
		"/.slice/.scope",
		"kubepods/pod" UID,
		"/docker/" ID,
	};
	struct cw_pod pod;

	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cr_expect_not(cw_pod_of_group(paths[i], &pod), "%s", paths[i]);
		is(pod, "", "", "");
	}
}

Test(pod, of_all_groups_is_in_the_first_line_that_says_it)
{
	char text[4096] = "12:pids:/";
	struct cw_pod pod;

	cr_assert(cw_pod_of_groups(
		"9:name=systemd:/\n4:memory:/kubepods/pod" UID "/" ID "\n0::/other\n", &pod));
	is(pod, UID, "", "0123456789ab");
	cr_expect_not(cw_pod_of_groups("0::/kubepods/pod" UID "/" ID, &pod), "it is cut off");
	cr_expect_not(cw_pod_of_groups("\n\n:\n0:\n", &pod));
	memset(text + strlen(text), 'x', 3000);
	strcat(text, "/pod" UID "\n");
	cr_expect_not(cw_pod_of_groups(text, &pod), "kubelet makes no such path");
	is(pod, "", "", "");
}

Test(pod, takes_ids_for_what_no_name_says)
{
	struct cw_pod ids = { .name = UID, .container = "0123456789ab" }, none = { 0 }, pod;

	pod = (struct cw_pod){ .name = "train-0", .ns = "ml" };
	cw_pod_complete(&pod, &ids);
	is(pod, "train-0", "ml", "0123456789ab");
	pod = (struct cw_pod){ .name = "train-0", .container = "trainer" };
	cw_pod_complete(&pod, &ids);
	is(pod, "train-0", "", "trainer");
	pod = none;
	cw_pod_complete(&pod, &ids);
	is(pod, UID, "", "0123456789ab");
	cw_pod_complete(&pod, &none);
	cw_pod_complete(&pod, NULL);
	is(pod, UID, "", "0123456789ab");
}
