/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of all threads, from inside the process. A thread may hold the GIL and never
 * release it, so we must not need the GIL. We register faulthandler early for an unused signal. On
 * request, one thread of the agent sends this signal to itself, and interrupts no other thread.
 * COLLWATCH_PYTHON_STACKS=off turns Python stacks off. They are always off in free-threaded builds
 * of Python.
 */
#pragma once

/* The longest text of stacks, in bytes. We cut a longer text. */
#define CW_PYTHON_TEXT_MAX (256u * 1024)

enum cw_python_status { /* values of PythonStacksReply.status */
			CW_PYTHON_OK = 0,
			CW_PYTHON_NOT_PYTHON = 1,
			CW_PYTHON_NOT_ARMED = 2,
			CW_PYTHON_FAILED = 3,
};

/*
 * Prepares for requests. If the process has an interpreter, queues the setup for the interpreter's
 * next opportunity (Py_AddPendingCall). Call this function when a communicator became ready; only
 * the first call has an effect. Any thread. Does not need or take the GIL.
 */
void cw_python_arm(void);

/*
 * Takes the stacks if the program's threads stand still. Otherwise returns CW_PYTHON_FAILED, with
 * the reason as text. While it waits, calls idle() at least every 200 ms. It waits at most four
 * seconds in all. *ret_text is NUL-terminated, and valid until the next call. Only the helper
 * thread calls this function.
 */
enum cw_python_status cw_python_stacks(const char **ret_text, void (*idle)(void));
