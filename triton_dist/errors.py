# SPDX-License-Identifier: MIT
"""Every mistake a user can make, one class each, with its message.

A class carries a `template`; its fields are the constructor's keyword arguments. A message says what happened,
where, and what to do next. Anything a user can trigger raises one of these, never a bare assert.
"""

from __future__ import annotations

from typing import ClassVar


class TritonDistError(Exception):
    """Base of all errors of this package."""

    template: ClassVar[str] = "{detail}"

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(self.template.format(**fields))

    def __repr__(self) -> str:
        # Triton quotes the `repr` of some errors to the user, so it must read well.
        return f"{type(self).__name__}: {self}"

    def __reduce__(self):
        return _rebuild, (type(self), self.fields)


def _rebuild(cls: type[TritonDistError], fields: dict[str, object]) -> TritonDistError:
    return cls(**fields)


# Configuring: environment, back ends, dispatch


class ConfigurationError(TritonDistError):
    """The environment, or what was set in code, makes no sense."""


class UnknownKnob(ConfigurationError):
    template = "{name} is not a setting of triton_dist{hint}. Settings: {valid}."


class BadKnobValue(ConfigurationError):
    template = "{name}={value!r}: expected {expected}. It means: {meaning}"


class UnknownBackend(ConfigurationError):
    template = "{source} names the back end {name!r}, which does not exist{hint}. Back ends: {valid}."


class SeveralBackends(ConfigurationError):
    template = (
        "several vendors' tools are on PATH ({found}), so the back end is not clear. "
        "Choose one: TRITON_DIST_BACKEND={choices}."
    )


class ContradictoryKnobs(ConfigurationError):
    template = "{detail} {fix}"


class BackendClash(ConfigurationError):
    template = (
        "two packages register a back end named {name!r}: {first} and {second}. "
        "Uninstall one, or rename its entry point in the group triton_dist.backends."
    )


class BrokenBackend(ConfigurationError):
    template = "the back end {name!r} ({source}) cannot be used: {detail}"


class CacheFolderUnusable(ConfigurationError):
    template = (
        "Triton keeps compiled kernels in {folder}, and this one is not there and cannot be put there: {detail}. "
        "Set TRITON_CACHE_DIR to a folder that can be written."
    )


class NoActiveModule(ConfigurationError):
    template = "none of the modules {modules} is active: no predicate holds. {fix}"


class SeveralActiveModules(ConfigurationError):
    template = "exactly one module may be active, but the predicates of {active} all hold. {fix}"


class MissingFunction(TritonDistError, AttributeError):
    """A device function that the active back end lacks. Also an AttributeError, so `hasattr` works."""

    template = "{module}.{function}: the {backend} back end has no such function{hint}"


class NotInThisVersion(TritonDistError, NotImplementedError):
    template = "{what} of the {backend} back end is not in this version of triton_dist ({version}) yet. {hint}"


class NoLowering(NotInThisVersion):
    """A back end of which only the rules are there."""

    template = (
        "kernels cannot run on the {backend} back end ({title}), not even simulated: triton_dist {version} knows its "
        "rules, but not yet how to compile for it. TRITON_DIST_BACKEND=cpu runs the same program on the host."
    )


# Compiling


class CompileError(TritonDistError):
    """A kernel cannot be compiled. `where` is the user's file:line, or the IR location."""

    template = "{where}: {detail}"


class VendorToolMissing(TritonDistError):
    template = "{tool} is not installed. It comes with the package ascendnpu-ir (pip install ascendnpu-ir)."


class VendorToolFailed(TritonDistError):
    template = "{tool} ended with status {status}:\n{detail}"


class NoTritonAscend(TritonDistError):
    template = (
        "kernels for Ascend NPUs are compiled by the package triton-ascend, which is not installed in this "
        "environment (it takes the place of triton). TRITON_DIST_SIMULATE=1 runs them on the host."
    )


class UnknownTritonAscend(TritonDistError):
    template = "triton-ascend {version}: distributed operations have no way through it: {detail}."


class TritonAscendRefused(TritonDistError):
    template = (
        "triton-ascend {version} cannot compile this kernel, in which the distributed operations travel as "
        "placeholders: {detail}. docs/ascend.md says what its way cannot carry."
    )


class PlaceholderError(TritonDistError):
    template = "{symbol} cannot be brought through triton-ascend 3.2: {detail}."


class UnsupportedOpError(CompileError):
    template = "{where}: the {backend} back end does not support {op}: {detail}"


class ArgumentError(TritonDistError):
    """A wrong argument of a `dl` or `libshmem_device` function. Triton adds the kernel's line and a caret."""

    template = "{op}: {detail}"


class NotAScalarPointer(ArgumentError):
    template = "{op}: {argument} must be a scalar pointer, got {got}{hint}"


class ReadOnlyPointer(ArgumentError):
    template = "{op}: {argument} points to const, and a signal is written"


class NotAnInteger(ArgumentError):
    template = "{op}: {argument} must be {expected}, got {got}"


class DoesNotFit(ArgumentError):
    template = "{op}: {argument} = {got} does not fit {type}{of}{hint}"


class BadSignalType(ArgumentError):
    template = "{op}: {argument} points to {got}, which the {backend} back end has no signals of. It has {valid}."


class UnsupportedSignal(ArgumentError):
    template = "{op}: the {backend} back end cannot {sig_op} a signal of type {got}. It can {valid}."


class UnknownChoice(ArgumentError):
    template = "{op}: {argument} = {got!r} is unknown{hint}. Valid: {valid}."


class NotConstexpr(ArgumentError):
    template = "{op}: {argument} must be {expected}, known at compile time, got {got}"


class NotAToken(ArgumentError):
    template = "{op}: token must be what dl.wait returned (a scalar int32), got {got}"


class NotANumber(ArgumentError):
    template = "{op}: {argument} must be {expected}, got {got}"


class WrongPointee(ArgumentError):
    template = "{op}: {argument} must point to {expected}, but points to {got}"


class BadCall(ArgumentError):
    template = "{op}: {detail}. Call: {signature}"


class BadExternCall(ArgumentError):
    template = "{op}: {detail}"


class OutsideKernel(TritonDistError):
    template = "{op} can only be called in a kernel: a function decorated with @triton_dist.jit or @triton.jit."


class InterpretedWait(TritonDistError):
    """A wait that does not end under TRITON_INTERPRET=1, where programs run one after another."""

    template = (
        "PE {pe}, program {program}, {where}: {op} on signal {slot:#x} wants {expected} but sees {seen}, and {why}. "
        "The interpreter runs the programs of a grid one after another: the notify must come from an earlier "
        "program, or from the host before the launch."
    )


class InterpretedLimit(TritonDistError):
    template = "{op} cannot run under TRITON_INTERPRET=1: {detail}"


class IRParseError(CompileError):
    """Text is not a module that the IR's parser takes. The detail shows the place in the text."""

    template = "not a module: {detail}"


class CarrierError(CompileError):
    """A carrier of a distributed op does not have the form the front end gives it."""


class UnknownPass(TritonDistError):
    template = "there is no pass {name}; known are {valid}"


class PassError(TritonDistError):
    """A pass left a module that does not verify: a mistake of the pass."""

    template = "after the pass {name}: {detail}"


class DeviceLibraryError(CompileError):
    """A vendor's device library is missing, does not fit, or lacks what a kernel calls."""


class NvshmemNotFound(DeviceLibraryError):
    template = (
        "NVSHMEM's device library was not found: {detail}. Install nvidia-nvshmem-cu13 (or -cu12), or set NVSHMEM_HOME."
    )


class NvshmemMismatch(DeviceLibraryError):
    template = "NVSHMEM does not fit: {detail}. {fix}"


class UndefinedDeviceFunction(DeviceLibraryError):
    template = "{where}: {symbol} is not defined in {library}.{hint}"


class DeviceLibraryMissing(DeviceLibraryError):
    template = (
        "{where}: {symbol} belongs to the library {library!r}, of which no path is known. "
        "Give it to dl.extern_call as lib_path, or to the launch as extern_libs={{{library!r}: path}}."
    )


class DeviceLibraryFile(DeviceLibraryError):
    template = (
        "{where}: {symbol} belongs to the library {library!r}, whose file {path!r} does not exist. Correct the "
        "lib_path that dl.extern_call has."
    )


# Running


class ShmemError(TritonDistError):
    """Base of the symmetric heap's and the collectives' errors."""


class ShmemConfigError(ShmemError, ConfigurationError):
    """What `shmem.init` was told, or found in the environment, is missing or contradictory."""

    template = "shmem.init: {detail}"


class LauncherRefused(ShmemConfigError):
    """What `triton-dist run` was told."""

    template = "run: {detail}"


class RunPesRefused(ShmemConfigError):
    """`triton_dist.testing.run_pes` cannot start these PEs, or not here."""

    template = "{detail}"


class AclshmemFailed(ShmemError):
    template = "{call} of aclshmem returned {code}: {meaning}."


class AclshmemMissing(ShmemError):
    template = (
        "the package shmem (aclshmem) cannot be imported: {detail}. It comes with the vendor's toolkit; "
        "TRITON_DIST_SIMULATE=1 runs the same program without an NPU."
    )


class EngineNeedsAddress(ShmemError):
    template = (
        "TRITON_DIST_ENGINE={engine} was asked for, but aclshmem_init_using_unique_id takes no engine. Start the PEs "
        "with a launcher, which gives them an address, or leave the setting out."
    )


class StandinRefused(ShmemError):
    template = "a package shmem is installed ({where}), so its stand-in does not take its place."


class UnsupportedHost(ShmemError):
    template = "the host engine cannot share memory between processes here: {detail}"


class RendezvousError(ShmemError):
    """The PEs did not find each other at `shmem.init`."""

    template = "PE {pe} of {n_pes}: shmem.init: {detail}"


class NotInitialized(ShmemError):
    template = (
        "{call} needs a PE: call triton_dist.shmem.init() first, or run the function under "
        "triton_dist.testing.run_pes. A thread that you start inside run_pes belongs to no PE, nor does a process "
        "that a PE forks."
    )


class AlreadyInitialized(ShmemError):
    template = (
        "shmem.init: this process is PE {pe} of {n_pes} already, with another {what}. Call shmem.finalize() first."
    )


class BadAllocation(ShmemError):
    template = "PE {pe}, {where}: {call}: {detail}"


class HeapExhausted(ShmemError):
    template = (
        "PE {pe}, {where}: {call} needs {needed} bytes, but of the symmetric heap's {capacity} bytes {free} are free "
        "and {largest} in one piece. Free tensors, or set TRITON_DIST_HEAP_SIZE (on every PE)."
    )


class HeapTooLarge(ShmemError):
    template = (
        "a segment of {size} bytes for a PE's symmetric heap cannot be had: {detail}. "
        "Lower TRITON_DIST_HEAP_SIZE, or the heap_size given."
    )


class CollectiveMismatch(ShmemError):
    """PEs called different collectives, or one with different arguments. Raised on every PE; nothing was changed."""

    template = (
        "PE {pe}: the PEs do not agree on a collective call, which all must make with the same arguments in the "
        "same order:\n{calls}"
    )


class MissingPe(ShmemError):
    """A collective call that some PE never made."""

    template = "PE {pe}, {where}: {call} waited {seconds:.1f} s for {missing}, which did not call it:\n{states}"


class OutOfStep(ShmemError):
    """The PEs' sequences of collective calls do not fit any more; only `finalize` is left to do."""

    template = "PE {pe}, {where}: {call}: {detail}"


class NotSymmetric(ShmemError):
    template = (
        "PE {pe}, {where}: {call}: {argument} is not in this PE's symmetric heap ({got}). "
        "It must come from shmem.create_tensor or shmem.create_signals of this PE."
    )


class FreedTensor(ShmemError):
    template = "PE {pe}, {where}: {call}: {argument} was freed: {freed}."


class PartOfTensor(ShmemError):
    template = (
        "PE {pe}, {where}: {call}: {argument} is a part ({got}) of {whole}; pass the whole tensor that was created."
    )


class PeOutOfRange(ShmemError):
    template = "PE {pe}, {where}: {call}: there is no PE {got!r}; PEs are 0 to {last}."


class UnequalTensors(ShmemError):
    template = "PE {pe}, {where}: {call}: dest is {dest}, source is {source}; they must be equal in shape and dtype."


class BadSignal(ShmemError):
    template = "PE {pe}, {where}: {call}: {detail}"


class PeFailed(ShmemError):
    """A PE that is a thread or a process of a test ended with an error; `fields["pe"]` says which."""

    template = "PE {pe} of {n_pes} failed: {detail}"


class PesStillRunning(ShmemError):
    template = "run_pes: after {seconds:.1f} s these PEs still run:\n{states}"


class KernelAborted(TritonDistError):
    """A kernel ended early, on purpose."""


class WaitTimeout(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: waited {seconds:.1f} s for signal {slot}: expected {expected}, "
        "present value {seen}. Check that some PE notifies this slot with that value; "
        "TRITON_DIST_WAIT_TIMEOUT sets the deadline in seconds."
    )


class PollTimeout(WaitTimeout):
    """In a loop that a kernel polls with, rather than in a `wait`."""

    template = (
        "PE {pe}, program {program}, {where}: waited {seconds:.1f} s in a loop of the kernel that reads memory until "
        "it changes. Check that some PE writes there: do all PEs make the same calls in the same order? "
        "TRITON_DIST_WAIT_TIMEOUT sets the deadline in seconds."
    )


class PeerDied(KernelAborted):
    template = "PE {pe}: PE {dead} is gone ({detail}), so {what} cannot finish."


class PeOutOfRangeInKernel(KernelAborted):
    template = "PE {pe}, program {program}, {where}: there is no PE {got}: {n_pes} PEs are numbered from 0."


class ForeignAddressInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: the pointer ({address}) is none into the symmetric heap, so it has no "
        "counterpart on PE {peer}. Allocate the tensor with triton_dist.shmem.create_tensor."
    )


class NullAddressInKernel(ForeignAddressInKernel):
    template = (
        "PE {pe}, program {program}, {where}: the pointer is null, as that of a tensor without elements is, so it has "
        "no counterpart on PE {peer}. Launch the kernel only if there are elements."
    )


class NullPointerInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: the pointer is null, as that of a tensor without elements is. Launch the "
        "kernel only if there are elements."
    )


class BadSignalOpInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: signal operation {got} is none. Use libshmem_device's "
        "NVSHMEM_SIGNAL_SET (9) or NVSHMEM_SIGNAL_ADD (10)."
    )


class BadComparisonInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: comparison {got} is none. Use libshmem_device's CMP_EQ, CMP_NE, CMP_GT, "
        "CMP_LE, CMP_LT or CMP_GE."
    )


class BadCountInKernel(KernelAborted):
    template = "PE {pe}, program {program}, {where}: dl.wait on {got} signals: numBarriers must be 0 or more."


class TransferTooLongInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: a transfer of {got} bytes to or from {place}: the size must be 0 or "
        "more, and {left} bytes are left there."
    )


class SimulatedLibraryFault(KernelAborted):
    """What a simulated device library refuses; on the device it would be undefined or silent."""

    template = "PE {pe}, program {program}, {where}: {library}: {detail}."


class BadTeamInKernel(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: there is no team {got} on the host; the teams are 0, 1 and 2, and each "
        "of them is every PE."
    )


class NvshmemError(ShmemError):
    """NVSHMEM refused, or cannot do, what the host API asked of it."""

    template = "{call}: {detail} {fix}"


class WrongDevice(TritonDistError):
    template = (
        "A kernel of the host engine was given a tensor on {device}. Move it to the CPU, or choose that device's back "
        "end (TRITON_DIST_BACKEND)."
    )


class CompilerFault(TritonDistError):
    template = (
        "{where}: the host engine failed at {what} ({cause}). This is a mistake of triton_dist's: please report it "
        "with the kernel. Until it is mended, say the same in other words there."
    )


class BadGrid(TritonDistError):
    template = "The grid {grid} of {kernel}: an axis has 0 to {largest} programs. Check what it was computed from."


class OutOfBounds(KernelAborted):
    template = (
        "PE {pe}, {kernel}, program {program}, {where}: {access} at {place}. Check the mask and the offsets of this "
        "access."
    )


class DeviceAssertion(KernelAborted):
    template = "PE {pe}, {kernel}, program {program}: device_assert failed at {where}"
