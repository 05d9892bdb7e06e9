"""The checks that run on one kernel. Each prints a line: @@|check|pass, FAIL or info|finding. `info` marks information."""

import json
import os
import re
import shutil
import subprocess
import threading
import time

from guest import BINARIES, GROUPS, USER, boot_parameter, group, judge, lockhouse, native, read, report_finding, run, start, summarize
from guest import user_name, wait_until, workers, write
from service_checks import check_services, check_without_namespaces

CONTROL_GROUP = "control group per worker"
OLD_TCP, OLD_SIGNALS = "Landlock: TCP", "Landlock: signals, abstract sockets"
NO_NAMESPACES = {"namespaces, empty root", "network namespace"}
# The protections that each kernel lacks. All others must hold.
ABSENT = {
    "debian12": {OLD_TCP, OLD_SIGNALS, "no new executable memory"},
    "ubuntu2404": {OLD_SIGNALS},
    "debian13": set(),
}
# Prefixes of tests in the module. The last test requires that no other protection is missing.
PROTECTIONS = ("a_host_without", "a_missing_sandbox", "doctor_names", "lockhouse_does_not_serve", "with_require_full")
TASKS_MAX, MEMORY_MAX = 256, (256 + 32) << 20
# A Python program that slowly allocates 240 MiB, which is below its limit.
EAT = "held = []\nfor _ in range(240):\n    held.append(bytearray(1 << 20))\n    sum(range(200000))\nlen(held)"


def doctor(check, absent, **how):
    report = lockhouse("doctor", "--json", **how)
    if "protections" not in report:
        return judge(check, False, report)
    rows = {row["protection"]: row for row in report["protections"]}
    found = {name for name, row in rows.items() if row["verdict"] != "holds"}
    level = "reduced" if absent else "full"
    words = "; ".join(rows[name]["found"] for name in sorted(found))
    good = report["level"] == level and found == absent and all(engine["works"] for engine in report["engines"])
    if good:
        return judge(check, True, f"{level}{': ' if words else ''}{words}")
    engines = [engine["found"] for engine in report["engines"] if not engine["works"]]
    judge(check, False, f"{report['level']} instead of {level}; too weak: {found - absent}; too strong: {absent - found}; {words} {engines}")


def doctors(absent):
    for user in (0, USER):
        doctor(f"doctor, {user_name(user)}, group not delegated", absent | {CONTROL_GROUP}, user=user)
        doctor(f"doctor, {user_name(user)}, delegated group", absent, user=user, within=group(f"doctor-{user}", user))
    # Another process is in the control group, so Lockhouse cannot divide the group and must not change it.
    shared = group("shared", 0)
    sleeper = start(["/bin/sleep", "1000"], within=shared)
    doctor("doctor, root, shared group", absent | {CONTROL_GROUP}, within=shared)
    # Child processes of lockhouse exit shortly after it.
    members = lambda: read(f"{shared}/cgroup.procs").split()
    wait_until(lambda: members() == [str(sleeper.pid)])
    judge("a shared group is left as it was", members() == [str(sleeper.pid)] and not os.path.exists(f"{shared}/supervisor"), members())
    sleeper.kill()
    doctor("doctor, root, group of systemd's own", absent | {CONTROL_GROUP}, within=group("own", 0, delegated=False))


def runs():
    for user in (0, USER):
        path = group(f"run-{user}", user)
        for language, code in (("python", "1 + 2"), ("typescript", "[1, 2].length + 1")):
            answer = run(code, language=language, user=user, within=path)
            judge(f"run {language}, {user_name(user)}", answer.get("value") == 3, summarize(answer))
            judge(f"no worker's group is left, {language}, {user_name(user)}", not workers(path), workers(path))
            write_off(path, user)
        # The first supervisor has one worker in use and is starting others.
        first = start([f"{BINARIES}/lockhouse", "run", "-c", "import time; time.sleep(20)", "--language", "python", "--json"], user=user, within=path, stdout=subprocess.PIPE)
        wait_until(lambda: workers(path), 120)
        second = run("1 + 2", user=user, within=f"{path}/supervisor")
        first = json.loads(first.communicate(timeout=300)[0])
        good = second.get("value") == 3 and first.get("status") == "ok" and "control group" not in str(second.get("sandbox"))
        judge(f"two supervisors in one group, {user_name(user)}", good, f"{summarize(first)}, {summarize(second)}")
        anew = run("1 + 2", user=user, within=f"{path}/supervisor")
        judge(f"started anew in its own place, {user_name(user)}", anew.get("value") == 3 and "control group" not in str(anew.get("sandbox")), summarize(anew))
        judge(f"no worker's group is left by any, {user_name(user)}", not workers(path), workers(path))


def write_off(path, user):
    """Resets the control group as a service manager does between two starts: no children and no enabled controllers."""
    for name in workers(path) + ["supervisor"]:
        try:
            os.rmdir(f"{path}/{name}")
        except OSError:
            pass
    write(f"{path}/cgroup.subtree_control", "-memory -pids")


def bounds(user):
    """Checks the limits of a worker's control group, and that an out-of-memory kill is reported as such."""
    path = group(f"bounds-{user}", user)
    process = start([f"{BINARIES}/lockhouse", "run", "-c", EAT, "--language", "python", "--json"], user=user, within=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    busy = lambda: next((name for name in workers(path) if int(read(f"{path}/{name}/memory.current") or 0) > 24 << 20), None)
    name = wait_until(busy, 120)
    if not name:
        process.kill()
        return judge(f"a worker's group, {user_name(user)}", False, f"none uses memory: {os.listdir(path)} {process.communicate()}")
    worker = f"{path}/{name}"
    values = {file: read(f"{worker}/{file}") for file in ("pids.max", "memory.max", "memory.swap.max", "memory.oom.group", "cgroup.procs")}
    expected = {"pids.max": str(TASKS_MAX), "memory.max": str(MEMORY_MAX), "memory.oom.group": "1", "cgroup.procs": name.removeprefix("worker-")}
    judge(f"a worker's group, {user_name(user)}", all(values[file] == value for file, value in expected.items()), values)
    try:
        write(f"{worker}/memory.max", str(48 << 20))
        out, err = process.communicate(timeout=200)
        answer = json.loads(out)
    except (OSError, ValueError) as error:
        process.kill()
        return judge(f"killed for want of memory, {user_name(user)}", False, f"{error} {process.communicate()}")
    judge(f"killed for want of memory, {user_name(user)}", "memory limit of 256 MiB" in summarize(answer) and answer["status"] == "limit", summarize(answer))
    judge(f"no worker's group is left after that, {user_name(user)}", not workers(path), workers(path))
    write_off(path, user)


def bombs(user):
    path = group(f"bombs-{user}", user)
    native_run = lambda name, **how: run(name, *native(user), language="typescript", user=user, **how)
    # The kernel also limits tasks per user in a user namespace. Root has no such limit.
    outside = native_run("bomb_threads")
    judge(f"300 threads without a group, {user_name(user)}", outside.get("value") == (-11 if user else 0), summarize(outside))
    for attack, expected in (("bomb_threads", -11), ("bomb_memory", -12)):
        answer = native_run(attack, within=path)
        judge(f"{attack} in a group, {user_name(user)}", answer.get("value") == expected, summarize(answer))
        write_off(path, user)
    for code in ("held = bytearray(1 << 30)", "held = []\nwhile True: held.append(bytearray(1 << 20))"):
        answer = run(code, user=user, within=path)
        judge(f"Python's memory bomb, {user_name(user)}", answer.get("status") == "limit" and "memory limit of 256 MiB" in summarize(answer), summarize(answer))
        write_off(path, user)
    threads = "import threading, time\nfor _ in range(300): threading.Thread(target=time.sleep, args=(5,)).start()"
    answer = run(threads, user=user, within=path)
    judge(f"Python's thread bomb, {user_name(user)}", answer.get("status") == "error", summarize(answer))


def leftovers(user):
    path = group(f"left-{user}", user)
    os.mkdir(f"{path}/worker-99999")
    os.mkdir(f"{path}/worker-99998")
    if user:
        os.chown(f"{path}/worker-99999", user, user)
    # A control group that is in use must remain.
    sleeper = start(["/bin/sleep", "1000"], within=f"{path}/worker-99998")
    answer = run("1 + 2", user=user, within=path)
    judge(f"leftovers are removed, {user_name(user)}", answer.get("value") == 3 and workers(path) == ["worker-99998"], f"{summarize(answer)} {answer.get('sandbox')} {workers(path)}")
    sleeper.kill()


def suite(check, names, timeout=3000):
    """Runs tests of the suite `sandbox`, and prints the failed rows of their tables and how many attacks pass, as they come."""
    arguments = ["/bin/sh", "-c", f"exec {BINARIES}/deps/product --test-threads 1 --nocapture {' '.join(names)}"]
    began, summary = time.monotonic(), "no result"
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", stdin=subprocess.DEVNULL)
    limit = threading.Timer(timeout, process.kill)
    limit.start()
    for line in process.stdout:
        if re.search(r"FAIL|panicked|^native-service:|reached: \[|attacks pass", line):
            print(f"{check}, {time.monotonic() - began:.0f} s: {line[:1000].rstrip()}", flush=True)
        if line.startswith("test result"):
            summary = line
    process.wait()
    limit.cancel()
    judge(check, process.returncode == 0, f"{summary} {time.monotonic() - began:.0f} s")


def no_namespaces(absent):
    write("/proc/sys/user/max_user_namespaces", "0")
    doctor("no user namespaces: user", absent | {CONTROL_GROUP} | NO_NAMESPACES, user=USER)
    doctor("no user namespaces: root needs none", absent | {CONTROL_GROUP})
    answer = run("1 + 2", user=USER)
    judge("no user namespaces: said with the answer", answer.get("value") == 3 and "no namespaces" in str(answer.get("sandbox")), answer.get("sandbox"))
    check_without_namespaces("no user namespaces, https")
    write("/proc/sys/user/max_user_namespaces", "10000")


def apparmor(absent):
    """Checks Ubuntu's restriction of user namespaces, and the AppArmor profile that exempts Lockhouse."""
    switch = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    if not os.path.exists(switch):
        return report_finding("AppArmor's restriction", "info", "this kernel has none")
    write(switch, "1")
    for source, target in (("lockhouse", "bin"), ("lockhouse-worker", "lib/lockhouse"), ("liblockhouse_python.so", "lib/lockhouse")):
        os.makedirs(f"/usr/local/{target}", exist_ok=True)
        shutil.copy2(f"{BINARIES}/{source}", f"/usr/local/{target}")
    installed = {"program": "/usr/local/bin/lockhouse", "user": USER}
    doctor("AppArmor's restriction, no profile at all", absent | {CONTROL_GROUP} | NO_NAMESPACES, **installed)
    load_profile("/ubuntu/etc/apparmor.d/unprivileged_userns")
    doctor("AppArmor's restriction, Ubuntu's profile", absent | {CONTROL_GROUP} | NO_NAMESPACES, **installed)
    check_without_namespaces("AppArmor's restriction, https", program=installed["program"])
    profile = "/profiles/lockhouse"
    if not os.path.exists(profile):
        report_finding("AppArmor profile", "info", "packaging has none; one of two lines instead")
        write(profile, "abi <abi/4.0>,\nprofile lockhouse /usr/local/bin/lockhouse flags=(unconfined) {\n  userns,\n}\n")
    load_profile(profile)
    doctor("AppArmor's restriction, our profile", absent | {CONTROL_GROUP}, **installed)
    write(switch, "0")


def load_profile(profile):
    """Loads an AppArmor profile with Ubuntu's parser."""
    libraries = "/ubuntu/usr/lib/x86_64-linux-gnu"
    parser = [f"{libraries}/ld-linux-x86-64.so.2", "--library-path", libraries, "/ubuntu/sbin/apparmor_parser"]
    command = [*parser, "--skip-cache", "--replace", "--base", "/ubuntu/etc/apparmor.d", profile]
    done = subprocess.run(command, capture_output=True, text=True)
    judge(f"AppArmor takes {os.path.basename(profile)}", done.returncode == 0, f"{done.stdout} {done.stderr}")


def main():
    kernel = boot_parameter("kernel")
    only = boot_parameter("checks")
    absent = ABSENT[kernel]
    report_finding("kernel", "info", f"{os.uname().release}, LSMs {read('/sys/kernel/security/lsm')}")
    write(f"{GROUPS}/cgroup.subtree_control", "+memory +pids")
    everything = {
        "doctors": lambda: doctors(absent),
        "runs": runs,
        "bounds": lambda: [bounds(user) for user in (0, USER)],
        "bombs": lambda: [bombs(user) for user in (0, USER)],
        "leftovers": lambda: [leftovers(user) for user in (0, USER)],
        "namespaces": lambda: no_namespaces(absent),
        "apparmor": lambda: apparmor(absent),
        "http": check_services,
        "fronts": lambda: suite("native attacks in a front and a signer", ["sandbox::service_attacks::", "sandbox::service_sweep::"]),
        "sweep": lambda: suite("sweep of system calls", ["sandbox::syscall_sweep::"]),
        "protections": lambda: suite("protections", ["sandbox::missing_protections::" + test for test in PROTECTIONS[: 4 if absent else 5]]),
        "ablation": lambda: suite("ablation", ["sandbox::ablation::"]),
    }
    for name, part in everything.items():
        if only and name not in only.split(","):
            continue
        try:
            part()
        except Exception as error:
            report_finding(name, "FAIL", f"{type(error).__name__}: {error}")


main()
