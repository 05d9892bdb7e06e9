"""The part of overlay-presence that approves calls with a password, which polkit's text agent or sudo asks for on a terminal."""

import re
import subprocess

from presence_people import PASSWORDS, Terminal, Watcher, account, client, expected, records, result


def approve_command(question, digest=None):
    asked = question["ask"]
    call = f"{asked['calls'][0]['server']}.{asked['calls'][0]['name']} {asked['calls'][0]['arguments']}"
    return ["/usr/bin/lockhouse", "approve", " ".join(call.split()), "once", "0", str(asked["id"]), digest or asked["digest"]]


def try_without_password(rows, question, watcher):
    """What the agent of a person tries, who does not know the password."""
    reason = watcher.answer(question)
    rows.row("the agent's own answer is refused", "needs a password" in reason, reason)
    reason = watcher.answer(question, proof={"password": {"method": "polkit", "uid": 1500}})
    rows.row("its statement that a password was given is refused", "only a process of root" in reason, reason)
    for name, words, reason in [
        ("it is not root for lockhouse approve", approve_command(question), "as root"),
        ("polkit asks nobody without an agent", ["pkexec", "--disable-internal-agent", *approve_command(question)], "No authentication agent"),
        ("polkit permits it no other program", ["pkexec", "--disable-internal-agent", "/usr/bin/id"], "No authentication agent"),
    ]:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **account(1500))
        rows.row(name, done.returncode != 0 and reason in done.stderr, done)


def try_as_other(rows, question):
    """The second person gives their own right password, for the question of the first."""
    script = (
        "mkfifo $HOME/ready; pkttyagent --notify-fd 3 --process $$ 3>$HOME/ready & cat $HOME/ready; "
        "pkexec --disable-internal-agent \"$@\"; echo status $?; kill $!"
    )
    terminal = Terminal(1501, "sh", "-c", script, "sh", *approve_command(question))
    asked = terminal.give(PASSWORDS[1501])
    is_refused = terminal.wait_for("no engine of user 1501") and terminal.wait_for("status 7")
    rows.row("the second person's own password does not approve it", asked and is_refused, terminal.output)
    terminal.end()


def with_polkit(rows):
    """Approves calls of two people."""
    person, other = Terminal(1500, "lockhouse", "approvals"), Terminal(1501, "lockhouse", "approvals")
    watcher = Watcher(1500)
    watcher.next("watching")
    running = client(1500, 7)
    question = watcher.next("ask")
    rows.row("the person's call waits for a password", question["ask"]["presence"] == "password", question)
    try_without_password(rows, question, watcher)
    try_as_other(rows, question)
    for name, wrong in [("a wrong password is refused", "wrong"), ("the second person's password is refused", PASSWORDS[1501])]:
        asked = person.answer("y") and person.give(wrong) and person.wait_for("it was not approved")
        rows.row(name, asked and running.poll() is None, person.output)
    rows.row("no approval is recorded", records(1500) == [], records(1500))
    asked = person.answer("y") and person.wait_for("tickets.echo") and person.give(PASSWORDS[1500])
    rows.row("the text agent shows the call and asks for the password", asked, person.output)
    found = result(running)
    rows.row("the right password approves the call", found == expected(7), found)
    once = {"outcome": "once", "presence": "polkit", "uid": 1500, "credential": None}
    rows.row("the record names polkit and the person", records(1500) == [once], records(1500))
    running = client(1500, 8)
    asked = person.answer("y") and person.give(PASSWORDS[1500])
    found = result(running)
    rows.row("the second call asks for it again", asked and found == expected(8), (found, person.output))
    running = client(1501, 9)
    asked = other.answer("y") and other.give(PASSWORDS[1501])
    found = result(running)
    rows.row("control: the second person approves an own call", asked and found == expected(9), found)
    are_own = (records(1500), records(1501)) == ([once, once], [once | {"uid": 1501}])
    rows.row("each engine has its own records", are_own, records(1501))
    for ended in [person, other, watcher]:
        ended.end()
    accept_policy(rows)


def accept_policy(rows):
    """The second person proposes a policy, and accepts it."""
    proposed = ["sh", "-c", "mkdir -p ~/.config/lockhouse && cat >~/.config/lockhouse/policy.toml && lockhouse policy propose"]
    policy = 'version = 1\n[servers.tickets]\nallow = ["echo"]\n'
    shown = subprocess.run(proposed, input=policy, capture_output=True, text=True, check=False, **account(1501)).stdout
    digest = re.findall(r"lockhouse policy accept ([0-9a-f]{16})", shown)
    rows.row("a proposed policy is shown with its digest", bool(digest), shown)
    for name, password, words in [
        ("a wrong password does not accept it", "wrong", "it was not approved"),
        ("the right password accepts it", PASSWORDS[1501], "the policy is in force"),
    ]:
        terminal = Terminal(1501, "lockhouse", "policy", "accept", *digest[:1])
        done = terminal.wait_for("echo") and terminal.give(password) and terminal.wait_for(words)
        rows.row(name, done, terminal.output)
        terminal.end()
    found = result(client(1501, 10))
    rows.row("the call is made without a question", found == expected(10), found)


def with_sudo(rows):
    """Approves calls of a person on a host without pkexec."""
    prompt, before = "password for person1500:", len(records(1500))
    person = Terminal(1500, "lockhouse", "approvals")
    running = client(1500, 7)
    asked = person.answer("y") and all(person.give(wrong, prompt) for wrong in ["wrong", PASSWORDS[1501], "wrong"])
    is_refused = asked and person.wait_for("it was not approved") and running.poll() is None
    rows.row("sudo: three wrong passwords are refused", is_refused, person.output)
    asked = person.answer("y") and person.give(PASSWORDS[1500], prompt)
    found = result(running)
    rows.row("sudo: the right one approves the call", asked and found == expected(7), (found, person.output))
    running = client(1500, 8)
    asked = person.answer("y") and person.give(PASSWORDS[1500], prompt)
    found = result(running)
    rows.row("sudo: the second call asks for it again", asked and found == expected(8), (found, person.output))
    once = {"outcome": "once", "presence": "sudo", "uid": 1500, "credential": None}
    rows.row("sudo: the records name it and the person", records(1500)[before:] == [once, once], records(1500))
    typed = {"input": PASSWORDS[1500] + "\n", "capture_output": True, "text": True}
    done = subprocess.run(["sudo", "-S", "-k", "--", "/usr/bin/id"], check=False, **typed, **account(1500))
    is_refused = done.returncode != 0 and "not allowed" in done.stderr
    rows.row("sudo: the password permits no other program", is_refused, done)
    person.end()
