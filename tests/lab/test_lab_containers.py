"""An experiment whose factor is the image, in real containers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmend.core.verdict import Verdict
from rocmend.lab.laboratory import Laboratory
from rocmend.lab.load import load_experiment
from rocmend.lab.plan import all_trials
from rocmend.store.store import Store

pytestmark = [pytest.mark.container, pytest.mark.slow]

EXPERIMENT = """\
[experiment]
id = "in-containers"
title = "The same program in two images"
question = "In which image does it find its file?"
command = ["/bin/sh", "-c", "echo loading; if [ -e /answer ]; then echo answer: 42; else sleep 60; fi"]

[where]
kind = "container"
image = "{{image}}"
runtime = "podman"
network = "none"
pull = "never"
global_args = ["--root", "{base}/store", "--runroot", "{base}/run", "--runtime", "runc"]
extra_args = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]

[limits]
total_s = 60
silence_s = 4
grace_s = 1

[[factor]]
name = "image"
kind = "image"
values = ["localhost/plain:1", "localhost/answering:1"]
baseline = "localhost/plain:1"

[[strategy]]
id = "answering-image"
hypothesis = "The other image has the file."
sets = {{ image = "localhost/answering:1" }}

[oracle]
kind = "output-matches"
pattern = "^answer: 42$"

[[success]]
text = "it answers"
number = "answer: ([0-9]+)"
at_least = 42
"""


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two busybox images, one with the file and one without, in a podman store of their own."""
    for program in ("podman", "runc", "busybox"):
        if shutil.which(program) is None:
            reason = f"{program} is not installed"
            (pytest.fail if os.environ.get("ROCMEND_REQUIRE_PODMAN") else pytest.skip)(reason)
    top = tmp_path_factory.mktemp("box")  # podman refuses a runroot of more than 50 characters
    rootfs = top / "rootfs"
    for folder in ("bin", "tmp", "proc", "dev", "etc"):
        (rootfs / folder).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), rootfs / "bin" / "busybox")
    for applet in ("sh", "sleep"):
        (rootfs / "bin" / applet).symlink_to("busybox")
    podman = ["podman", "--root", str(top / "store"), "--runroot", str(top / "run"), "--runtime", "runc"]
    for name in ("plain", "answering"):
        if name == "answering":
            (rootfs / "answer").touch()
        archive = subprocess.run(["tar", "-C", str(rootfs), "-c", "."], check=True, capture_output=True).stdout
        command = [*podman, "import", "-", f"localhost/{name}:1"]
        subprocess.run(command, input=archive, check=True, capture_output=True)
    yield top
    subprocess.run([*podman, "rm", "-f", "-a", "-t", "0"], check=False, capture_output=True)
    subprocess.run(["umount", str(top / "store" / "overlay")], check=False, capture_output=True)


def test_the_image_decides(base: Path) -> None:
    path = base / "in-containers.toml"
    path.write_text(EXPERIMENT.format(base=base))
    experiment = load_experiment(path)
    with Store.open(base / "kept.sqlite") as store:
        Laboratory(experiment, store).run(all_trials(experiment))
        kept = {record.evidence.subject.rpartition("/")[2]: record.evidence for record in store.query(kind="trial")}
    outcomes = {subject.rpartition(" ")[2]: evidence.verdict for subject, evidence in kept.items()}
    assert sorted(outcomes.values()) == sorted([Verdict.HANG, Verdict.PASS])
    hung = next(evidence for evidence in kept.values() if evidence.verdict is Verdict.HANG)
    assert "silent" in hung.reason
    assert len({evidence.identity for evidence in kept.values()}) == 2
