"""Words that identify nobody."""

from __future__ import annotations

GENERIC_NAMES = frozenset(
    """
    localhost linux gpu amd amdgpu rocm kernel vm host server desktop laptop workstation pc home root user users
    admin test node none unknown docker ubuntu debian fedora arch archlinux nixos gentoo manjaro cachyos opensuse
    suse mint pop-os rhel centos rocky alma proxmox pve steamdeck deck wsl python torch ollama llama vulkan system
    default local build runner render video daemon nobody strix halo framework main dev name version ok absent error
    strix-halo radeon instinct ryzen epyc threadripper navi vega polaris aldebaran page ring queue fault hang reset
    fence mark core cores memory device devices driver drivers firmware module compute graphics engine buffer
    process thread model models data code app apps work tmp temp cloud service services tensor train training
    inference pytorch triton cuda hip rccl nccl mlx vllm max min will ray art grace hopper jade amber bill pat mode
    wave lane true false null yes this that with from for the and not are has was public shared guest default-user
    student machine container virtual windows microsoft support account operator backup nvidia intel github git
    python3 pip conda report redacted person serial address value key file files path install
    """.split()
)
"""Names that identify nobody and occur in facts; they are replaced only where they stand as a host or a home."""

KNOWN_GROUPS = frozenset(
    """
    root render video wheel sudo adm docker users audio plugdev netdev dialout cdrom dip floppy tape input kvm
    libvirt lp lpadmin games staff nogroup disk tty sys systemd-journal podman lxd incus bluetooth scanner
    sambashare uucp storage optical network power rfkill log nobody ollama daemon bin
    """.split()
)
"""Groups that systems create themselves; another one's name can be an organisation's."""

REDACTED = "redacted"
"""What a secret becomes."""

KEPT_ACCOUNTS = frozenset(
    """
    root nobody git hg svn buildd mockbuild builder nixbld abuild makepkg runner user getty systemd-coredump
    redacted
    """.split()
)
"""Accounts before an ``@`` that systems and hosting services have for themselves."""

PUBLIC_HOSTS = frozenset(
    """
    github.com gitlab.com codeberg.org bitbucket.org huggingface.co hf.co gitlab.freedesktop.org sourceware.org
    kernel.org git.kernel.org salsa.debian.org invent.kde.org ssh.github.com
    """.split()
)
"""Hosts that anyone may clone from: ``git@github.com`` names nobody."""
