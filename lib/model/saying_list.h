/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sayings: the phrases from which all sentences of verdicts are built, one row each. A sentence
 * is a list of sayings with arguments (model/saying.h). lib/say renders the sayings with the
 * English of these rows.
 *
 * X(name, arguments, english)
 *
 * arguments: one letter for the kind of each argument:
 *
 *   R  rank set, "ranks 0-2"                    P  process, "rank 3 (node-a, pid 812)"
 *   W  rank set or process                      H  host
 *   S  several hosts, "node-[a-d]"
 *   C  communicator                             O  call, "all_reduce #42"
 *   F  call with all its arguments              E  NCCL's result and message
 *   D  duration                                 N  count, number of a call or of a message
 *   I  signed number                            G  signal
 *   V  version of NCCL                          J  detail of a verdict, by name
 *   Y  data type                                Z  operator of a reduction
 *   T  text from outside of the analysis        L  clause: a list of further sayings
 *
 * english: %1 to %9 stand for the arguments. %1^ begins a sentence, and its first letter becomes a
 * capital. %1(has|have) agrees with the argument: the first form for one rank, process or thing,
 * the second for several.
 */
#pragma once

/* clang-format off */
#define CW_SAYINGS(X) \
	/* pieces of sentences */ \
	X(end, "", ".") \
	X(also, "L", "; %1") \
	X(and_also, "L", " and %1") \
	X(and_then, "L", ", and %1") \
	X(text, "T", "%1") \
	X(its_process, "L", "; its process %1") \
	X(that_waits, "L", ". %1^.") \
	/* who waits, where, and since when */ \
	X(has_waited, "RLD", "%1 %1(has|have) been waiting%2 for %3") \
	X(is_waiting, "RL", "%1 %1(is|are) waiting%2") \
	X(for_it, "", " for it") \
	X(for_them, "", " for them") \
	X(in_it, "", " in it") \
	X(in_it_or_behind, "", " in it or behind it") \
	X(in_call, "OC", " in %1 on %2") \
	X(in_call_or_behind, "OC", " in %1 on %2 or behind it") \
	X(in_call_or_elsewhere, "OC", " in %1 on %2 or on another communicator") \
	X(more_wait_behind_it, "N", " %1 more %1(rank waits|ranks wait) behind it.") \
	X(more_wait_behind_them, "N", " %1 more %1(rank waits|ranks wait) behind them.") \
	/* the last call of a rank on a communicator */ \
	X(last_call_failed, "COD", "; its last call on %1, %2, failed %3 ago") \
	X(last_call_returned, "COD", "; its last call on %1, %2, returned %3 ago") \
	X(device_had_only_done, "N", ", but its device had completed only #%1") \
	X(is_inside_on, "OC", "; it is inside %1 on %2") \
	X(was_inside_on, "OC", "; it was inside %1 on %2") \
	/* a call in which NCCL returned an error */ \
	X(call_failed, "OE", "%1 failed with %2") \
	X(call_failed_ago, "ODE", "%1 failed %2 ago with %3") \
	X(call_had_failed, "OE", "%1 had failed with %2") \
	X(call_had_failed_ago, "ODE", "%1 had failed %2 ago with %3") \
	/* what the process does on its host */ \
	X(used_cpu, "D", "last used CPU %1 ago") \
	X(did_io, "D", "last did I/O %1 ago") \
	X(had_a_child, "D", "last had a busy child process %1 ago") \
	X(called_nccl, "D", "last called NCCL %1 ago") \
	X(worked, "D", "was last active %1 ago") \
	X(has_not_worked, "D", "has been idle for %1") \
	X(waits_for_thread, "", "; it waits for another of its threads, and no thread is running") \
	X(waits_for_gil, "", "; it waits for Python's interpreter lock (GIL)") \
	X(waits_for_event, "", "; it waits for a pipe, a condition variable or a timer") \
	X(waits_for_socket, "", "; it waits for a socket") \
	X(waits_for_terminal, "", "; it waits for input from a terminal") \
	X(waits_for_storage, "", "; it waits for storage, and no data is moving") \
	/* how a process ended */ \
	X(oom_killed, "", "OOM-killed") \
	X(killed_by, "G", "killed by %1") \
	X(exited, "I", "exited with status %1") \
	X(process_has_ended, "", "its process has ended") \
	X(that_ago, "LD", "%1 %2 ago") \
	X(that_then_ago, "LD", "%1, %2 ago") \
	X(ended, "", "ended") \
	X(was, "L", "was %1") \
	X(were, "L", "were %1") \
	/* where a process is */ \
	X(stopped, "", "stopped by a signal") \
	X(held_by_debugger, "", "held by a debugger") \
	X(frozen, "", "frozen with its control group") \
	X(outside_nccl, "", "outside NCCL") \
	X(alive_outside_nccl, "", "alive, outside NCCL") \
	X(alive_at, "L", "; alive, %1") \
	X(inside, "O", "inside %1") \
	X(inside_on, "OC", "inside %1 on %2") \
	X(inside_waits_for_none, "OC", "inside %1 on %2, a call that waits for no other rank") \
	X(was_inside, "O", "was inside %1") \
	X(inside_op, "F", "inside %1") \
	X(was_inside_op, "F", "was inside %1") \
	X(has_left, "J", "it has %1 the communicator") \
	X(alive_has_left, "J", "alive; it has %1 the communicator") \
	X(in_state_d, "", ", in uninterruptible sleep (state D)") \
	X(its_process_is_now, "L", " Its process is now %1.") \
	X(their_processes_are_now, "L", " Their processes are now %1.") \
	/* what makes a culprit one */ \
	X(check_colour, "NN", "; the group has %1 members, but an even split of its parent would give it %2: check the colour that this rank passed to the split") \
	X(calls_differ_at, "N", "its calls differ from those of the other ranks at #%1") \
	X(were_same_until, "N", ", but were the same up to #%1") \
	X(called, "F", "called %1") \
	X(posted_other_size, "", "has posted a call of a different size") \
	X(waits_elsewhere, "OC", "waits in %1 on %2 while other ranks wait for it in another call") \
	X(did_not_finish, "O", "has not finished %1, which other ranks have completed") \
	X(sent_steps, "NNN", "handed %1 of %2 steps to the network, which confirmed %3") \
	X(received_steps, "NN", "received %1 of %2 steps from the network") \
	X(left_data_in_buffer, "", "its GPU leaves data in its buffer") \
	X(sends_nothing, "", "its GPU has all its inputs and sends nothing") \
	X(did_not_reach_proxy, "", "is inside the call, and NCCL's proxy does not have its part") \
	X(did_not_finish_call, "", "has not finished the call, which other ranks have completed") \
	X(omitted_calls, "", "did not post the counterparts of calls that other ranks posted") \
	X(omitted_sends, "", "did not post sends for which other ranks posted receives") \
	X(omitted_receives, "", "did not post receives for which other ranks posted sends") \
	X(sent_bytes, "NN", "sent %1 bytes as message #%2") \
	X(received_bytes, "NN", "received %1 bytes as message #%2") \
	X(other_message_sizes, "", "its messages differ in size from those of its peer") \
	X(node_stopped_reporting, "H", "its node %1 has stopped reporting") \
	X(size_at_odds, "", "its size does not match those of the other ranks: data is missing or left over") \
	X(left_empty_recording, "", "its recording has no call, and other ranks wait in a call of its group") \
	X(left_no_recording, "", "it left no recording, and other ranks wait in a call of its group") \
	X(stream_is_stuck, "", "enqueued the call, but its stream is stuck in earlier work") \
	/* the property that differs between members of a communicator */ \
	X(loaded_nccl, "V", "loaded NCCL %1") \
	X(loaded_unknown_nccl, "", "loaded an unknown NCCL") \
	X(has_other_variables, "", "started with NCCL_* variables that differ from those of the other ranks") \
	X(has_other_order, "", "made the calls of an NCCL group in a different order from the other ranks") \
	X(made_with_ranks, "N", "created the communicator with %1 %1(rank|ranks)") \
	X(that_property, "RL", "%1 %2") \
	X(setups_differ, "RLRLOCD", "%1 %2, but %3 %4; %5 on %6 has not finished for %7.") \
	X(setup_differs, "RLROCD", "%1 %2 (%3); %4 on %5 has not finished for %6.") \
	/* calls that differ */ \
	X(between_calls, "NN", "between collectives #%1 and #%2") \
	X(before_call, "N", "before collective #%1") \
	X(made_other_call, "WRCL", "%1 made a different call than %2 on %3, %4; that call is no longer recorded") \
	X(made_different_calls, "RRCL", "%1 and %2 made different calls on %3, %4; those calls are no longer recorded") \
	X(disagree_on_call, "CNRFRFJ", "the ranks of %1 disagree on call #%2: %3 called %4, %5 called %6 (%7 differs).") \
	X(skipped, "WFCRF", "%1 skipped %2 on %3, a call that %4 made, and went on with %5") \
	X(made_extra_call, "WCFRF", "%1 made an extra call on %2: %3; at this point %4 called %5") \
	X(called_other_kind, "WONCRO", "%1 called %2 as #%3 on %4; %5 called %6.") \
	X(called_with, "WONCLRL", "%1 called %2 #%3 on %4 with %5; %6 called it with %7.") \
	X(called_differently, "WFCRFJ", "%1 called %2 on %3; %4 called %5 (%6 differs).") \
	X(count, "N", "count %1") \
	X(type, "Y", "type %1") \
	X(operator, "Z", "operator %1") \
	X(root, "I", "root %1") \
	X(after_that, "PL", " After that %1 %2") \
	/* a deadlock */ \
	X(deadlock, "", "deadlock: ") \
	X(waits_in_for, "ROCR", "%1 waits in %2 on %3 for %4") \
	X(which_waits_in_for, "OCR", ", which waits in %1 on %2 for %3") \
	X(and_so_on, "N", ", and so on around a cycle of %1 ranks.") \
	/* a call that no member is missing from */ \
	X(halted_inside, "WLOC", "%1 is %2 inside %3 on %4") \
	X(halted_with_part_done, "PLOCRD", "%1 is %2 and has finished its own part of %3 on %4; %5 %5(has|have) been inside this call for %6 and may still need data from the halted process.") \
	X(some_completed, "ROCNND", "%1 %1(has|have) not finished %2 on %3; %4 of its %5 members have completed this call, and it has made no progress for %6.") \
	X(all_entered, "NCOD", "all %1 ranks of %2 entered %3 and none has finished for %4.") \
	X(entered_none_missing, "ROCD", "%1 entered %2 on %3, no rank is missing, and the call has not finished for %4.") \
	X(check_network, "", " Check network, GPUs and NCCL") \
	X(not_the_program, "", " Not the program: check network, GPUs and NCCL") \
	X(connection_is_silent, "RHRHNOC", "the connection %1 on %2 → %3 on %4, channel %5, moves no data of %6 on %7") \
	X(connection_is_slow, "RHRHNOC", "the connection %1 on %2 → %3 on %4, channel %5, is slow in %6 on %7") \
	X(step_takes, "D", ": a step waits %1 in it") \
	X(at_rate, "N", ", and it carries %1 bytes/s") \
	X(gpu_does_not_consume, "WOC", "the GPU of %1 leaves data of %2 on %3 in its buffer") \
	X(gpu_does_not_produce, "WOC", "the GPU of %1 has all its inputs of %2 on %3 and sends nothing") \
	X(proxy_lacks_part, "WOC", "%1 is inside %2 on %3, and NCCL's proxy does not have its part") \
	X(pool_may_be_exhausted, "", " NCCL's pool of proxy operations may be exhausted.") \
	X(check_link, "HH", " Check the network between %1 and %2") \
	X(not_program_but_link, "HH", " Not the program: check the network between %1 and %2") \
	X(sender_first, "", ", the sender's side first") \
	X(receiver_first, "", ", the receiver's side first") \
	X(check_gpu, "H", " Check the GPU on %1 and the work on its streams.") \
	X(on_their_nodes, "", " on their nodes") \
	X(on_hosts, "S", " on %1") \
	X(on_node, "HR", " on %1 (%2)") \
	X(comma_node, "HR", ", %1 (%2)") \
	X(and_node, "HR", " and %1 (%2)") \
	/* the culprit is not known */ \
	X(nothing_is_blocked, "", "no rank is blocked on a call that cannot complete") \
	X(others_completed, "ROCD", "%1 entered %2 on %3 %4 ago, and other ranks have completed it; the device progress of %1 is not known.") \
	X(none_seen_missing, "", "; no missing rank was seen in this call, and the device progress of the ranks is not known.") \
	X(all_entered_not_returned, "CORD", "all ranks of %1 entered %2, and %3 %3(has|have) not returned from it for %4; the device progress of the ranks is not known.") \
	X(empty_recording_there, "W", "; the recording of %1 has no call, so %1(its|their) position is not known.") \
	X(no_recording_there, "W", "; %1 left no recording: %1(it|they) died or could not write one (a thread may hold the interpreter lock).") \
	X(recordings_do_not_tell, "N", "; the recordings do not show whether %1 of its ranks entered the call.") \
	X(not_visible, "N", "; %1 of its ranks %1(is|are) not visible and may be missing.") \
	X(earlier_call_unrecorded, "", "; the missing rank may be stuck in an earlier call whose device progress was not recorded.") \
	X(node_does_not_report, "", "; the node of the rank that they wait for is not reporting.") \
	X(awaited_rank_unrecorded, "", "; the rank that they wait for is not recorded.") \
	/* communicators in the making */ \
	X(some_wait_crossed, "RN", " %1^ %1(waits|wait) in one of %2 such calls, all other ranks of the job wait behind them, and no rank is left to enter any of these calls.") \
	X(all_wait_crossed, "NN", " All %1 ranks of the job wait in one of %2 such calls, and no rank is left to enter any of them.") \
	X(left_for_another, "NNCOL", "%1 of the %2 ranks of %3 left %4, and %1(is|are) creating another communicator; %5.") \
	X(ranks_not_seen, "RCOL", "%1 of %2 %1(has|have) not been seen in %3; %4.") \
	X(some_not_seen, "NNCOL", "%1 of the %2 ranks of %3 %1(has|have) not been seen in %4; %5.") \
	X(failed_in, "WOCE", "%1 failed in %2 on %3 with %4") \
	X(failed_differently, "WOC", "%1 failed in %2 on %3 with different NCCL errors") \
	X(left_before, "WJCO", "%1 %2 %3 before %4 had finished") \
	X(halted_inside_of, "WLOC", "%1 is %2 inside %3 of %4") \
	X(halted_not_called, "WLOC", "%1 is %2 and has not called %3 for %4") \
	X(not_called, "WOC", "%1 %1(has|have) not called %2 for %3") \
	X(all_inside, "COD", "all ranks of %1 are inside %2, which has not finished for %3.") \
	X(inside_none_missing, "ROCD", "%1 %1(has|have) been inside %2 on %3 for %4, and no other rank is missing.") \
	/* a process has ended, or a node is silent */ \
	X(ended_inside, "WLOC", "%1 %2 inside %3 on %4") \
	X(ended_before, "WLLOC", "%1 %2 before %1(it|they) could %3 %4 on %5") \
	X(ended_before_some, "WLWLOC", "%1 %2 before %3 could %4 %5 on %6") \
	X(enter, "", "enter") \
	X(finish, "", "finish") \
	X(post_counterpart_of, "", "post the counterpart of") \
	X(node_silent_for, "HRD", "%1 (%2) has not been heard from for %3") \
	X(node_silent, "HR", "%1 (%2) has stopped reporting") \
	X(nodes_silent, "R", "the nodes of %1 have stopped reporting") \
	/* a rank that is missing */ \
	X(never_reached, "WOC", "%1 never reached %2 on %3") \
	X(halted_never_reached, "WLOC", "%1 is %2 and never reached %3 on %4") \
	X(missing_elsewhere, "R", "; %1 %1(is|are) missing from %1(a call on another communicator|calls on other communicators)") \
	X(device_is_stuck, "WOC", "%1 enqueued %2 on %3, but %1(its|their) device is stuck in earlier work") \
	/* sends and receives */ \
	X(never_posted_counterpart, "WOC", "%1 never posted the counterpart of %2 on %3") \
	X(has_been_sending, "RPCNDR", "%1 has been sending to %2 on %3 (#%4) for %5, but %6 never posted the matching recv") \
	X(has_been_receiving, "RPCNDR", "%1 has been receiving from %2 on %3 (#%4) for %5, but %6 never posted the matching send") \
	X(it_is_already_in, "OC", "; it is already in %1 on %2") \
	X(has_received_from, "RRCD", "%1 has been receiving from %2 on %3 for %4") \
	X(receives_from, "RRC", "%1 is receiving from %2 on %3") \
	X(has_sent_to, "RRCD", "%1 has been sending to %2 on %3 for %4") \
	X(sends_to, "RRC", "%1 is sending to %2 on %3") \
	X(both_posted, "", "; both ranks posted their halves and wait in no older call, so either of them may be stuck") \
	X(send_not_listed, "R", ", and %1 lists no open send to it: %1 has completed that send, or never posted it") \
	X(receive_not_listed, "R", ", and %1 lists no open receive from it: %1 has completed that receive, or never posted it") \
	X(send_was_completed, "R", ", although %1 has completed the send") \
	X(receive_was_completed, "R", ", although %1 has completed the receive") \
	X(did_not_receive, "R", "has not received a message that %1 has sent") \
	X(did_not_send, "R", "has not finished a send that %1 has received") \
	X(also_unfinished, "ROC", " %1^ %1(has|have) not finished %2 on %3, either.") \
	X(bytes_differ, "RNRCNN", "%1 sent %2 bytes to %3 on %4 as message #%5, but %3 received %6 bytes") \
	X(sizes_differ, "RRCN", "the message sizes that %1 sent to %2 on %3 differ from those that %2 received (%4 %4(message|messages))") \
	X(never_received, "RRCNN", "%1 sent %4 %4(message|messages) to %2 on %3, but %2 received only %5") \
	X(never_sent, "RRCNN", "%1 posted %4 %4(receive|receives) from %2 on %3, but %2 sent only %5 %5(message|messages)") \
	X(likewise_pairs, "N", "; the same is true of %1 more %1(pair|pairs) of ranks") \
	X(none_waits_for_it, "", ". No rank waits because of this.") \
	X(size_disagrees, "WOC", "%1 %1(disagrees with the other ranks|disagree) on the size of %2 on %3: the data that the ranks send does not add up to the data that they expect") \
	X(all_sizes_disagree, "OC", "the ranks disagree on the size of %1 on %2: the data that they send does not add up to the data that they expect, and no record shows which rank is wrong") \
	X(disagrees_with_several, "WRC", "%1 disagrees with several ranks, %2 among them, on the sizes of their messages on %3") \
	X(disagree_on_size, "WOC", "%1 disagree on the size of %2 on %3") \
	/* what evidence and the incident's later life add */ \
	X(is_stopped, "R", " %1^ is stopped by a signal.") \
	X(is_in, "RT", " %1^ is in %2.") \
	X(stuck_never_reached, "WTOC", "%1 is stuck in %2 and never reached %3 on %4") \
	X(crashed_in, "RT", " %1^ crashed in %2.") \
	X(stayed_in, "RTDD", "%1 stayed in %2 from %3 to %4 of the wait") \
	X(without_cpu, "", ", and its main thread used almost no CPU between the readings") \
	X(with_cpu, "D", ", but its main thread used %1 of CPU between the readings") \
	X(moved_on, "R", "%1 moved on:") \
	X(was_in_at, "DT", " at %1 of the wait it was in %2") \
	X(then_in_at, "DT", ", at %1 in %2") \
	X(looks_like_server, "", " The job looks like a server that waits for requests: set COLLWATCH_POLICY=serving in its environment.") \
	X(was_found_ago, "N", "found %1 min ago. Seen at that time: ") \
	X(seen_while_it_lasted, "T", "%1. Seen while the incident lasted: ") \
	X(before_delivery, "T", "%1, before its alert was delivered. Seen while the incident lasted: ") \
	/* other explanations */ \
	X(may_have_made_call, "R", "%1 may have made a call that no other rank makes") \
	X(some_also_wait_for, "R", "some of the waiting ranks also wait for %1") \
	X(some_wait_in_full_call, "", "some of the waiting ranks wait in a call from which no rank is missing") \
	/* differences that accuse no rank */ \
	X(fits_known_hang, "TVT", "this hang fits %1, a known fault of NCCL %2, which version %3 fixes") \
	X(variable_differs, "TL", "%1 differs: %2") \
	X(value_on, "TR", "%1 on %2") \
	X(unset_on, "R", "not set on %1") \
	X(comma_value_on, "TR", ", %1 on %2") \
	X(comma_unset_on, "R", ", not set on %1") \
	X(others_have_more, "N", ", and %1 more %1(rank has|ranks have) other values") \
	X(known_to_hang, "", "; ranks that differ in it are known to hang") \
	X(must_be_equal, "", "; it should be the same on all ranks") \
	X(more_variables_differ, "N", "%1 more NCCL_* %1(variable differs|variables differ)") \
	/* what the evidence rules out */ \
	X(no_mismatch, "RNC", "no mismatch: %1 made the same call as #%2 on %3") \
	X(no_mixed_versions, "L", "no mixed versions: all members %1 and have the same NCCL_* variables") \
	X(no_mixed_setup, "L", "no mixed versions: all members %1 and agree in the NCCL_* variables that must be equal") \
	X(no_dead_process, "N", "no dead process: all %1 visible processes that share communicators are alive") \
	X(no_deadlock, "", "no deadlock: no ranks wait for each other in a cycle") \
	X(no_lost_node_of_one, "", "no lost node: the only node reports") \
	X(no_lost_node_of_two, "", "no lost node: both nodes report") \
	X(no_lost_node, "N", "no lost node: all %1 nodes report")
/* clang-format on */
