"""ROCm installations: distribution packages, /opt, extracted tarballs, wheels."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.root import ReadError, Root
from rocmend.machine.software.packages import installed_packages
from rocmend.machine.software.python_env import active_environment, distributions
from rocmend.machine.software.rocm_installs import Install, system_installs, wheel_installs


@collector(
    "rocm",
    facts={
        "rocm.installs": "Every installation: path, version, kind, hip_version, gfx_targets, what names it.",
        "rocm.version": "ROCm version of the installation in use; null where there is none.",
        "rocm.path": "Its prefix.",
        "rocm.kind": "package, opt, therock-tarball, wheel or distro.",
        "rocm.hip_version": "Version of its HIP runtime.",
        "rocm.gfx_targets": "Targets that its rocBLAS carries kernels for; null where it has no rocBLAS.",
        "rocm.count": "Number of system installations; wheels are not counted.",
        "rocm.versions": "Distinct versions of the system installations, in use first.",
        "rocm.packages": "Distribution packages of ROCm, Vulkan drivers and firmware: name to version.",
    },
)
def collect(root: Root, facts: FactSink) -> None:
    """List the installations; the first system one is the one in use, else the first wheel."""
    packages, packages_source = installed_packages(root)
    facts.put("rocm.packages", packages, source=packages_source or "no package database was found")
    system = system_installs(root, packages)
    try:
        wheels = wheel_installs(root, distributions(root, active_environment(root)))
    except ReadError as error:
        wheels = []
        facts.gap("rocm.wheels.*", str(error), source=error.subject)
    source = ", ".join(install.path for install in [*system, *wheels]) or "ROCM_PATH, /opt/rocm*, /usr, PATH, wheels"
    facts.put("rocm.installs", [install.as_dict() for install in [*system, *wheels]], source=source)
    facts.put("rocm.count", len(system), source=source)
    versions = dict.fromkeys(install.version for install in system if install.version)
    facts.put("rocm.versions", list(versions), source=source)
    _state_used(next(iter([*system, *wheels]), None), facts, source)


def _state_used(used: Install | None, facts: FactSink, looked_at: str) -> None:
    """State the facts of the installation in use; all are null where there is none."""
    source = f"{used.path} ({used.named_by})" if used else looked_at
    facts.put("rocm.version", used.version if used else None, source=source)
    facts.put("rocm.path", used.path if used else None, source=source)
    facts.put("rocm.kind", used.kind if used else None, source=source)
    facts.put("rocm.hip_version", used.hip_version if used else None, source=source)
    facts.put("rocm.gfx_targets", used.gfx_targets if used else None, source=source)
