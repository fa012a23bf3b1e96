"""DeviceProperties: every attribute is readable, remembered, and an item of the mapping."""

import pytest
from cuda_core import Device, DeviceProperties

NAMES = [
    "max_threads_per_block",
    "max_block_dim_x",
    "max_block_dim_y",
    "max_block_dim_z",
    "max_grid_dim_x",
    "max_grid_dim_y",
    "max_grid_dim_z",
    "max_shared_memory_per_block",
    "total_constant_memory",
    "warp_size",
    "max_pitch",
    "maximum_texture1d_width",
    "maximum_texture1d_linear_width",
    "maximum_texture1d_mipmapped_width",
    "maximum_texture2d_width",
    "maximum_texture2d_height",
    "maximum_texture2d_linear_width",
    "maximum_texture2d_linear_height",
    "maximum_texture2d_linear_pitch",
    "maximum_texture2d_mipmapped_width",
    "maximum_texture2d_mipmapped_height",
    "maximum_texture3d_width",
    "maximum_texture3d_height",
    "maximum_texture3d_depth",
    "maximum_texture3d_width_alternate",
    "maximum_texture3d_height_alternate",
    "maximum_texture3d_depth_alternate",
    "maximum_texturecubemap_width",
    "maximum_texture1d_layered_width",
    "maximum_texture1d_layered_layers",
    "maximum_texture2d_layered_width",
    "maximum_texture2d_layered_height",
    "maximum_texture2d_layered_layers",
    "maximum_texturecubemap_layered_width",
    "maximum_texturecubemap_layered_layers",
    "maximum_surface1d_width",
    "maximum_surface2d_width",
    "maximum_surface2d_height",
    "maximum_surface3d_width",
    "maximum_surface3d_height",
    "maximum_surface3d_depth",
    "maximum_surface1d_layered_width",
    "maximum_surface1d_layered_layers",
    "maximum_surface2d_layered_width",
    "maximum_surface2d_layered_height",
    "maximum_surface2d_layered_layers",
    "maximum_surfacecubemap_width",
    "maximum_surfacecubemap_layered_width",
    "maximum_surfacecubemap_layered_layers",
    "max_registers_per_block",
    "clock_rate",
    "texture_alignment",
    "texture_pitch_alignment",
    "gpu_overlap",
    "multiprocessor_count",
    "kernel_exec_timeout",
    "integrated",
    "can_map_host_memory",
    "compute_mode",
    "concurrent_kernels",
    "ecc_enabled",
    "pci_bus_id",
    "pci_device_id",
    "pci_domain_id",
    "tcc_driver",
    "memory_clock_rate",
    "global_memory_bus_width",
    "l2_cache_size",
    "max_threads_per_multiprocessor",
    "unified_addressing",
    "compute_capability_major",
    "compute_capability_minor",
    "global_l1_cache_supported",
    "local_l1_cache_supported",
    "max_shared_memory_per_multiprocessor",
    "max_registers_per_multiprocessor",
    "managed_memory",
    "multi_gpu_board",
    "multi_gpu_board_group_id",
    "host_native_atomic_supported",
    "single_to_double_precision_perf_ratio",
    "pageable_memory_access",
    "concurrent_managed_access",
    "compute_preemption_supported",
    "can_use_host_pointer_for_registered_mem",
    "cooperative_launch",
    "max_shared_memory_per_block_optin",
    "pageable_memory_access_uses_host_page_tables",
    "direct_managed_mem_access_from_host",
    "virtual_memory_management_supported",
    "handle_type_posix_file_descriptor_supported",
    "handle_type_win32_handle_supported",
    "handle_type_win32_kmt_handle_supported",
    "max_blocks_per_multiprocessor",
    "generic_compression_supported",
    "max_persisting_l2_cache_size",
    "max_access_policy_window_size",
    "gpu_direct_rdma_with_cuda_vmm_supported",
    "reserved_shared_memory_per_block",
    "sparse_cuda_array_supported",
    "read_only_host_register_supported",
    "memory_pools_supported",
    "gpu_direct_rdma_supported",
    "gpu_direct_rdma_flush_writes_options",
    "gpu_direct_rdma_writes_ordering",
    "mempool_supported_handle_types",
    "deferred_mapping_cuda_array_supported",
    "numa_config",
    "numa_id",
    "multicast_supported",
    "surface_alignment",
    "async_engine_count",
    "can_tex2d_gather",
    "maximum_texture2d_gather_width",
    "maximum_texture2d_gather_height",
    "stream_priorities_supported",
    "can_flush_remote_writes",
    "host_register_supported",
    "timeline_semaphore_interop_supported",
    "cluster_launch",
    "can_use_64_bit_stream_mem_ops",
    "can_use_stream_wait_value_nor",
    "dma_buf_supported",
    "ipc_event_supported",
    "mem_sync_domain_count",
    "tensor_map_access_supported",
    "handle_type_fabric_supported",
    "unified_function_pointers",
    "mps_enabled",
    "host_numa_id",
    "d3d12_cig_supported",
    "mem_decompress_algorithm_mask",
    "mem_decompress_maximum_length",
    "vulkan_cig_supported",
    "gpu_pci_device_id",
    "gpu_pci_subsystem_id",
    "host_numa_virtual_memory_management_supported",
    "host_numa_memory_pools_supported",
    "host_numa_multinode_ipc_supported",
    "host_memory_pools_supported",
    "host_virtual_memory_management_supported",
    "host_alloc_dma_buf_supported",
    "only_partial_host_native_atomic_supported",
]


def test_type(device):
    assert isinstance(device.properties, DeviceProperties)
    assert device.properties is device.properties


@pytest.mark.parametrize("name", NAMES)
def test_readable(device, name):
    value = getattr(device.properties, name)
    assert isinstance(value, int), type(value)
    assert getattr(device.properties, name) == value
    assert dict(device.properties)[name] == value
    assert device.properties[name] == value


def test_mapping(device):
    properties = device.properties
    everything = dict(properties)
    assert set(NAMES) <= set(everything)
    assert len(properties) == len(everything) == len(list(properties))
    assert set(properties.keys()) == set(everything)
    assert dict(properties.items()) == everything
    assert "warp_size" in properties
    assert "warp_sise" not in properties
    with pytest.raises(KeyError):
        properties["warp_sise"]
    with pytest.raises(AttributeError):
        _ = properties.warp_sise


def test_values_that_every_device_has(device):
    properties = device.properties
    assert properties.warp_size == 32
    assert properties.max_threads_per_block == 1024
    assert properties.max_block_dim_x == 1024
    assert properties.max_block_dim_y == 1024
    assert properties.max_block_dim_z == 64
    assert properties.max_grid_dim_x == 2**31 - 1
    assert properties.max_grid_dim_y == 65535
    assert properties.max_grid_dim_z == 65535
    assert properties.max_shared_memory_per_block == 48 * 1024
    assert properties.max_shared_memory_per_block_optin >= properties.max_shared_memory_per_block
    assert properties.total_constant_memory == 64 * 1024
    assert properties.multiprocessor_count >= 1
    assert properties.max_threads_per_multiprocessor >= 1024
    assert properties.unified_addressing == 1
    assert properties.memory_pools_supported == 1
    assert (properties.compute_capability_major, properties.compute_capability_minor) == device.compute_capability


def test_read_only(device):
    with pytest.raises(AttributeError):
        device.properties.warp_size = 64
    with pytest.raises(TypeError):
        device.properties["warp_size"] = 64


def test_each_device_has_its_own():
    for each in Device.get_all_devices():
        assert each.properties.compute_capability_major == each.compute_capability.major


def test_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        DeviceProperties()
