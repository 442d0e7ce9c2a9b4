/* SPDX-License-Identifier: Apache-2.0 */
#include "common/environment.h"

const struct cw_variable cw_environment[] = {
	{ "COLLWATCH_SOCKET", "=_PATH_",
	  "The daemon's agent socket; default _/run/collwatch/agent.sock_." },
	{ "COLLWATCH_CONTROL_SOCKET", "=_PATH_",
	  "The daemon's control socket; default _/run/collwatch-control/control.sock_." },
	{ "COLLWATCH_JOB", "=_NAME_",
	  "The job's name in reports. All ranks must have the same name. In a Kubernetes pod, the "
	  "name is local to the namespace." },
	{ "COLLWATCH_POD_NAME", "=_NAME_",
	  "The name of the Kubernetes pod, shown in alerts and by *status*; default: *POD_NAME*. "
	  "Set it from the downward API in the pod's template (_metadata.name_). Without it, "
	  "collwatch shows the pod's uid from the control group." },
	{ "COLLWATCH_POD_NAMESPACE", "=_NAME_",
	  "The pod's namespace (_metadata.namespace_); default: *POD_NAMESPACE*. Ranks of "
	  "different namespaces are never one job." },
	{ "COLLWATCH_CONTAINER", "=_NAME_",
	  "The name of the container. Without it, collwatch shows the container's id from the "
	  "control group." },
	{ "COLLWATCH_POLICY", "=*training*|*serving*|*off*",
	  "What collwatch does about hangs of the job. *training* (the default): it alerts. "
	  "*serving*: it notes hangs but does not alert. *off*: it does not look for hangs." },
	{ "COLLWATCH_JOB_TIMEOUT", "=_TIME_",
	  "The time in one call after which the job's own watchdog ends the job, for example "
	  "*30min*: the _timeout_ of *init_process_group()*. *0*: there is no watchdog. collwatch "
	  "then does not alert about a rank that still works. Without this variable, the agent "
	  "reads *--distributed-timeout-minutes* of Megatron-LM from the process's arguments, or "
	  "*--ddp_timeout* next to *--per_device_train_batch_size* of Transformers. Without "
	  "either, it assumes 10 minutes if PyTorch makes the calls. It ignores more than a day, "
	  "any other *--ddp_timeout*, and *DEEPSPEED_TIMEOUT*." },
	{ "COLLWATCH", "=*on*|*off*",
	  "*off*: the agent does nothing, and under Slurm it is not loaded. Where this variable "
	  "and *COLLWATCH_DISABLE* disagree, the agent is off." },
	{ "COLLWATCH_DISABLE", "=*on*|*off*",
	  "*on*: the agent does nothing, as with *COLLWATCH=off*. Each variable with *on* or *off* also accepts _1_, _true_ "
	  "and _yes_, or _0_, _false_ and _no_, in upper or lower case." },
	{ "COLLWATCH_PROGRESS", "=*auto*|*off*|*timed*",
	  "*auto*: the device writes its progress before and after each call. If a stream makes so "
	  "many calls that the writes would cost more than 0.3 % of its time, the agent omits some "
	  "of them. *off*: the device writes nothing, so its progress is not known. *timed*: like "
	  "*auto*, and the agent measures the device time of some calls." },
	{ "COLLWATCH_SUMMARY", "=*off*|*sampled*|*full*",
	  "Whether the device summarises the tensors of a call before and after it: never (*off*, "
	  "the default), within a budget (*sampled*), or for each call (*full*)." },
	{ "COLLWATCH_COMPLETE", "=_DIRECTORY_",
	  "With *COLLWATCH_SUMMARY=full*: calls wait until the reader of this directory has read "
	  "their summaries, for at most 10 s. *baseline --complete* sets this variable for the "
	  "program that it runs." },
	{ "COLLWATCH_STOP_AT", "=*nonfinite*|*headroom*|*nonfinite,headroom*",
	  "The agent stops the rank (SIGSTOP) when its own tensor summaries show NaN or infinity, "
	  "or numbers that grow towards the limit of their type. It stops once for each of these "
	  "two, so that you can attach a debugger. SIGCONT continues the rank." },
	{ "COLLWATCH_TENSORS", "=_DIRECTORY_",
	  "*collwatch.torch* writes its file to this directory, with each call of an operator that "
	  "it examines. *baseline* sets this variable for the program that it runs." },
	{ "COLLWATCH_CALL_STACKS", "=*on*",
	  "The agent records the call stack of each call: the lines of Python (3.11 to 3.14), and "
	  "the frames of code with frame pointers. Reports then name the line. Costs some "
	  "microseconds per call." },
	{ "COLLWATCH_PYTHON_STACKS", "=*off*", "The agent does not take Python stacks." },
	{ "COLLWATCH_PTRACER", "=*off*",
	  "The agent does not name the daemon as the process's tracer, for a program that names "
	  "another tracer (PR_SET_PTRACER) before its first NCCL call. Without this variable, the "
	  "agent names the daemon if Yama requires it (_kernel.yama.ptrace_scope_ = 1) and the "
	  "daemon runs as the same user." },
	{ "COLLWATCH_LOG", "=_FILE_",
	  "The agent appends its log to _FILE_: /dev/stderr, or a regular file of the same user "
	  "that is not a link. It does not write to other files." },
	{ "COLLWATCH_RUN", "=_NAME_",
	  "The socket on which agents report to *collwatch run* that NCCL was called, or that "
	  "there is no record. *run* sets this variable." },
	{ "COLLWATCH_PEERS", "=_LIST_",
	  "The hosts whose daemons of *run --standalone* watch this job together, in the form of "
	  "*--peers*." },
	{ "COLLWATCH_PEER_KEY", "=_DIGITS_",
	  "The key of these daemons, 64 to 128 hexadecimal digits. *run --peers* makes a new key "
	  "if there is none. All users that may read the job's environment may read the key." },
	{ "COLLWATCH_RECORD", "=_DIRECTORY_",
	  "The agent writes a copy of its record to _DIRECTORY_/_HOST_-_PID_.record, once a second "
	  "and when the process ends by itself. _DIRECTORY_ must be an absolute path on a local "
	  "disk. *record show* and *analyze* read this copy, also without a daemon. Takes about 2 "
	  "MiB per rank." },
	{ "COLLWATCH_PAGER", "=_COMMAND_",
	  "The pager of *collwatch* for text that is longer than the terminal, instead of *PAGER*. "
	  "Empty or _cat_: no pager." },
	{ "NO_COLOR", "=_ANYTHING_", "*collwatch* prints no colours to a terminal." },
};

const size_t cw_environment_count = sizeof(cw_environment) / sizeof(cw_environment[0]);
