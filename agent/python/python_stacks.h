/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of all threads, from inside the process. A thread may hold the GIL and never
 * release it, so we must not need the GIL. We register faulthandler early for an unused signal. On
 * request, one thread of the agent sends this signal to itself, and interrupts no other thread.
 *
 * COLLWATCH_PYTHON_STACKS=off turns it off; free-threaded builds never turn it on.
 */
#pragma once

/* We cut longer text. */
#define CW_PYTHON_TEXT_MAX (256u * 1024)

enum cw_python_status { /* as in PythonStacksReply.status */
			CW_PYTHON_OK = 0,
			CW_PYTHON_NOT_PYTHON = 1,
			CW_PYTHON_NOT_ARMED = 2,
			CW_PYTHON_FAILED = 3,
};

/*
 * If there is an interpreter, queues the setup for its next opportunity (Py_AddPendingCall). Call
 * this when a communicator became ready; only the first call has an effect. Any thread, does not
 * need or take the GIL.
 */
void cw_python_arm(void);

/*
 * Takes the stacks if the program's threads stand still; otherwise CW_PYTHON_FAILED, with the
 * reason as text. Calls idle() while it waits, at least every 200 ms; waits at most four seconds.
 * *ret_text is NUL-terminated, borrowed until the next call. The helper thread only.
 */
enum cw_python_status cw_python_stacks(const char **ret_text, void (*idle)(void));
