/* SPDX-License-Identifier: Apache-2.0 */
#include "common/environment.h"

const struct cw_variable cw_environment[] = {
	{ "COLLWATCH_SOCKET", "=_PATH_",
	  "The daemon's agent socket; default _/run/collwatch/agent.sock_." },
	{ "COLLWATCH_CONTROL_SOCKET", "=_PATH_",
	  "The daemon's control socket; default _/run/collwatch-control/control.sock_." },
	{ "COLLWATCH_JOB", "=_NAME_",
	  "The job's name in reports, the same for all its ranks. In a Kubernetes pod it is a name "
	  "within the namespace." },
	{ "COLLWATCH_POD_NAME", "=_NAME_",
	  "The Kubernetes pod, named in alerts and by *status*; else *POD_NAME*. A pod's template "
	  "has it from the downward API (_metadata.name_). Without it the control group tells the "
	  "pod's uid." },
	{ "COLLWATCH_POD_NAMESPACE", "=_NAME_",
	  "That pod's namespace (_metadata.namespace_); else *POD_NAMESPACE*. Ranks of different "
	  "namespaces are never one job." },
	{ "COLLWATCH_CONTAINER", "=_NAME_",
	  "The container's name there. Without it the control group tells its id." },
	{ "COLLWATCH_POLICY", "=*training*|*serving*|*off*",
	  "Whether the job's hangs alert somebody: yes (*training*, the default); no, they are "
	  "only noted (*serving*); and *off*: none is looked for." },
	{ "COLLWATCH_JOB_TIMEOUT", "=_TIME_",
	  "After how long in one call the job's own watchdog ends it, as in *30min*: what "
	  "*init_process_group()* was given as _timeout_; *0*: it has none. A rank that works is not "
	  "paged for then. Without it the process's arguments count where they leave one reading: "
	  "*--distributed-timeout-minutes* of Megatron-LM, and *--ddp_timeout* beside "
	  "*--per_device_train_batch_size* of Transformers. Where neither says any, 10 minutes are "
	  "assumed where PyTorch makes the calls; of more than a day, and of another *--ddp_timeout* or "
	  "of *DEEPSPEED_TIMEOUT*, nothing is." },
	{ "COLLWATCH_DISABLE", "=*on*|*off*",
	  "*on*: the agent does nothing at all. Each variable with *on* or *off* takes _1_, _true_ and "
	  "_yes_, _0_, _false_ and _no_, too, in any case." },
	{ "COLLWATCH_PROGRESS", "=*auto*|*off*|*timed*",
	  "*auto*: the agent leaves out what the device writes before and after some of the calls "
	  "of a stream that makes so many that the writes would cost more than 0.3 % of its time. "
	  "*off*: it has the device write nothing, so that how far a call has come there "
	  "stays unknown. *timed*: a call's time on the device is measured now and then." },
	{ "COLLWATCH_SUMMARY", "=*off*|*sampled*|*full*",
	  "Whether the agent has the device look at the numbers before and after a call: not at "
	  "all (the default), within a budget, or each time." },
	{ "COLLWATCH_COMPLETE", "=_DIRECTORY_",
	  "With *COLLWATCH_SUMMARY=full*: calls wait until their numbers have been read by who "
	  "says so there, 10 s at most: what *baseline --complete* sets for the program that it "
	  "runs." },
	{ "COLLWATCH_STOP_AT", "=*nonfinite*|*headroom*|*nonfinite,headroom*",
	  "The agent stops the rank (SIGSTOP) when its own tensor summaries show NaN or infinity, "
	  "or numbers that grow towards the end of their type, once each: for who looks at it with "
	  "a debugger then. SIGCONT lets it go on." },
	{ "COLLWATCH_TENSORS", "=_DIRECTORY_",
	  "*collwatch.torch* writes its file there, with each call of an operator that it looks "
	  "at: what *baseline* sets for the program that it runs." },
	{ "COLLWATCH_CALL_STACKS", "=*on*",
	  "The agent notes from where each call was issued: the lines of Python (3.11 to 3.14), "
	  "and "
	  "what code with frame pointers leaves on the stack. Reports name the line then. Some "
	  "microseconds a call." },
	{ "COLLWATCH_PYTHON_STACKS", "=*off*", "The agent does not take Python stacks." },
	{ "COLLWATCH_PTRACER", "=*off*",
	  "The agent does not name the daemon as the process's tracer, for a program that names "
	  "another (PR_SET_PTRACER) before its first NCCL call. Else it does where Yama asks for "
	  "that (_kernel.yama.ptrace_scope_ = 1) and the daemon runs as the same user." },
	{ "COLLWATCH_LOG", "=_FILE_",
	  "The agent appends what it does, and why it does not, to _FILE_: a plain file of the same "
	  "user's, no link to one, or /dev/stderr. To anything else it writes nothing." },
	{ "COLLWATCH_RUN", "=_NAME_",
	  "The socket under which the *collwatch run* above a program learns from agents that NCCL "
	  "was called, or that there is no record. *run* sets it." },
	{ "COLLWATCH_PEERS", "=_LIST_",
	  "With which hosts the daemons of *run --standalone* watch this job together, as "
	  "*--peers* takes them." },
	{ "COLLWATCH_PEER_KEY", "=_DIGITS_",
	  "The key of these daemons, 64 to 128 hexadecimal digits. *run --peers* makes a new one "
	  "where there is none; whoever may read the job's environment may read it." },
	{ "COLLWATCH_RECORD", "=_DIRECTORY_",
	  "The agent writes a copy of its record to _DIRECTORY_/_HOST_-_PID_.record, an absolute "
	  "path on a local disk: once a second and when the process ends by itself. For *record "
	  "show* and *analyze*, also without a daemon. About 2 MiB for each rank." },
	{ "COLLWATCH_PAGER", "=_COMMAND_",
	  "By what *collwatch* shows text that is longer than the terminal, instead of *PAGER*; "
	  "empty or _cat_: by nothing." },
	{ "NO_COLOR", "=_ANYTHING_", "*collwatch* prints no colours to a terminal." },
};

const size_t cw_environment_count = sizeof(cw_environment) / sizeof(cw_environment[0]);
