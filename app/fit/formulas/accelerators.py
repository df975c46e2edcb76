"""GPUs of published training rates: recognized by a peak, where an estimate is asked for without the name of a GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from app.fit.formulas.training_speed import PEAK_RATIOS, PRECISION_DTYPES, Accelerator, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGpu:
    """A GPU: dense peaks by type (TFLOP/s), bandwidth (GB/s), compute capability and GPUs of an NVLink domain."""

    name: str
    peaks: Mapping[str, float]
    bandwidth_gb_per_s: float
    capability: str
    domain_gpus: int

    def accelerator(self, precision: Precision) -> Accelerator:
        """Return what counts for the speed of training in a precision that it has."""
        dtype = PRECISION_DTYPES[precision]
        return Accelerator(
            matrix_peak=self.peaks[dtype] * 1e12,
            peak_16_bits=self.peaks["bf16"] * 1e12,
            bandwidth=self.bandwidth_gb_per_s * 1e9,
            domain_gpus=self.domain_gpus,
            four_bits=dtype == "fp4",
            capabilities=(self.capability,),
        )


def _gpu(name: str, capability: str, bandwidth: float, domain: int, **peaks: float) -> KnownGpu:
    eight_bits = {"mxfp8": peaks["fp8"]} if "fp8" in peaks and "fp4" in peaks else {}
    return KnownGpu(
        name=name, peaks=peaks | eight_bits, bandwidth_gb_per_s=bandwidth, capability=capability, domain_gpus=domain
    )


KNOWN_GPUS: tuple[KnownGpu, ...] = (
    _gpu("A100", "8.0", 2039, 8, bf16=312),
    _gpu("H100", "9.0", 3350, 8, bf16=989, fp8=1979),
    _gpu("B200", "10.0", 8000, 8, bf16=2250, fp8=4500, fp4=9000),
    _gpu("B300", "10.3", 8000, 8, bf16=2250, fp8=4500, fp4=13_500),
    _gpu("GB200", "10.0", 8000, 72, bf16=2500, fp8=5000, fp4=10_000),
    _gpu("GB300", "10.3", 8000, 72, bf16=2500, fp8=5000, fp4=15_000),
)
"""Dense peaks, as on NVIDIA's pages on DGX A100, H100, B200, B300 and GB200 and GB300 NVL72. MXFP8 has the peak of FP8
and needs the block scaling of Blackwell.
"""

PEAK_TOLERANCE = 0.02
"""How far a peak may be from that of a known GPU: sources round it."""

USUAL_BYTES_PER_FLOP = 3.39e-3
"""Bytes of memory traffic per FLOP in 16 bits: 3.35 TB/s and 989 TFLOP/s on H100, and as much on B200."""

USUAL_DOMAIN = 8
"""GPUs of a server that NVLink joins."""


def find_gpus(peak_tflops: float, dtype: str) -> tuple[KnownGpu, ...]:
    """Return the known GPUs that have this dense peak in a type."""
    return tuple(
        gpu for gpu in KNOWN_GPUS if dtype in gpu.peaks and abs(peak_tflops / gpu.peaks[dtype] - 1) <= PEAK_TOLERANCE
    )


def precision_of(peak_tflops: float) -> tuple[Precision, KnownGpu] | None:
    """Return the precision with more than 16 bits' speed whose peak this is, and a GPU that has it; else None.

    A peak that is also one of 16 bits is taken for that.
    """
    precisions: tuple[Precision, ...] = ("fp8", "nvfp4")
    if find_gpus(peak_tflops, "bf16"):
        return None
    for precision in precisions:
        for gpu in find_gpus(peak_tflops, PRECISION_DTYPES[precision]):
            return precision, gpu
    return None


def accelerator_of(peak_tflops: float, precision: Precision, bandwidth_gb_per_s: float | None) -> Accelerator:
    """Return the GPU with a dense peak in a precision: its other figures are those of the known GPUs with that peak.

    Where none has the peak, the peak of 16 bits follows from the usual ratio, the bandwidth from that of H100, and the
    pace from the GPU with the nearest peak.
    """
    known = find_gpus(peak_tflops, PRECISION_DTYPES[precision])
    return _accelerator(peak_tflops, precision, bandwidth_gb_per_s, known)


def _accelerator(
    peak_tflops: float, precision: Precision, bandwidth_gb_per_s: float | None, known: tuple[KnownGpu, ...]
) -> Accelerator:
    dtype = PRECISION_DTYPES[precision]
    peak_16_bits = known[0].peaks["bf16"] if known else peak_tflops / PEAK_RATIOS[dtype]
    usual = known[0].bandwidth_gb_per_s * 1e9 if known else peak_16_bits * 1e12 * USUAL_BYTES_PER_FLOP
    return Accelerator(
        matrix_peak=peak_tflops * 1e12,
        peak_16_bits=peak_16_bits * 1e12,
        bandwidth=bandwidth_gb_per_s * 1e9 if bandwidth_gb_per_s is not None else usual,
        domain_gpus=known[0].domain_gpus if known else USUAL_DOMAIN,
        four_bits=dtype == "fp4",
        capabilities=tuple(sorted({gpu.capability for gpu in known or _nearest(peak_tflops, dtype)})),
        known=bool(known),
    )


def neighbours(precision: Precision | None, bandwidth_gb_per_s: float | None) -> tuple[tuple[float, Accelerator], ...]:
    """Return the known GPUs with the peak that each is recognized by, TFLOP/s, in increasing order.

    Each is there with the lowest and the highest peak that is taken for its own. Of a precision those that have it;
    of None all, each in the precisions that its peak may be meant in where none is given.
    """
    wanted: tuple[Precision, ...] = ("bf16", "fp8", "nvfp4") if precision is None else (precision,)
    peaks = {
        (gpu.peaks[dtype], one) for one in wanted for gpu in KNOWN_GPUS if (dtype := PRECISION_DTYPES[one]) in gpu.peaks
    }
    return tuple(
        (edge, _accelerator(edge, one, bandwidth_gb_per_s, find_gpus(peak, PRECISION_DTYPES[one])))
        for peak, one in sorted(peaks)
        for edge in (peak * (1 - PEAK_TOLERANCE), peak * (1 + PEAK_TOLERANCE))
    )


def _nearest(peak_tflops: float, dtype: str) -> tuple[KnownGpu, ...]:
    """Return the known GPUs whose peak in a type is the nearest, by ratio."""
    peaks = {gpu.peaks[dtype] for gpu in KNOWN_GPUS if dtype in gpu.peaks}
    nearest = min(peaks, key=lambda peak: abs(log(peak / peak_tflops)))
    return tuple(gpu for gpu in KNOWN_GPUS if gpu.peaks.get(dtype) == nearest)
