"""Functions inside a guest: start Lockhouse as a user in a control group, and report findings."""

import json
import os
import subprocess
import time

BINARIES = open("/etc/lockhouse-binaries").read().strip()
GROUPS = "/sys/fs/cgroup"
# The ordinary user.
USER = 1000


def boot_parameter(name):
    return dict(word.partition("=")[::2] for word in open("/proc/cmdline").read().split()).get(name, "")


def report_finding(check, verdict, found):
    print("@@|" + "|".join(str(part).replace("\n", " ").replace("|", "/") for part in (check, verdict, found)), flush=True)


def judge(check, good, found):
    report_finding(check, "pass" if good else "FAIL", found)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        return error.strerror


def group(name, user, delegated=True):
    """Creates a control group as a service manager does, delegated to a user by default."""
    path = f"{GROUPS}/{name}"
    os.makedirs(path)
    if user:
        for file in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(f"{path}/{file}", user, user)
    elif delegated:
        os.setxattr(path, "trusted.delegate", b"1")
    return path


def start(arguments, user=0, within=None, **more):
    home = f"/tmp/home-{user}"
    os.makedirs(home, exist_ok=True)
    os.chown(home, user, user)

    def enter():
        if within:
            write(f"{within}/cgroup.procs", "0")
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)

    environment = {"PATH": "/usr/bin:/bin", "HOME": home}
    return subprocess.Popen(arguments, preexec_fn=enter, env=environment, cwd=home, stdin=subprocess.DEVNULL, text=True, **more)


def lockhouse(*arguments, **how):
    out, fault = output_of(*arguments, **how)
    try:
        return json.loads(out)
    except ValueError:
        return {"fault": fault}


def lockhouse_text(*arguments, **how):
    """Returns the standard output of a command that must succeed."""
    out, fault = output_of(*arguments, **how)
    if not out:
        raise RuntimeError(fault)
    return out


def output_of(*arguments, program=f"{BINARIES}/lockhouse", **how):
    """Returns the standard output of a command, and how it ended with all that it printed."""
    process = start([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    out, err = process.communicate(timeout=300)
    return out, f"status {process.returncode}: {out} {err}"


def run(code, *more, language="python", **how):
    return lockhouse("run", "-c", code, "--language", language, "--json", *more, **how)


def summarize(answer):
    if "fault" in answer:
        return answer["fault"]
    error = answer.get("error") or {}
    words = answer.get("value", error.get("message"))
    return f"{answer.get('status')}: {words}"


def native(user):
    """Returns options that replace the TypeScript worker by the one for native attacks."""
    path = f"/tmp/native-{user}.toml"
    if not os.path.exists(path):
        write(path, f'[javascript]\nworker = "{BINARIES}/native-worker"\n')
    return ["--config", path]


def workers(path):
    return sorted(name for name in os.listdir(path) if name.startswith("worker-"))


def wait_until(condition, seconds=15):
    """Waits until a condition is true, and returns its last value."""
    until = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def user_name(user):
    return "user" if user else "root"
