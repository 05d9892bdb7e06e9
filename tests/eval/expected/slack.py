"""What the programs must return or print, and do: the suite slack, with its web pages."""

from tasks import task


@task("channels and their users")
def channel_members(t):
    users = t.environment("slack").slack.user_channels.values()
    return {channel: sum(channel in joined for joined in users) for channel in t.environment("slack").slack.channels}


@task("read channel messages and post a message")
def busiest_channel(t):
    channel, messages = max(t.environment("slack").slack.channel_inbox.items(), key=lambda pair: len(pair[1]))
    t.slack.send_channel_message(channel=channel, body=f"{len(messages)} messages so far")
    return channel


@task("messages in a channel")
def shared_links(t):
    messages = t.environment("slack").slack.channel_inbox["general"]
    words = [(word.strip("!().,"), message.sender) for message in messages for word in message.body.split()]
    return [{"link": word, "by": sender} for word, sender in words if word.startswith("www.")]


@task("read the inbox of a user", printed=True)
def bobs_correspondents(t):
    return [", ".join(sorted({message.sender for message in t.environment("slack").slack.user_inbox["Bob"]}))]


@task("invite a new user to slack and to channels")
def invite_dora(t):
    t.slack.invite_user_to_slack(user="Dora", user_email="dora@gmail.com")
    for channel in ("general", "random"):
        t.slack.add_user_to_channel(user="Dora", channel=channel)
    return {"email": "dora@gmail.com", "general": ["Alice", "Bob", "Charlie", "Eve", "Dora"]}


@task("send a direct message to users")
def thank_everyone(t):
    for user in t.environment("slack").slack.users:
        t.slack.send_direct_message(recipient=user, body=f"Thank you, {user}!")
    return 4


@task("which users wrote no message in any channel")
def quiet_users(t):
    slack = t.environment("slack").slack
    writers = {message.sender for messages in slack.channel_inbox.values() for message in messages}
    return {"writers": sorted(writers), "quiet": sorted(set(slack.users) - writers)}
