/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python stacks of all threads, taken inside the process while the GIL may be held by somebody who
 * will never let go: faulthandler, registered early for a signal nobody uses, and one thread of
 * ours that sends this signal to itself when asked. No other thread is interrupted.
 *
 * COLLWATCH_PYTHON_STACKS=off turns it off; it is off by itself in free-threaded builds.
 */
#pragma once

/* Longer text is cut. */
#define CW_PYTHON_TEXT_MAX (256u * 1024)

enum cw_python_status { /* as in PythonStacksReply.status */
			CW_PYTHON_OK = 0,
			CW_PYTHON_NOT_PYTHON = 1,
			CW_PYTHON_NOT_ARMED = 2,
			CW_PYTHON_FAILED = 3,
};

/*
 * Asks the interpreter, if there is one, to arm when it next can (Py_AddPendingCall). Called when a
 * communicator became ready; does its work once. Any thread, does not need or take the GIL.
 */
void cw_python_arm(void);

/*
 * Takes the stacks, if the program's threads stand still: CW_PYTHON_FAILED otherwise, with
 * the reason as text. idle() is called while waiting, at least every 200 ms; at most four seconds.
 * *ret_text is NUL-terminated, borrowed until the next call. The helper thread only.
 */
enum cw_python_status cw_python_stacks(const char **ret_text, void (*idle)(void));
