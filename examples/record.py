#!/usr/bin/env python3
"""Record examples/cbt-archive: really running fio, filed the way CBT files it.

    sudo examples/record.py OUTPUT SCRATCH

Three hosts are simulated on one machine. Each has two volumes (ordinary files) and one
fio process per volume, started together; what they do to a real disk is what is recorded:

    ceph-a   is healthy. The first volume also logs every single I/O, so that its
             histogram log can be checked against the truth.
    ceph-b   is healthy but for one stall: its storage answers nothing for four seconds.
    ceph-c   is slow from the first second to the last: its storage has an IOPS limit.

Both mishaps are limits the kernel puts on a host's control group, so fio itself is left
alone and sees a disk that is slow or silent. That needs root, a control group with the
blkio (version 1) or io (version 2) controller, and SCRATCH on a file system that lies
directly on a disk and takes direct I/O, such as ext4 or xfs.

OUTPUT must not exist yet; SCRATCH is a folder with 400 MB to spare, and is left as found.
Takes about 80 seconds. The times PROVENANCE.md quotes are printed at the end.
"""

import argparse
import contextlib
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOSTS = ["ceph-a", "ceph-b", "ceph-c"]
LOGS_EVERY_IO = ("ceph-a", 0)
STALLED, STALL_AFTER_S, STALL_FOR_S = "ceph-b", 33, 4  # fio needs three seconds to start
SLOW, SLOW_READ_IOPS, SLOW_WRITE_IOPS = "ceph-c", 120, 50

# One permutation of CBT's benchmark options, as benchmark_config.yaml keeps it. A pause
# after each I/O (thinktime) sets the pace, because rate_iops would hide the stall: after
# it, fio hurries through the backlog, and four slow I/Os drown in a thousand quick ones.
CONFIG = {
    "benchmark": "librbdfio",
    "iteration": 0,
    "mode": "randrw",
    "rwmixread": 70,
    "op_size": 4096,
    "iodepth": 4,
    "numjobs": 2,
    "volumes_per_client": 2,
    "vol_size": 64,  # MiB
    "time": 75,  # seconds
    "time_based": True,
    "thinktime": 12000,  # microseconds
    "log_avg_msec": 1000,
    "log_hist_msec": 1000,
    "log_hist_coarseness": 0,
}

# What is kept of what fio writes; its lat and slat logs are not.
FILED = ["output.*_clat_hist.*", "output.*_clat.*", "output.*_bw.*", "output.*_iops.*"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder to create, e.g. examples/cbt-archive")
    parser.add_argument("scratch", type=Path, help="existing folder for the data files")
    arguments = parser.parse_args()

    if not shutil.which("fio"):
        sys.exit("record.py: fio is not installed (Debian: apt install fio)")
    if os.geteuid() != 0:
        sys.exit("record.py: needs root, to limit the I/O of a control group")
    if arguments.output.exists():
        sys.exit(f"record.py: {arguments.output} exists already; remove it first")
    if not arguments.scratch.is_dir():
        sys.exit(f"record.py: {arguments.scratch} is not a folder")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("record.py: told to end"))  # tidily
    with tempfile.TemporaryDirectory(prefix="tailboard-", dir=arguments.scratch) as scratch:
        scratch = Path(scratch)
        lay_out_volumes(scratch)
        stall = run(scratch)
        results = arguments.output / "results"
        write_archive(scratch, results)
    tell(results, stall)


# --- running fio -------------------------------------------------------------------------


def volumes():
    return [(host, volume) for host in HOSTS for volume in range(CONFIG["volumes_per_client"])]


def lay_out_volumes(scratch):
    """Write every block once, so that no I/O of the run has to allocate space."""
    for host, volume in volumes():
        (scratch / host).mkdir(exist_ok=True)
        with open(scratch / host / f"volume.{volume}", "wb") as file:
            for _ in range(CONFIG["vol_size"]):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())


def fio_command(host, volume):
    """CBT's command line, but for libaio on a file where CBT has an RBD image.

    Paths are relative to the host's folder: fio copies them into its JSON.
    """
    prefix = f"output.{volume}"
    command = [
        "fio",
        "--ioengine=libaio",
        "--direct=1",
        f"--filename=volume.{volume}",
        f"--rw={CONFIG['mode']}",
        f"--rwmixread={CONFIG['rwmixread']}",
        f"--bs={CONFIG['op_size']}",
        f"--iodepth={CONFIG['iodepth']}",
        f"--numjobs={CONFIG['numjobs']}",
        f"--thinktime={CONFIG['thinktime']}",
        f"--runtime={CONFIG['time']}",
        "--time_based",
        "--randrepeat=0",
        "--norandommap",
        f"--write_hist_log={prefix}",
        f"--log_hist_msec={CONFIG['log_hist_msec']}",
        f"--log_hist_coarseness={CONFIG['log_hist_coarseness']}",
        "--output-format=json+",
        f"--output=json_{prefix}",
        f"--name=cbt-librbdfio-{host}-file-0",
    ]
    if (host, volume) == LOGS_EVERY_IO:
        logs = [f"--write_lat_log={prefix}"]
    else:
        logs = [
            f"--write_bw_log={prefix}",
            f"--write_iops_log={prefix}",
            f"--log_avg_msec={CONFIG['log_avg_msec']}",
        ]
    return command[:-1] + logs + command[-1:]


def run(scratch):
    """Run the three hosts to the end; return when the stall began and ended (epoch, seconds)."""
    disk = disk_under(scratch)
    with contextlib.ExitStack() as cleanup:
        groups = {host: cleanup.enter_context(ControlGroup(host, disk)) for host in HOSTS}
        groups[SLOW].limit_iops(SLOW_READ_IOPS, SLOW_WRITE_IOPS)

        started = time.monotonic()
        processes = []
        for host, volume in volumes():
            process = subprocess.Popen(groups[host].enter_and(fio_command(host, volume)), cwd=scratch / host)
            cleanup.callback(interrupt, process)
            processes.append(process)
        print(f"{len(processes)} fio processes run for {CONFIG['time']} s", flush=True)

        time.sleep(started + STALL_AFTER_S - time.monotonic())
        began = time.time()
        groups[STALLED].stop_io()
        try:
            time.sleep(STALL_FOR_S)
        finally:  # also when interrupted, or fio could not end
            groups[STALLED].lift_limits()
        ended = time.time()

        if any(process.wait() for process in processes):
            sys.exit("record.py: fio failed; see its message above")
    return began, ended


def interrupt(process):
    """End fio, if it is still there, in the way that makes it end its jobs as well."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()


# --- limiting a host's I/O ---------------------------------------------------------------


def disk_under(folder):
    """The "major:minor" of the whole disk that holds the folder; limits name a disk by it."""
    device = os.stat(folder).st_dev
    sysfs = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not sysfs.exists():
        sys.exit(f"record.py: {folder} does not lie directly on a disk; choose another folder")
    sysfs = sysfs.resolve()
    if (sysfs / "partition").exists():
        sysfs = sysfs.parent
    return (sysfs / "dev").read_text().strip()


def controller():
    """(version, folder) of the control group hierarchy that can limit I/O."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        folder = Path(folder)
        if kind == "cgroup" and "blkio" in options.split(","):
            return 1, folder
        if kind == "cgroup2" and "io" in (folder / "cgroup.controllers").read_text().split():
            return 2, folder
    sys.exit("record.py: no control group controller for I/O (blkio or io) is mounted")


class ControlGroup:
    """The control group of one host, with limits on its I/O to one disk."""

    def __init__(self, host, disk):
        self.version, self.root = controller()
        self.folder = self.root / f"tailboard-{host}"
        self.disk = disk
        self.enabled_io = False

    def __enter__(self):
        try:
            if self.version == 2:
                enabled = self.root / "cgroup.subtree_control"
                if "io" not in enabled.read_text().split():
                    enabled.write_text("+io")
                    self.enabled_io = True
            self.folder.mkdir()
        except OSError as error:
            sys.exit(f"record.py: cannot make the control group {self.folder}: {error}")
        return self

    def __exit__(self, *_):
        self.lift_limits()
        self.folder.rmdir()
        if self.enabled_io:
            (self.root / "cgroup.subtree_control").write_text("-io")

    def enter_and(self, command):
        """The command line that enters this group and then becomes the command."""
        members = str(self.folder / "cgroup.procs")
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', members, *command]

    def limit_iops(self, reads, writes):
        self._write({"riops": reads, "wiops": writes})

    def stop_io(self):
        """Let nothing through: at a byte per second, a block would take more than an hour."""
        self._write({"rbps": 1, "wbps": 1})

    def lift_limits(self):
        self._write({"riops": None, "wiops": None, "rbps": None, "wbps": None})

    def _write(self, limits):
        if self.version == 2:
            words = [f"{key}={value or 'max'}" for key, value in limits.items()]
            (self.folder / "io.max").write_text(" ".join([self.disk, *words]))
            return
        for key, value in limits.items():
            direction = {"r": "read", "w": "write"}[key[0]]
            file = self.folder / f"blkio.throttle.{direction}_{key[1:]}_device"
            file.write_text(f"{self.disk} {value or 0}")


# --- filing what fio wrote ---------------------------------------------------------------


def write_archive(scratch, results):
    """File the hosts' logs in one folder, each name ending in its host, as CBT's rpdcp does."""
    digest = hashlib.sha1(json.dumps(sorted(CONFIG.items())).encode()).hexdigest()[:8]
    folder = results / f"{CONFIG['iteration']:08}" / f"id-{digest}"
    folder.mkdir(parents=True)
    for host in HOSTS:
        for file in (scratch / host).glob("json_output.*"):
            shutil.copyfile(file, folder / f"{file.name}.{host}")
        for file in (file for pattern in FILED for file in (scratch / host).glob(pattern)):
            packed = gzip.compress(file.read_bytes(), compresslevel=9, mtime=0)
            (folder / f"{file.name}.{host}.gz").write_bytes(packed)

    notice = "# Written by examples/record.py in the shape of CBT's own file; see PROVENANCE.md.\n"
    (folder / "benchmark_config.yaml").write_text(notice + "cluster:\n" + yaml_lines(CONFIG, indent=2))
    options = {key: CONFIG[key] for key in CONFIG if key not in ("benchmark", "iteration")}
    cluster = {
        "clients": HOSTS,
        "head": HOSTS[0],
        "iterations": 1,
        "tmp_dir": "/tmp/cbt",
        "user": "cbt",
    }
    (results / "cbt_config.yaml").write_text(
        notice
        + "benchmarks:\n  librbdfio:\n"
        + yaml_lines(options, indent=4)
        + "cluster:\n"
        + yaml_lines(cluster, indent=2)
        + "monitoring_profiles: {}\n"
    )


def yaml_lines(mapping, indent):
    """A flat mapping as YAML. Every value in it is spelled alike in JSON and in YAML."""
    return "".join(
        f"{' ' * indent}{key}: {value if isinstance(value, str) else json.dumps(value)}\n"
        for key, value in sorted(mapping.items())
    )


def tell(results, stall):
    """Print the story's times, by the clock and as elapsed in the stalled host's logs."""
    starts = {}
    for file in sorted(results.glob("*/*/json_output.*")):
        document = json.loads(file.read_text())
        for job in document["jobs"]:
            start = (document["timestamp_ms"] - job["job_runtime"]) / 1000
            starts.setdefault(file.name.split(".")[-1], []).append(start)
    for host, times in starts.items():
        print(f"{host}: time zero {min(times):.3f} .. {max(times):.3f}")
    zero = min(starts[STALLED])
    for word, moment in zip(("began", "ended"), stall):
        print(f"{STALLED}: stall {word} {moment:.3f}, {moment - zero:.2f} s elapsed")
    limit = f"{SLOW_READ_IOPS} reads and {SLOW_WRITE_IOPS} writes per second"
    print(f"{SLOW}: limited to {limit} throughout")


if __name__ == "__main__":
    main()
