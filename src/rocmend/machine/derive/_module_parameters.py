"""Parameters of the kernel modules and subsystems that a ROCm machine is configured through.

Sources:
    drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c (``module_param_named``), Linux 4.20 to 6.18, and
    https://docs.kernel.org/gpu/amdgpu/module-parameters.html;
    drivers/gpu/drm/ttm/ttm_pool.c and ttm_tt.c (AMD's DKMS package calls the module amdttm);
    Documentation/admin-guide/kernel-parameters.txt, ``amd_iommu`` and ``iommu``.
"""

from __future__ import annotations

_AMDGPU = """
    abmlevel agp aspm async_gfx_ring audio backlight bad_page_threshold bapm benchmark cg_mask cik_support
    cntl_sb_buf_per_se compute_multipipe cwsr_enable damageclips dc dcdebugmask dcfeaturemask debug_evictions
    debug_largebar debug_mask deep_color disable_cu disable_kq discovery disp_priority dpm emu_mode enforce_isolation
    exp_hw_support force_asic_type forcelongtraining freesync_video fw_load_type gartsize gpu_recovery gttsize
    halt_if_hws_hang hw_i2c hws_gws_support hws_max_conc_proc ignore_crat ip_block_mask job_hang_limit lbpw
    lockup_timeout max_num_of_queues_per_device mcbp mes mes_kiq mes_log_enable modeset moverate msi mtype_local ngg
    no_queue_eviction_on_vm_fault no_system_mem_limit noretry num_kcq param_buf_per_se pcie_gen2 pcie_gen_cap
    pcie_lane_cap pcie_p2p pg_mask pos_buf_per_se ppfeaturemask prim_buf_per_se queue_preemption_timeout_ms ras_enable
    ras_mask rebar reset_method runpm sched_hw_submission sched_jobs sched_policy sdma_phase_quantum seamless
    send_sigterm sg_display si_support smu_memory_pool_size smu_pptable_id svm_default_granularity test
    timeout_fatal_disable timeout_period tmz uni_mes umsch_mm umsch_mm_fwlog use_xgmi_p2p user_partt_mode user_queue
    vcnfw_log virtual_display vis_vramlimit visualconfirm vm_block_size vm_debug vm_fault_stop vm_fragment_size vm_size
    vm_update_mode vram_page_split vramlimit wbrf
"""
AMDGPU = frozenset(_AMDGPU.split())
TTM = frozenset({"pages_limit", "dma32_pages_limit", "page_pool_size"})

MODULES = {"amdgpu": AMDGPU, "ttm": TTM, "amdttm": TTM}
"""Module to the parameters that it takes."""

# "on" is no word of the kernel's, but it asks for the default and is widely written: nothing is lost by it.
_AMD_IOMMU = "on fullflush off force_isolation force_enable pgtbl_v1 pgtbl_v2 irtcachedis nohugepages v2_pgsizes_only"
_IOMMU = """
    off force noforce biomerge merge nomerge soft pt nopt panic nopanic nobypass allowed usedac forcesac noaperture
    memaper fullflush dac nodac allowdac calgary
"""
OPTIONS = {"amd_iommu": frozenset(_AMD_IOMMU.split()), "iommu": frozenset(_IOMMU.split())}
"""Kernel option to the words that it takes, separated by commas."""

_COMMON = """
    agp aspm audio backlight benchmark dc discovery dpm mes modeset msi ngg noretry rebar runpm seamless test tmz
    visualconfirm wbrf
"""
DISTINCT = AMDGPU - frozenset(_COMMON.split())
"""Parameters whose bare name on the command line can only have been meant for amdgpu."""
