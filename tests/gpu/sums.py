# SPDX-License-Identifier: Apache-2.0
"""Numbers of a tensor by their definition, in exact fractions, and whether a program that sums tensors
up (tests/gpu/sums.h) agrees. Shares no code with it: formats, order of words and checksum are written
down here a second time."""

import math
import random
import struct
import subprocess
from fractions import Fraction

INT8, UINT8, INT32, UINT32, INT64, UINT64, FP16, FP32, FP64, BF16, E4M3, E5M2 = range(12)
NAMES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "fp16", "fp32", "fp64", "bf16", "e4m3",
         "e5m2"]
BYTES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1]
SIGNED = (INT8, INT32, INT64)
# bits of the exponent, of the mantissa, and whether the highest exponent means infinity and NaN
FLOATS = {FP16: (5, 10, True), FP32: (8, 23, True), FP64: (11, 52, True), BF16: (8, 7, True),
          E4M3: (4, 3, False), E5M2: (5, 2, True)}
AT_END = 2**64 - 1
CHUNK = 512
CASE = struct.Struct("=QQQQQII")
SUMMARY = struct.Struct("=QQQIIBBBBIQQQQQddddQIHH")
TOLD = struct.Struct("=ddddd")
TOLD_FIELDS = ["low", "high", "least", "mean", "norm"]
RESULT_BYTES = 2 * SUMMARY.size + TOLD.size
FIELDS = ["publish", "op_index", "seq", "comm", "comm_generation", "kind", "dtype", "is_output", "stride",
          "device_ns", "elements", "offered", "nans", "infs", "zeros", "abs_max", "abs_min", "mean", "l2",
          "checksum", "step", "at_limit", "denormal"]
LARGEST = Fraction(struct.unpack("<d", bytes.fromhex("ffffffffffffef7f"))[0])
MASK = 2**64 - 1


class Case:
    """data is the tensor, or, where it has fewer bytes, comes again and again."""

    def __init__(self, dtype, data, *, elements=None, stride=1, first=0, offset=0, blocks=1, what=""):
        self.dtype, self.data, self.offset, self.blocks = dtype, bytes(data), offset, blocks
        self.elements = len(data) // BYTES[dtype] if elements is None else elements
        self.stride, self.first = CHUNK * stride, CHUNK * first
        self.name = f"{NAMES[dtype]} x {self.elements} {what}".strip()

    def bytes(self):
        return CASE.pack(self.elements, self.stride, self.first, len(self.data), self.offset, self.blocks,
                         self.dtype) + self.data


def scale_of(dtype):
    """Every number of the format is a whole one of these: 2 ** -scale."""
    if dtype not in FLOATS:
        return 0
    exponent_bits, mantissa_bits, _ = FLOATS[dtype]
    return 2 ** (exponent_bits - 1) - 2 + mantissa_bits


def decode(bits, dtype):
    """As a whole number of 2 ** -scale; "nan", "inf"."""
    if dtype not in FLOATS:
        width = 8 * BYTES[dtype]
        return bits - 2**width if dtype in SIGNED and bits >> (width - 1) else bits
    exponent_bits, mantissa_bits, has_inf = FLOATS[dtype]
    mantissa = bits % 2**mantissa_bits
    exponent = bits // 2**mantissa_bits % 2**exponent_bits
    sign = -1 if bits // 2 ** (mantissa_bits + exponent_bits) else 1
    if exponent == 2**exponent_bits - 1:
        if has_inf:
            return "nan" if mantissa else "inf"
        if mantissa == 2**mantissa_bits - 1:
            return "nan"
    if exponent == 0:
        return sign * mantissa
    return sign * (mantissa + 2**mantissa_bits) * 2 ** (exponent - 1)


def mix(word, position):
    x = word ^ ((position + 1) * 0x9E3779B97F4A7C15 & MASK)
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


class Numbers:
    """Sums over elements, exact."""

    def __init__(self, dtype):
        self.dtype, self.scale = dtype, scale_of(dtype)
        self.elements = self.nans = self.infs = self.zeros = self.checksum = 0
        self.at_limit = self.denormals = self.negative_infs = 0
        if dtype in FLOATS:
            exponent_bits, mantissa_bits, has_inf = FLOATS[dtype]
            # all bits of a magnitude are ones in the last NaN; below it the largest number lies
            largest = 2 ** (exponent_bits + mantissa_bits) - (1 + 2**mantissa_bits if has_inf else 2)
            self.largest, self.least_normal = decode(largest, dtype), 2**mantissa_bits
        self.total = self.absolute = self.squares = self.max = self.min = 0

    def add(self, bits, times=1):
        value = decode(bits, self.dtype)
        self.elements += times
        if value == "nan":
            self.nans += times
        elif value == "inf":
            self.infs += times
            self.negative_infs += times * (bits >> (8 * BYTES[self.dtype] - 1))
        elif value == 0:
            self.zeros += times
        else:
            size = abs(value)
            self.total += value * times
            self.absolute += size * times
            self.squares += size * size * times
            self.max = max(self.max, size)
            self.min = min(self.min, size) if self.min else size
            if self.dtype in FLOATS:
                self.at_limit += times * (size == self.largest)
                self.denormals += times * (size < self.least_normal)

    def real(self, whole):
        return Fraction(whole, 2**self.scale)


def chosen(case):
    """Positions of the words that are looked at, by the definition: one chunk of each stride."""
    words = -(-case.elements * BYTES[case.dtype] // 8)
    for begin in range(case.first, words, case.stride):
        yield from range(begin, min(begin + CHUNK, words))


def exact(case):
    size, total_bytes = BYTES[case.dtype], case.elements * BYTES[case.dtype]
    numbers, counts = Numbers(case.dtype), {}
    for position in chosen(case):
        begin = position * 8
        n = min(8, total_bytes - begin)
        at = begin % len(case.data)
        word = case.data[at:at + n]
        numbers.checksum = numbers.checksum + mix(int.from_bytes(word, "little"), position) & MASK
        for i in range(0, n, size):
            counts[word[i:i + size]] = counts.get(word[i:i + size], 0) + 1
    for element, times in counts.items():
        numbers.add(int.from_bytes(element, "little"), times)
    return numbers


def shown(value):
    try:
        return repr(float(value))
    except OverflowError:
        return "one beyond a double"


def share(n, elements):
    """The upper half of a single, cut off."""
    return struct.unpack("<I", struct.pack("<f", n / elements if elements else 0))[0] >> 16


def judge(case, want, got):
    """Errors of one summary; want is exact."""
    finite = want.elements - want.nans - want.infs
    error = Fraction(1e-12 * math.sqrt(max(want.elements, 1)))
    least = Fraction(2) ** -1073  # a quotient in the denormals is rounded, too
    for field in ("elements", "nans", "infs", "zeros", "checksum"):
        if got[field] != getattr(want, field):
            yield f"{field} is {got[field]}, not {getattr(want, field)}"
    for field, value in (("at_limit", want.at_limit), ("denormal", want.denormals)):
        if got[field] != share(value, want.elements):
            yield f"{field} is {got[field]:#x}, not {share(value, want.elements):#x}"
    for field, value in (("abs_max", want.max), ("abs_min", want.min)):
        if got[field] != float(want.real(value)):
            yield f"{field} is {got[field]!r}, not {float(want.real(value))!r}"
    absolute, squares = want.real(want.absolute), want.real(want.real(want.squares))
    if math.isnan(got["mean"]):
        if absolute < LARGEST:
            yield "mean is said to be out of range"
    elif not math.isfinite(got["mean"]):
        yield f"mean is {got['mean']!r}"
    elif finite:
        if abs(Fraction(got["mean"]) * finite - want.real(want.total)) > error * absolute + least * finite:
            yield f"mean is {got['mean']!r}, not {shown(want.real(want.total) / finite)}"
    elif got["mean"] != 0:
        yield f"mean of nothing is {got['mean']!r}"
    if math.isnan(got["l2"]):
        if squares < LARGEST * (1 - error) and want.real(want.max) >= Fraction(2) ** -500:
            yield "l2 is said to be out of range"
    elif not math.isfinite(got["l2"]):
        yield f"l2 is {got['l2']!r}"
    elif abs(Fraction(got["l2"]) ** 2 - squares) > 2 * error * squares:
        yield f"l2 is {got['l2']!r}, not the root of {shown(squares)}"
    if got["offered"] != case.elements:
        yield f"offered is {got['offered']}, not {case.elements}"


def judge_told(want, out, told):
    """Errors of the values that a program gets, beside the summary of the same tensor; mean and
    norm of finite numbers are the same."""
    nan, above = want.nans > 0, want.infs - want.negative_infs
    most, least = float(want.real(want.max)), float(want.real(want.min))
    both = above and want.negative_infs
    for field, value in (
            ("low", math.nan if nan else -math.inf if want.negative_infs else -most),
            ("high", math.nan if nan else math.inf if above else most),
            ("least", least or math.inf),
            ("mean", math.nan if nan or both else math.inf if above else -math.inf if want.infs else out["mean"]),
            ("norm", math.nan if nan else math.inf if want.infs else out["l2"])):
        got = told[field]
        if got != value and not (math.isnan(got) and math.isnan(value)):
            yield f"{field} is told as {got!r}, not {value!r}"


def faults(case, want, number, out, first, told):
    """Errors of one result; its case was the number-th."""
    yield from judge(case, want, out)
    yield from judge_told(want, out, told)
    for field, value in (("publish", number), ("op_index", 3 * number), ("seq", 5 * number), ("comm", 7),
                         ("comm_generation", 9), ("kind", 1), ("dtype", case.dtype),
                         ("is_output", number % 2), ("stride", number % 31), ("step", 11 * number)):
        if out[field] != value:
            yield f"{field} is {out[field]}, not {value}"
    if not want.nans + want.infs:
        if first["publish"]:
            yield "it is kept as the first with NaN or infinity, and has none"
    elif list(map(repr, first.values())) != list(map(repr, out.values())):
        yield "it is the first with NaN or infinity, and is not kept as such"


class Program:
    """A program that sums up; engines: names of its answers for each case, in this order."""

    def __init__(self, command, engines, env=None):
        self.engines, self.number = engines, 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, case):
        """{engine: (out, first, told)}"""
        self.number += 1
        answers = {}
        try:
            self.process.stdin.write(case.bytes())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer tells
        for engine in self.engines:
            raw = self.process.stdout.read(RESULT_BYTES)
            if len(raw) != RESULT_BYTES:
                raise EOFError(f"the program ended with {self.process.wait()} at case {case.name}")
            answers[engine] = (*(dict(zip(FIELDS, SUMMARY.unpack_from(raw, i * SUMMARY.size))) for i in range(2)),
                               dict(zip(TOLD_FIELDS, TOLD.unpack_from(raw, 2 * SUMMARY.size))))
        return answers

    def check(self, case, want=None):
        """[what is wrong]"""
        want = want or exact(case)
        return [f"{case.name}: {engine}: {fault}" for engine, result in self.ask(case).items()
                for fault in faults(case, want, self.number, *result)]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


# ---- cases ----

SPECIAL = {
    FP32: [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
           0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FBFFFFF, 0xFFFFFFFF, 0x7FC12345, 0x3F800000],
    FP64: [0, 1 << 63, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
           0x7FF0000000000001, 0x7FF7FFFFFFFFFFFF, 0x7FF8000000000000, 0xFFFFFFFFFFFFFFFF,
           0x7FF8DEADBEEF0000, 0x7FF0000100000000, 0x10000000000000, 0xFFFFFFFFFFFFF, 1],
    INT32: [0, 1, 2**31 - 1, 2**31, 2**32 - 1], UINT32: [0, 1, 2**31, 2**32 - 1],
    INT64: [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**53 + 1, 2**64 - 2**53 - 1],
    UINT64: [0, 1, 2**63, 2**64 - 1, 2**53 + 1],
}
SIZES = [0, 1, 3, 4, 7, 8, 9, 513, 4099]


def pack(dtype, values):
    return b"".join(v.to_bytes(BYTES[dtype], "little") for v in values)


def doubles(*values):
    return struct.pack(f"<{len(values)}d", *values)


def ordinary(draw, dtype, n):
    """Mostly numbers of middling size: where the sums are exact to many digits, not all NaN."""
    if dtype not in FLOATS:
        return draw.randbytes(n * BYTES[dtype])
    exponent_bits, mantissa_bits, _ = FLOATS[dtype]
    middle = 2 ** (exponent_bits - 1) - 1
    return pack(dtype, ((draw.getrandbits(1) << exponent_bits | middle - draw.randrange(min(6, middle)))
                        << mantissa_bits | draw.getrandbits(mantissa_bits) for _ in range(n)))


def formats(draw):
    """Every number of the small formats, the odd ones of the large."""
    for dtype in range(12):
        width = 8 * BYTES[dtype]
        if width <= 16:
            yield Case(dtype, pack(dtype, range(2**width)), blocks=2, what="every number")
            for bits in range(0, 2**width, 2 ** (width - 4)):
                yield Case(dtype, pack(dtype, range(bits, bits + 5)), what=f"from {bits:#x}")
            continue
        for bits in SPECIAL[dtype]:
            yield Case(dtype, pack(dtype, [bits]), what=f"alone {bits:#x}")
        mixed = SPECIAL[dtype] * 70
        draw.shuffle(mixed)
        yield Case(dtype, pack(dtype, mixed), what="odd ones")
        yield Case(dtype, draw.randbytes(3001 * BYTES[dtype]), blocks=2, what="any bits")


def sizes(draw):
    for dtype in range(12):
        for n in SIZES:
            data = ordinary(draw, dtype, n)
            yield Case(dtype, data, what="from a page on")
            yield Case(dtype, data, offset=AT_END, what="up to a page's end")
            yield Case(dtype, data, offset=BYTES[dtype], what="beside a word")


def launches(draw):
    for blocks in (1, 2, 3, 17, 129, 257, 512):
        data = ordinary(draw, BF16, 9001)
        yield Case(BF16, data, blocks=blocks, offset=AT_END, what=f"in {blocks} blocks")
    for stride in (2, 3, 7):
        for n in (2048, 4096 * stride + 5, 9 * 2048 * stride - 3):
            for first in (0, 1, stride - 1):
                yield Case(FP16, ordinary(draw, FP16, n), stride=stride, first=first, blocks=2,
                           what=f"one in {stride} from {first} on")


def extremes(draw):
    """Where sums of doubles come to an end."""
    yield Case(FP64, doubles(1e308, 1e308, -1e308, -1e308), what="sum out of range on the way")
    yield Case(FP64, doubles(*[1.7e308] * 64), what="sum out of range")
    yield Case(FP64, doubles(1e200, 3.0), what="squares out of range")
    yield Case(FP64, doubles(1e-200, 3e-250, -5e-324), what="squares too small")
    yield Case(FP64, doubles(2.0**-500, 1e-200), what="squares just in range")
    yield Case(FP64, doubles(5e-324, 5e-324, 0.0), what="denormals")
    yield Case(FP64, doubles(*[0.1] * 30011), blocks=2, what="equal ones")
    yield Case(FP64, doubles(1e16, 1.0, -1e16), what="that cancel")
    # a page's worth again and again, past 31 and 32 bits of bytes, words and elements
    for dtype, elements in ((UINT8, 2**31 + 5), (E4M3, 2**33 + 1), (FP16, 2**32 + 3), (BF16, 2**31 - 1),
                            (FP32, 2**31 + 1), (FP64, 2**31 + 1), (INT64, 2**32 + 2**29 + 1)):
        data = ordinary(draw, dtype, 2**14 // BYTES[dtype]) * 2**7
        words = elements * BYTES[dtype] // 8
        yield Case(dtype, data, elements=elements, stride=words // (CHUNK * 24), blocks=3, what="sampled")


def quick(seed=1):
    draw = random.Random(seed)
    for group in (formats, sizes, launches, extremes):
        yield from group(draw)
