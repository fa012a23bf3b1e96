"""The names, parameters and defaults of cuda.core 1.2, for all that this release has: moving is one import line."""

import inspect

import cuda_core
import pytest
from cuda_core import LaunchConfig, Program, launch

METHODS = """
Device.get_all_devices()
Device.can_access_peer(peer)
Device.set_current(ctx=None)
Device.create_stream(obj=None, options=None)
Device.create_event(options=None)
Device.allocate(size, *, stream)
Device.sync()
Stream.close()
Stream.sync()
Stream.record(event=None, options=None)
Stream.wait(event_or_stream)
Stream.from_handle(handle)
Event.close()
Event.from_ipc_descriptor(ipc_descriptor)
Event.sync()
Buffer.from_handle(ptr, size, mr=None, owner=None)
Buffer.from_ipc_descriptor(mr, ipc_descriptor, *, stream)
Buffer.close(stream=None)
Buffer.copy_to(dst=None, *, stream)
Buffer.copy_from(src, *, stream)
Buffer.fill(value, *, stream)
Buffer.__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
Buffer.set_deallocation_stream(stream)
MemoryResource.allocate(size, *, stream)
MemoryResource.deallocate(ptr, size, *, stream)
DeviceMemoryResource.from_registry(uuid)
DeviceMemoryResource.register(uuid)
DeviceMemoryResource.from_allocation_handle(device_id, alloc_handle)
DeviceMemoryResource.allocate(size, *, stream)
DeviceMemoryResource.close()
DeviceMemoryResource.deallocate(ptr, size, *, stream)
PinnedMemoryResource.from_registry(uuid)
PinnedMemoryResource.register(uuid)
PinnedMemoryResource.from_allocation_handle(alloc_handle)
PinnedMemoryResource.allocate(size, *, stream)
PinnedMemoryResource.close()
PinnedMemoryResource.deallocate(ptr, size, *, stream)
ManagedBuffer.from_handle(ptr, size, mr=None, owner=None)
ManagedBuffer.prefetch(location, *, stream)
ManagedBuffer.discard(*, stream)
ManagedBuffer.discard_prefetch(location, *, stream)
ManagedMemoryResource.allocate(size, *, stream)
Host.numa_current()
LegacyPinnedMemoryResource.allocate(size, *, stream=None)
LegacyPinnedMemoryResource.deallocate(ptr, size, *, stream=None)
Program.close()
Program.compile(target_type, name_expressions=..., logs=None, *, cache=None)
ObjectCode.from_cubin(module, *, name='', symbol_mapping=None)
ObjectCode.from_ptx(module, *, name='', symbol_mapping=None)
ObjectCode.from_ltoir(module, *, name='', symbol_mapping=None)
ObjectCode.from_fatbin(module, *, name='', symbol_mapping=None)
ObjectCode.from_object(module, *, name='', symbol_mapping=None)
ObjectCode.from_library(module, *, name='', symbol_mapping=None)
ObjectCode.get_kernel(name)
ObjectCode.get_module()
Kernel.from_handle(handle, mod=None)
""".strip().splitlines()

PROPERTIES = """
Device: device_id pci_bus_id uuid name properties compute_capability arch context memory_resource default_stream
Stream: handle is_nonblocking priority device context is_closed
Event: ipc_descriptor is_ipc_enabled is_timing_enabled is_blocking_sync is_done handle device context is_closed
Buffer: ipc_descriptor device_id handle is_device_accessible is_host_accessible is_managed is_mapped memory_resource
    size owner is_closed
MemoryResource: is_device_accessible is_host_accessible is_managed device_id
DeviceMemoryResource: allocation_handle device_id peer_accessible_by is_device_accessible is_host_accessible
    attributes handle is_closed is_handle_owned is_ipc_enabled is_managed is_mapped uuid
PinnedMemoryResource: allocation_handle device_id numa_id is_device_accessible is_host_accessible attributes handle
    is_closed is_handle_owned is_ipc_enabled is_managed is_mapped uuid
ManagedBuffer: read_mostly preferred_location accessed_by
ManagedMemoryResource: device_id preferred_location is_device_accessible is_host_accessible is_managed attributes handle
    is_closed is_handle_owned is_ipc_enabled is_mapped uuid
Host: numa_id is_numa_current
LegacyPinnedMemoryResource: is_device_accessible is_host_accessible device_id is_managed
Program: pch_status backend handle is_closed
ObjectCode: code name code_type symbol_mapping handle
Kernel: attributes num_arguments arguments_info occupancy handle
LaunchConfig: block cluster grid is_cooperative programmatic_stream_serialization shmem_size
"""


def parameters(signature):
    """(name, is keyword-only, default) of each parameter; self is left out."""
    return [
        (each.name, each.kind is each.KEYWORD_ONLY, None if each.default is each.empty else repr(each.default))
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]


def signature_of_text(text):
    scope = {}
    exec(f"def function{text}: pass", scope)
    return inspect.signature(scope["function"])


@pytest.mark.parametrize("line", METHODS)
def test_method(line):
    path, bracket, rest = line.partition("(")
    owner, name = path.split(".")
    wanted = parameters(signature_of_text(bracket + rest))
    found = parameters(inspect.signature(getattr(getattr(cuda_core, owner), name)))
    if "..." in rest:  # the default is not told
        wanted, found = [each[:2] for each in wanted], [each[:2] for each in found]
    assert found == wanted


def properties():
    owner = ""
    for word in PROPERTIES.split():
        if word.endswith(":"):
            owner = word[:-1]
        else:
            yield f"{owner}.{word}"


@pytest.mark.parametrize("path", properties())
def test_property(path):
    owner, name = path.split(".")
    assert hasattr(getattr(cuda_core, owner), name)


def test_functions_and_constructors():
    found = parameters(inspect.signature(launch))
    assert [each[0] for each in found] == ["stream", "config", "kernel", "kernel_args"]
    names = [each[0] for each in parameters(inspect.signature(LaunchConfig))]
    assert names[:5] == ["grid", "cluster", "block", "shmem_size", "is_cooperative"]
    assert [each[0] for each in parameters(inspect.signature(Program))] == ["code", "code_type", "options"]


def test_documented():
    """Whatever is public says what it is for."""
    for name in cuda_core.__all__:
        value = getattr(cuda_core, name)
        if not inspect.isclass(value) or not value.__module__.startswith("cuda_core"):
            continue
        assert value.__doc__, name
        for member, attribute in vars(value).items():
            if not member.startswith("_") and (callable(attribute) or inspect.isdatadescriptor(attribute)):
                is_field = hasattr(value, "__dataclass_fields__") and member in value.__dataclass_fields__
                assert is_field or attribute.__doc__, f"{name}.{member}"
