"""Measures the peers interleaved: in each round each peer does its share, and the order rotates, so that other load hits all alike."""

import os
import time

PAUSE = 0.02
RUNS_PER_ROUND = 10
AT_A_TIME = 8
TOGETHER = 80


def percentile(times, percent):
    """Returns a percentile of times in seconds, in ms."""
    ordered = sorted(times)
    return 1000 * ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


def measure(peers, rounds):
    """Returns the figures of each peer by name, and the reasons why peers failed."""
    running, figures, failed = {}, {}, {}
    for peer in peers:
        attempt(peer, failed, lambda peer=peer: begin(peer, running, figures))
    for number in range(rounds):
        order = [peer for peer in peers if peer.name in running]
        for peer in order[number % len(order):] + order[:number % len(order)]:
            attempt(peer, failed, lambda peer=peer: one_round(peer, running[peer.name], figures[peer.name]))
    for name, client in running.items():
        figures[name]["memory"] = memory_mb(client)
        client.close()
    for name in failed:
        figures.pop(name, None)
    return {name: summary(one) for name, one in figures.items()}, failed


def attempt(peer, failed, step):
    """Takes a step with a peer, unless an earlier step failed."""
    if peer.name not in failed:
        try:
            step()
        except (OSError, RuntimeError, ValueError) as error:
            failed[peer.name] = str(error)[:200]


def begin(peer, running, figures):
    """Starts a peer and measures its first result, then makes each kind of run once."""
    started = time.perf_counter()
    client = peer.start()
    client.run(*peer.programs["trivial"])
    figures[peer.name] = {"isolation": peer.isolation, "cold": 1000 * (time.perf_counter() - started)}
    running[peer.name] = client
    for program in filter(None, peer.programs.values()):
        client.run(*program)


def one_round(peer, client, times):
    """Makes the share of one round: paced runs of each program, and runs at the same time."""
    for kind, program in peer.programs.items():
        for _ in range(RUNS_PER_ROUND if program else 0):
            time.sleep(PAUSE)
            times.setdefault(kind, []).append(client.run(*program))
    took = client.together(*peer.programs["trivial"], AT_A_TIME, TOGETHER)
    times.setdefault("rates", []).append(TOGETHER / took)


def summary(times):
    """Returns the figures of one peer: times in ms, executions per second, and memory in MB."""
    row = {"isolation": times["isolation"], "cold": times["cold"], "memory": times.get("memory")}
    row["p50"], row["p95"] = percentile(times["trivial"], 50), percentile(times["trivial"], 95)
    row["one call"] = percentile(times["one call"], 50) if "one call" in times else None
    if "sequence" in times:
        row["100 calls"] = percentile(times["sequence"], 50)
    else:
        row["100 calls"] = 2 * percentile(times["half sequence"], 50) if "half sequence" in times else None
    row["per second"] = sorted(times["rates"])[len(times["rates"]) // 2]
    return row


def memory_mb(client):
    """Returns the proportional memory of the peer's processes in MB, without echo servers; None for a plain process."""
    process = getattr(client, "process", None)
    return process and sum(pss_mb(one) for one in tree(process.pid))


def tree(root):
    """Returns the process ids of a process and its descendants, without echo servers."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found, new = [], [root]
    while new:
        found += new
        new = [child for child, parent in parents.items() if parent in new and "echo_server" not in command_of(child)]
    return found


def command_of(process):
    """Returns the command line of a process; empty if it has ended."""
    try:
        with open(f"/proc/{process}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


def pss_mb(process):
    """Returns the proportional set size of a process in MB; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        return 0
