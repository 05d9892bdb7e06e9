"""What the programs must return or print, and do: the leaderboard's messages."""

from tasks import task


@task("send a message to all users")
def message_everyone(t):
    t.messages.message_login(user_id="USR001")
    others = {name: number for name, number in t.environment("messages").user_map.items() if number != "USR001"}
    for name, number in others.items():
        t.messages.send_message(receiver_id=number, message=f"Hello {name}")
    return len(others)


@task("search my messages")
def requests_for_files(t):
    t.messages.message_login(user_id="USR001")
    pairs = [pair for message in t.environment("messages").inbox for pair in message.items()]
    receivers = sorted(receiver for receiver, text in pairs if "upload" in text)
    return {"receivers": receivers, "conversations": len({receiver for receiver, _ in pairs})}
