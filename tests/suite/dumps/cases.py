# SPDX-License-Identifier: Apache-2.0
"""Jobs that hang, or do not, and the ranks that hold them up by the semantics of NCCL and PyTorch.

Each label follows from the job's program. No tool's reading of the dumps decides it. If a case
retells a published one, its source is named. We take over facts only.
"""
from writer import Job

CASES = []


class Expect:
    """culprits: ranks. exits: statuses that are right. most: highest confidence that is."""

    def __init__(self, *culprits, exits=(2,), most=None, classes=None):
        self.culprits, self.exits, self.most = set(culprits), exits, most
        self.classes = classes


HEALTHY = Expect(exits=(0,))
# A rank waits, and the dumps do not show for which rank.
OPEN = Expect(exits=(2, 3), most="possible")


def case(expect, source=None, **variants):
    def add(make):
        CASES.append((make.__name__, make, expect, variants, source))
        return make
    return add


# ---- who does not come ----


@case(Expect(2, classes=("never_entered",)))
def one_stops():
    job = Job(4)
    for r in job:
        for _ in range(5):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(2, classes=("never_entered",)))
def one_stops_timed():
    job = Job(4, timed=True, version="2.10")
    for r in job:
        for _ in range(5):
            r.coll(job.world, "all_reduce")
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(0, classes=("never_entered",)))
def one_of_two_stops():
    job = Job(2, version="2.4")
    for r in job:
        r.coll(job.world, "all_reduce")
        if r.rank == 0:
            r.stop()
        r.coll(job.world, "_all_gather_base", out=(2048,))
    return job


@case(Expect(0), source="MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#132")
def decode_step_without_rank_0():
    """Two ranks: rank 1 is in an all-gather that rank 0 has never enqueued."""
    job = Job(2, version="2.9", prefix="comm_lib_trace_rank_")
    tp = job.group("2", (0, 1), "tp")
    for r in job:
        for _ in range(6):
            r.coll(tp, "all_reduce", (1, 4096), "BFloat16")
            r.coll(tp, "_all_gather_base", (1, 64640), "BFloat16", out=(2, 64640))
        if r.rank == 0:
            r.stop()
        r.coll(tp, "all_reduce", (1, 4096), "BFloat16")
    return job


@case(Expect(3, 4, 5, 6, 7, most="likely"), source="pytorch/pytorch#140969")
def most_do_not_come():
    job = Job(8)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce", (1571911,))
            r.wait()
        if r.rank >= 3:
            r.stop()
        r.coll(job.world, "all_reduce", (1571911,))
    return job


@case(Expect(5))
def runs_ahead_on_the_host():
    """Asynchronous calls: everybody else has enqueued a dozen more."""
    job = Job(8, version="2.5")
    for r in job:
        for k in range(20):
            if r.rank == 5 and k == 8:
                r.stop()
            r.coll(job.world, "all_reduce", (1 << k % 7,))
    return job


@case(Expect(1))
def subgroup_holds_up_the_world():
    """Rank 1 stops in its tensor group; the data group of the others waits behind."""
    job = Job(4)
    tp = [job.group("1", (0, 1), "tp"), job.group("2", (2, 3), "tp")]
    dp = [job.group("3", (0, 2), "dp"), job.group("4", (1, 3), "dp")]
    for r in job:
        for k in range(4):
            if r.rank == 1 and k == 3:
                r.stop()
            r.coll(tp[r.rank // 2], "all_reduce", (64, 64))
            r.coll(dp[r.rank % 2], "_reduce_scatter_base", (128,), out=(64,))
    return job


@case(Expect(3))
def lists_nothing_at_all():
    """Has never made a call on the group others wait in, but on the world."""
    job = Job(4)
    g = job.group("7", (1, 2, 3), "ep")
    for r in job:
        r.coll(job.world, "broadcast")
        r.wait()
        if r.rank == 3:
            r.stop()
        if r.rank:
            r.coll(g, "all_to_all", (64,))
    return job


@case(Expect(1, 6), source="pytorch/pytorch test_fr_analysis, missing ranks")
def two_stop_in_two_nodes():
    job = Job(8, form="json")
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank in (1, 6):
            r.stop()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(2))
def stops_before_its_first_call():
    job = Job(4, timeout_s=1800)
    for r in job:
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "broadcast")
        r.wait()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(4))
def stops_in_the_second_epoch_of_a_small_buffer():
    """The buffer holds the last 20 entries only."""
    job = Job(6)
    job.buffer = 20
    for r in job:
        for k in range(90):
            if r.rank == 4 and k == 77:
                r.stop()
            r.coll(job.world, "all_reduce", (k % 5 + 1,))
            if k % 10 == 9:
                r.wait()
    return job


# ---- dumps that are missing ----


@case(Expect(9, 14, most="possible"))
def lock_holders_do_not_dump():
    """A process whose interpreter lock is held writes none."""
    job = Job(16)
    tp = [job.group(str(1 + g), range(4 * g, 4 * g + 4), "tp") for g in range(4)]
    for r in job:
        for k in range(5):
            if k == 4 and r.rank in (9, 14):
                r.stop()
                r.no_dump()
            r.coll(tp[r.rank // 4], "_reduce_scatter_base", (1024,), out=(256,))
            r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(1, most="possible"), source="pytorch/pytorch#196968")
def only_the_peer_dumps():
    """Rank 1 raised, and destroys its groups: its monitor is stopped, it writes no dump."""
    job = Job(2)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 1:
            r.stop()
            r.no_dump()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(0, most="possible"))
def the_first_does_not_dump():
    job = Job(8, form="json")
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank == 0:
            r.stop()
            r.no_dump()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(3, most="possible"))
def silent_neighbour_of_a_pipeline():
    job = Job(4)
    pp = job.group("5", range(4), "pp")
    for r in job:
        for k in range(4):
            if r.rank == 3 and k == 3:
                r.stop()
                r.no_dump()
            if r.rank > 0:
                r.recv(pp, r.rank - 1)
            if r.rank < 3:
                r.send(pp, r.rank + 1)
    return job


@case(Expect(2, most="likely"))
def one_is_seen_not_to_come_another_left_no_dump():
    """Rank 5 waits like the others, and its dump was lost."""
    job = Job(8)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank == 2:
            r.stop()
        if r.rank == 5:
            r.no_dump()
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(exits=(3,), most="possible"))
def one_dump_of_sixteen():
    job = Job(16)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 3:
            r.stop()
        if r.rank != 7:
            r.no_dump()
        r.coll(job.world, "all_reduce")
    return job


# ---- calls that differ ----


@case(Expect(1, classes=("mismatch",)), source="pytorch/pytorch test_fr_analysis, sizes")
def one_count_differs():
    job = Job(4)
    for r in job:
        r.coll(job.world, "broadcast")
        r.coll(job.world, "all_reduce", (5, 4) if r.rank == 1 else (4, 4))
    return job


@case(Expect(0, classes=("mismatch",)), source="pytorch/pytorch#97191")
def rank_0_reduces_twice_as_much():
    job = Job(8, version="2.4")
    for r in job:
        r.coll(job.world, "all_reduce", (200 << 20 if r.rank == 0 else 100 << 20,))
        r.wait()
    return job


@case(Expect(22, 110, classes=("mismatch",)), source="pytorch/pytorch#140563")
def two_of_128_sizes():
    job = Job(128)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce", (262144,))
        r.coll(job.world, "all_reduce", (262144,) if r.rank in (22, 110) else (1025,))
    return job


@case(Expect(2, classes=("mismatch",)), source="pytorch/pytorch test_fr_analysis, types")
def another_kind():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        if r.rank == 2:
            r.coll(job.world, "all_gather", out=(4096,))
        else:
            r.coll(job.world, "all_reduce")
    return job


@case(Expect(3, classes=("mismatch",)), source="pytorch/pytorch test_fr_analysis, dtypes")
def another_dtype():
    job = Job(4, version="2.5")
    for r in job:
        r.coll(job.world, "all_reduce", dtype="Half" if r.rank == 3 else "Float")
    return job


@case(Expect(0, 1, 2, 3, most="possible", classes=("mismatch",)))
def two_against_two():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce", (100 if r.rank < 2 else 200,))
    return job


@case(Expect(0, 1, most="possible", classes=("mismatch",)))
def one_against_one():
    job = Job(2)
    for r in job:
        r.coll(job.world, "all_reduce", (100 if r.rank else 200,))
    return job


@case(Expect(2), source="pytorch/pytorch test_fr_analysis, types")
def unknown_dtype_and_another_kind():
    """The dtype is one of tomorrow: the kind still counts."""
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce", dtype="Float4_e2m1fn_x2")
        r.coll(job.world, "_all_gather_base" if r.rank == 2 else "_reduce_scatter_base",
               dtype="Float4_e2m1fn_x2", out=(4096,))
    return job


@case(Expect(1))
def unknown_dtype_and_one_stops():
    job = Job(4, version="2.10")
    for r in job:
        r.coll(job.world, "all_reduce", dtype="Bits16")
        r.wait()
        if r.rank == 1:
            r.stop()
        r.coll(job.world, "all_reduce", dtype="Bits16")
    return job


@case(Expect(3))
def a_call_omitted():
    """Rank 3 skips a broadcast, and is one call ahead of the others ever after."""
    job = Job(4)
    for r in job:
        for k in range(6):
            r.coll(job.world, "all_reduce", (64,))
            if not (r.rank == 3 and k == 4):
                r.coll(job.world, "broadcast", (8,))
    return job


# ---- rooted calls ----


@case(Expect(0, classes=("never_entered",)))
def the_root_does_not_broadcast():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 0:
            r.stop()
        r.coll(job.world, "broadcast")
        r.wait()
    return job


@case(Expect(2, classes=("never_entered",)))
def a_leaf_does_not_take_the_broadcast():
    """Root and rank 1 are through, and wait in the next call."""
    job = Job(5)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "broadcast")
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(1, 3, classes=("never_entered",)))
def two_do_not_come_to_a_reduce():
    job = Job(5)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank in (1, 3):
            r.stop()
        r.coll(job.world, "reduce")
        r.wait()
    return job


@case(Expect(3, classes=("never_entered",)), source="pytorch/pytorch test_fr_analysis, gather")
def one_does_not_come_to_a_gather():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 3:
            r.stop()
        r.coll(job.world, "gather", (4, 4), out=(4, 4))
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(1))
def the_root_of_a_scatter_does_not_come():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 1:
            r.stop()
        r.coll(job.world, "scatter", root=1)
    return job


# ---- sends and receives ----


@case(Expect(2, classes=("p2p_unmatched", "never_entered")))
def a_send_omitted():
    """Stage 2 of a pipeline stops before its fourth send."""
    job = Job(4, version="2.4")
    pp = job.group("9", range(4), "pp")
    for r in job:
        for k in range(5):
            if r.rank:
                r.recv(pp, r.rank - 1)
            if r.rank == 2 and k == 3:
                r.stop()
            if r.rank < 3:
                r.send(pp, r.rank + 1)
    return job


@case(Expect(1, 2, most="certain", classes=("p2p_unmatched",)))
def sizes_of_a_pair_differ():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        if r.rank == 1:
            r.send(job.world, 2, (512,))
        if r.rank == 2:
            r.recv(job.world, 1, (256,))
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(3))
def batch_in_a_ring_without_one():
    job = Job(4)
    for r in job:
        for k in range(4):
            if r.rank == 3 and k == 3:
                r.stop()
            r.batch(job.world, [("send", (r.rank + 1) % 4), ("recv", (r.rank + 3) % 4)])
            r.wait()
    return job


@case(Expect(3, most="possible"))
def batch_in_a_ring_without_one_and_its_dump():
    """Other pairs of the same batches have open calls as well, so no single network is to blame."""
    job = Job(4, timed=True)
    for r in job:
        for k in range(4):
            if r.rank == 3 and k == 3:
                r.stop()
                r.no_dump()
            r.batch(job.world, [("send", (r.rank + 1) % 4), ("recv", (r.rank + 3) % 4)])
            r.wait()
    return job


@case(Expect(0, 1, 2, 3, classes=("deadlock",)))
def ring_of_blocking_sends():
    job = Job(4)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.send(job.world, (r.rank + 1) % 4)
        r.wait()
        r.recv(job.world, (r.rank + 3) % 4)
        r.wait()
    return job


@case(Expect(1, most="likely"), source="pytorch/pytorch#137969")
def members_of_batches_stay_scheduled():
    """Batches that have completed look scheduled, but for their last entry."""
    job = Job(2)
    for r in job:
        for k in range(6):
            r.batch(job.world, [("send", 1 - r.rank), ("recv", 1 - r.rank)])
            r.wait()
        if r.rank == 1:
            r.stop()
        r.coll(job.world, "all_reduce")
    return job


@case(OPEN)
def receive_from_anybody():
    """No rank sends, and the dumps do not show which rank should have."""
    job = Job(4, backend="gloo")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 0:
            r.recv(job.world, None, name="recvAnySource")
            r.wait()
    return job


@case(Expect(2))
def receive_from_anybody_and_a_barrier():
    """Rank 2 stops before its send and before the barrier in which the others wait."""
    job = Job(4, backend="gloo")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "barrier", None)
        if r.rank == 0:
            r.recv(job.world, None, name="recvAnySource")
    return job


@case(Expect(0, 1, most="likely", classes=("deadlock",)))
def both_receive_first():
    job = Job(2)
    for r in job:
        r.coll(job.world, "all_reduce")
        r.recv(job.world, 1 - r.rank)
        r.wait()
        r.send(job.world, 1 - r.rank)
        r.wait()
    return job


# ---- coalesced calls ----


@case(Expect(2))
def coalesced_without_one():
    job = Job(4, version="2.7")
    for r in job:
        r.coalesced(job.world, "_all_gather_base", [(16,), (32,)])
        r.wait()
        if r.rank == 2:
            r.stop()
        r.coalesced(job.world, "_all_gather_base", [(16,), (32,)])
    return job


@case(Expect(0), source="pytorch/pytorch test_fr_analysis, test case 6")
def empty_coalesced_call_on_rank_0():
    job = Job(2, version="2.8")
    for r in job:
        r.coll(job.world, "all_reduce", (4, 4))
        r.wait()
        if r.rank == 0:
            r.stop()
        r.coalesced(job.world, "_reduce_oop", [(4, 4), (4, 4)], name="REDUCE_SCATTER_coalesced")
    return job


@case(Expect(3, classes=("mismatch",)), source="pytorch/pytorch test_fr_analysis, test case 4")
def uneven_all_gather_differs():
    job = Job(4, version="2.8")
    for r in job:
        r.coalesced(job.world, "_broadcast_oop", [(4, 4), (4, 4) if r.rank == 3 else (5, 5)],
                    name="ALLGATHER_coalesced")
    return job


# ---- devices ----


@case(Expect(2, most="likely"))
def a_device_does_not_finish():
    """Everybody else has completed the all-reduce, and waits in the next."""
    job = Job(4)
    job.world.unfinished(3, {2})
    for r in job:
        for _ in range(5):
            r.coll(job.world, "all_reduce")
    return job


@case(Expect(2, 3, most="possible"))
def a_gpu_dies_and_its_neighbour_starves():
    """The dead one's last chunk does not come to the next in the ring either."""
    job = Job(8)
    job.world.unfinished(3, {2, 3})
    for r in job:
        for _ in range(5):
            r.coll(job.world, "_all_gather_base", out=(8192,))
    return job


@case(Expect(5, most="likely"))
def one_rank_is_left_in_two_groups():
    """Its GPU has died: it alone is left in the call of either of its groups."""
    job = Job(8)
    job.in_order = False
    a, b = job.group("1", range(8), "a"), job.group("2", (1, 3, 5, 7), "b")
    a.unfinished(3, {5})
    b.unfinished(2, {5})
    for r in job:
        for _ in range(3):
            r.coll(a, "all_reduce")
            if r.rank % 2:
                r.coll(b, "_reduce_scatter_base", out=(256,))
    return job


@case(OPEN)
def all_inside_and_nobody_gets_out():
    job = Job(4)
    job.world.unfinished(3, range(4))
    for r in job:
        for _ in range(4):
            r.coll(job.world, "all_reduce")
    return job


@case(Expect(exits=(2,), classes=("in_collective", "unknown")))
def all_inside_timed():
    job = Job(4, timed=True)
    job.world.unfinished(3, range(4))
    for r in job:
        for _ in range(4):
            r.coll(job.world, "all_reduce")
    return job


@case(Expect(1, classes=("device_stalled", "never_entered")))
def a_kernel_never_ends():
    """With times: the others' all-reduce has started, that of rank 1 is scheduled."""
    job = Job(4, timed=True)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
        if r.rank == 1:
            r.kernel_hangs()
        r.coll(job.world, "all_reduce")
    return job


@case(OPEN)
def a_kernel_never_ends_untimed():
    """Without times its call looks like those of the others."""
    job = Job(4)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
        if r.rank == 1:
            r.kernel_hangs()
        r.coll(job.world, "all_reduce")
    return job


# ---- order ----


@case(Expect(2, most="likely", classes=("deadlock",)))
def two_groups_in_another_order():
    job = Job(4)
    a, b = job.group("1", range(4), "a"), job.group("2", range(4), "b")
    for r in job:
        r.coll(job.world, "all_reduce")
        first, second = (b, a) if r.rank == 2 else (a, b)
        r.coll(first, "all_reduce")
        r.wait()
        r.coll(second, "all_reduce")
        r.wait()
    return job


@case(Expect(0, 1, most="possible", classes=("deadlock",)))
def two_groups_one_against_one():
    job = Job(2)
    a, b = job.group("1", range(2), "a"), job.group("2", range(2), "b")
    for r in job:
        first, second = (b, a) if r.rank else (a, b)
        r.coll(first, "all_reduce")
        r.coll(second, "all_reduce")
    return job


# ---- nobody waits ----


@case(HEALTHY, source="pytorch/pytorch test_fr_analysis, test case 1")
def all_completed():
    job = Job(2, version="2.8")
    for r in job:
        r.coll(job.world, "all_reduce", (4, 4))
        r.coll(job.group("1", (r.rank,), "sub_pg"), "all_reduce", (5, 5))
    return job


@case(HEALTHY, source="pytorch/pytorch test_fr_analysis, test case 2")
def coalesced_all_reduce_completed():
    job = Job(2, version="2.8")
    for r in job:
        r.coll(job.world, "allreduce_coalesced", (4, 4))
    return job


@case(HEALTHY, source="pytorch/pytorch test_fr_analysis, test case 3")
def coalesced_broadcasts_completed():
    job = Job(2, version="2.8")
    for r in job:
        r.coalesced(job.world, "broadcast", [(4, 4), (4, 4)])
    return job


@case(HEALTHY, source="pytorch/pytorch test_fr_analysis, test case 5")
def uneven_reduce_scatter_completed():
    job = Job(2, version="2.8")
    for r in job:
        r.coalesced(job.world, "_reduce_oop", [(4, 4), (4, 4)], name="REDUCE_SCATTER_coalesced")
    return job


@case(HEALTHY, source="pytorch/pytorch test_fr_analysis, gather")
def gather_completed_with_other_sizes():
    job = Job(4)
    for r in job:
        r.coll(job.world, "gather", (4, 4), out=(16, 4) if r.rank == 0 else (4, 4))
        r.coll(job.world, "all_to_all", (100 + r.rank,), out=(103 - r.rank,))
    return job


@case(OPEN)
def asked_at_other_moments():
    """A healthy job, whose ranks are asked one after the other: what they write does not fit."""
    job = Job(4)
    for r in job:
        for k in range(30):
            r.coll(job.world, "all_reduce", (1 << k % 5,))
            r.wait()
        r.dumps_in((20, 23, 25, 28)[r.rank])
    return job


@case(HEALTHY)
def pipeline_completed():
    job = Job(4, form="json", version="2.10")
    pp = job.group("4", range(4), "pp")
    for r in job:
        for _ in range(5):
            if r.rank:
                r.recv(pp, r.rank - 1)
            if r.rank < 3:
                r.send(pp, r.rank + 1)
        r.coll(job.world, "all_reduce")
    return job


@case(HEALTHY)
def batches_completed():
    job = Job(4, version="2.4")
    for r in job:
        for _ in range(3):
            r.batch(job.world, [("send", (r.rank + 1) % 4), ("recv", (r.rank + 3) % 4)])
        r.coll(job.world, "all_reduce")
    return job


# ---- a second lot, written after all of the above were told right ----


@case(Expect(0), source="huggingface/open-r1#620")
def all_but_rank_0_in_a_broadcast():
    """Ranks 1 to 6 time out in the fourth broadcast of 112 elements; rank 0 serves a model."""
    job = Job(7, timeout_s=1800)
    for r in job:
        for k in range(4):
            if r.rank == 0 and k == 3:
                r.stop()
            r.coll(job.world, "broadcast", (112,), "Byte")
            r.wait()
    return job


@case(Expect(2, most="likely"), source="snowflakedb/ArcticTraining#219")
def far_ahead_of_the_device():
    """Hosts enqueue three calls more than the one they time out in."""
    job = Job(8, timeout_s=1800)
    job.buffer = 12
    for r in job:
        for k in range(49):
            if r.rank == 2 and k == 46:
                r.stop()
            r.coll(job.world, "_all_gather_base", (16384,), "BFloat16", out=(131072,))
    return job


@case(Expect(6), source="hiyouga/LlamaFactory#6269")
def a_reduce_scatter_of_fsdp():
    job = Job(8, version="2.4")
    fsdp = job.group("1", range(8), "fsdp")
    for r in job:
        r.coll(job.world, "broadcast", (4,), "Long")
        for k in range(6):
            r.coll(fsdp, "_all_gather_base", (512,), "BFloat16", out=(4096,))
            if r.rank == 6 and k == 5:
                r.stop()
            r.coll(fsdp, "_reduce_scatter_base", (4096,), "BFloat16", out=(512,))
    return job


@case(Expect(*(r for r in range(32) if r not in (12, 13)), most="likely"),
      source="NVIDIA/nccl#1911")
def two_of_thirty_two_are_ahead():
    job = Job(32)
    for r in job:
        for _ in range(4):
            r.coll(job.world, "_all_gather_base", (32,), out=(1024,))
            r.wait()
        if r.rank in (12, 13):
            r.coll(job.world, "_all_gather_base", (32,), out=(1024,))
    return job


@case(Expect(0, 1, most="likely", classes=("deadlock",)), source="NVIDIA/nccl#479")
def both_send_first():
    job = Job(2, version="2.3")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.send(job.world, 1 - r.rank)
        r.wait()
        r.recv(job.world, 1 - r.rank)
        r.wait()
    return job


@case(Expect(0, 1, most="likely", classes=("deadlock",)), source="pytorch/pytorch#172668")
def interleaved_stages_send_to_each_other():
    job = Job(2)
    pp = job.group("1", (0, 1), "pp")
    for r in job:
        for _ in range(2):
            if r.rank == 0:
                r.send(pp, 1)
                r.recv(pp, 1)
            else:
                r.recv(pp, 0)
                r.send(pp, 0)
        r.send(pp, 1 - r.rank, (300,))
        r.recv(pp, 1 - r.rank, (300,))
    return job


@case(Expect(1, most="likely"), source="pytorch/pytorch#108378")
def nobody_receives_the_send():
    job = Job(2)
    for r in job:
        r.coll(job.world, "all_reduce")
        if r.rank == 0:
            r.send(job.world, 1)
            r.wait()
        r.stop()
    return job


@case(Expect(3), source="sgl-project/sglang#1693")
def tensor_parallel_gather_of_logits():
    """A group beside the world with the same ranks. The world has a CPU twin, and no rank waits in it."""
    job = Job(8)
    tp = job.group("3", range(8), "tp")
    for r in job:
        for k in range(12):
            r.coll(tp, "all_reduce", (16, 8192), "BFloat16")
            r.coll(tp, "all_reduce", (16, 8192), "BFloat16")
            if r.rank == 3 and k == 10:
                r.stop()
            r.coll(tp, "_all_gather_base", (16, 1188), "BFloat16", out=(16, 9504))
            r.wait()
    return job


@case(Expect(3), source="pytorch/torchtitan#1092")
def three_dimensions():
    """dp 2 × tp 2 × pp 2, and rank 3 does not come to the reduction of its tensor group."""
    job = Job(8)
    tp = [job.group(str(1 + i), (2 * i, 2 * i + 1), "tp") for i in range(4)]
    dp = [job.group(str(5 + i), p, "dp") for i, p in enumerate([(0, 2), (1, 3), (4, 6), (5, 7)])]
    pp = [job.group(str(9 + i), (i, i + 4), "pp") for i in range(4)]
    for r in job:
        stage, line = r.rank // 4, r.rank % 4
        for k in range(3):
            if stage:
                r.recv(pp[line], r.rank - 4)
            if r.rank == 3 and k == 2:
                r.stop()
            r.coll(tp[r.rank // 2], "all_reduce", (2048, 64), "BFloat16")
            if not stage:
                r.send(pp[line], r.rank + 4)
            r.coll(dp[2 * stage + line % 2], "_reduce_scatter_base", (64,), out=(32,))
    return job


@case(Expect(1, 3, most="likely"), source="jpata/particleflow#390")
def two_leave_the_loop_early():
    """Their loaders have fewer batches: they wait at the barrier that comes after the epoch."""
    job = Job(4)
    for r in job:
        for k in range(5):
            if r.rank in (1, 3) and k == 4:
                break
            r.coll(job.world, "all_reduce", (4096,))
            r.wait()
    return job


@case(Expect(1, classes=("mismatch",)), source="jpata/particleflow#390")
def one_is_at_the_barrier_after_the_epoch():
    job = Job(4)
    for r in job:
        for k in range(5):
            if r.rank == 1 and k == 4:
                break
            r.coll(job.world, "all_reduce", (4096,))
            r.wait()
        r.coll(job.world, "all_reduce_barrier", (1,))
        r.wait()
    return job


@case(Expect(0, 1, 2, most="possible", classes=("mismatch",)))
def three_of_three_sizes():
    job = Job(3)
    for r in job:
        r.coll(job.world, "all_reduce", (100 + r.rank,))
    return job


@case(Expect(2, 5, 6, most="possible"))
def a_gpu_dies_in_three_neighbours():
    job = Job(8, timed=True)
    job.world.unfinished(4, {2, 5, 6})
    for r in job:
        for _ in range(6):
            r.coll(job.world, "_reduce_scatter_base", (8192,), out=(1024,))
    return job


@case(Expect(7, most="likely"))
def a_gpu_dies_on_the_last_chunk():
    job = Job(16, version="2.10", form="json")
    g = job.group("2", range(8, 16), "b")
    h = job.group("1", range(0, 8), "a")
    h.unfinished(2, {7})
    for r in job:
        for _ in range(4):
            r.coll(g if r.rank >= 8 else h, "all_reduce", (1 << 20,))
            r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(4))
def a_batch_lacks_a_receive():
    """Rank 4 posts its send to the next, and not its receive from the one before."""
    job = Job(6)
    cp = job.group("8", range(6), "cp")
    for r in job:
        for k in range(3):
            halves = [("send", (r.rank + 1) % 6), ("recv", (r.rank + 5) % 6)]
            if r.rank == 4 and k == 2:
                halves.pop()
            r.batch(cp, halves)
            r.wait()
    return job


@case(Expect(2, 3, most="certain"))
def sizes_in_a_batch_differ():
    job = Job(4)
    cp = job.group("8", range(4), "cp")
    for r in job:
        for k in range(3):
            size = (99,) if r.rank == 2 and k == 2 else (100,)
            r.batch(cp, [("send", (r.rank + 1) % 4, size), ("recv", (r.rank + 3) % 4, (100,))])
            r.wait()
    return job


@case(Expect(5, most="possible"))
def missing_dumps_of_which_one_matters():
    """Ranks 0 and 1 left no dump either. Only the world is a group of theirs with waiting ranks."""
    job = Job(8)
    g = job.group("2", range(4, 8), "b")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank in (0, 1):
            r.no_dump()
        if r.rank == 5:
            r.stop()
            r.no_dump()
        if r.rank >= 4:
            r.coll(g, "all_reduce")
            r.wait()
    return job


@case(Expect(0, 1, 2, 3, most="possible"))
def a_lost_node():
    """Its four ranks left no dumps."""
    job = Job(12)
    for r in job:
        for _ in range(2):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank < 4:
            r.stop()
            r.no_dump()
        r.coll(job.world, "_reduce_scatter_base", (1200,), out=(100,))
    return job


@case(Expect(2))
def the_root_of_a_reduce_does_not_come():
    job = Job(4)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank == 2:
            r.stop()
        r.coll(job.world, "reduce", root=2)
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(1, 2))
def two_leaves_of_a_scatter_do_not_come():
    job = Job(4)
    for r in job:
        for _ in range(3):
            r.coll(job.world, "all_reduce")
            r.wait()
        if r.rank in (1, 2):
            r.stop()
        r.coll(job.world, "scatter", (64,))
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(0), active=OPEN)
def the_root_scatters_nothing_v22():
    """No pg_status: who lists no active call may have done with this one."""
    job = Job(4, version="2.2")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 0:
            r.stop()
        r.coll(job.world, "scatter", (64,))
    return job


@case(Expect(4, most="likely"))
def overlapped_communication():
    """Several groups at once, none waits for another: rank 4 stops in the middle of a step."""
    job = Job(8)
    job.in_order = False
    a, b = job.group("1", range(8), "dp"), job.group("2", range(4, 8), "ep")
    for r in job:
        for k in range(6):
            r.coll(a, "_all_gather_base", (64,), out=(512,))
            if r.rank >= 4:
                r.coll(b, "all_to_all", (128,))
            if r.rank == 4 and k == 4:
                r.stop()
            r.coll(a, "_reduce_scatter_base", (512,), out=(64,))
    return job


@case(Expect(3, most="likely", classes=("deadlock",)))
def order_of_two_groups_in_eight():
    job = Job(8)
    a, b = job.group("1", range(8), "a"), job.group("2", range(8), "b")
    for r in job:
        for k in range(4):
            first, second = (b, a) if r.rank == 3 and k == 3 else (a, b)
            r.coll(first, "all_reduce", (10,))
            r.wait()
            r.coll(second, "all_reduce", (20,))
            r.wait()
    return job


@case(Expect(exits=(3,), most="possible"), zero=OPEN)
def asked_for_in_the_middle_of_a_healthy_run():
    """A dump on request: calls are two seconds old."""
    job = Job(4)
    job.asked_after_s = 2
    job.world.unfinished(6, range(4))
    for r in job:
        for _ in range(6):
            r.coll(job.world, "all_reduce")
    return job


@case(HEALTHY)
def batches_of_one_half_completed():
    """First and last stage of a pipeline: a batch of a single send, or receive."""
    job = Job(3)
    pp = job.group("2", range(3), "pp")
    for r in job:
        for _ in range(4):
            halves = [("recv", r.rank - 1)] if r.rank else []
            if halves:
                r.batch(pp, halves)
            if r.rank < 2:
                r.batch(pp, [("send", r.rank + 1)])
        r.wait()
    return job


@case(HEALTHY)
def a_world_that_nobody_uses():
    job = Job(4, form="json", version="2.5")
    a, b = job.group("1", (0, 1), "a"), job.group("2", (2, 3), "b")
    for r in job:
        for _ in range(3):
            r.coll(a if r.rank < 2 else b, "all_reduce")
    return job


@case(HEALTHY)
def unknown_calls_completed():
    job = Job(2, backend="ncclx", version="2.10")
    for r in job:
        r.coll(job.world, "new_window", (8,))
        r.coll(job.world, "reduce_scatter_v", (8 + r.rank,))
        r.coll(job.world, "all_to_all_v_single", (8 + r.rank,))
    return job


@case(Expect(1), source="meta-pytorch/torchcomms flight_recorder/README")
def names_of_torchcomms():
    job = Job(4, backend="ncclx", version="2.10", prefix="rank_", desc="world")
    for r in job:
        for _ in range(4):
            r.coll(job.world, "all_gather_single", (64,), out=(256,))
            r.coll(job.world, "reduce_scatter_single", (256,), out=(64,))
        if r.rank == 1:
            r.stop()
        r.coll(job.world, "all_gather_single", (64,), out=(256,))
    return job


@case(Expect(2))
def barrier_of_a_cpu_group():
    job = Job(4, backend="gloo", timeout_s=1800)
    cpu = job.group("1", range(4), "cpu")
    for r in job:
        r.coll(cpu, "broadcast", (20,), "Byte")
        r.wait()
        if r.rank == 2:
            r.stop()
        r.coll(cpu, "barrier", None)
    return job


@case(Expect(5))
def expert_parallel_all_to_all():
    job = Job(8)
    ep = [job.group("1", range(4), "ep"), job.group("2", range(4, 8), "ep")]
    for r in job:
        for k in range(4):
            r.coll(ep[r.rank // 4], "all_to_all", (100 + r.rank + k,), "BFloat16")
            if r.rank == 5 and k == 2:
                r.stop()
            r.coll(ep[r.rank // 4], "all_to_all", (100 + r.rank,), "BFloat16")
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(2))
def a_gather_of_objects():
    """all_gather_object: sizes first, then padded bytes; rank 2 has left after the sizes."""
    job = Job(4)
    for r in job:
        for k in range(3):
            r.coll(job.world, "all_gather", (1,), "Long", out=(4,))
            r.wait()
            if r.rank == 2 and k == 2:
                r.stop()
            r.coll(job.world, "all_gather", (220,), "Byte", out=(880,))
            r.wait()
    return job


@case(Expect(0, most="likely"), source="axolotl-ai-cloud/axolotl#3476")
def rank_0_alone_broadcasts_the_model():
    """Rank 0 loads the weights and sends fewer broadcasts than the others wait for."""
    job = Job(2)
    for r in job:
        for k in range(8):
            if r.rank == 0 and k == 5:
                r.stop()
            r.coll(job.world, "broadcast", (64 + k,))
    return job


# ---- a device that dies in the middle of a call, its neighbours in the ring ----


def ring_death(kind, sent, messages, rank=3, n=8, timed=False, version="2.9"):
    job = Job(n, timed=timed, version=version)
    ring = (0, 5, 2, 3, 7, 1, 4, 6)[:n]
    job.world.dies_in_ring(4, rank, sent, messages, ring)
    for r in job:
        for _ in range(7):
            r.coll(job.world, kind, (4096,), out=(4096,))
    return job


@case(Expect(3, most="likely", classes=("in_collective",)))
def dies_after_its_last_message():
    return ring_death("all_reduce", 14, 2)


@case(Expect(3, 7, most="possible", classes=("in_collective",)))
def dies_before_its_last_message():
    return ring_death("_all_gather_base", 6, 1, version="2.4")


@case(Expect(3, 7, 1, 4, most="possible", classes=("in_collective",)))
def dies_in_the_middle_of_an_all_reduce():
    return ring_death("all_reduce", 11, 2, timed=True)


@case(Expect(0, 1, 3, 4, 6, 7, most="possible", classes=("in_collective",)))
def dies_early_in_a_reduce_scatter():
    return ring_death("_reduce_scatter_base", 2, 1)


@case(OPEN)
def dies_before_its_first_message():
    return ring_death("all_reduce", 0, 2)


@case(Expect(5, most="likely", classes=("in_collective",)))
def dies_in_two_groups():
    """Another neighbour starves in either: the one they have in common is left in both."""
    job = Job(8)
    job.in_order = False
    a, b = job.group("1", range(8), "a"), job.group("2", (1, 3, 5, 7), "b")
    a.dies_in_ring(3, 5, 6, ring=(0, 2, 5, 4, 6, 1, 3, 7))
    b.dies_in_ring(2, 5, 1, ring=(1, 5, 7, 3))
    for r in job:
        for _ in range(4):
            r.coll(a, "_all_gather_base", out=(8192,))
            if r.rank % 2:
                r.coll(b, "_reduce_scatter_base", out=(256,))
    return job


# ---- what buffers lose, and numbers that count something else ----


@case(Expect(1))
def the_buffer_cuts_a_launch_in_two():
    """Of ranks 0, 2 and 3 it begins behind the first member of a coalesced launch."""
    job = Job(4, version="2.8")
    job.buffer = 5
    for r in job:
        if r.rank == 2:
            r.coalesced(job.group("1", (2,), "own"), "_all_gather_base", [(3,), (4,)])
        for _ in range(3):
            r.coalesced(job.world, "_reduce_scatter_base", [(4,), (5,)])
        if r.rank == 1:
            r.stop()
        r.coll(job.world, "all_reduce")
        if r.rank == 3:
            r.coll(job.world, "all_reduce")
    return job


@case(Expect(3))
def a_count_of_sends_is_not_one_of_collectives():
    """Rank 3 has sent twice on the world, and stops before the second all-reduce."""
    job = Job(4, timed=True, version="2.5")
    for r in job:
        for k in range(2):
            if r.rank == 0:
                r.send(job.world, 3)
            if r.rank == 3:
                r.recv(job.world, 0)
            if r.rank == 3 and k == 1:
                r.stop()
            r.coll(job.world, "all_reduce", (7,))
    return job


@case(Expect(3))
def batches_with_start_times():
    """A batch that has not started stands behind another call of its device."""
    job = Job(4, timed=True)
    cp, g = job.group("2", range(4), "cp"), job.group("1", (0, 3), "pair")
    for r in job:
        for k in range(3):
            r.coll(job.world, "broadcast", (5,), root=1)
            if r.rank in (0, 3):
                if r.rank == 3 and k == 2:
                    r.stop()
                r.coalesced(g, "_reduce_scatter_base", [(4,), (5,)])
            r.batch(cp, [("send", (r.rank + 1) % 4), ("recv", (r.rank + 3) % 4)])
    return job


# ---- pairs of which both halves are posted ----


@case(Expect(2))
def a_receive_behind_a_call_that_another_never_makes():
    """Rank 1 posts its receive behind a reduction of its tensor group, which rank 2 never enters."""
    job = Job(4)
    pp, tp = job.group("1", (0, 1), "pp"), job.group("2", (1, 2), "tp")
    dp = job.group("3", (0, 3), "dp")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 2:
            r.stop()
        if r.rank in (1, 2):
            r.coll(tp, "all_reduce", (64,))
        if r.rank == 0:
            r.send(pp, 1)
        if r.rank == 1:
            r.recv(pp, 0)
        if r.rank in (0, 3):
            r.coll(dp, "all_reduce", (32,))
    return job


@case(Expect(0, 1, most="possible"))
def a_device_dies_in_a_message():
    """The device of rank 1 dies in its receive: nothing tells it from a device that never sends."""
    job = Job(4, timed=True)
    pp = job.group("1", (0, 1), "pp")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 0:
            r.send(pp, 1)
        if r.rank == 1:
            r.gpu_dies()
            r.recv(pp, 0)
        r.coll(job.world, "all_reduce")
    return job


@case(Expect(3))
def messages_behind_messages_behind_a_call():
    """0 sends to 1, which receives from 2 before; 2 reduces with 3 before that, and 3 stops."""
    job = Job(4, version="2.5")
    a, b = job.group("1", (0, 1), "a"), job.group("2", (1, 2), "b")
    tp = job.group("3", (2, 3), "tp")
    for r in job:
        r.coll(job.world, "broadcast", (8,))
        r.wait()
        if r.rank == 3:
            r.stop()
        if r.rank in (2, 3):
            r.coll(tp, "all_reduce", (64,))
        if r.rank == 2:
            r.send(b, 1)
        if r.rank == 1:
            r.recv(b, 2)
            r.recv(a, 0)
        if r.rank == 0:
            r.send(a, 1)
    return job


@case(Expect(exits=(2, 3), classes=("in_collective", "unknown")))
def a_message_behind_a_call_that_does_not_end():
    """The reduction of ranks 1 and 2 stands; the sender that rank 1 keeps waiting is healthy."""
    job = Job(4, timed=True, version="2.10")
    pp, tp = job.group("1", (0, 1), "pp"), job.group("2", (1, 2), "tp")
    dp = job.group("3", (0, 3), "dp")
    tp.unfinished(1, (1, 2))
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank in (1, 2):
            r.coll(tp, "all_reduce", (64,))
        if r.rank == 0:
            r.send(pp, 1)
        if r.rank == 1:
            r.recv(pp, 0)
        if r.rank in (0, 3):
            r.coll(dp, "all_reduce", (32,))
    return job


@case(Expect(1, 2, most="possible"))
def a_healthy_sender_behind_a_device_that_dies_in_another_message():
    """Rank 1 receives from 2 before it receives from 0, for which rank 4 has waited longest."""
    job = Job(6, version="2.7")
    a, b = job.group("1", (0, 1), "a"), job.group("2", (1, 2), "b")
    dp = job.group("3", (0, 4), "dp"), job.group("4", (2, 5), "dp")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 2:
            r.gpu_dies()
            r.send(b, 1)
        if r.rank == 1:
            r.recv(b, 2)
            r.recv(a, 0)
        if r.rank == 0:
            r.send(a, 1)
        for group in dp:
            if r.rank in group.ranks:
                r.coll(group, "all_reduce", (32,))
    return job


# ---- several devices that die ----


@case(Expect(2, 6, most="possible"))
def a_device_dies_in_each_of_two_groups():
    job = Job(8)
    a, b = job.group("1", range(4), "a"), job.group("2", range(4, 8), "b")
    a.unfinished(3, {2})
    b.unfinished(3, {6})
    for r in job:
        for _ in range(4):
            r.coll(a if r.rank < 4 else b, "all_reduce", (64,))
        r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(1, 12, most="possible"))
def two_devices_in_three_groups():
    """Rank 1 is left in two groups, each time with another neighbour; rank 12 in a third."""
    job = Job(16, timed=True)
    job.in_order = False
    a, b = job.group("1", range(8), "a"), job.group("2", (1, 9, 10, 11), "b")
    c = job.group("3", range(12, 16), "c")
    a.unfinished(2, {1, 2})
    b.unfinished(2, {1, 9})
    c.unfinished(2, {12})
    for r in job:
        for _ in range(3):
            for g in (a, b, c):
                if r.rank in g.ranks:
                    r.coll(g, "_all_gather_base", out=(512,))
        r.wait()
        r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(2, 3, 9, 10, most="possible"))
def two_devices_and_their_neighbours():
    job = Job(12, version="2.4")
    a, b = job.group("1", range(6), "a"), job.group("2", range(6, 12), "b")
    a.unfinished(4, {2, 3})
    b.unfinished(4, {9, 10})
    for r in job:
        for _ in range(5):
            r.coll(a if r.rank < 6 else b, "_reduce_scatter_base", (600,), out=(100,))
        r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(1, 2, 3, 4, most="possible"))
def a_chain_of_groups_that_two_devices_explain():
    """Left are 1 and 2, 2 and 3, 3 and 4: any two of them that meet all three would do."""
    job = Job(6)
    job.in_order = False
    groups = [job.group(str(k), range(6), "g%d" % k) for k in (1, 2, 3)]
    for k, g in enumerate(groups):
        g.unfinished(2, {k + 1, k + 2})
    for r in job:
        for _ in range(2):
            for g in groups:
                r.coll(g, "all_reduce", (8,))
        r.wait()
        r.coll(job.world, "all_reduce", (1,))
    return job


# ---- a recorder that lags ----


@case(Expect(2))
def the_one_that_stops_has_noted_no_end_of_late():
    """Its watchdog is held up with it: its last four calls look open, though others completed."""
    job = Job(4)
    for r in job:
        for k in range(12):
            if r.rank == 2 and k == 10:
                r.stop()
                r.notes_no_end_of(4)
            r.coll(job.world, "all_reduce", (16 + k,))
            r.wait()
    return job


@case(Expect(0))
def the_first_stops_and_its_watchdog_before():
    job = Job(8, form="json", version="2.5")
    g = job.group("1", range(0, 8, 2), "even")
    for r in job:
        for k in range(8):
            r.coll(job.world, "_all_gather_base", out=(8192,))
            if r.rank == 0 and k == 7:
                r.stop()
                r.notes_no_end_of(5)
            if r.rank % 2 == 0:
                r.coll(g, "all_reduce", (64,))
            r.wait()
    return job


@case(Expect(5))
def the_slowest_of_its_node_is_not_dumped_early():
    job = Job(6, version="2.10", timed=True)
    for r in job:
        for k in range(20):
            if r.rank == 5 and k == 17:
                r.stop()
                r.notes_no_end_of(6)
            r.coll(job.world, "_reduce_scatter_base", (600,), out=(100,))
    return job


# ---- messages that lists of open calls lack ----


@case(Expect(2, most="likely"), active=Expect(1, 2, most="possible"))
def a_device_dies_after_the_send_of_its_neighbour():
    """Rank 1 has done its send, and waits with the others for rank 2."""
    job = Job(4)
    pp = job.group("5", range(4), "pp")
    for r in job:
        r.coll(job.world, "all_reduce")
        r.wait()
        if r.rank == 1:
            r.send(pp, 2, eager=True)
        if r.rank == 2:
            r.gpu_dies()
            r.recv(pp, 1)
        r.coll(job.world, "all_reduce", (64,))
    return job


@case(Expect(2, most="likely"), active=Expect(1, 2, most="possible"))
def a_stage_dies_in_its_third_receive():
    """Sends fit into buffers: of stage 1 and its peer, lists of open calls show the peer only."""
    job = Job(4, version="2.5")
    pp, dp = job.group("5", range(4), "pp"), job.group("6", (1, 2), "dp")
    for r in job:
        for k in range(3):
            if r.rank:
                if r.rank == 2 and k == 2:
                    r.gpu_dies()
                r.recv(pp, r.rank - 1)
                r.wait()
            if r.rank < 3:
                r.send(pp, r.rank + 1, eager=True)
        if r.rank in (1, 2):
            r.coll(dp, "all_reduce", (64,))
    return job


@case(Expect(3, most="likely"), active=Expect(0, 3, most="possible"))
def a_device_dies_in_a_receive_of_the_first_from_the_last():
    """Rank 0 has sent the loss and waits in the next step's broadcast, as all others do."""
    job = Job(4, form="json", version="2.10")
    pp = job.group("2", (0, 3), "embedding")
    for r in job:
        for k in range(2):
            r.coll(job.world, "all_reduce", (4,))
            r.wait()
            if r.rank == 0:
                r.send(pp, 3, eager=True)
            if r.rank == 3:
                if k:
                    r.gpu_dies()
                r.recv(pp, 0)
                r.wait()
        r.coll(job.world, "all_reduce", (1,))
    return job


@case(Expect(3))
def another_than_the_one_that_stops_has_noted_no_end_of_late():
    job = Job(4)
    for r in job:
        for k in range(12):
            if r.rank == 3 and k == 10:
                r.stop()
            r.coll(job.world, "all_reduce", (16 + k,))
            r.wait()
        if r.rank == 1:
            r.notes_no_end_of(6)
    return job
