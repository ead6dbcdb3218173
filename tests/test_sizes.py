"""How much memory there is for this process: its control groups' and its own limit."""

import subprocess
import sys

import pytest

from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import left_in_groups, require

MB = 2**20


def group(path, names, most, used, idle):
    """The files of a control group, in megabytes."""
    limit, usage, inactive = names
    path.mkdir(parents=True, exist_ok=True)
    (path / limit).write_text(f"{most if most == 'max' else most * MB}\n")
    (path / usage).write_text(f"{used * MB}\n")
    (path / "memory.stat").write_text(f"anon 5\n{inactive} {idle * MB}\nfile 7\n")


V2 = "memory.max", "memory.current", "inactive_file"
V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


def left(tmp_path, text):
    own = tmp_path / "own"
    own.write_text(text)
    return [size // MB for size in left_in_groups(own, tmp_path / "cgroup")]


def test_a_job_of_version_2_has_what_it_and_those_above_it_have_left(tmp_path):
    """The job may take 1000 and holds 700, of which 300 are files that nobody reads."""
    top = tmp_path / "cgroup"
    group(top / "slurm/job_7", V2, 1000, 700, 300)
    group(top / "slurm", V2, 5000, 4600, 0)
    assert left(tmp_path, "0::/slurm/job_7\n") == [600, 400]
    group(top / "slurm/job_7", V2, "max", 700, 300)
    assert left(tmp_path, "0::/slurm/job_7\n") == [400]


def test_a_job_of_version_1_too_by_the_controller_of_memory(tmp_path):
    group(tmp_path / "cgroup/memory/pbs/3", V1, 2000, 500, 100)
    group(tmp_path / "cgroup/cpu/pbs/3", V1, 1, 1, 0)
    text = "4:memory:/pbs/3\n3:cpu:/pbs/3\n1:name=systemd:/pbs/3\n0::/\n"
    assert left(tmp_path, text) == [1600]


def test_a_container_whose_path_is_the_hosts_has_its_own_group_at_the_top(tmp_path):
    group(tmp_path / "cgroup", V2, 800, 100, 0)
    assert left(tmp_path, "0::/docker/0123\n") == [700]


def test_without_control_groups_there_is_no_such_limit(tmp_path):
    assert list(left_in_groups(tmp_path / "none", tmp_path)) == []
    assert left(tmp_path, "0::/nowhere\n") == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_limit_of_the_address_space_is_what_is_left_of_it():
    code = (
        "import resource\n"
        "from momentum_rl.plumbing.sizes import available_memory\n"
        "taken = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (taken + 300 * 2**20,) * 2)\n"
        "print(available_memory())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 290 * MB < int(done.stdout) <= 301 * MB


def test_what_cannot_fit_on_the_disk_is_refused(tmp_path):
    require("out: the runs", disk=1, directory=tmp_path / "new" / "place")
    with pytest.raises(UserError, match=r"out: the runs: needs 1e\+06 TB, only"):
        require("out: the runs", disk=10**18, directory=tmp_path / "new" / "place")
    assert list(tmp_path.iterdir()) == []
