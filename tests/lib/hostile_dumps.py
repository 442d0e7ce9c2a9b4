# SPDX-License-Identifier: Apache-2.0
"""Flight Recorder dumps that are made to be costly to read. A pickle refers to a value that it has memoized with two
bytes, so that a small file can repeat a large value 100,000 times. Each shape takes about a size in bytes."""

import json
import struct

# Of entries; the reader refuses more.
MOST_ENTRIES = 131000
MOST_GROUPS = 65000


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def number(n):
    return b"J" + struct.pack("<i", n)


def pairs(*items):
    """A dict of keys and values, each of them pickled."""
    return b"}(" + b"".join(items) + b"u"


def row(*items):
    return b"](" + b"".join(items) + b"e"


def get(place):
    return b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place)


def memoize(*values):
    """Values under the places from 1 on."""
    return b"".join(v + b"r" + struct.pack("<I", i) + b"0" for i, v in enumerate(values, 1))


def dump(entries, groups=b"}", statuses=b"}", memo=b""):
    return b"\x80\x02" + memo + pairs(text("version"), text("2.9"), text("entries"), entries, text("pg_config"), groups,
                                     text("pg_status"), statuses) + b"."


def entry(*more, group=text("0"), name=text("nccl:all_reduce"), seq=1):
    return pairs(text("collective_seq_id"), number(seq), text("process_group"), row(group), text("profiling_name"), name,
                 *more)


def repeated(place, size):
    return b"](" + get(place) * min(size // 2, MOST_ENTRIES) + b"e"


def ranks_of(n):
    return pairs(text("ranks"), text("[" + ",".join(map(str, range(n))) + "]"))


def large_dict_in_each_entry(size):
    keys = b"".join(text(f"k{i:06d}") + b"N" for i in range(size // 2 // 13))
    return dump(repeated(1, size // 2), memo=memoize(b"}(" + keys + b"u"))


def large_dict_that_is_an_entry(size):
    keys = [text(f"k{i:06d}") + b"N" for i in range(size // 2 // 13)]
    return dump(repeated(1, size // 2), memo=memoize(entry(*keys)))


def large_dict_in_each_group(size):
    keys = b"".join(text(f"k{i:06d}") + b"N" for i in range(size // 2 // 13))
    groups = [text(f"g{i:06d}") + get(1) for i in range(min(size // 2 // 14, MOST_GROUPS))]
    return dump(b"]", pairs(*groups), memo=memoize(b"}(" + keys + b"u"))


def status_of_each_group(size):
    n = min(size // 160, MOST_GROUPS)
    return json.dumps({
        "version": "2.9",
        "entries": [{"collective_seq_id": 1, "process_group": [f"g{i}"], "pg_id": i + 1,
                     "profiling_name": "nccl:all_reduce"} for i in range(n)],
        "pg_config": {f"g{i}": {"ranks": "[0,1]"} for i in range(n)},
        "pg_status": {str(i + 1): {"last_enqueued_collective": 2, "last_completed_collective": 1} for i in range(n)},
    }).encode()


def long_list_of_sizes_in_each_entry(size):
    shape = row(row(b"K\1" * (size // 2 // 2)))
    return dump(repeated(3, size // 2), memo=memoize(
        shape, row(text("Float")), entry(text("input_sizes"), get(1), text("input_dtypes"), get(2))))


def long_name_in_each_entry(size):
    return dump(repeated(2, size // 2), pairs(get(1), ranks_of(1)),
                memo=memoize(text("x" * (size // 2)), entry(group=get(1))))


def long_name_of_each_group(size):
    return dump(b"]", pairs(*[get(1) + get(2)] * min(size // 2 // 4, MOST_GROUPS)),
                memo=memoize(text("x" * (size // 2)), ranks_of(1)))


def unlisted_groups_that_begin_alike(size):
    long = "y" * min(900, size // 2 // 300)
    entries = [entry(group=text(f"{long}{i:03d}")) for i in range(250)]
    n = min(size // 4, MOST_ENTRIES)
    return dump(row(*[get(1 + i % 250) for i in range(n)]), memo=memoize(*entries))


def groups_without_members(size):
    n = min(size // 36, MOST_GROUPS // 2)
    return dump(b"]", pairs(*[text(f"a{i:06d}") + get(1) for i in range(n)], *[text(f"b{i:06d}") + get(2) for i in range(n)]),
                memo=memoize(ranks_of(2), pairs(text("desc"), text("x"))))


def one_name_for_all_groups(size):
    n = min(size // 60, MOST_GROUPS // 2)
    return dump(b"]", pairs(*[text("a") + ranks_of(2) for _ in range(n)], *[text("a") + get(1) for _ in range(n)]),
                memo=memoize(pairs(text("desc"), text("x"))))


def many_ranks(size):
    return dump(b"]", pairs(text("a"), ranks_of(size // 7)))


def many_ranks_in_each_group(size):
    groups = [text(f"a{i:06d}") + get(1) for i in range(min(size // 2 // 14, MOST_GROUPS))]
    return dump(b"]", pairs(*groups), memo=memoize(ranks_of(size // 2 // 7)))


def a_peer_for_each_message(size):
    n = min(size // 48, MOST_GROUPS)
    keys = memoize(*map(text, ("collective_seq_id", "process_group", "0", "profiling_name")))
    sends = [pairs(get(1), b"K\1", get(2), get(3), get(4), text(f"send 0->{i}")) for i in range(n)]
    return dump(row(*sends), pairs(text("0"), ranks_of(n)), memo=keys)


def frames_of_each_entry(size):
    frames = row(*[pairs(text("line"), number(i), text("filename"), text("f" * 190), text("name"), text("n" * 90))
                   for i in range(40)])
    return dump(repeated(2, size // 16), memo=memoize(frames, entry(text("frames"), get(1))))


def ends_of_coalesced_groups(size):
    n = min(size // 8, MOST_ENTRIES)
    return dump(row(*[get(2)] * (n // 2), *[get(1)] * (n // 2)),
                memo=memoize(entry(name=text("nccl:coalesced")), entry(group=text("1"))))


def deep_lists(size):
    return b"\x80\x02" + b"]" * (size // 2) + b"a" * (size // 2) + b"."


def deep_json(size):
    return b'{"version":"2.9","entries":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"


def many_numbers(size):
    return dump(row(b"K\1" * (size // 2)))


def memo_places(size):
    return b"\x80\x02" + memoize(*[b"N"] * (size // 7)) + b"N."


def ordinary(size):
    keys = memoize(*map(text, ("collective_seq_id", "process_group", "0", "profiling_name", "nccl:all_reduce")))
    entries = [pairs(get(1), number(i + 1), get(2), get(3), get(4), get(5)) for i in range(min(size // 30, MOST_ENTRIES))]
    return dump(row(*entries), pairs(text("0"), ranks_of(2)), memo=keys)


SHAPES = [
    large_dict_in_each_entry, large_dict_that_is_an_entry, large_dict_in_each_group, status_of_each_group,
    long_list_of_sizes_in_each_entry, long_name_in_each_entry, long_name_of_each_group,
    unlisted_groups_that_begin_alike, groups_without_members, one_name_for_all_groups, many_ranks,
    many_ranks_in_each_group, a_peer_for_each_message, frames_of_each_entry, ends_of_coalesced_groups, deep_lists,
    deep_json, many_numbers, memo_places, ordinary,
]
